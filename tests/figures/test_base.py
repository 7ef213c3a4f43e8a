"""What every figure has: a module, a fallback, a state that cannot break out of the page, a widget."""

import html
import json
import re

import pytest
from book_page import shown_in_book
from conftest import sphinx_extension

import d2lmini.figures as figures
from d2lmini.figures.base import IN_BOOK, Figure, table
from tools import bundles
from tools.bundles import ESBUILD, FIGURES, SCRIPTS


def query_plane(**changes):
    settings = dict(query=[0.9, 0.6], keys=[[1.5, 0.2], [0.3, 1.4]], values=[[1.0, 0.0], [0.0, 1.0]], temperature=0.5)
    return figures.QueryPlane(**{**settings, **changes})


@pytest.mark.parametrize("name", figures.__all__)
def test_every_figure_has_a_module_and_a_fallback(name):
    kind = getattr(figures, name)
    assert issubclass(kind, Figure)
    assert kind.script().count(f'd2lminiBase.show("{kind.tag()}", d2lminiFigure.default)') == 1
    assert kind.title and kind.hint.endswith((".", "?"))
    assert kind.fallback is not Figure.fallback


def test_the_element_carries_state_fallback_and_label():
    shown = query_plane()._repr_html_()
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', shown)[1]))
    assert state["temperature"] == 0.5 and state["key_points"] == [[1.5, 0.2], [0.3, 1.4]]
    assert "<table>" in shown.split("<script")[0] and 'aria-label="A query among 2 keys' in shown
    assert "export default" not in shown
    assert len(shown) < 23_000


def test_the_state_cannot_break_out_of_the_page():
    shown = table(["<b>"], [["</td><script>alert(1)</script>"]], "a & b")
    assert "<script>" not in shown and "<b>" not in shown and "a &amp; b" in shown


def test_the_widget_form_holds_the_same_state():
    pytest.importorskip("anywidget")
    widget = query_plane().widget()
    assert widget.temperature == 0.5 and widget.score == "dot" and widget._esm.count("export default {") == 1


def test_in_the_book_a_page_loads_what_is_shared_once_and_each_script_from_a_file(monkeypatch):
    monkeypatch.setenv(IN_BOOK, "1")
    extension = sphinx_extension("figure_scripts")
    twice = 2 * query_plane()._repr_html_() + figures.KernelPooling([0.0, 1.0], [0.0, 1.0], query=0.5)._repr_html_()
    scripts = extension.figure_scripts()
    page = extension.with_files(twice, "../_static/figures", scripts)
    found = re.findall(r'<script src="../_static/figures/(\w+)\.js\?v=\w{8}"></script>', page)
    assert found == ["base", "query_plane", "kernel_pooling"] and page.count("<script") == 3
    assert not any("</script" in text.lower() for text in scripts.values())


@pytest.mark.skipif(not ESBUILD.exists(), reason="esbuild is not installed: make node")
def test_what_is_built_is_what_the_modules_give():
    assert bundles.sync(check=True) == []
    with pytest.raises(ValueError, match="Could not resolve"):
        bundles.bundled('import "./nowhere.js";', "x")


def test_no_module_is_longer_than_300_lines_and_no_function_than_150():
    modules = [path for folder in (FIGURES, SCRIPTS) for path in folder.rglob("*.js")]
    modules = [path for path in modules if "built" not in path.parts and path.name != "kernels.js"]
    assert len(modules) > 120
    long = []
    for path in modules:
        lines = path.read_text(encoding="utf-8").splitlines()
        starts = [i for i, line in enumerate(lines) if re.match(r"(export )?(async )?function\b", line)]
        long += [path.name] if len(lines) > 300 else []
        long += [lines[i] for i in starts if lines[i:].index("}") > 150]
    assert long == []


def test_a_title_and_a_hint_of_ones_own_are_shown_wherever_the_script_comes_from(open_page, tmp_path):
    own = type("Own", (figures.QueryPlane,), {"title": "Mine & <b>yours</b>", "hint": 'Say "click on" it.'})
    plane = query_plane()
    mine = own([0.9, 0.6], [[1.5, 0.2], [0.3, 1.4]], [[1.0, 0.0], [0.0, 1.0]])
    for shown in ("".join(one._repr_html_() for one in (mine, plane)), *(shown_in_book(tmp_path, mine),)):
        path = tmp_path / "page.html"
        path.write_text(f'<!doctype html><meta charset="utf-8">{shown}', encoding="utf-8")
        page = open_page(path.as_uri())
        titles = page.locator(".d2lmini-title").all_inner_texts()
        assert titles == [own.title, plane.title][: len(titles)]
        assert page.locator(".d2lmini-hint").first.inner_text() == own.hint
