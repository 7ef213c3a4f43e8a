"""One page of Chromium for all tests of the runtime, in which its modules lie open."""

import json

import pytest

from d2lmini.figures.live import modules, names_of, runtime

OPEN = "worker", "tokenizers", "decoding", "vit"


@pytest.fixture(scope="session")
def live_page(chromium):
    """A page whose `live` has every name of the runtime."""
    names = [name for source in modules(*OPEN).values() for name in names_of(source)]
    context = chromium.new_context()
    page = context.new_page()
    page.evaluate(
        "source => { window.live = new Function(source)(); }", f"{runtime(*OPEN)}\nreturn {{ {', '.join(names)} }};"
    )
    yield page
    context.close()


@pytest.fixture(scope="session")
def live(live_page):
    """A function that runs JavaScript, the body of a function of `live` and `given`, in the page.

    What is given and what comes back is JSON, so that lone surrogates pass.
    """

    def live(body, given=None):
        code = f"async (text) => JSON.stringify(await (async (live, given) => {{ {body} }})(live, JSON.parse(text)))"
        told = live_page.evaluate(code, json.dumps(given))
        return None if told is None else json.loads(told)

    return live
