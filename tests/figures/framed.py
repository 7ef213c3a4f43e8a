"""The example of a figure on a page of its own, as wide as the column of the book, its model loaded."""

import re

from examples import EXAMPLES

IDLE = "!document.querySelector('.d2lmini-load, [aria-busy=true]')"  # a live model is there, and has answered
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"  # observers had their turn
COLUMN = (
    "box-sizing: border-box; width: 100%; max-width: clamp(600px, 100vw - 512px, 768px); margin: auto; padding: 0 16px"
)
PAGE = f"""<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<body style="margin: 0; font: 16px/1.65 system-ui, sans-serif"><main style="{COLUMN}">"""


def frame_of(open_page, tmp_path, name, load=True, times=1, **options):
    """Shows a figure, `times` over. Returns: (page, the locator of its frame)."""
    return shown(lambda url: open_page(url, **options), tmp_path / "figure.html", name, load, times)


def shown(open_page, path, name, load=True, times=1):
    """As `frame_of`, with the page in a file and a function that opens it."""
    path.write_text(PAGE + EXAMPLES[name]()._repr_html_() * times)
    page = open_page(path.as_uri())
    page.wait_for_selector("[data-ready=yes]")
    if load:
        loads = page.get_by_role("button", name=re.compile("^Load "))
        while loads.count():  # one model may offer another
            button = loads.first.element_handle()
            button.click()
            page.wait_for_function("node => !node.isConnected", arg=button)
        page.wait_for_function(IDLE)
    page.evaluate(SETTLED)
    return page, page.locator(".d2lmini-figure")
