"""Fixtures of the browser tests: the built book on a local server, and Chromium with every request on record."""

import functools
import http.server
import shutil
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "_build" / "html"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# no name resolves but the local one, so a third-party request cannot succeed unseen
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def _missing():
    if CHROMIUM is None:
        return "there is no Chromium on this machine (Debian: apt-get install chromium)"
    if not (BOOK / "index.html").exists():
        return "the book is not built (make book)"
    return None


def pytest_collection_modifyitems(items):
    why = _missing()
    if why:
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.skip(reason=f"BROWSER TESTS SKIPPED: {why}"))


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    if any("BROWSER TESTS SKIPPED" in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"!!!! BROWSER TESTS SKIPPED: {_missing()} !!!!", red=True, bold=True)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def book_url():
    """The address of the built book on a plain file server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(BOOK)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


def _open(chromium, url, theme="light", width=1280, **options):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.log = {"requests": [], "errors": []}
    page.on("request", lambda request: page.log["requests"].append(request.url))
    page.on("console", lambda m: page.log["errors"].append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.log["errors"].append(str(error)))
    page.on("response", lambda r: page.log["errors"].append(f"{r.status} {r.url}") if r.status >= 400 else None)
    page.on("requestfailed", lambda r: page.log["errors"].append(f"failed: {r.url}"))
    page.goto(url, wait_until="load")
    return page


@pytest.fixture
def open_page(chromium):
    """A function that opens an address and returns the page; `page.log` holds requests, console errors and failures."""
    pages = []

    def open_page(url, **options):
        pages.append(_open(chromium, url, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()


@pytest.fixture(scope="session")
def look_at(chromium, book_url):
    """A function that opens a page of the book and hands it to `inspect`; what that found is kept for other tests."""
    found = {}

    def look_at(name, inspect, **options):
        key = name, inspect, *options.items()
        if key not in found:
            page = _open(chromium, f"{book_url}/{name}", **options)
            try:
                page.wait_for_load_state("networkidle")
                found[key] = inspect(page)
            finally:
                page.context.close()
        return found[key]

    return look_at


@pytest.fixture
def open_figure(open_page, tmp_path):
    """A function that shows a figure on a page of its own, opened as by `open_page`, once it is alive."""

    def open_figure(figure, **options):
        path = tmp_path / "figure.html"
        path.write_text(f'<!doctype html><meta charset="utf-8">{figure._repr_html_()}', encoding="utf-8")
        page = open_page(path.as_uri(), **options)
        page.wait_for_selector(f"d2lmini-{figure.name.replace('_', '-')}[data-ready=yes]")
        return page

    return open_figure
