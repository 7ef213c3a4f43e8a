"""The translator in the page: what it writes and shows is Python's, by keyboard alone too, whatever is typed."""

import re

import pytest
import torch
from torch.testing import assert_close

import d2lmini as d2l
from d2lmini.figures import LiveTranslator, translator
from d2lmini.figures.translator import KINDS, PARTS, places, translate
from d2lmini.models.weights import files
from d2lmini.models.weights.trained import trained

NAME = "translator_grammar"
TEXTS = ["my white cat often watches my famous hotel.", "must she draw him?"]
ASK = """async ([name, task, options]) => {
  await d2lminiLive.load(name);
  const steps = [], plain = (x) => JSON.parse(JSON.stringify(x, (_, v) => ArrayBuffer.isView(v) ? [...v] : v));
  const done = await d2lminiLive.ask(name, task, options, (step) => steps.push(plain(step))).done;
  return { steps: steps.filter(Boolean), done: plain(done) };
}"""
SAID = "[...document.querySelectorAll('.d2lmini-said')].map((node) => node.textContent).join(' ')"
needs_weights = pytest.mark.skipif(NAME not in files.names(), reason="the translator's weights are not exported")


@pytest.fixture(scope="module")
def model():
    return trained(NAME)


@pytest.fixture
def page(open_figure):
    page = open_figure(LiveTranslator(parts=PARTS, examples=TEXTS), width=390)
    page.ask = lambda task, **options: page.evaluate(ASK, [NAME, task, {"heads": None, **options}])
    return page


def says(page, text):
    page.wait_for_function(f"(text) => ({SAID}).includes(text)", arg=text)


def ids_of(model, text):
    return torch.tensor([[*model.tokenizer.encode_batch([text])[0], model.tokenizer["<eos>"]]])


def test_parts_examples_and_names_are_checked():
    with pytest.raises(ValueError, match="parts has 'head', expected some of heads, beam, later, positions"):
        LiveTranslator(parts=["head"])
    with pytest.raises(ValueError, match="no examples"):
        LiveTranslator(examples=[])


@needs_weights
def test_what_is_recorded_is_what_the_model_writes(model):
    shown = LiveTranslator(("translator_missing", NAME), examples=TEXTS)
    assert shown.state["weights"]["name"] == NAME and not shown.state["tested"]["sentences"]
    assert shown.state["recorded"]["rows"] == [[text, translate(model, text)] for text in TEXTS]
    moved = LiveTranslator(NAME, ["positions"], TEXTS).state["recorded"]
    assert moved["header"] == ["English", "positions", "French"]
    assert moved["rows"][::4] == [[text, "in order", translate(model, text)] for text in TEXTS]
    assert [row[1] for row in moved["rows"]] == 2 * [*KINDS.values()]
    own = {"source": list(range(20)), "target": list(range(60))}
    assert translate(model, TEXTS[0], **own) == translate(model, TEXTS[0])  # the places that they have anyway
    assert len(LiveTranslator(parts=["heads"]).state["tested"]["references"]) == translator.TESTED


@needs_weights
@torch.no_grad()
def test_translations_and_attention_are_those_of_python(page, model):
    for text in TEXTS:
        found = page.ask("translate", text=text)
        assert found["done"]["text"] == translate(model, text)
        ids, target = ids_of(model, text), torch.tensor([[model.tokenizer["<bos>"], *found["done"]["ids"][:-1]]])
        with d2l.capture_attention(model) as seen:
            logits = model(ids, target, torch.tensor([ids.shape[1]]))
        cross = torch.stack(
            [seen[f"decoder.blks.{i}.attention2.attention"][0][0] for i in range(2)]
        )  # (blocks, H, T, S)
        weights = torch.tensor([step["weights"] for step in found["steps"][1:]]).unflatten(2, (4, -1))
        assert_close(weights.permute(1, 2, 0, 3), cross, rtol=0, atol=1e-4)
        total = logits.log_softmax(-1)[0].gather(1, torch.tensor(found["done"]["ids"])[:, None]).sum().item()
        assert found["done"]["total"] == pytest.approx(total, abs=1e-3)


@needs_weights
@torch.no_grad()
def test_heads_beams_positions_and_later_words_are_those_of_python(page, model):
    text, eos, bos = TEXTS[0], model.tokenizer["<eos>"], model.tokenizer["<bos>"]
    off = {
        "encoder": [[0, 1, 1, 1], [1, 1, 0, 1]],
        "own": [[1, 1, 1, 1], [1, 0, 1, 1]],
        "cross": [[1, 0, 0, 1], [1] * 4],
    }
    names = {
        "encoder": "encoder.blks.{}.attention",
        "own": "decoder.blks.{}.attention1",
        "cross": "decoder.blks.{}.attention2",
    }
    masks = {
        names[kind].format(b): torch.tensor(row).float() for kind, rows in off.items() for b, row in enumerate(rows)
    }
    with d2l.head_masks(model, masks):
        wanted = translate(model, text)
    assert page.ask("translate", text=text, heads=off)["done"]["text"] == wanted

    ids = ids_of(model, text)
    beam = model.translate(ids, torch.tensor([ids.shape[1]]), bos, eos, 40, beam_size=3, length_penalty=0.0)
    found = page.ask("translate_beam", text=text, beam_size=3)["done"]
    assert found["beams"][0]["total"] == pytest.approx(beam.scores.item(), abs=1e-3)
    tokens = beam.tokens[0].tolist()
    assert found["beams"][0]["text"] == model.tokenizer.decode(tokens[: tokens.index(eos)])
    assert found["greedy"]["text"] == translate(model, text)

    moved = page.ask("move_positions", text=text, where="both", seed=1, by=10)["steps"]
    assert {step["kind"]: step["text"] for step in moved} == {
        kind: translate(model, text, **places(model, text, kind)) for kind in KINDS
    }
    written = page.ask("translate", text=text)["done"]["ids"]
    for at in (0, 3):
        later = page.ask("change_later", text=text, ids=written, at=at, seed=1)["done"]
        assert max(later["changes"][: at + 1]) < 1e-5 < 0.01 < min(later["changes"][at + 1 :])
    assert page.log["errors"] == []


@needs_weights
def test_by_keyboard_alone(page, model):
    page.get_by_role("button", name=re.compile("Load the model")).press("Enter")
    says(page, f"French: “{translate(model, TEXTS[0])}”")
    field = page.get_by_role("textbox")
    assert field.evaluate("node => node === document.activeElement")  # the focus is not lost
    field.fill(TEXTS[1])
    field.press("Enter")
    says(page, f"French: “{translate(model, TEXTS[1])}”")
    words = page.get_by_role("group", name="French", exact=True).get_by_role("button")
    words.first.press("ArrowRight")
    assert words.nth(1).get_attribute("aria-pressed") == "true"
    assert re.match(r"“\S+”: \S+ \d\.\d\d", page.locator(".d2lmini-note").first.inner_text())
    head = page.get_by_role("switch", name="cross, block 1, head 2")
    page.get_by_role("switch").first.press("ArrowDown")
    assert page.get_by_role("switch", name="encoder, block 2, head 1").evaluate("n => n === document.activeElement")
    head.press("Enter")
    says(page, "French (1 of 24 heads are off)")
    assert head.get_attribute("aria-checked") == "false"
    for name, said in (
        ("beam", "of a beam of 4"),
        ("later words", "all words are other ones"),
        ("positions", "ositions"),
    ):
        page.get_by_role("group", name="experiments").get_by_role("button", name=name, exact=True).press("Enter")
        says(page, said)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.log["errors"] == [] and len(page.log["requests"]) <= 2  # the page, and the worker's blob


@needs_weights
def test_by_touch_on_a_phone(open_figure, model):
    page = open_figure(LiveTranslator(parts=PARTS, examples=TEXTS), width=390, has_touch=True, theme="dark")
    page.get_by_role("button", name=re.compile("Load the model")).tap()
    says(page, f"French: “{translate(model, TEXTS[0])}”")
    page.get_by_role("group", name="French", exact=True).get_by_role("button").nth(1).tap()
    assert re.match(r"“\S+”: \S+ \d\.\d\d", page.locator(".d2lmini-note").first.inner_text())
    page.get_by_role("switch", name="cross, block 1, head 2").tap()
    says(page, "French (1 of 24 heads are off)")
    page.get_by_role("textbox").fill(TEXTS[1])
    page.get_by_role("button", name="Translate", exact=True).tap()
    says(page, "French (1 of 24 heads are off)")
    page.get_by_role("button", name="all heads on").tap()
    says(page, f"French: “{translate(model, TEXTS[1])}”")
    tabs = page.get_by_role("group", name="experiments")
    for name, said in (("beam", "of a beam of 4"), ("later words", "all words are other ones")):
        tabs.get_by_role("button", name=name, exact=True).tap()
        says(page, said)
    page.get_by_role("button", name=re.compile("change from word 1 on$")).tap()
    says(page, "From word 1 on, all words are other ones")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.log["errors"] == []


@needs_weights
def test_after_an_error_the_picture_is_no_longer_at_work(open_figure):
    page = open_figure(LiveTranslator(examples=TEXTS), width=390)
    page.get_by_role("button", name=re.compile("Load the model")).click()
    says(page, "French: “")
    fail = """() => {
      const own = d2lminiLive.ask;
      d2lminiLive.ask = function (name, task, options, step) {
        const job = own.call(this, name, task, options, step);
        return { stop: job.stop, done: job.done.then(() => { throw new Error("it broke"); }) };
      };
    }"""
    page.evaluate(fail)
    page.get_by_role("textbox").press("Enter")
    says(page, "This does not work: it broke.")
    assert page.locator(".d2lmini-note").first.get_attribute("aria-live") == "polite"
    words = page.get_by_role("group", name="French", exact=True).get_by_role("button")
    assert [node.get_attribute("tabindex") for node in words.all()][:2] == ["0", "-1"]


# Fifty sentences take a fast machine less time than a call from outside, so the page presses both buttons itself.
PAUSE_IN_TIME = """() => new Promise((done, failed) => {
  const named = (name) => [...document.querySelectorAll("button")].find((one) => one.textContent.startsWith(name));
  new MutationObserver((_, observer) => {
    const counted = /of (\\d+) exact/.exec(document.body.innerText);
    if (!(counted?.[1] >= 5) || !named("Pause")) return;
    observer.disconnect();
    named("Pause").click();
    if (counted[1] < 50) done();
    else failed(new Error("all were counted before there was a pause"));
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
  named("Score over 50").click();
})"""


@needs_weights
def test_the_score_is_counted_live_paused_and_right(page, model):
    pairs = translator.test_sentences(NAME)
    page.get_by_role("button", name=re.compile("Load the model")).click()
    says(page, "French")
    page.evaluate(PAUSE_IN_TIME)
    assert page.get_by_role("button", name="Go on").is_visible()
    page.get_by_role("button", name="Go on").click()
    exact = sum(translate(model, english) == french for english, french in pairs)
    says(page, f"All heads: {exact} of 50 exact. These heads: {exact} of 50 exact.")
    masks = {"decoder.blks.0.attention2": torch.tensor([0.0, 1, 1, 1])}
    page.get_by_role("switch", name="cross, block 1, head 1").click()
    page.get_by_role("button", name="Score over 50").click()
    with d2l.head_masks(model, masks):
        left = sum(translate(model, english) == french for english, french in pairs)
    says(page, f"All heads: {exact} of 50 exact. These heads: {left} of 50 exact.")


@needs_weights
def test_odd_texts_break_nothing_and_a_new_one_stops_the_one_before(page, model):
    page.get_by_role("button", name=re.compile("Load the model")).click()
    field = page.get_by_role("textbox")
    for text, said in (
        ("", "there is no text"),
        ("the cat " * 500, "the text is too long"),
        ("😀", "French"),
        ("שלום עולם", "French"),
        ("<img src=x onerror=alert(1)><b>cat</b>", "French"),
    ):
        field.fill(text)
        field.press("Enter")
        says(page, said)
    assert page.get_by_text("does not know").is_visible() and page.locator(".d2lmini-figure img").count() == 0
    for text in (*TEXTS, TEXTS[0]):
        field.fill(text)
        field.press("Enter")
    says(page, f"French: “{translate(model, TEXTS[0])}”")
    assert "".join(page.get_by_role("group", name="English", exact=True).locator("span").all_inner_texts()).startswith(
        "mywhitecat"
    )
    assert page.log["errors"] == []


@needs_weights
def test_without_javascript_and_with_damaged_weights_the_recorded_form_stays(open_page, tmp_path, model):
    shown = LiveTranslator(examples=TEXTS)._repr_html_()
    path, said = tmp_path / "figure.html", translate(model, TEXTS[0])
    path.write_text(f'<!doctype html><meta charset="utf-8">{shown}', encoding="utf-8")
    still = open_page(path.as_uri(), java_script_enabled=False)
    assert still.get_by_role("cell", name=said).is_visible()
    path.write_text(
        re.sub(r'(deliver\("\w+", ".{2000}).*?"', r'\1"', path.read_text(encoding="utf-8")), encoding="utf-8"
    )
    broken = open_page(path.as_uri())
    broken.get_by_role("button", name=re.compile("Load the model")).click()
    says(broken, "The model cannot run here")
    assert broken.get_by_role("cell", name=said).is_visible()
