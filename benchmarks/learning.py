"""Learning in the page, in headless Chromium: steps a second, and how far losses and gradients are from torch's.

    python -m benchmarks.learning

A step is of the task `train` of the worker on a text: forward, backward, and AdamW. Seconds are those of the processor
that Chromium spends, which other work on the machine does not add to. Gradients are compared with torch in float64
for every setting, losses over fifty steps.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks._common import main, quartiles, short
from benchmarks._equality import COMPARE, FIFTY, POSITIONS, RUN, cases_of, fifty_steps, page_of_learning
from benchmarks.live import processor_seconds
from d2lmini.data.text import playground_text

SMALL = {"num_hiddens": 32, "size": 16, "batch": 16, "goal": 150}
LARGE = {"num_hiddens": 64, "size": 32, "batch": 16, "goal": 30}
WORK = [
    {**sizes, "ffn": ffn, "positions": positions}
    for sizes in (SMALL, LARGE)
    for ffn, positions in (("relu", "learned"), ("gelu", "learned"), ("relu", "rotary"), ("gelu", "rotary"))
]
TRAIN = "async (options) => { await d2lminiLive.ask(null, 'train', options).done; }"


@dataclass(frozen=True)
class Sizes:
    """``seconds`` that a round takes at the goal; ``every``: one of so many settings is compared."""

    rounds: int = 7
    seconds: float = 4.0
    every: int = 1


QUICK = replace(Sizes(), rounds=2, seconds=0.05, every=50)


def options_of(work, text, steps, reset=False):
    model = {
        "num_hiddens": work["num_hiddens"],
        "num_heads": 2,
        "num_blks": 2,
        "causal": True,
        "positions": work["positions"],
        "norm": "layer",
        "norm_place": "before",
        "residual": True,
        "ffn": work["ffn"],
    }
    data = {"name": "text", "text": text, "size": work["size"], "batch": work["batch"]}
    optimizer = {"name": "adamw", "rate": 3e-3}
    return {"model": model, "optimizer": optimizer, "data": data, "steps": steps, "every": 10**9, "reset": reset}


def speed_of(page, line, work, text, sizes):
    """Returns: dict of one model: ``per_second``, quartiles of the steps a second of the processor."""
    steps = max(1, round(work["goal"] * sizes.seconds))
    page.evaluate(TRAIN, options_of(work, text, steps, reset=True))  # is not counted
    found = []
    for _ in range(sizes.rounds):
        before = processor_seconds(line)
        page.evaluate(TRAIN, options_of(work, text, steps))
        found.append(steps / max(processor_seconds(line) - before, 1e-6))
    print(f"  {work}: {quartiles(found)} steps a second", flush=True)
    return {**work, "num_blks": 2, "per_second": quartiles(found)}


def equality(page, sizes):
    """Returns: dict of the worst relative differences from torch, those of ``torch_float32`` beside."""
    off, torchs = [], []
    for positions in POSITIONS:
        cases = cases_of(positions)[:: sizes.every]
        off += page.evaluate(COMPARE, {"cases": cases, "simd": True})
        torchs += [one["off"] for one in cases]
    losses = []
    for changes, optimizer in FIFTY:
        options, want = fifty_steps(changes, optimizer)
        got = page.evaluate(RUN, options)["losses"]
        losses.append(max(abs(a - b) / abs(b) for a, b in zip(got, want, strict=True)))
    return {
        "settings": len(off),
        "gradients": short(max(off)),
        "torch_float32": short(max(torchs)),
        "above": sum(far >= 1e-4 for far in off),
        "losses": short(max(losses)),
        "runs": len(losses),
    }


def measure(sizes):
    """Returns: dict with ``speed``, a dict for each model, and ``equality``."""
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS

    text = playground_text("shakespeare")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "learning.html"
        path.write_text(page_of_learning(), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        page = browser.new_page()
        page.set_default_timeout(0)
        page.goto(path.as_uri())
        found = {"browser": f"Chromium {browser.version}", "equality": equality(page, sizes)}
        line = browser.new_browser_cdp_session()
        found["speed"] = [speed_of(page, line, work, text, sizes) for work in WORK]
        browser.close()
    return found


if __name__ == "__main__":
    main("learning", measure, Sizes(), QUICK, gpu=False)
