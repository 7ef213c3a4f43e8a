"""What a page loads: how much, and MathJax without what the book does not use."""

import gzip
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest
from conftest import BOOK, sphinx_extension

PACKED = (".woff", ".woff2", ".png", ".gif")
HEAVY = ["chapters/01_queries_keys_values.html", "chapters/07_transformer.html", "chapters/17_scaling.html"]


def bytes_of(page):
    """What each file that a page has asked for weighs on a host that compresses. Returns: dict."""
    paths = {unquote(urlsplit(url).path).lstrip("/") for url in page.log["requests"] if url.startswith("http")}
    files = {name: (BOOK / name).read_bytes() for name in paths}
    return {name: len(data if name.endswith(PACKED) else gzip.compress(data)) for name, data in files.items()}


@pytest.mark.parametrize("name", HEAVY)
def test_a_chapter_weighs_less_than_700_kilobytes(open_page, book_url, name):
    page = open_page(f"{book_url}/{name}", everything=True)
    page.wait_for_selector("article mjx-container")
    page.wait_for_load_state("networkidle")
    weights = bytes_of(page)
    assert len(weights) > 20 and sum(weights.values()) < 700_000, sorted(weights.items(), key=lambda item: -item[1])[:8]
    assert not [path for path in weights if "menu" in path or "tex-chtml" in path]


def test_a_page_without_a_formula_loads_no_mathjax(small_book):
    def loads(name):
        return "mathjax/startup.js" in (small_book[0] / f"{name}.html").read_text(encoding="utf-8")

    assert [loads(name) for name in ("intro", "search", "chapters/02_two")] == [False] * 3
    assert loads("chapters/01_one")


def test_what_an_earlier_build_left_is_completed(tmp_path):
    fonts = tmp_path / "_static" / "mathjax" / "output" / "chtml" / "fonts"
    (fonts / "woff-v2").mkdir(parents=True)
    offline_assets = sphinx_extension("offline_assets")
    offline_assets._copy_mathjax(SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=tmp_path))
    assert (fonts / "tex.js").is_file() and list((fonts / "woff-v2").glob("*.woff"))
    assert all((tmp_path / "_static" / "mathjax" / name).exists() for name in offline_assets.MATHJAX)
