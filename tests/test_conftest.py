"""What the tests themselves rest on: browser tests are marked, and not skipped in silence; work is shared out."""

import re

import pytest
from conftest import ROOT, share

pytestmark = pytest.mark.slow
pytest_plugins = "pytester"
TESTS = """
def test_figure(open_figure): ...
def test_book(book_url, chromium): ...
def test_no_browser(): ...
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite of three tests beside our conftest, on a machine without Chromium and without the book."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("D2LMINI_REQUIRE_BROWSER", raising=False)
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(TESTS)
    return pytester


def test_a_skipped_browser_is_told_loudly(suite):
    done = suite.runpytest_subprocess()
    done.assert_outcomes(passed=1, skipped=2)
    done.stdout.fnmatch_lines(["!!!! BROWSER *the book is not built*", "!!!! BROWSER TESTS SKIPPED: *Chromium* !!!!"])


def test_where_a_browser_is_required_its_absence_is_an_error(suite, monkeypatch):
    monkeypatch.setenv("D2LMINI_REQUIRE_BROWSER", "1")
    done = suite.runpytest_subprocess()
    done.assert_outcomes(passed=1, errors=2)
    assert "D2LMINI_REQUIRE_BROWSER=1" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_what_opens_a_browser_is_marked_so(suite):
    suite.runpytest_subprocess("-m", "not browser").assert_outcomes(passed=1, deselected=2)


def test_a_worker_takes_a_file_a_page_or_an_exercise():
    assert share("tests/a.py::test[x]") == share("tests/a.py::test[y]") != share("tests/b.py::test[x]")
    light, dark = "tests/b.py::test_alt[light-chapters/01_a.html]", "tests/b.py::test_axe[dark-chapters/01_a.html]"
    assert share(light) == share(dark) != share("tests/b.py::test_alt[light-chapters/02_a.html]")
    assert share("s/a::ipynb::Cell 1") == share("s/a::ipynb::Cell 2")
    for name in ("promises", "made_mistakes"):
        file = f"tests/exercises/test_{name}.py"
        assert share(f"{file}::test[a]") != share(f"{file}::test[b]")


def test_pytest_asks_our_scheduler(suite):
    assert "scheduling tests via ByShare" in suite.runpytest_subprocess("-n2", "-v").stdout.str()


def test_a_third_has_its_turn_each_day_and_what_shares_a_visit_has_it_together(suite):
    suite.makepyfile("""
        import pytest
        @pytest.mark.by_turn("page")
        @pytest.mark.parametrize("page", range(7))
        class TestPage:
            def test_one(self, page): ...
            @pytest.mark.parametrize("again", "ab")
            def test_two(self, page, again): ...
        @pytest.mark.slow
        @pytest.mark.parametrize("what", range(3))
        def test_slow(what): ...
    """)
    chosen = suite.runpytest_subprocess("-m", "not second", "-v").stdout.str()
    pages = re.findall(r"test_one\[(\d)\] PASSED", chosen)
    assert pages == [str(page) for page in range(7) if page % 3 == int(pages[0]) % 3]
    both = re.findall(r"test_two\[(?:[ab]-)?(\d)(?:-[ab])?\] PASSED", chosen)
    assert sorted(both) == sorted(pages * 2)
    assert len(re.findall(r"test_slow\[\d\] PASSED", chosen)) == 1
