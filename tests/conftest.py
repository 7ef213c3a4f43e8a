"""What several tests share: the built book on a local server, Chromium with every request on record, empty folders."""

import functools
import http.server
import importlib
import json
import os
import re
import shutil
import sys
import threading
from collections import defaultdict
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest

import d2lmini  # noqa: F401  before torch: it says how threads wait

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "_build" / "html"
ESBUILD = ROOT / "node_modules" / ".bin" / "esbuild"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SKIPPED = "BROWSER TESTS SKIPPED"
# of what takes long `make test` takes a third, another one each day; `make test-all` takes all
ALL = os.environ.get("D2LMINI_ALL") == "1"
TURN = date.today().toordinal() % 3
BUILT = {"book_url", "small_book", "exercise_book"}  # fixtures that build a book or need one
BY_TURN = ("audit", "train", "slow")  # test by test; what `by_turn` names is taken together
EVERYTHING = "d2lmini:open everything"  # under this name folds.js keeps the switch
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


def sphinx_extension(name):
    """The module of an extension of the book, which finds its neighbours as it does under Sphinx."""
    folder = str(ROOT / "tools" / "sphinx_ext")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


@pytest.fixture
def book_plots():
    """Plots in the book's style; what a test changes of it, or leaves open, is gone afterwards."""
    import matplotlib
    from matplotlib import pyplot as plt

    from d2lmini.plotting import use_svg_display

    with matplotlib.rc_context():
        use_svg_display()
        yield
    plt.close("all")


def bundles_modules(item):
    """Whether a test makes scripts of JavaScript's modules, which esbuild does."""
    names = vars(item.module).values()
    return "opened" in item.fixturenames or any(getattr(one, "__module__", "") == "tools.bundles" for one in names)


def turn_of(item):
    """What a test waits for its turn with, and by what it is known there: None if it has none."""
    by_turn, call = item.get_closest_marker("by_turn"), getattr(item, "callspec", None)
    if by_turn and call and (chosen := {key: call.params[key] for key in by_turn.args if key in call.params}):
        return item.path.parent, repr(chosen)  # tests of one page, say, which share its visit
    return next(((kind, item.nodeid) for kind in BY_TURN if item.get_closest_marker(kind)), None)


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the markers
def pytest_collection_modifyitems(items):
    turns = defaultdict(dict)
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if {"chromium", "browsers"} & {*fixtures}:
            item.add_marker("browser")
        if BUILT & {*fixtures}:
            item.add_marker("book")
        if not ESBUILD.exists() and bundles_modules(item):
            item.add_marker(pytest.mark.skip(f"{SKIPPED}: there is no esbuild (make node)"))
        if "browsers" in fixtures:  # other ones than Chromium
            item.add_marker("second")
        if turn := turn_of(item):
            queue, name = turn
            if turns[queue].setdefault(name, len(turns[queue])) % 3 != TURN:
                item.add_marker("second")


def share(nodeid):
    """What a worker takes at a time: a file, and of those that take minutes an exercise or a page of the book."""
    file, _, test = nodeid.partition("::")
    page = re.search(r"[\w/]+\.html", test)
    by_exercise = file.endswith(("test_promises.py", "test_made_mistakes.py"))
    return nodeid if by_exercise else f"{file} {page[0] if page else ''}"


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which need not be there
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByShare(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return share(nodeid)

    return ByShare(config, log)


def _need(there, what):
    """Skip a browser test, or fail where none may be skipped: in `.ci/run`."""
    if not there:
        refuse = pytest.fail if os.environ.get("D2LMINI_REQUIRE_BROWSER") == "1" else pytest.skip
        refuse(f"{SKIPPED}: {what}")


def pytest_terminal_summary(terminalreporter):
    reasons = {str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])}
    for reason in sorted({found[0] for found in (re.search(rf"{SKIPPED}: [^'\"]*", r) for r in reasons) if found}):
        terminalreporter.write_line(f"!!!! {reason} !!!!", red=True, bold=True)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def serving(folder, handler=_Quiet):
    """The address of a folder on a file server, a plain one or another, which ends with the block."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def book_url():
    """The address of the built book."""
    _need((BOOK / "index.html").exists(), "the book is not built (make book)")
    with serving(BOOK) as url:
        yield url


def built_once(build, name, tmp_path_factory):
    """What `build` makes in a folder, for all workers of a run. Returns: what it returns, a folder."""
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    done = folder.with_suffix(".done")
    with FileLock(folder.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # another worker may have failed
            folder.mkdir()
            done.write_text(str(build(folder)), encoding="utf-8")
    return Path(done.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def small_book(tmp_path_factory):
    """The folder and the address of the book that tests/book/small_book.py builds."""
    from small_book import build

    folder = built_once(build, "small", tmp_path_factory)
    with serving(folder) as url:
        yield folder, url


@pytest.fixture(scope="session")
def exercise_book(tmp_path_factory):
    """A book of one chapter and its exercises. Returns: folder of its pages."""
    from small_book import build_exercises

    return built_once(build_exercises, "exercises", tmp_path_factory)


@pytest.fixture(scope="session", params=["http", "file"])
def exercise_base(request, exercise_book):
    """Its address, on a server and on the disk."""
    if request.param == "file":
        yield exercise_book.as_uri()
    else:
        with serving(exercise_book) as url:
            yield url


@pytest.fixture(scope="session")
def chromium():
    _need(CHROMIUM, "there is no Chromium on this machine (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


def open_in(chromium, url, theme="light", width=1280, everything=False, script="", **options):
    """A page; `everything`: for a reader who has everything open; `script` runs before the page's own."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options)
    context.add_init_script(f"if ({json.dumps(everything)}) localStorage.setItem({json.dumps(EVERYTHING)}, 'yes');")
    context.add_init_script(script)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.log = {"requests": [], "errors": []}
    page.on("request", lambda request: page.log["requests"].append(request.url))
    page.on("console", lambda m: page.log["errors"].append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.log["errors"].append(str(error)))
    page.on("response", lambda r: page.log["errors"].append(f"{r.status} {r.url}") if r.status >= 400 else None)
    page.on("requestfailed", lambda r: page.log["errors"].append(f"failed: {r.url}"))
    page.goto(url, wait_until="load")
    return page


@pytest.fixture
def open_page(chromium):
    """A function that opens an address and returns the page; `page.log` holds requests, and errors and warnings."""
    pages = []

    def open_page(url, **options):
        pages.append(open_in(chromium, url, **options))
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
            page = open_in(chromium, f"{book_url}/{name}", **options)
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


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders named by D2LMINI_DATA, a cache and a system folder, all empty; no proxy to a local server."""
    for name in ("one", "two", "system"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("D2LMINI_DATA", os.pathsep.join([str(tmp_path / "one"), str(tmp_path / "two")]))
    monkeypatch.setenv("D2LMINI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


@pytest.fixture
def folder(folders):
    """The first of them: where a test lays files for the package to find."""
    return folders / "one"
