"""One page of Chromium for all tests of the runtime, in which its modules lie open; and models in files, in both."""

import base64
import functools
import json
from contextlib import contextmanager
from dataclasses import asdict

import pytest
import torch

from d2lmini.models.weights import files
from d2lmini.models.weights.rounding import rounded
from d2lmini.models.weights.trained import MODELS, trained
from tools.bundles import FIGURES, bundled

RUN = {"experiment": "none", "preset": "none", "headline": "random", "commit": "", "command": ""}


@pytest.fixture(scope="session")
def opened():
    """The runtime as the body of a function that returns what all its modules export."""
    modules = "".join(f'export * from "./live/{path.name}";\n' for path in sorted(FIGURES.glob("live/*.js")))
    return f"{bundled(modules, 'live')}\nreturn live;"


@contextmanager
def opened_page(chromium, opened):
    """A page whose `live` has every name of the runtime; `kept` has models."""
    context = chromium.new_context()
    page = context.new_page()
    page.evaluate("source => { window.live = new Function(source)(); window.kept = {}; }", opened)
    yield page
    context.close()


@pytest.fixture(scope="session")
def live_page(chromium, opened):
    with opened_page(chromium, opened) as page:
        yield page


@pytest.fixture(scope="session")
def live(live_page):
    return run_in(live_page)


@pytest.fixture
def alone(chromium, opened):
    """`live` in a page of its own, whose memory no other test has filled."""
    with opened_page(chromium, opened) as page:
        yield run_in(page)


def run_in(page):
    """A function that runs JavaScript, the body of a function of `live`, `given` and `kept`, in the page.

    What is given and what comes back is JSON, so that lone surrogates pass; a typed array comes back as a list.
    """
    code = """async ([body, text]) => JSON.stringify(
        await new (async () => {}).constructor("live", "given", "kept", body)(live, JSON.parse(text), kept),
        (_, value) => ArrayBuffer.isView(value) ? Array.from(value) : value)"""

    def live(body, given=None):
        told = page.evaluate(code, [body, json.dumps(given)])
        return None if told is None else json.loads(told)

    return live


def random_file(folder, name, config):
    """Writes a GPT of random weights, in 8 bits. Returns: the path of the file."""
    torch.manual_seed(0)
    model = MODELS["GPT"](**config).eval()
    with torch.no_grad():
        model(torch.zeros(1, 2, dtype=torch.long))
        for key, parameter in model.named_parameters():
            near = 1 if parameter.dim() == 1 and "bias" not in key else 0  # the factors of norms
            parameter.normal_(near, 0.3 if parameter.dim() == 1 else parameter.shape[-1] ** -0.5)
    metadata = {
        "name": name,
        "model": "GPT",
        "config": asdict(model.config),
        "tokenizer": None,
        "extra": {},
        "run": RUN,
    }
    kept = rounded(dict(model.named_parameters()), "int8")
    files.write(folder / f"{name}.safetensors", kept, metadata | {"rounding": {"kind": "int8"}})
    return folder / f"{name}.safetensors"


@pytest.fixture(scope="session")
def in_both(live):
    """A function that gives a model of the package and puts the same weights into the page, as `kept[name]`."""

    @functools.cache
    def in_both(name):
        text = base64.b64encode(files.path_of(name).read_bytes()).decode()
        live(
            """await live.prepare();
            const bytes = Uint8Array.from(atob(given[1]), (letter) => letter.charCodeAt(0));
            kept[given[0]] = live.readModel(bytes.buffer);""",
            [name, text],
        )
        return trained(name)

    return in_both
