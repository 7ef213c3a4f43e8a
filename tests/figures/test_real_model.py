"""A real model in the page: what is recorded is shown, it is loaded by pieces, and it answers as Python does."""

import json
import re

import pytest
import torch
from conftest import serving
from real_model_site import NEEDS, real_pieces, write_site

from d2lmini.figures import RealModel
from d2lmini.figures.packing import unpack
from d2lmini.models.weights import smollm2

needs_weights = pytest.mark.skipif(not smollm2.is_there(), reason=NEEDS)
MISSING = "There are no weights here."
FIGURE = "d2lmini-real-model[data-ready=yes]"
IDLE = "![...document.querySelectorAll('button')].some((node) => node.textContent === 'Stop')"
PUT = "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); }"


@pytest.fixture(scope="module")
def recorded():
    return RealModel().state["recorded"]


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def tokens(page, number=0):
    box = page.get_by_role("listbox").nth(number)
    return [re.sub("↵\n", "\n", text) for text in box.locator("[role=option]").all_text_contents()]


def bars(page):
    """What is shown of the next token: {name: (the model's, drawn from)}, in order."""
    rows = page.locator("svg [data-own]:visible")
    names = rows.locator("text:first-of-type").all_text_contents()
    numbers = rows.evaluate_all("all => all.map(({ dataset: d }) => [Number(d.own), Number(d.after)])")
    return {name.removeprefix("✓ "): tuple(pair) for name, pair in zip(names, numbers, strict=True)}


def seen(name):
    """A token as the bars name it."""
    name = re.sub("^ " if name.strip() else " ", "␣", name).replace("\n", "↵")
    name = re.sub("␣{4,}", lambda found: f"␣×{len(found[0])}", name)
    return f"{name[:13]}…" if len(name) > 14 else name


# ---- what is recorded


def test_without_javascript_there_is_what_was_recorded(recorded):
    shown = RealModel().fallback()
    for one in recorded["answers"]:
        assert "".join(one["tokens"][one["given"] :]).replace("<", "&lt;").replace(">", "&gt;").split("'")[0] in shown
    assert "Apache-2.0" in shown or "apache-2.0" in shown


def test_the_record_is_whole(recorded):
    told = RealModel().state["told"]
    assert 90e6 < told["bytes"] < 100e6 and 2e8 < told["memory"] < 4e8 and (told["blocks"], told["heads"]) == (30, 9)
    for one in recorded["answers"]:
        assert len(one["next"]) == len(one["tokens"]) - one["given"] + 1
        for likeliest, written in zip(one["next"], one["tokens"][one["given"] :], strict=False):
            assert likeliest[0][0] == written and [p for _, p in likeliest] == sorted((p for _, p in likeliest))[::-1]
    length = len(recorded["heads"]["tokens"])
    for head in recorded["heads"]["heads"]:
        weights = unpack(head["weights"], length, length) / 255
        assert torch.allclose(weights.sum(1), torch.ones(length), atol=length / 500)
    rows = recorded["losses"]["rows"]
    assert sum(nats for _, nats, _ in rows[1:]) / (len(rows) - 1) == pytest.approx(recorded["losses"]["nats"], abs=1e-3)
    panel = RealModel(panel=True).state["recorded"]
    assert panel["answers"] == recorded["answers"][:3] and "losses" not in panel


@needs_weights
@pytest.mark.slow
def test_the_record_is_what_the_model_says(recorded):
    from tools import real_model_answers

    now = json.loads(json.dumps(real_model_answers.recorded()))
    kept = json.loads(real_model_answers.PATH.read_text(encoding="utf-8"))
    assert real_model_answers.differences(kept, now) == []
    assert real_model_answers.differences({"a": [1.0, "b"]}, {"a": [1.1, "c"]}) == ["/a/0", "/a/1"]


def test_in_a_notebook_it_shows_what_was_recorded(open_figure, recorded):
    page = open_figure(RealModel())
    assert page.get_by_role("button", name=re.compile("^Load")).count() == 0
    assert "In the built book, on the page “A real model”" in page.locator(FIGURE).inner_text()
    for i, one in enumerate(recorded["answers"]):
        page.get_by_label("recorded").select_option(str(i))
        assert tokens(page) == one["tokens"]
        assert list(bars(page)) == [seen(name) for name, _ in one["next"][0]]
        assert [own for own, _ in bars(page).values()] == [p for _, p in one["next"][0]]
        box = page.get_by_role("listbox")
        box.focus()
        box.press("ArrowRight")
        chosen = box.locator("[aria-selected=true]")
        assert chosen.get_attribute("data-i") == str(one["given"])
        assert list(bars(page)) == [seen(name) for name, _ in one["next"][1]]
    assert page.log["errors"] == [] and len(page.log["requests"]) == 1


def test_recorded_heads_and_losses(open_figure, recorded):
    page = open_figure(RealModel())
    page.get_by_label("recorded").select_option("heads")
    length = len(recorded["heads"]["tokens"])
    for i, head in enumerate(recorded["heads"]["heads"]):
        page.get_by_label("head", exact=True).select_option(str(i))
        shares = page.locator("[role=option]").evaluate_all("all => all.map((node) => +node.dataset.share)")
        row = unpack(head["weights"], length, length)[-1] / 255
        assert shares == pytest.approx(row.tolist(), abs=1e-5)
    page.get_by_label("recorded").select_option("losses")
    rows = recorded["losses"]["rows"]
    assert tokens(page) == [name for name, *_ in rows]
    page.get_by_role("option", name=re.compile("Vienna")).click()
    row = next(row for row in rows if row[0] == " Vienna")
    text = page.locator(FIGURE).inner_text()
    assert f"{row[1]:.2f} nats" in text and seen(row[2][0][0]) in text
    assert f"{recorded['losses']['nats']:.3f} nats per token" in text


# ---- loading, with a model that is played


FAKE = """(() => {
  const manifest = { pieces: [0, 1, 2].map((i) => ({ file: `smollm2_0${i}.bin`, bytes: 10,
    sha256: ["01d448afd928065458cf670b60f5a594d735af0172c8d67f22a81680132681ca",
      "b4d94ce4a1b7e7c4fcc0ed0c5bd4ae8ba4e0a3a8d0e1a7b0f3f0d9b8f7c2b1aa", ""][i] })) };
  const live = window.live = { manifest, begun: 0, given: [], there: false, asked: [], wrong: {} };
  window.d2lminiLive = {
    has: () => live.there,
    manifest: async () => { if (live.wrong.manifest) throw new Error("gone"); return manifest; },
    async feed() {
      if (live.wrong.feed) throw live.wrong.feed;
      live.begun++;
      const missing = new Set([0, 1, 2]);
      return {
        missing: async () => [...missing],
        async piece(i, buffer) {
          if (live.wrong.piece === i) throw new Error("the worker has stopped");
          live.given.push(i);
          missing.delete(i);
        },
        async done() { if (missing.size) throw new Error("pieces are missing"); live.there = true; },
      };
    },
    ask(name, task, options, step) {
      live.asked.push([task, options]);
      const done = live.answer(task, options, step);
      return { done, stop() { live.stopped = true; } };
    },
    deliver() {}, runtime() {},
  };
  live.answer = async (task) => ({ tokenize: { ids: [1], pieces: ["a"], special: [false] } })[task] ?? { why: "stop" };
  Object.defineProperty(crypto, "subtle", { value: undefined, configurable: true });
})();"""


@pytest.fixture
def fake(open_page, tmp_path):
    """A function that opens a page of the book whose model is played; its pieces have ten bytes each."""
    folder = tmp_path / "_static" / "real_model"
    folder.mkdir(parents=True)
    for i in range(3):
        (folder / f"smollm2_0{i}.bin").write_bytes(bytes([i]) * 10)
    write_site(tmp_path, RealModel())
    with serving(tmp_path) as url:

        def fake(script="", **options):
            page = open_page(f"{url}/page.html", script=FAKE + script, **options)
            page.wait_for_selector(FIGURE)
            page.folder = folder
            return page

        yield fake


def load(page):
    page.get_by_role("button", name=re.compile("^Load ")).click()


def prompt(page):
    return page.get_by_role("textbox", name="prompt")


def said(page, text):
    page.get_by_role("status").get_by_text(text).first.wait_for()


def test_nothing_is_loaded_before_the_reader_asks(fake):
    page = fake()
    button = page.get_by_role("button", name=re.compile("^Load"))
    told = RealModel().state["told"]
    assert button.inner_text() == f"Load {round(told['bytes'] / 1e6)} MB"
    assert f"It uses {round(told['memory'] / 1e6)} MB of memory" in page.locator(FIGURE).inner_text()
    assert page.evaluate("[live.begun, live.given.length]") == [0, 0]
    others = [url for url in page.log["requests"] if "/_static/figures/" not in url]  # besides the figure's own scripts
    assert [url for url in others if not url.endswith(("page.html", "data:,"))] == []
    assert page.evaluate("indexedDB.databases().then((all) => all.length)") == 0
    load(page)
    prompt(page).wait_for()
    assert page.evaluate("live.given") == [0, 1, 2] and prompt(page).evaluate("one => one === document.activeElement")
    assert page.get_by_label("recorded").count() == 0


def test_a_broken_download_goes_on_where_it_broke(fake):
    page = fake()
    lost = page.folder / "smollm2_01.bin"
    kept = lost.read_bytes()
    lost.unlink()
    load(page)
    said(page, "The model is not loaded: the server answers 404 for smollm2_01.bin.")
    assert page.get_by_label("recorded").is_visible()
    lost.write_bytes(kept[:4])
    load(page)
    said(page, "smollm2_01.bin has 4 bytes, expected 10")
    lost.write_bytes(kept)
    load(page)
    prompt(page).wait_for()
    assert page.evaluate("[live.begun, live.given]") == [1, [0, 1, 2]]


def test_who_stops_goes_on_with_the_next_piece(fake):
    page = fake()
    page.route("**/smollm2_02.bin", lambda route: None)  # it never comes
    load(page)
    page.wait_for_function("live.given.length === 2")
    press(page, "Stop")
    said(page, "Stopped.")
    page.unroute("**/smollm2_02.bin")
    load(page)
    prompt(page).wait_for()
    assert page.evaluate("[live.begun, live.given]") == [1, [0, 1, 2]]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("new Error('this browser has no SIMD')", "The model is not loaded: this browser has no SIMD."),
        ("Object.assign(new Error('no'), { memory: true })", "This machine has too little memory for the model."),
    ],
)
def test_where_it_cannot_run_the_recorded_answers_stay(fake, wrong, words):
    page = fake(f"live.wrong.feed = {wrong};")
    load(page)
    said(page, words)
    assert page.get_by_label("recorded").is_visible() and page.log["errors"] == []


def test_a_book_without_pieces(fake, open_page, tmp_path):
    page = fake("live.wrong.manifest = true;")
    load(page)
    said(page, "its list of pieces cannot be reached")
    other = open_page(write_site(tmp_path, RealModel(missing=MISSING)).as_uri())
    assert MISSING in other.locator(FIGURE).inner_text() and other.get_by_label("recorded").is_visible()
    assert other.get_by_role("button", name=re.compile("^Load")).count() == 0
    assert not other.locator("input[type=file]").is_visible()


def test_a_worker_that_dies_while_it_loads_begins_anew_from_what_is_kept(fake):
    page = fake("live.wrong.piece = 2;")
    load(page)
    said(page, "The model is not loaded: the worker has stopped.")
    assert "the next attempt loads the rest" not in page.locator(FIGURE).inner_text()
    page.evaluate("live.wrong.piece = null")
    before = len(page.log["requests"])
    load(page)
    prompt(page).wait_for()
    assert page.evaluate("[live.begun, live.given]") == [2, [0, 1, 0, 1, 2]]
    assert [url.rsplit("/", 1)[1] for url in page.log["requests"][before:]] == ["smollm2_02.bin"]


def test_files_are_picked_where_a_page_may_fetch_nothing(open_page, tmp_path):
    page = open_page(write_site(tmp_path, RealModel()).as_uri(), script=FAKE)
    page.wait_for_selector(FIGURE)
    assert not page.get_by_role("button", name=re.compile("^Load")).is_visible()
    assert f"{tmp_path}/_static/real_model/" in page.locator(FIGURE).inner_text()
    files = [{"name": f"smollm2_0{i}.bin", "mimeType": "", "buffer": bytes([i]) * 10} for i in range(3)]
    picker = page.locator("input[type=file]")
    picker.set_input_files([{"name": "cat.png", "mimeType": "image/png", "buffer": b"a cat"}])
    said(page, "none of these files is a piece of the model, expected smollm2_00.bin")
    picker.set_input_files(files[:2])
    said(page, "missing: smollm2_02.bin")
    picker.set_input_files(files)
    prompt(page).wait_for()
    assert page.log["errors"] == [] and all(url.startswith(("file:", "blob:", "data:")) for url in page.log["requests"])


def test_what_is_kept_can_be_forgotten(fake):
    page = fake()
    load(page)
    prompt(page).wait_for()
    page.reload()
    page.wait_for_selector(FIGURE)
    page.get_by_role("button", name="from this browser").is_visible()
    page.get_by_text("Load from files, or keep").click()
    press(page, "Forget what is kept")
    said(page, "The model's files are deleted from this browser.")
    assert page.evaluate("indexedDB.databases().then((all) => all.length)") == 0
    page.get_by_label("keep what is loaded").uncheck()
    load(page)
    prompt(page).wait_for()
    assert page.evaluate("indexedDB.databases().then((all) => all.length)") == 0


# ---- what a reader does wrong, and a model that stops


def test_texts_that_cannot_be_read(fake):
    page = fake()
    load(page)
    for text, words in (
        ("", "The text is empty"),
        (" \n ", "The text is empty"),
        ("a" * 40_001, "The text has 40,001 characters, too many for the model"),
    ):
        prompt(page).fill(text)
        press(page, "Write")
        said(page, words)
        page.get_by_text("Loss of each token of a text", exact=True).click()
        page.get_by_role("textbox", name="text", exact=True).fill(text)
        press(page, "Compute the losses")
        assert page.get_by_role("status").get_by_text(words).count() == 2
        page.get_by_text("Loss of each token of a text", exact=True).click()
    assert page.evaluate("live.asked") == []
    page.evaluate("() => { live.answer = async () => { throw new Error('the text is too long: 3000 tokens'); }; }")
    prompt(page).fill("word " * 3000)
    press(page, "Write")
    said(page, "The text is too long: 3000 tokens.")
    page.evaluate("""() => { live.answer = async (task) => {
      if (task === "tokenize") return { ids: [1, 2], pieces: ["a", "b"], special: [false, false] };
      throw new Error("the text is too long");
    }; }""")
    press(page, "Write")
    said(page, "The text is too long.")
    assert not page.get_by_role("listbox", name="the text").is_visible(), "a text that was not read is shown"


def test_reset_begins_anew_with_the_model_that_is_there(fake):
    page = fake()
    load(page)
    prompt(page).fill("something else")
    page.get_by_role("button", name="Reset").click()
    assert prompt(page).input_value() == "Why is the sky blue? Answer in one sentence."
    assert page.evaluate("live.begun") == 1 and page.log["errors"] == []


def test_control_and_enter_write(fake):
    page = fake()
    load(page)
    prompt(page).press("Control+Enter")
    said(page, "The model ended its answer.")


def test_a_model_that_dies_is_loaded_again_and_no_text_is_lost(fake):
    page = fake()
    load(page)
    prompt(page).fill("a prompt of mine")
    page.evaluate("""() => { live.answer = async () => {
      live.there = false;
      throw new Error("the worker has stopped");
    }; }""")
    press(page, "Write")
    said(page, "The model has stopped: the worker has stopped. Your texts are still here")
    page.evaluate("() => { live.answer = async () => ({ ids: [1], pieces: ['a'], special: [false], why: 'stop' }); }")
    load(page)
    page.get_by_text("SmolLM2-135M-Instruct is ready").wait_for()
    assert prompt(page).input_value() == "a prompt of mine"
    press(page, "Write")
    said(page, "The model ended its answer.")


# ---- the real model


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    write_site(folder, RealModel(), real_pieces())
    with serving(folder) as url:
        yield url, folder


@pytest.fixture(scope="module")
def real(chromium, site):
    """A page whose real model is loaded, from the host; what it asked for and what went wrong is in `log`."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.log = {"requests": [], "errors": []}
    page.on("request", lambda request: page.log["requests"].append(request.url))
    page.on("console", lambda m: page.log["errors"].append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.log["errors"].append(str(error)))
    page.goto(f"{site[0]}/page.html")
    load(page)
    prompt(page).wait_for()
    page.get_by_text("top-k, top-p, seed, length").click()
    page.get_by_role("slider", name="length limit").evaluate(PUT, "40")
    yield page
    context.close()
    assert page.log["errors"] == []
    assert all(url.startswith((site[0], "blob:", "data:")) for url in page.log["requests"])


def ask(page, text, chat=True, count=None):
    prompt(page).fill(text)
    page.get_by_label("chat template").set_checked(chat)
    press(page, "Write")
    page.wait_for_function(IDLE)


def same_until_close(written, one):
    """The page rounds what the record does not: it may choose otherwise where two tokens are nearly as likely."""
    for i, (here, there) in enumerate(zip(written, one["tokens"], strict=False)):
        if here != there:
            likeliest = dict(one["next"][i - one["given"]])
            assert likeliest[there] - likeliest.get(here, 0) < 0.02, (here, there)
            assert i > one["given"] + 3
            return
    assert len(written) >= len(one["tokens"])


@needs_weights
def test_it_writes_what_was_recorded(real, recorded):
    told = recorded["answers"]
    for one in told[:3]:
        ask(real, one["prompt"], one["tokens"][0] == "<|im_start|>")
        same_until_close(tokens(real), one)
    one = told[0]
    ask(real, one["prompt"])
    real.locator(f"[role=option][data-i='{one['given'] - 1}']").click()
    want = one["next"][0]
    real.wait_for_function("(p) => Math.abs(document.querySelector('svg [data-own]').dataset.own - p) < 0.02",
                           arg=want[0][1])  # fmt: skip
    shown = bars(real)
    assert list(shown)[: len(want)] == [seen(name) for name, _ in want]
    assert [shown[seen(name)][0] for name, _ in want] == pytest.approx([p for _, p in want], abs=0.02)


@needs_weights
def test_another_token_and_on(real, recorded):
    ask(real, recorded["answers"][0]["prompt"])
    given = recorded["answers"][0]["given"]
    real.locator(f"[role=option][data-i='{given - 1}']").click()
    other = real.locator("svg [data-own]").nth(2)
    name = other.locator("text").first.text_content()
    other.click()
    real.wait_for_function(IDLE)
    assert seen(tokens(real)[given]) == name and len(tokens(real)) > given + 3


@needs_weights
def test_what_ended_an_answer_is_seen_at_once(real):
    ask(real, "What is the capital of France?", chat=False)
    names = tokens(real)
    chosen = int(real.locator("[role=option][aria-selected=true]").get_attribute("data-i"))
    assert names[chosen] == "?" and names[chosen + 1 :] == ["<|im_end|>"]
    assert "✓ <|im_end|>" in real.locator("svg:has([data-own])").first.text_content()
    real.locator("[role=option]").last.click()
    real.get_by_text(f"After “<|im_end|>”, token {len(names)}. Press a bar").wait_for()
    assert len(bars(real)) == 8  # of this place: what the model would write after its answer


@needs_weights
def test_the_seed_decides_and_stop_stops(real):
    found = []
    slider = real.get_by_role("slider", name="temperature")
    slider.evaluate(PUT, "1.2")
    real.get_by_role("slider", name="length limit").evaluate(PUT, "20")
    for seed in ("1", "2", "1"):
        real.get_by_role("slider", name="seed").evaluate(PUT, seed)
        ask(real, "My favourite animal is", chat=False)
        found.append(tokens(real))
    assert found[0] == found[2] != found[1]
    real.get_by_role("slider", name="length limit").evaluate(PUT, "400")
    press(real, "Write")
    real.wait_for_function("document.querySelectorAll('[role=option]').length > 15")
    press(real, "Stop")
    count = len(tokens(real))
    real.wait_for_timeout(400)
    assert len(tokens(real)) == count
    press(real, "one token more")
    real.wait_for_function(IDLE)
    assert len(tokens(real)) == count + 1
    slider.evaluate(PUT, "0")
    real.get_by_role("slider", name="length limit").evaluate(PUT, "40")


def inside(page, opened):
    page.locator("details:has(> summary:text('Look inside'))").evaluate(f"node => {{ node.open = {int(opened)}; }}")


def looked_at(page, i):
    """Waits until the heads show how they look from a place."""
    page.wait_for_function("(i) => document.querySelector('svg[role=img]').dataset.place === i", arg=str(i))


@needs_weights
def test_every_head_and_block_can_be_looked_at(real, recorded):
    heads, text = recorded["heads"], "".join(recorded["heads"]["tokens"])
    length = len(heads["tokens"])
    ask(real, text, chat=False)
    inside(real, True)
    real.locator(f"[role=option][data-i='{length - 1}']").click()
    grid = real.get_by_role("img", name="all heads")
    looked_at(real, length - 1)
    for head in heads["heads"]:
        real.get_by_label("block", exact=True).select_option(index=head["block"])
        real.get_by_label("head", exact=True).select_option(index=head["head"])
        shares = real.locator("[role=option]").evaluate_all("all => all.map((node) => +node.dataset.share)")
        row = unpack(head["weights"], length, length)[-1] / 255
        assert shares[:length] == pytest.approx(row.tolist(), abs=0.02)
    grid.focus()
    grid.press("ArrowLeft")
    grid.press("ArrowUp")
    last = heads["heads"][1]
    assert real.get_by_label("block", exact=True).input_value() == str(last["block"] - 1)
    assert real.get_by_label("head", exact=True).input_value() == str(max(0, last["head"] - 1))
    rows = real.locator("table:visible tbody tr")
    assert rows.count() == 31
    first = next(iter(bars(real).items()))
    assert rows.last.locator("td").inner_text().startswith(f"{first[0]} {first[1][0]:.2f}")
    inside(real, False)


@needs_weights
def test_what_is_off_is_off_until_it_is_on(real, recorded):
    ask(real, "What is the capital of France?")
    whole = tokens(real)
    inside(real, True)
    real.get_by_label("block", exact=True).select_option(index=0)
    press(real, "Block 1 off")
    press(real, "Write")
    real.wait_for_function(IDLE)
    assert tokens(real) != whole
    text = real.locator(FIGURE).inner_text()
    assert (
        "The model now writes with block 1 off." in text
        and "written, " in text
        and "with block 1 off" in text
        and "With all heads and blocks on: The capital of France is Paris." in text
    )
    real.get_by_text("Two prompts, with and without examples").click()
    press(real, "Ask both")
    real.get_by_text("Asked with block 1 off.").wait_for()
    assert "Cairo" not in real.get_by_role("group", name="answer with examples").inner_text()
    real.get_by_text("Two prompts, with and without examples").click()
    press(real, "All on")
    press(real, "Write")
    real.wait_for_function(IDLE)
    assert tokens(real) == whole
    inside(real, False)


@needs_weights
def test_the_losses_are_those_that_were_recorded(real, recorded):
    rows = recorded["losses"]["rows"]
    real.get_by_text("Loss of each token of a text", exact=True).click()
    real.get_by_role("textbox", name="text", exact=True).fill("".join(name for name, *_ in rows))
    press(real, "Compute the losses")
    real.get_by_text("The mean loss is").wait_for()
    mean = float(re.search(r"The mean loss is ([\d.]+) nats", real.locator(FIGURE).inner_text())[1])
    assert mean == pytest.approx(recorded["losses"]["nats"], abs=0.02)
    real.get_by_text("The same as a table").click()
    lines = real.locator("table", has_text="Loss of each token").locator("tbody tr")
    lines.first.wait_for()
    shown = [line.locator("td").first.inner_text() for line in lines.all()]
    assert shown[0] == "–" and [float(n) for n in shown[1:]] == pytest.approx([n for _, n, _ in rows[1:]], abs=0.15)
    real.get_by_text("Loss of each token of a text", exact=True).click()


@needs_weights
def test_two_prompts_side_by_side(real, recorded):
    real.get_by_text("Two prompts, with and without examples").click()
    press(real, "Ask both")
    real.get_by_text("First line without examples").wait_for()
    assert "First line with examples: “Cairo”." in real.locator(FIGURE).inner_text()
    real.get_by_text("Two prompts, with and without examples").click()


@needs_weights
@pytest.mark.parametrize(
    "text", ["<img src=x onerror=\"document.title='hit'\">", "שלום עולם, كيف حالك؟", "👩‍👩‍👧 naïve\tcafé", "<|im_end|>"]
)
def test_any_text_is_a_text(real, text):
    ask(real, text, chat=False)
    shown = tokens(real)
    assert real.title() != "hit" and real.locator("[role=option] img").count() == 0
    assert "�" not in "".join(shown), "a part of a character is shown as its bytes"
    if not re.search("<[0-9A-F]{2}>", "".join(shown)):
        assert "".join(shown).startswith(text)
    assert len(shown) > 1


@needs_weights
def test_axe_finds_nothing_serious_in_all_of_its_parts(real):
    from axe_playwright_python.sync_playwright import Axe

    ask(real, "What is the capital of France?")
    folds = real.locator("d2lmini-real-model details").element_handles()
    for fold in folds:
        fold.evaluate("node => { node.open = true; }")
    looked_at(real, len(tokens(real)) - 2)  # the last one ended the answer
    rules = Axe().run(real, context="d2lmini-real-model").response["violations"]
    found = [(rule["id"], node["html"][:150]) for rule in rules for node in rule["nodes"]]
    assert [one for one in found if one[0] not in ("region", "heading-order")] == []
    for fold in folds:
        fold.evaluate("node => { node.open = false; }")


@needs_weights
def test_from_a_file(open_page, site, recorded):
    page = open_page((site[1] / "page.html").as_uri(), width=390, theme="dark")
    page.wait_for_selector(FIGURE)
    page.set_default_timeout(120_000)
    picked = sorted((site[1] / "_static" / "real_model").resolve().glob("*.bin"))
    page.locator("input[type=file]").set_input_files(picked)
    prompt(page).wait_for()
    ask(page, recorded["answers"][0]["prompt"])
    assert tokens(page) == recorded["answers"][0]["tokens"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390 and page.log["errors"] == []
    assert all(url.startswith(("file:", "blob:", "data:")) for url in page.log["requests"])
