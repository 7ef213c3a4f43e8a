"""The page's side of the models: loading is told to all, a lack of room is survived."""

from functools import cache

import pytest

from d2lmini.figures import LiveTranslator, LiveWriter
from d2lmini.figures.live.page import runtime_script
from d2lmini.models.weights import files
from tools.bundles import bundled, runtime

NAME = "translator_grammar"
needs_weights = pytest.mark.skipif(NAME not in files.names(), reason="the translator's weights are not exported")


def test_a_menu_keeps_the_order_of_a_map(open_page):
    page, code = open_page("about:blank"), bundled('export { choice } from "./base/index.js";', "page")
    found = page.evaluate(f"""() => {{ {code}
        const options = new Map([["", "none"], ["all", "all"], [0, "first"], [1, "second"]]);
        const {{ value }} = page.choice(document.body, {{ label: "of", options, value: 1 }}, () => {{}});
        return [[...document.querySelectorAll("option")].map(({{ value, text }}) => value + " " + text), value]; }}""")
    assert found == [[" none", "all all", "0 first", "1 second"], "1"]


@pytest.fixture
def open_html(open_page, tmp_path):
    """A function that opens some HTML as a page of its own."""

    def open_html(text, **options):
        path = tmp_path / "page.html"
        path.write_text(f'<!doctype html><meta charset="utf-8">{text}', encoding="utf-8")
        page = open_page(path.as_uri(), **options)
        page.set_default_timeout(10_000)
        return page

    return open_html


SLOW = """(() => {  // the first weights wait until the test lets them go
  const old = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message) {
    if (message.kind === "load") window.go = () => old.call(this, message);
    else old.call(this, message);
  };
})();"""


@needs_weights
def test_a_figure_says_that_another_one_is_loading_its_model(open_html):
    shown = LiveTranslator(examples=["the cat sleeps."])._repr_html_()
    page = open_html(f"{shown}<div id=below></div>", script=SLOW)
    page.get_by_role("button", name="Load the model").click()
    page.wait_for_function("window.go !== undefined")
    page.evaluate("""() => {
      const other = document.querySelector("d2lmini-live-translator").cloneNode();
      delete other.dataset.ready;
      below.append(other);
    }""")
    second = page.locator("#below")
    second.get_by_text("Loading …").wait_for()
    assert second.get_by_role("button", name="Load the model").get_attribute("aria-disabled") == "true"
    assert second.get_by_role("table").is_visible()
    page.evaluate("window.go()")
    second.get_by_text("French: “").wait_for()
    assert page.get_by_text("French: “").count() == 2 and page.log["errors"] == []


@needs_weights
def test_the_address_of_the_worker_is_given_back(open_html):
    script = "window.left = new Set(); for (const [name, act] of [['create', 'add'], ['revoke', 'delete']]) {"
    script += "const old = URL[name + 'ObjectURL']; URL[name + 'ObjectURL'] = (x) => {"
    script += "const url = old.call(URL, x); window.left[act](url ?? x); return url; }; }"
    page = open_html(LiveTranslator()._repr_html_(), script=script)
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("French: “").wait_for()
    assert page.evaluate("window.left.size") == 0


FULL = """const full = () => { throw new RangeError("WebAssembly.Memory.grow(): Unable to grow instance memory"); };"""


@cache
def writer():
    """A figure whose model needs more memory than there is at first."""
    return LiveWriter()._repr_html_()


WHERE = {
    "grows": "WebAssembly.Memory.prototype.grow = full;",
    "begins": "WebAssembly.Memory = function () { full(); };",
}


@pytest.mark.skipif("gpt_shakespeare" not in files.names(), reason="the weights of the GPT are not exported")
@pytest.mark.parametrize("worker", [True, False])
@pytest.mark.parametrize("when", WHERE)
def test_without_room_for_the_model_the_recorded_form_stays(open_html, when, worker):
    shown = writer()
    begin = "d2lminiLive.runtime(() => {"
    assert shown.count(begin) == 1
    page = open_html(shown.replace(begin, begin + FULL + WHERE[when]), script="" if worker else "delete window.Worker;")
    load = page.get_by_role("button", name="Load the model")
    load.click()
    said = "The model cannot run here: this machine has too little memory for it. What was recorded is below."
    page.get_by_text(said).wait_for()
    assert page.get_by_role("table").is_visible() and load.get_attribute("aria-disabled") == "false"
    assert page.log["errors"] == []


@needs_weights
@pytest.mark.parametrize("worker", [True, False])
def test_without_room_for_a_task_the_recorded_form_comes_back(open_html, worker):
    shown = LiveTranslator()._repr_html_()
    assert shown.count(runtime_script()) == 1
    full = f"""import {{ TASKS }} from "./live/tasks.js";
    {FULL} const own = TASKS.translate;
    TASKS.translate = (loaded, options) => options.text === "full" ? full() : own(loaded, options);"""
    page = open_html(shown.replace(runtime_script(), runtime(full)), script="" if worker else "delete window.Worker;")
    load = page.get_by_role("button", name="Load the model")
    load.click()
    page.get_by_text("French: “").wait_for()
    page.get_by_role("textbox").fill("full")
    page.get_by_role("textbox").press("Enter")
    said = "The model has stopped: this machine has too little memory for it. What was recorded is below."
    page.get_by_text(said).wait_for()
    assert page.get_by_role("table").is_visible()
    page.get_by_role("button", name="Reset").click()  # to a text for which there is room
    if worker:  # else the model is still there
        load.click()
    page.get_by_text("French: “").wait_for()
    assert page.log["errors"] == []
