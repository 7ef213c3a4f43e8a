"""The real language model in Firefox and WebKit: it writes what it writes in Chromium, token by token."""

from pathlib import Path

import pytest
from conftest import serving
from real_model_site import real_pieces, write_site

from d2lmini.figures import RealModel

from .conftest import WATCH

VISITS = Path(__file__).with_name("visits.js").read_text(encoding="utf-8")
ASKED = {"prompt": "Name three colours.", "count": 12}


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    path = write_site(folder, RealModel(), real_pieces())
    path.write_text(path.read_text(encoding="utf-8").replace("<body", f"{WATCH}<body", 1), encoding="utf-8")
    with serving(folder) as url:
        yield f"{url}/{path.name}"


@pytest.fixture(scope="session")
def written(browsers, address):
    """A function that gives the tokens of a text that a browser has written."""
    kept = {}

    def written(browser):
        if browser not in kept:
            browser.goto(address)
            kept[browser], wrong = browser.run(f"{VISITS} return visit('write', given);", ASKED)
            assert wrong == []
        return kept[browser]

    return written


def test_it_writes_what_it_writes_in_chromium(other, written, browsers):
    tokens = written(browsers("chromium"))
    assert len(tokens) > ASKED["count"] and written(other) == tokens
