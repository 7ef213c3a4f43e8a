"""Pages that are written when the book is built, in a book of these alone, at the addresses that they always had."""

import re
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, sphinx_extension
from small_book import build_pages

from d2lmini import results
from tools import coverage, glossary, site

NAMES = "bibliography", "book_index", "coverage", "glossary", "measured"
extension = sphinx_extension("written_pages")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages that are written. Returns: dict from their names to their articles."""
    folder = build_pages(tmp_path_factory.mktemp("pages"), NAMES)
    assert not list(folder.glob("pages/*.html"))
    return {name: BeautifulSoup((folder / f"{name}.html").read_text(encoding="utf-8"), "html.parser") for name in NAMES}


def test_every_page_with_a_place_to_write_in_is_written():
    places = {path: extension.FENCE.findall(path.read_text(encoding="utf-8")) for path in ROOT.glob("pages/*.md")}
    assert {path.stem: found for path, found in places.items() if found} == {name: [name] for name in NAMES}


@pytest.mark.slow
def test_the_pages_hold_what_they_are_made_of(built):
    texts = {name: page.find("article").get_text() for name, page in built.items()}
    assert not any("make book" in text or "{written}" in text for text in texts.values())
    items = {name: [li.get_text() for li in built[name].select("article section section li")] for name in NAMES}
    assert [item.partition(":")[0] for item in items["glossary"]] == [*map(glossary.heading, glossary.terms())]
    assert [item.partition(":")[0] for item in items["book_index"]] == [*glossary.terms()]
    assert f"more than {glossary.MANY} sections" in texts["book_index"]
    assert len(built["coverage"].select("article section section tbody tr")) == len(coverage.rows())
    assert all(name in texts["measured"] for name, _ in results.recorded())
    assert "Dive into Deep Learning" in texts["bibliography"]  # which Coverage cites


@pytest.mark.slow
@pytest.mark.parametrize(
    "address", ["glossary.html#r", "book_index.html#r", "measured.html#every-experiment", "coverage.html"]
)
def test_addresses_are_as_they_were(built, address):
    name, _, anchor = address.partition("#")
    page = built[name.removesuffix(".html")]
    assert not anchor or page.find(id=anchor).find(re.compile("h2"))
    assert page.find("link", rel="canonical")["href"] == f"{site.address()}{name}"
    assert page.select_one(f'a[href^="{"glossary" if name != "glossary.html" else "measured"}.html"]')
    assert page.find("link", href=re.compile(r"^_static/.*book\.css"))


def test_what_the_pages_are_made_of_is_looked_at_in_each_build(tmp_path):
    (tmp_path / "tools").mkdir()
    app = SimpleNamespace(d2lmini_digest="1", srcdir=tmp_path)
    found = {"pages/glossary", "pages/notation", "chapters/01_queries_keys_values"}
    env = SimpleNamespace(found_docs=found, doc2path=lambda name: ROOT / f"{name}.md")
    stale = [extension._read_again(app, env, (), (), ())]
    (tmp_path / "tools" / "glossary.yml").write_text("a term")
    stale += [extension._read_again(app, env, (), (), ()) for _ in range(2)]
    app.d2lmini_digest = "2"
    assert [*stale, extension._read_again(app, env, (), (), ())] == [[], ["pages/glossary"], [], ["pages/glossary"]]
