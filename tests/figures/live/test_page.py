"""How models reach a page: from files of the book when a reader asks, or out of a notebook's own output."""

import base64
import gzip
import html
import json
import re

import pytest

from d2lmini.figures import LiveTranslator
from d2lmini.figures.base import IN_BOOK
from d2lmini.figures.live import page
from d2lmini.models.weights import files

NAME = "translator_grammar"


class Anything(page.LiveFigure):
    name, title, hint = "anything", "Anything", "Load it."

    @classmethod
    def script(cls):
        return "const figure = () => {};"


@pytest.fixture
def figure():
    return Anything("a model", NAME, ("what was said", ["asked", "said"], [["<b>a</b>", "b"]]))


def test_a_page_of_the_book_has_no_weights(figure, monkeypatch):
    monkeypatch.setenv(IN_BOOK, "1")
    shown = figure._repr_html_()
    assert len(shown) < 10_000 and "deliver" not in shown and "d2lminiLive.runtime" not in shown


def test_a_notebook_has_all_in_the_output(figure, monkeypatch):
    monkeypatch.delenv(IN_BOOK, raising=False)
    shown = figure._repr_html_()
    sent = re.search(rf'd2lminiLive\.deliver\("{NAME}", "([^"]*)"\);', shown)
    assert base64.b64decode(sent[1]) == files.path_of(NAME).read_bytes()
    assert "d2lminiLive.runtime(() =>" in shown and shown.count("</script>") == 3


def test_the_button_tells_what_a_server_that_compresses_sends(figure):
    sent = len(gzip.compress(page.weights_script(NAME).encode(), 6))
    told = figure.state["weights"]["megabytes"]
    assert told == pytest.approx(files.path_of(NAME).stat().st_size / 1e6, rel=1e-5)
    assert sent / 1e6 <= told < 1.3 * sent / 1e6
    assert figure.state["weights"]["run"] == "translation_transformer cpu"


def test_without_javascript_there_is_what_was_recorded(figure):
    shown = figure._repr_html_().split("<script")[0]
    assert "<caption>what was said</caption>" in shown and "&lt;b&gt;a&lt;/b&gt;" in shown and "<b>" not in shown
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', shown)[1]))
    assert state["recorded"]["rows"] == [["<b>a</b>", "b"]]


def test_weights_that_are_not_there():
    with pytest.raises(files.WeightsError, match=r"nobody\.safetensors"):
        Anything("a model", "nobody", ("", [], []))


def test_no_script_of_the_book_can_end_its_element():
    assert "</script" not in page.runtime_script().lower()


SHOWN = """async ([source, state]) => {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { default: widget } = await import(url);
  const el = document.body.appendChild(document.createElement("div"));
  const model = { get: (key) => state[key], set: (key, value) => { state[key] = value; }, save_changes() {}, on() {} };
  widget.render({ model, el });
}"""


def test_the_widget_brings_its_model_along(open_page, tmp_path):
    pytest.importorskip("anywidget")
    figure = LiveTranslator(NAME, examples=["the cat sleeps."])
    widget = figure.widget()
    (tmp_path / "page.html").write_text('<!doctype html><meta charset="utf-8">', encoding="utf-8")
    shown = open_page((tmp_path / "page.html").as_uri())
    shown.set_default_timeout(10_000)
    shown.evaluate(SHOWN, [widget._esm, {key: getattr(widget, key) for key in figure.state}])
    shown.get_by_role("button", name="Load the model").click()
    shown.get_by_text(f"French: “{figure.state['recorded']['rows'][0][1]}”").wait_for()
    assert shown.log["errors"] == []
