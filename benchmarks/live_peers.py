"""The GPT that lives in the page beside the same one run by onnxruntime-web, in Chromium, on one thread.

    python -m benchmarks.live_peers

Both have the same rounded weights and write greedily after a prompt, token by token, each in a worker of the same page,
which is opened anew for every turn. What the peer needs is fetched into the cache (`benchmarks/_onnx.py`).
"""

import base64
import gzip
import http.server
import json
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import torch

from benchmarks import _onnx
from benchmarks._common import main, quartiles, short
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.models.weights import files, rounding
from d2lmini.models.weights.trained import trained
from tools import bundles

HERE = Path(__file__).parent
FLOAT, EIGHT = "onnxruntime-web, float32", "onnxruntime-web, int8"
PEERS = {FLOAT: "float32.onnx", EIGHT: "int8.onnx"}
TINY = "tiny"
MEASURED = "first", "first_processor", "cold", "warm", "processor"  # see `_turn`


@dataclass(frozen=True)
class Sizes:
    """Exported weights of a GPT of characters, its prompt, how many characters it writes, and the rounds."""

    weights: str = "gpt_shakespeare"
    prompt: str = "ROMEO:\n"
    count: int = 200
    rounds: int = 9


QUICK = replace(Sizes(), weights=TINY, prompt="ab", count=6, rounds=2)


def tiny(folder):
    """Writes the weights of a GPT that nobody trained, as `python -m d2lmini export` would."""
    config = GPTConfig(vocab_size=12, max_len=8, num_hiddens=8, num_heads=2, num_blks=1, dropout=0.0)
    today = {"positions": "rotary", "norm": "rms", "ffn": "squared_relu", "use_bias": False, "qk_norm": True}
    config = replace(config, **today, tie_weights=False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        gpt = GPT(config)
        for parameter in gpt.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter)  # so large that it does not say one thing alone
    said = {"name": TINY, "model": "GPT", "config": vars(config), "extra": {}, "rounding": {"kind": "int8"}}
    said["tokenizer"] = {"kind": "characters", "tokens": list("abcdefghijkl")}
    said["run"] = dict.fromkeys(("experiment", "preset", "headline", "commit", "command"), "none")
    files.write(files.path_of(TINY, folder), rounding.rounded(dict(gpt.named_parameters()), "int8"), said)


@torch.no_grad()
def written(model, prompt, count):
    """The tokens that the model writes greedily in Python: list of integers."""
    state, read, tokens = model.empty_state(1), prompt, []
    for _ in range(count):
        logits, state = model.extend(torch.tensor([read]), state)
        read = [int(logits[0, -1].argmax())]
        tokens += read
    return tokens


def lay_out(folder, sizes, peers=True):
    """Writes all that the page loads into a folder.

    Returns:
        The model in Python, the ids of its prompt, and what stands in the page before the click for ours alone, bytes.
    """
    place = None if sizes.weights != TINY else folder
    if place:
        tiny(place)
    model = trained(sizes.weights, place)
    prompt = list(model.tokenizer.encode(sizes.prompt))
    live = folder / "_static" / "live"
    live.mkdir(parents=True)
    task = (HERE / "live_peers_ours.js").read_text(encoding="utf-8")
    (live / "runtime.js").write_text(bundles.runtime(task), encoding="utf-8")
    text = base64.b64encode(files.path_of(sizes.weights, place).read_bytes()).decode()
    (live / f"{sizes.weights}.js").write_text(f'd2lminiLive.deliver("{sizes.weights}", "{text}");\n', encoding="utf-8")
    if peers:
        shutil.copy(HERE / "live_peers_peer.js", folder / "peer.js")
        for path in _onnx.web_files():
            shutil.copy(path, folder)
        _onnx.export(model, folder / PEERS[FLOAT], quick=sizes.weights == TINY)
        _onnx.quantize(folder / PEERS[FLOAT], folder / PEERS[EIGHT])
    setup = {"weights": sizes.weights, "prompt": prompt, "count": sizes.count, "backend": _onnx.BACKEND[0]}
    setup |= {"past": _onnx.shapes(model.config), "peers": PEERS if peers else {}}
    host, page = bundles.host(), (HERE / "live_peers.js").read_text(encoding="utf-8")
    script = f"{host}globalThis.SETUP = {json.dumps(setup)};\n(() => {{\n{page}}})();"
    (folder / "index.html").write_text(
        f'<!DOCTYPE html><html lang="en" data-content_root="./"><meta charset="utf-8"><title>Side by side</title>'
        f'<link rel="icon" href="data:,"><body><script>{script}</script></body></html>',
        encoding="utf-8",
    )
    return model, prompt, host.encode()


class _Counting(http.server.SimpleHTTPRequestHandler):
    """Files as they are; each that is asked for is noted."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args, asked, **options):
        self.asked = asked
        super().__init__(*args, **options)

    def do_GET(self):
        self.asked.append(unquote(urlsplit(self.path).path).lstrip("/"))
        super().do_GET()

    def log_message(self, *args):
        pass


@contextmanager
def _served(folder):
    from tests.conftest import serving

    asked = []
    with serving(folder, partial(_Counting, asked=asked)) as url:
        yield f"{url}/index.html", asked


def _processor_seconds(session):
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return {process["id"]: process["cpuTime"] for process in found if process["type"] == "renderer"}


def _spent(before, after):
    return sum(seconds - before.get(process, 0) for process, seconds in after.items())


def _turn(browser, url, asked, name):
    """One contestant in a page of its own: loads and writes a token, and then two texts.

    Returns:
        dict with ``tokens``, ``files`` (what it asked for after the click), and in seconds ``first`` (from the click to
        the first token), ``cold`` and ``warm`` (each token after the first one, in the first and the second text),
        ``first_processor`` and ``processor`` (of the renderer, until the first token is there, and for each token of
        the second text).
    """
    context = browser.new_context()
    session = browser.new_browser_cdp_session()
    try:
        page = context.new_page()
        page.set_default_timeout(180_000)
        page.goto(url, wait_until="load")
        asked.clear()
        clicked = _processor_seconds(session)
        page.get_by_role("button", name=name, exact=True).click()
        first = page.evaluate("globalThis.found")
        wanted, loaded = list(asked), _processor_seconds(session)
        cold = page.evaluate("name => write(name)", name)
        before = _processor_seconds(session)
        warm = page.evaluate("name => write(name)", name)
        after = _processor_seconds(session)
    finally:
        session.detach()
        context.close()
    if cold["tokens"] != warm["tokens"]:
        raise AssertionError(f"{name} does not write the same twice")

    def each(text):
        return (text["times"][-1] - text["times"][0]) / 1000 / (len(text["times"]) - 1)

    return {
        "tokens": warm["tokens"],
        "files": wanted,
        "first": first / 1000,
        "first_processor": _spent(clicked, loaded),
        "cold": each(cold),
        "warm": each(warm),
        "processor": _spent(before, after) / len(warm["tokens"]),
    }


def compare(browser, folder, sizes, peers=True):
    """Lets the contestants take turns in a Chromium. Returns: dict of what goes into the record.

    Raises:
        AssertionError: ours, or the peer in float32, writes other tokens than the model in Python.
    """
    model, prompt, before_click = lay_out(folder, sizes, peers)
    wanted = written(model, prompt, sizes.count)
    names, turns = ["ours", *(PEERS if peers else ())], {}
    with _served(folder) as (url, asked):
        for i in range(sizes.rounds):
            for name in reversed(names) if i % 2 else names:
                turns.setdefault(name, []).append(_turn(browser, url, asked, name))
                told = {key: f"{1000 * turns[name][-1][key]:.2f} ms" for key in MEASURED}
                print(f"  {name}: {', '.join(f'{key} {value}' for key, value in told.items())}", flush=True)
    contestants = {name: _summary(folder, turns, name, wanted, before_click) for name in names}
    for name in names:
        if name != EIGHT and contestants[name]["same"] != len(wanted):
            raise AssertionError(f"{name} does not write what the model writes in Python")
    return {
        "run": str(model.trained),
        "text": model.tokenizer.decode(wanted),
        "rounds": sizes.rounds,
        "contestants": contestants,
        "browser": f"Chromium {browser.version}",
        "peer": {"onnxruntime-web": _onnx.WEB[1], **_onnx.WHEELS, "opset": _onnx.OPSET} if peers else {},
    }


def _summary(folder, turns, name, wanted, before_click):
    """What the record says of a contestant: quartiles, and the ratios of ours to it, turn by turn."""
    own = turns[name]
    loaded = {file: (folder / file).read_bytes() for file in own[0]["files"]}
    if name == "ours":
        loaded["host.js, in the page"] = before_click
    found = {key: quartiles([turn[key] for turn in own]) for key in MEASURED}
    found["per_second"] = short(1 / max(found["warm"][1], 1e-9))  # a tiny model is faster than the page's clock tells
    found["same"] = next(
        (i for i, (a, b) in enumerate(zip(own[0]["tokens"], wanted, strict=True)) if a != b), len(wanted)
    )
    found["bytes"] = {file: len(content) for file, content in loaded.items()}
    found["gzipped"] = {file: len(gzip.compress(content, 6, mtime=0)) for file, content in loaded.items()}
    if name != "ours":
        pairs = list(zip(turns["ours"], own, strict=True))
        found["ratio"] = {key: quartiles([a[key] / max(b[key], 1e-9) for a, b in pairs]) for key in MEASURED}
    return found


def measure(sizes):
    """Returns: as `compare`."""
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS

    try:
        _onnx.fetch()
    except OSError as error:
        sys.exit(f"not measured: {error}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        try:
            return compare(browser, Path(folder), sizes)
        finally:
            browser.close()


if __name__ == "__main__":
    main("live_peers", measure, Sizes(), QUICK, gpu=False)
