"""The built book in Firefox and in WebKit, over http and from the disk: what a reader does there, as in Chromium."""

from pathlib import Path

import pytest
from conftest import BOOK, _need, serving

from .conftest import WATCH

VISITS = Path(__file__).with_name("visits.js").read_text(encoding="utf-8")
CHAPTERS = sorted(path.name for path in BOOK.glob("chapters/*.html"))
OTHERS = ["intro.html", "playground.html", "real_model.html", "glossary.html", "exercises/03_attention_scoring.html"]


@pytest.fixture(scope="session")
def watched(tmp_path_factory):
    """A folder with the pages of the book, each of which writes down what goes wrong in it."""
    _need((BOOK / "index.html").exists(), "the book is not built (make book)")
    folder = tmp_path_factory.mktemp("book")
    for inside in (".", "chapters", "exercises"):
        (folder / inside).mkdir(exist_ok=True)
        for path in (BOOK / inside).iterdir():
            place = folder / inside / path.name
            if path.suffix == ".html":
                text = path.read_text(encoding="utf-8")
                place.write_text(text.replace("<head>", f"<head>{WATCH}", 1), encoding="utf-8")
            elif path.name not in ("chapters", "exercises"):
                place.symlink_to(path)
    return folder


@pytest.fixture(scope="session", params=["http", "file"])
def base(request, watched):
    """The address of the book: a server's, and that of the folder."""
    if request.param == "file":
        yield watched.as_uri()
    else:
        with serving(watched) as url:
            yield url


@pytest.fixture(scope="session")
def do(browsers):
    """A function that does something on a page, in a browser and in Chromium, and gives what each then shows."""

    kept = {}

    def do(browser, address, name, given=None):
        browser.goto(address)
        seen, wrong = browser.run(f"{VISITS} return visit(...given);", [name, given])
        assert wrong == [], address
        return seen

    def do_in_both(other, address, name, given=None):
        if (address, name) not in kept:
            kept[address, name] = do(browsers("chromium"), address, name, given)
        return do(other, address, name, given), kept[address, name]

    return do_in_both


@pytest.mark.parametrize("page", [*(f"chapters/{name}" for name in CHAPTERS), *OTHERS])
def test_all_figures_are_alive_and_nothing_goes_wrong(other, do, base, page):
    seen, in_chromium = do(other, f"{base}/{page}", "alive")
    assert seen == in_chromium and not seen["wide"]


DONE = {
    "folds": ("chapters/03_attention_scoring.html", None),
    "prediction": ("chapters/03_attention_scoring.html", None),
    "choice": ("exercises/03_attention_scoring.html", None),
    "progress": ("your_progress.html", None),
    "search": ("search.html", "masked softmax"),
    "chooser": ("lecturers.html", ["d2l-11.3.1", "udl-12.5"]),
    "dark": ("chapters/01_queries_keys_values.html", None),
}


@pytest.mark.parametrize("name", DONE)
def test_what_a_reader_does_has_the_same_effect(other, do, base, name):
    page, given = DONE[name]
    seen, in_chromium = do(other, f"{base}/{page}", name, given)
    assert seen == in_chromium and seen, f"{name} shows nothing"
