"""What a page of the built book costs a reader: requests and bytes, in headless Chromium with an empty cache.

    python -m benchmarks.book

Needs the book in `_build/html` (`make book`). The pages with the largest files are loaded; bytes are as a host of
static pages sends them, zipped.
"""

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks._common import main
from tools import site

ROOT = Path(__file__).parent.parent
ONE_PAGE = "<!DOCTYPE html><link rel=icon href=data:,><title>A page</title><article>A line.</article>"


@dataclass(frozen=True)
class Sizes:
    """``folder`` is that of the built book, from the root of the repository; ``pages``, how many are loaded."""

    folder: str = "_build/html"
    pages: int = 12


QUICK = replace(Sizes(), folder="", pages=1)


def largest(folder, count):
    """The pages with the largest files, as paths from ``folder``.

    Raises:
        FileNotFoundError: there is no built book.
    """
    pages = [path for path in site.built(folder).rglob("*.html") if "_static" not in path.parts]
    pages.sort(key=lambda path: path.stat().st_size, reverse=True)
    return [path.relative_to(folder).as_posix() for path in pages[:count]]


def load(browser, url):
    """Loads a page. Returns: dict of its requests and the kB that were sent."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    line, sent = context.new_cdp_session(page), []
    line.on("Network.loadingFinished", lambda event: sent.append(event["encodedDataLength"]))
    line.send("Network.enable")
    page.goto(url, wait_until="networkidle", timeout=180_000)
    context.close()
    return {"requests": len(sent), "kB": round(sum(sent) / 1000, 1)}


@contextmanager
def opened(folder):
    """A built book at hand: (its folder, its address on a server that zips, a browser).

    Args:
        folder: of the built book, from the root of the repository; "": a book of one page.

    Raises:
        FileNotFoundError: there is no built book.
    """
    from playwright.sync_api import sync_playwright

    from benchmarks.figure_start import Zipped
    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS, serving

    with tempfile.TemporaryDirectory() as empty:
        if not folder:
            Path(empty, "index.html").write_text(ONE_PAGE)
        place = site.built(ROOT / folder if folder else empty)
        with sync_playwright() as playwright, serving(place, Zipped) as url:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
            yield place, url, browser
            browser.close()


def measure(sizes):
    """Returns: dict with ``pages``, the heaviest first."""
    with opened(sizes.folder) as (folder, url, browser):
        pages = [{"page": name, **load(browser, f"{url}/{name}")} for name in largest(folder, sizes.pages)]
    return {"pages": sorted(pages, key=lambda page: page["kB"], reverse=True)}


if __name__ == "__main__":
    main("book", measure, Sizes(), QUICK, gpu=False)
