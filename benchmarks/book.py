"""What a page of the built book costs a reader: requests and bytes, in headless Chromium with an empty cache.

    python -m benchmarks.book

Needs the book in `_build/html` (`make book`). The pages with the largest files are loaded; bytes are as a host of
static pages sends them, zipped.
"""

import http.server
import tempfile
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks._common import main

ROOT = Path(__file__).parent.parent


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
    pages = [path for path in Path(folder).rglob("*.html") if "_static" not in path.parts]
    if not (Path(folder) / "index.html").is_file():
        raise FileNotFoundError(f"there is no built book in {folder}: `make book` makes it")
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


def measure(sizes):
    """Returns: dict with ``pages``, the heaviest first."""
    from playwright.sync_api import sync_playwright

    from benchmarks.figure_start import Zipped
    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS

    with tempfile.TemporaryDirectory() as empty, sync_playwright() as playwright:
        folder = ROOT / sizes.folder if sizes.folder else Path(empty)
        if not sizes.folder:
            (folder / "index.html").write_text("<!DOCTYPE html><title>A page</title><p>A line.")
        names = largest(folder, sizes.pages)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Zipped, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        pages = [{"page": n, **load(browser, f"http://127.0.0.1:{server.server_address[1]}/{n}")} for n in names]
        browser.close()
        server.shutdown()
    return {"pages": sorted(pages, key=lambda page: page["kB"], reverse=True)}


if __name__ == "__main__":
    main("book", measure, Sizes(), QUICK, gpu=False)
