"""What is counted on the built pages: a page with one fault of each kind has them all."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT, serving

from benchmarks import pages
from tools import _book

FAULTY = """<!DOCTYPE html><link rel=icon href=data:,><title>A page</title>
<nav class="bd-links" style="height: 50px"><a href="#here">here</a> <a href="other.html">there</a></nav>
<button>before</button>
<article style="width: 300px; height: 700px">
<p id="here"><mjx-container tabindex="0">x</mjx-container><button class="copybtn">copy</button></p>
<div class="d2lmini-diagram">
<svg viewBox="0 0 600 20" width="600" height="20"><text y="12" style="font-size: 8px">A</text></svg></div>
<svg class="plot" viewBox="0 0 400 20" width="200" height="10"><text y="12" style="font-size: 14px">A</text></svg>
<d2lmini-figure style="display: block; height: 1000px; overflow: auto"><p style="width: 400px">wide</p></d2lmini-figure>
</article><script>console.error("a fault");</script><img src="http://127.0.0.1:9/elsewhere.png" alt="">"""


def test_links_are_followed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "file.zip").write_text("")
    (tmp_path / "index.html").write_text(
        '<a href="a/b.html#c">1</a><a href="#d">2</a><a href="a/gone.html">3</a><a href="https://x.org">-</a>'
        '<a href="a/b.html#gone">4</a><a href="file.zip">5</a><p id="d"></p><p id="d"></p>'
        '<a href="a/b.html#x=1&y=2">6</a>'
    )
    (tmp_path / "a" / "b.html").write_text('<p id="c"></p><a href="../index.html">7</a>')
    found = pages.broken_links(tmp_path)
    assert found["links"] == 7 and found["doubled"] == ["index.html"]
    assert found["broken"] == ["index.html -> a/gone.html", "index.html -> a/b.html#gone"]


@pytest.mark.parametrize("view", pages.VIEWS)
def test_a_page_is_looked_at(chromium, tmp_path, view):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "one.html").write_text(FAULTY)
    with serving(tmp_path) as url:
        seen = pages.look(chromium, f"{url}/chapters/one.html", view)
    assert seen["foreign"] == ["http://127.0.0.1:9/elsewhere.png"]
    assert "a fault" in seen["errors"] and (seen["wider_than_screen"] > 0) == (view == "phone")
    assert (seen["stops_before_article"], seen["stops_in_article"]) == (3, 2)
    assert (seen["formulas_as_stops"], seen["copy_buttons"], seen["navigation_entries"]) == (1, 1, 2)
    assert (seen["diagrams"], seen["diagrams_that_scroll"], seen["plots"], seen["plots_that_scroll"]) == (1, 1, 1, 0)
    assert (seen["smallest_in_diagrams"], seen["smallest_in_plots"]) == (pytest.approx(8), pytest.approx(7))
    assert seen["figures"] == [{"figure": "figure", "height": 1000, "cut": True}]
    whole = pages.together({"chapters/one.html": seen, "index.html": seen, "slides/one.html": seen})
    assert whole["errors"] == 3 * len(seen["errors"])  # on slides nothing drawn is counted again
    assert whole["figures_above_900"] == ["chapters/one.html: figure, 1000", "index.html: figure, 1000"]
    assert (whole["plots"], whole["smallest_in_plots"]) == (2, 7)
    assert whole["chapters_height"] == 700 and whole["stops_in_article"] == [2, 2, 2]


def test_the_page_measured_tells_what_was_counted():
    view = {"errors": 1, "foreign_requests": 0, "wider_than_screen": ["a.html"], "figures_cut": 2, "figures": 5}
    record = {
        "views": {"wide": view, "phone": view},
        "pages": {"wide": {"a.html": {}, "b.html": {}, "slides/a.html": {}}},
        "links": {"links": 1234, "broken": ["a.html -> c.html"]},
        "date": "2026-11-28T10:00:00+00:00",
    }
    assert _book.pages(record) == (
        "Its 2 pages and 1 of slides were opened wide and on a phone (2026-11-28): 2 errors and warnings of "
        "the browser, 0 requests to other hosts, 2 pages wider than the screen, 4 of 10 figures "
        "cut; 1 of 1,234 links lead nowhere."
    )
    assert "`python -m benchmarks.pages` was not run" in _book.pages(None)


def test_without_a_book_there_is_nothing_to_count(tmp_path):
    with pytest.raises(FileNotFoundError, match="`make book` makes it"):
        pages.measure(pages.Sizes(folder=str(tmp_path)))


def test_the_record_is_written(tmp_path):
    command = [sys.executable, "-m", "benchmarks.pages", "--quick", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    found = json.loads((tmp_path / "benchmark_pages.json").read_text(encoding="utf-8"))
    assert found["views"]["wide"]["errors"] == 0 and found["pages"]["phone"].keys() == {"index.html"}
