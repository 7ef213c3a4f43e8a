"""What every figure has: a module, a fallback, a state that cannot break out of the page, a widget."""

import html
import json
import re
from pathlib import Path

import pytest

import d2lmini.figures as figures
from d2lmini.figures.base import Figure, table

ROOT = Path(__file__).resolve().parent.parent.parent
FIGURES = ROOT / "d2lmini" / "figures"


def query_plane(**changes):
    settings = dict(query=[0.9, 0.6], keys=[[1.5, 0.2], [0.3, 1.4]], values=[[1.0, 0.0], [0.0, 1.0]], temperature=0.5)
    return figures.QueryPlane(**{**settings, **changes})


@pytest.mark.parametrize("name", figures.__all__)
def test_every_figure_has_a_module_and_a_fallback(name):
    kind = getattr(figures, name)
    assert issubclass(kind, Figure)
    assert kind.module().count("export default { render: figure };") == 1
    assert kind.title and kind.hint.endswith((".", "?"))
    assert kind.fallback is not Figure.fallback


def test_the_element_carries_state_fallback_and_label():
    shown = query_plane()._repr_html_()
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', shown)[1]))
    assert state["temperature"] == 0.5 and state["key_points"] == [[1.5, 0.2], [0.3, 1.4]]
    assert "<table>" in shown.split("<script")[0] and 'aria-label="A query among 2 keys' in shown
    assert "export default" not in shown
    assert len(shown) < 27_000


def test_the_state_cannot_break_out_of_the_page():
    shown = table(["<b>"], [["</td><script>alert(1)</script>"]], "a & b")
    assert "<script>" not in shown and "<b>" not in shown and "a &amp; b" in shown


def test_the_widget_form_holds_the_same_state():
    pytest.importorskip("anywidget")
    widget = query_plane().widget()
    assert widget.temperature == 0.5 and widget.score == "dot" and "export default { render: figure };" in widget._esm


def test_no_line_of_a_script_is_longer_than_one_of_python():
    scripts = [*FIGURES.glob("*.js"), *(ROOT / "tools/sphinx_ext/static").glob("*.js")]
    lines = {path.name: path.read_text(encoding="utf-8").splitlines() for path in scripts}
    assert len(lines) > 20
    assert [f"{name}: {line}" for name, text in lines.items() for line in text if len(line) > 120] == []


def test_a_page_carries_neither_comments_nor_indentation_of_its_scripts():
    script = query_plane()._repr_html_().split("<script", 1)[1]
    assert not re.search(r"^( |//)", script, re.M) and "function" in script
