"""A GPT in the page writes, believes and looks as Python's does on the same weights, whatever a reader does."""

import re

import pytest
import torch
from torch.testing import assert_close

from d2lmini.decoding.filters import Filters
from d2lmini.figures import LiveWriter
from d2lmini.hooks import capture_attention
from d2lmini.models.weights.trained import trained

PAUSED = "(n) => document.querySelectorAll('[role=option]').length >= n && " \
         "![...document.querySelectorAll('button')].some((node) => node.textContent === 'Pause')"  # fmt: skip
PUT = "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); }"


@pytest.fixture(scope="module")
def model():
    return trained("gpt_shakespeare")


@pytest.fixture(scope="module")
def writer():
    return LiveWriter(temperature=0)


@pytest.fixture
def loaded(open_figure):
    """A function that opens a figure and loads its model, at full speed."""

    def loaded(figure, **options):
        page = open_figure(figure, **options)
        page.get_by_role("button", name="Load the model").click()
        page.wait_for_selector("[role=option]")
        page.locator("details").evaluate("node => { node.open = true; }")
        page.get_by_label("pace").select_option("fast")
        known(page)
        return page

    return loaded


def known(page):
    """Waits until the model has told what it believes of the newest character."""
    page.wait_for_function("document.querySelector('svg [data-own]') && !document.querySelector('svg').style.opacity")


def text_of(page):
    parts = page.locator("[role=option]").all_text_contents()
    return "".join("\n" if part.startswith("↵") else part for part in parts)


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def put(page, label, value):
    page.get_by_role("slider", name=label).evaluate(PUT, str(value))


def write_until(page, length):
    """Writes, and pauses at once when the text is so long: over its context, a model would read the end alone."""
    press(page, "Write")
    page.wait_for_function(
        """(n) => {
          if (document.querySelectorAll("[role=option]").length < n) return false;
          [...document.querySelectorAll("button")].find((node) => node.textContent === "Pause")?.click();
          return true;
        }""",
        arg=length,
    )


def bars(page):
    """What is shown of the next character: {id: (the model's, drawn from)}."""
    rows = page.locator("svg [data-own]").evaluate_all("all => all.map(({ dataset: d }) => [d.id, d.own, d.after])")
    return {int(i): (float(own), float(after)) for i, own, after in rows}


def logits_of(model, text):
    with torch.no_grad():
        return model(torch.tensor([model.tokenizer.encode(text)]))[0, -1]


def sees(page, model, text, filters):
    """The bars are those of Python after a text."""
    logits = logits_of(model, text)
    own, after, shown = logits.softmax(0), Filters(**filters).probabilities(logits), bars(page)
    assert sorted(shown) == sorted(own.topk(10).indices.tolist())
    for i, (here, drawn) in shown.items():
        assert here == pytest.approx(own[i].item(), abs=1e-4) and drawn == pytest.approx(after[i].item(), abs=1e-4)
    assert f"{int((after > 0).sum())} of 65 can be drawn" in page.locator("figcaption").inner_text()


def test_it_writes_what_python_writes(loaded, writer, model):
    page = loaded(writer)
    for prompt in ("ROMEO:\n", "KING RICHARD:\nMy lord, the night"):
        page.get_by_role("textbox", name="prompt").fill(prompt)
        write_until(page, len(prompt) + 60)
        ids = model.tokenizer.encode(prompt)
        want = model.tokenizer.decode(model.generate([ids], 60, temperature=0).tokens[0])
        assert text_of(page).startswith(prompt + want)
        assert want.replace("\n", "↵") in writer.fallback().replace("&#x27;", "'").replace("&amp;", "&")
        sees(page, model, text_of(page), {"temperature": 0})
    assert page.log["errors"] == []
    assert all(url.startswith(("file:", "blob:")) for url in page.log["requests"])


def test_the_bars_are_those_of_the_filters(loaded, model):
    page, filters = loaded(LiveWriter(temperature=1)), {"temperature": 1.35, "top_k": 20, "top_p": 0.8, "min_p": 0.1}
    for key, label in (("temperature", "temperature"), ("top_k", "top-k"), ("top_p", "nucleus"), ("min_p", "min-p")):
        put(page, label, filters[key])
    sees(page, model, "ROMEO:\n", filters)


def test_the_letters_are_shaded_by_the_head(loaded, writer, model):
    page, text = loaded(LiveWriter(prompt="O, where is he")), "O, where is he"
    with capture_attention(model) as seen, torch.no_grad():
        model(torch.tensor([model.tokenizer.encode(text)]))
    page.get_by_role("listbox").focus()
    for block, head, i in ((0, 0, len(text) - 1), (4, 2, len(text) - 1), (4, 2, 6)):
        page.get_by_label("block").select_option(index=block)
        page.get_by_label("head").select_option(index=head)
        for _ in range(len(text) - 1 - i):
            page.get_by_role("listbox").press("ArrowLeft")
        chosen = page.locator("[role=option][aria-selected=true]")
        page.wait_for_function("(i) => document.querySelector('[aria-selected=true]').dataset.i === i", arg=str(i))
        assert page.get_by_role("listbox").get_attribute("aria-activedescendant") == chosen.get_attribute("id")
        known(page)
        shown = page.locator("[role=option]").evaluate_all("all => all.map((node) => +node.dataset.weight)")
        want = seen[f"blks.{block}.attention.attention"][0][0, head, i]
        assert_close(torch.tensor(shown), want, atol=1e-4, rtol=0)
        sees(page, model, text[: i + 1], {"temperature": 0.8})


def test_the_cache_changes_the_cost_and_not_the_text(loaded):
    page = loaded(LiveWriter(parts=("cache",), prompt="The"))
    write_until(page, 43)
    first = text_of(page)[:43]
    page.get_by_role("button", name="back to the prompt").click()
    page.get_by_label("keep keys and values").click()
    write_until(page, 43)
    assert text_of(page)[:43] == first and first.startswith("The")
    with_cache, without = (row.split("\t") for row in page.locator("tbody tr").all_inner_texts())
    assert with_cache[2] == "1.0" and float(without[3]) > 0
    count = int(without[1])
    assert float(without[2]) == pytest.approx(sum(range(4, 4 + count)) / count, abs=0.06)


def test_the_seed_decides(loaded):
    page, found = loaded(LiveWriter(temperature=1.2)), []
    for seed in (1, 2, 1):
        put(page, "seed", seed)
        write_until(page, 47)
        found.append(text_of(page)[:47])
    assert found[0] == found[2] != found[1]


def test_pause_one_more_and_on(loaded):
    page = loaded(LiveWriter(temperature=1))
    write_until(page, 60)
    whole = text_of(page)
    page.get_by_role("button", name="back to the prompt").click()
    assert text_of(page) == "ROMEO:\n"
    for n in range(1, 4):
        page.get_by_role("button", name="One more character").click()
        page.wait_for_function(PAUSED, arg=7 + n)
        assert text_of(page) == whole[: 7 + n]
    write_until(page, 30)
    length = len(text_of(page))
    assert text_of(page)[:60] == whole[:length][:60]
    page.wait_for_timeout(300)
    assert len(text_of(page)) == length, "it goes on after Pause"


def test_another_character_and_back_by_mouse(loaded, model):
    page = loaded(LiveWriter())
    row = page.locator("svg [data-own]").nth(4)
    chosen = model.tokenizer.idx_to_token[int(row.get_attribute("data-id"))]
    row.click()
    page.wait_for_function("document.querySelectorAll('[role=option]').length >= 40")
    press(page, "Pause")
    assert text_of(page).startswith("ROMEO:\n" + chosen)
    before = text_of(page)
    page.locator("[role=option]").nth(20).click()
    page.mouse.move(1, 1)
    page.wait_for_function("document.querySelectorAll('[role=option]').length >= 50")
    press(page, "Pause")
    assert text_of(page)[:21] == before[:21] and text_of(page)[:50] != before[:50]
    page.locator("[role=option]").nth(2).click()
    page.wait_for_function("document.querySelector('textarea').value === 'ROM'")
    assert page.log["errors"] == []


def test_by_keyboard_alone(open_figure):
    page = open_figure(LiveWriter())
    while not page.evaluate("document.activeElement.textContent").startswith("Load the model"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("textarea:focus")
    page.keyboard.press("Control+A")
    page.keyboard.type("To be")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('[role=option]').length >= 20")
    page.keyboard.press("Enter")
    length = len(text_of(page))
    assert text_of(page).startswith("To be") and "Paused" in page.get_by_role("status").last.inner_text()
    page.get_by_role("listbox").focus()
    for key in ("ArrowLeft", "ArrowUp", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    assert page.locator("[aria-selected=true]").get_attribute("data-i") == str(length - 1)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_function("(n) => document.querySelectorAll('[role=option]').length > n + 5", arg=length)
    page.locator("svg [tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert "after character" in page.get_by_role("status").last.inner_text()
    assert page.log["errors"] == []


@pytest.mark.parametrize(
    ("typed", "text", "said"),
    [
        ("😀👩‍👩‍👧 é", " ", "Left out, the model does not know them: .*😀.*U\\+200D.*é"),
        ("<b onclick=alert(1)>O</b>", "b onclickalertOb", "<.*="),
        ("a" * 1500, "a" * 1000, "at most 1000"),
    ],
)
def test_any_prompt(loaded, model, typed, text, said):
    page = loaded(LiveWriter())
    page.get_by_role("textbox", name="prompt").fill("")
    page.keyboard.insert_text(typed)  # as a paste does: it is cut at the most
    page.wait_for_function("(n) => document.querySelectorAll('[role=option]').length === n", arg=len(text))
    assert text_of(page) == text
    assert re.search(said, page.locator("[role=status]").first.inner_text())
    page.get_by_role("button", name="One more character").click()
    page.wait_for_function(PAUSED, arg=len(text) + 1)
    assert page.log["errors"] == [] and page.locator("d2lmini-live-writer b").count() == 0


def test_a_text_longer_than_the_context(loaded, model):
    prompt = ("What is it that you say, my lord? " * 8)[:250]
    page = loaded(LiveWriter(prompt=prompt, temperature=0))
    write_until(page, 270)
    text = text_of(page)
    unread = page.locator("[role=option][data-read=false]").count()
    assert unread == 64 * -(-(len(text) - 256) // 64)
    assert (
        f"trained on 256 at a time and reads the last {len(text) - unread}"
        in page.locator("d2lmini-live-writer").inner_text()
    )
    sees(page, model, text[unread:], {"temperature": 0})


def test_a_new_prompt_stops_what_runs_and_so_does_reset(loaded):
    page = loaded(LiveWriter())
    press(page, "Write")
    page.get_by_role("textbox", name="prompt").fill("Now")
    page.wait_for_timeout(300)
    assert text_of(page) == "Now" and page.get_by_role("button", name="Write", exact=True).count() == 1
    press(page, "Write")
    press(page, "Reset")
    page.wait_for_selector("textarea")
    page.wait_for_timeout(300)
    assert text_of(page) == "ROMEO:\n"
    assert page.log["errors"] == []


def test_what_changes_meanwhile_holds_from_there_on(loaded):
    page = loaded(LiveWriter(temperature=1.5))
    page.get_by_label("pace").select_option("reading")
    press(page, "Write")
    page.wait_for_function("document.querySelectorAll('[role=option]').length >= 12")
    put(page, "temperature", 0)
    before = text_of(page)
    page.wait_for_function("document.querySelectorAll('[role=option]').length >= 20")
    assert text_of(page).startswith(before)
    assert all(after in (0, 1) for _, after in bars(page).values())


def test_no_motion_for_who_asked_for_none(loaded, open_figure):
    page = open_figure(LiveWriter(), reduced_motion="reduce")
    page.get_by_role("button", name="Load the model").click()
    page.wait_for_selector("[role=option]")
    assert page.get_by_label("pace").input_value() == "still"


def test_two_figures_share_one_copy(open_page, tmp_path):
    one, other = LiveWriter()._repr_html_(), LiveWriter(parts=("cache",))._repr_html_()
    (tmp_path / "two.html").write_text(f'<!doctype html><meta charset="utf-8">{one}{other}')
    page = open_page((tmp_path / "two.html").as_uri())
    page.get_by_role("button", name="Load the model").first.click()
    page.wait_for_selector("[role=option]")
    assert page.log["errors"] == []


@pytest.mark.parametrize("parts", [("attention",), ("cache",)])
def test_a_phone(loaded, parts):
    page = loaded(LiveWriter(parts=parts), width=390)
    page.locator("details").evaluate("node => { node.open = false; }")
    write_until(page, 60)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator(".d2lmini-figure").bounding_box()["height"] <= 900


def test_a_tap_looks_first(loaded):
    page = loaded(LiveWriter(), width=390, has_touch=True)
    letter = page.locator("[role=option]").nth(3)
    letter.tap()
    assert letter.get_attribute("aria-selected") == "true" and text_of(page) == "ROMEO:\n"
    letter.tap()
    page.wait_for_function("document.querySelector('textarea').value === 'ROME'")


def test_without_the_weights_the_recorded_form_stays(open_page, tmp_path, writer):
    path, html = tmp_path / "figure.html", writer._repr_html_()
    path.write_text('<!doctype html><meta charset="utf-8">' + html[: html.rindex("d2lminiLive.deliver")] + "</script>")
    page = open_page(path.as_uri())
    page.get_by_role("button", name="Load the model").click()
    page.wait_for_function("document.body.innerText.includes('The model cannot run here')")
    assert page.get_by_role("table").is_visible() and page.get_by_role("button", name="Load the model").is_visible()


def test_without_javascript_there_is_the_table(chromium, tmp_path, writer):
    (tmp_path / "figure.html").write_text(f'<!doctype html><meta charset="utf-8">{writer._repr_html_()}')
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "figure.html").as_uri())
    assert page.locator("tbody tr").count() == 3 and "temperature 0" in page.locator("caption").inner_text()
    context.close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": "vit_fashion"}, "vit_fashion is a ViT, expected a GPT over characters"),
        ({"parts": ("cash",)}, "parts has cash, expected of attention, cache"),
        ({"temperature": 3}, "temperature is 3, expected 0 to 2"),
        ({"top_k": 66}, "top_k is 66, expected 1 to 65"),
        ({"top_p": 0.0}, "top_p is 0.0, expected 0.05 to 1"),
        ({"seed": 0}, "seed is 0, expected 1 to 50"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        LiveWriter(**changes)
