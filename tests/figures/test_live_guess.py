"""A hidden piece in the page: the beliefs are Python's on the same weights, whatever is hidden or typed."""

import re

import pytest
import torch
from book_page import shown_in_book
from examples import live_weights
from torch.testing import assert_close

from d2lmini.data.text_encoder import TextEncoder
from d2lmini.figures import LiveGuess
from d2lmini.figures.live_guess import SENTENCES, belief
from d2lmini.hooks import capture_attention
from d2lmini.models.weights import files
from d2lmini.models.weights.trained import trained

SHIP, KING = "The old ship sails at dawn and the crew sings.", "the king lost, and all the army fade."
OWN = {SHIP: "ship", KING: "army"}
NAMES = "bert_wikitext", "causal_wikitext"
ASK = "([name, task, options]) => d2lminiLive.ask(name, task, options).done"
SIDE = "model that sees only the left side"
COLUMNS = """() => [...document.querySelectorAll("ol")].map((list) => ({
  title: list.parentElement.getAttribute("aria-label"),
  best: [...list.children].map((row) => [row.firstChild.textContent.replace("✓ ", ""), +row.lastChild.dataset.p]),
  p: +list.nextSibling.lastChild.dataset.p,
  rank: list.parentElement.lastChild.textContent,
}))"""
WITHIN = {"rtol": 0, "atol": 1e-4}


@pytest.fixture
def figure(monkeypatch):
    monkeypatch.setattr(files, "FOLDER", live_weights())
    return LiveGuess(sentences=OWN)


@pytest.fixture
def models(figure):
    return [trained(name) for name in NAMES]


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def load(page, left=False):
    page.get_by_role("button", name="Load the model (").click()
    page.wait_for_selector("ol")
    if left:
        page.get_by_role("button", name=f"Load the {SIDE}").click()
        settled(page, "Left side")


def settled(page, *titles):
    """Waits for columns of these titles."""
    shown = f"const all = ({COLUMNS})().map((one) => one.title); return titles.every((one) => all.includes(one));"
    page.wait_for_function(f"(titles) => {{ {shown} }}", arg=list(titles))


def said(page):
    return page.locator(".d2lmini-said").first.inner_text()


def same(column, want, size):
    assert [piece for piece, _ in column["best"]] == [piece for piece, _ in want["best"]]
    assert [p for _, p in column["best"]] == pytest.approx([p for _, p in want["best"]], abs=1e-4)
    assert column["p"] == pytest.approx(want["p"], abs=1e-4)
    assert column["rank"] == f"rank {want['rank']:,} of {size:,}"


def test_in_each_example_the_word_is_hidden_to_which_the_right_side_adds_most():
    """The chapter states the rule; the word is then ranked higher by the model that sees both sides."""
    both, left = (trained(name) for name in NAMES)
    encoder = TextEncoder(both.tokenizer)
    for text, hidden in SENTENCES.items():
        gains, pieces = {}, encoder.pieces(encoder.encode([text])[0][0])
        for place, piece in enumerate(pieces):
            from_both, from_left = belief(both, text, place, top=1), belief(left, text, place, causal=True, top=1)
            if len(piece) >= 4 and piece in text.lower().rstrip(".").split():
                gains[piece] = from_both["p"] / from_left["p"]
            if piece == hidden:
                assert from_both["rank"] < from_left["rank"], text
        assert max(gains, key=gains.get) == hidden and pieces.count(hidden) == 1, text


def test_what_is_recorded_is_what_the_models_believe(figure, models):
    _, header, (ship, king) = figure.state["recorded"].values()
    assert len(header) == len(ship) == 6 and figure.state["places"] == [2, 7]
    assert king[0] == "the king lost , and all the [MASK] fade ." and king[1] == "army"
    for number, model in enumerate(models):
        want = belief(model, SHIP, 2, causal=number > 0)
        assert ship[2 + 2 * number].replace("\xa0", " ").startswith("{} {:.3f}, ".format(*want["best"][0]))
        assert ship[3 + 2 * number].replace("\xa0", " ") == f"{want['p']:.3f}, rank {want['rank']}"
    assert figure.fallback().count("<tr>") == 3 and "[MASK]" in figure.fallback()
    alone = LiveGuess(causal=None, sentences=OWN)
    assert alone.state["more"] == [] and len(alone.state["recorded"]["header"]) == 4


def test_bad_input_is_refused(figure):
    with pytest.raises(ValueError, match="at least one sentence"):
        LiveGuess(sentences={})
    with pytest.raises(ValueError, match=r"'boat' is no piece of .*expected one of the, old, ship"):
        LiveGuess(sentences={SHIP: "boat"})
    with pytest.raises(ValueError, match="129 tokens, but the model reads at most 128"):
        LiveGuess(sentences={"the " * 127: "the"})
    with pytest.raises(ValueError, match="there is no trained model 'nobody'"):
        LiveGuess(causal="nobody", sentences=OWN)


LONG = " ".join(["the", "old", "ship", "at"] * 32)[: -len(" ship at")]  # 126 pieces


@pytest.mark.parametrize("text", [SHIP, LONG, "a ☃ 👩‍🚀 שלום", "a"])
def test_beliefs_and_attention_are_pythons_at_every_place(figure, models, open_figure, text):
    page = open_figure(figure)
    load(page, left=True)
    encoder = TextEncoder(models[0].tokenizer)
    ids = encoder.join(encoder.encode([text])[0][0])[0]
    got = page.evaluate(ASK, [NAMES[0], "pieces", {"text": text}])
    assert got["ids"] == ids and got["pieces"] == encoder.pieces(ids) and got["mask"] == encoder.mask_id
    assert got["unknown"] == ("☃" in text)
    places = range(1, len(ids) - 1) if len(ids) < 20 else (1, 64, len(ids) - 2)
    for place in places:
        for others in ((), tuple({1, 2, len(ids) - 2} - {place, len(ids) - 1})):
            given = [encoder.mask_id if i in (place, *others) else index for i, index in enumerate(ids)]
            for name, model in zip(NAMES, models, strict=True):
                causal = name == NAMES[1]
                want = belief(model, text, place - 1, causal, others=[i - 1 for i in others])
                options = {"ids": given, "place": place, "truth": ids[place], "causal": causal}
                got = page.evaluate(ASK, [name, "guess", options])
                assert got["best"]["p"] == pytest.approx([p for _, p in want["best"]], abs=1e-4)
                assert got["best"]["pieces"] == [piece for piece, _ in want["best"]]
                assert got["truth"]["p"] == pytest.approx(want["p"], abs=1e-4) and got["truth"]["rank"] == want["rank"]
                read = torch.tensor([given[:place] if causal else given])
                with torch.no_grad(), capture_attention(model) as record:
                    model.bert(read, causal=causal)
                rows = torch.stack([weights[0][0, :, place - causal] for weights in record.values()])  # (L, H, T)
                assert got["looks"]["size"] == list(rows.shape)
                assert_close(torch.tensor(got["looks"]["weights"]).view_as(rows), rows, **WITHIN)
    assert page.log["errors"] == []


def test_the_shipped_weights_believe_the_same_in_the_page(open_figure):
    if not set(NAMES) <= set(files.names()):
        pytest.skip("the weights are not exported")
    page, models = open_figure(LiveGuess()), [trained(name) for name in NAMES]
    load(page, left=True)
    text, hidden = next(iter(SENTENCES.items()))
    for column, model, causal in zip(page.evaluate(COLUMNS), models, (False, True), strict=True):
        encoder = TextEncoder(model.tokenizer)
        want = belief(model, text, encoder.pieces(encoder.encode([text])[0][0]).index(hidden), causal)
        assert [p for _, p in column["best"]] == pytest.approx([p for _, p in want["best"]], abs=1e-4)
        assert column["p"] == pytest.approx(want["p"], abs=1e-4)


def test_hide_change_and_see_it_move(figure, models, open_figure):
    page, size = open_figure(figure), models[0].bert.config.vocab_size
    load(page, left=True)
    both, left = page.evaluate(COLUMNS)
    same(both, belief(models[0], SHIP, 2), size)
    same(left, belief(models[1], SHIP, 2, causal=True), size)
    shown = " ".join(page.locator(".d2lmini-maps").inner_text().split())
    assert shown == "[CLS] the old [MASK] sail ##s at dawn and the crew sing ##s . [SEP]"

    press(page, "change it")
    page.get_by_role("button", name="dawn, piece 7").click()
    field = page.get_by_role("textbox", name="in place of “dawn”")
    field.fill("Harbour song")
    field.press("Enter")
    settled(page, "Both sides, before", "Both sides, after", "Left side, before", "Left side, after")
    after = SHIP.replace("dawn", "harbour song")
    for column, want in zip(page.evaluate(COLUMNS), (
        belief(models[0], SHIP, 2), belief(models[0], after, 2),
        belief(models[1], SHIP, 2, True), belief(models[1], after, 2, True),
    ), strict=True):  # fmt: skip
        same(column, want, size)
    columns = page.evaluate(COLUMNS)
    assert columns[0]["best"] != columns[1]["best"] and columns[2]["best"] == columns[3]["best"]  # it is on the right
    assert said(page).startswith("“ship” is hidden. Both sides: first guess “")

    press(page, "as it was")
    settled(page, "Both sides", "Left side")
    press(page, "hide it as well")
    settled(page, "Both sides, after")
    same(page.evaluate(COLUMNS)[1], belief(models[0], SHIP, 2, others=[6]), size)
    offered = page.get_by_role("button", name=re.compile("put it there")).and_(page.locator("[aria-label]"))
    assert offered.count() == 5
    alternative = offered.first.inner_text()
    assert alternative in [piece for piece, _ in belief(models[0], SHIP, 6, others=[2], top=6)["best"]]
    offered.first.click()
    page.get_by_role("button", name=f"{alternative}, piece 7").wait_for()
    page.get_by_role("button", name="[MASK], hidden: ship").click()
    assert said(page) == "“ship” is hidden: change another piece."

    press(page, "Reset")
    settled(page, "Both sides")
    page.get_by_role("combobox", name="sentence").select_option("1")
    page.get_by_role("button", name="[MASK], hidden: army").wait_for()
    page.get_by_role("button", name="king, piece 2").click()
    page.get_by_role("button", name="[MASK], hidden: king").wait_for()
    settled(page, "Both sides")
    page.wait_for_function("document.querySelector('.d2lmini-said').textContent.includes('king')")
    same(page.evaluate(COLUMNS)[0], belief(models[0], KING, 1), size)
    page.get_by_role("checkbox").click()
    page.wait_for_function("document.querySelectorAll('ol').length === 1")
    assert page.log["errors"] == [] and all(url.startswith(("file:", "blob:")) for url in page.log["requests"])


def test_pieces_are_shaded_by_where_a_head_looks(figure, models, open_figure):
    page = open_figure(figure)
    load(page, left=True)
    encoder = TextEncoder(models[0].tokenizer)
    tokens = torch.tensor([encoder.join(encoder.encode([SHIP])[0][0])[0]])
    tokens[0, 3] = encoder.mask_id
    page.get_by_role("combobox", name="shade by").select_option("3")
    for view, (model, causal) in enumerate(zip(models, (False, True), strict=True)):
        page.get_by_role("combobox", name="of", exact=True).select_option(str(view))
        with torch.no_grad(), capture_attention(model) as record:
            model.bert(tokens, causal=causal)
        row = [*record.values()][1][0][0, 1, 3 - causal]  # block 2, head 2
        shares = page.locator(".d2lmini-maps > *").evaluate_all(
            "all => all.map((node) => +(/ ([\\d.]+)%/.exec(node.style.background)?.[1] ?? 0))"
        )
        assert_close(torch.tensor(shares) / 70, row, rtol=0, atol=2e-3)
        names = [*encoder.pieces(tokens[0].tolist())]
        note = page.get_by_text("Block 2, head 2 looks from").inner_text()
        assert f"{names[row.argmax()]} {row.max():.2f}" in note
        assert ("“old”, the place before the hidden piece," in note) == causal


def test_by_keyboard_alone(figure, open_figure):
    page = open_figure(figure)
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("ol")
    assert page.evaluate("document.activeElement.localName") == "select"
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "[MASK]"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('.d2lmini-said').textContent.startsWith('“sail” is hidden')")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # change it
    page.keyboard.press("Tab")
    page.keyboard.type("queen")
    page.keyboard.press("Enter")
    settled(page, "Both sides, after")
    assert page.get_by_role("button", name="queen, piece 2").count() == 1


def test_by_touch_on_a_phone(figure, open_figure):
    page = open_figure(figure, width=390, has_touch=True, theme="dark")
    page.get_by_role("button", name="Load the model (").tap()
    page.wait_for_selector("ol")
    page.get_by_role("button", name=f"Load the {SIDE}").tap()
    settled(page, "Left side")
    page.get_by_role("button", name="change it", exact=True).tap()
    page.get_by_role("button", name="crew, piece 10").tap()
    page.get_by_role("button", name="hide it as well").tap()
    settled(page, "Left side, after")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    top, bottom = (page.locator(where).bounding_box() for where in (".d2lmini-maps", "ol >> nth=3"))
    assert bottom["y"] + bottom["height"] - top["y"] < 900


HTML = "<img src=x onerror=alert(1)><b>bold</b>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no text"),
        ("  \n ", "there is no text"),
        ("the " * 127, "129 tokens, but the model reads at most 128"),
        ("x" * 20_000, None),
        (HTML, None),
        ("שלום 👩\u200d🚀 مرحبا", None),
    ],
)
def test_whatever_a_reader_types(figure, open_figure, text, message):
    page = open_figure(figure, width=390)
    load(page)
    field = page.get_by_role("textbox", name="or type one")
    field.fill(text)
    field.press("Enter")
    if message:
        page.wait_for_function(f"document.querySelector('.d2lmini-said').textContent.includes({message!r})")
        assert page.get_by_role("button", name="[MASK], hidden: ship").count() == 1  # what was there stays
    else:
        page.wait_for_function("!document.querySelector('.d2lmini-said').textContent.startsWith('“ship” is')")
        assert page.locator("ol").count() == 1 and page.locator("figure img, .d2lmini-figure b b, img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.log["errors"] == []


def test_a_replacement_that_makes_it_too_long(figure, open_figure):
    page = open_figure(figure)
    load(page)
    field = page.get_by_role("textbox", name="or type one")
    field.fill(LONG)
    field.press("Enter")
    page.wait_for_function("document.querySelectorAll('.d2lmini-maps button').length === 126")
    press(page, "change it")
    field = page.get_by_role("textbox", name="in place of")
    field.fill("old song")
    field.press("Enter")
    page.wait_for_function("document.querySelector('.d2lmini-said').textContent.includes('the text is too long: 129')")
    assert page.locator("ol").count() == 0  # the beliefs of before are of another sentence
    press(page, "as it was")
    page.wait_for_function("document.querySelector('.d2lmini-said').textContent.includes('is hidden. Both')")


def test_the_menu_of_sentences_begins_with_the_readers_own(figure, open_figure):
    page = open_figure(figure)
    load(page)
    menu, field = page.get_by_role("combobox", name="sentence"), page.get_by_role("textbox", name="or type one")
    assert menu.locator("option").all_inner_texts()[0] == "your own" and menu.input_value() == "0"
    menu.select_option("")
    assert field.evaluate("node => node === document.activeElement")
    field.fill("the queen")
    field.press("Enter")
    page.wait_for_function("document.querySelector('.d2lmini-said').textContent.includes('queen')")
    menu.select_option("1")
    page.get_by_role("button", name="[MASK], hidden: army").wait_for()
    menu.select_option("")
    page.get_by_role("button", name="[MASK], hidden: queen").wait_for()


def test_the_last_request_wins(figure, open_figure):
    page = open_figure(figure)
    load(page)
    page.locator(".d2lmini-maps button").evaluate_all("all => all.forEach((node) => node.click())")
    page.wait_for_function("document.querySelector('.d2lmini-said').textContent.startsWith('“.” is hidden')")
    page.wait_for_timeout(300)
    assert said(page).startswith("“.” is hidden") and page.log["errors"] == []


def test_a_missing_file_leaves_what_is_recorded(figure, open_page, tmp_path):
    path = tmp_path / "page.html"
    page_of = '<!doctype html><html data-content_root="./"><meta charset="utf-8">{}'.format
    path.write_text(page_of(shown_in_book(tmp_path, figure)), encoding="utf-8")
    page = open_page(path.as_uri())
    page.get_by_role("button", name="Load the model (").click()
    page.get_by_text("The model cannot run here: runtime.js could not be loaded").wait_for()
    assert page.locator("table").is_visible()


def test_without_javascript_the_table_is_there(figure, open_page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{figure._repr_html_()}', encoding="utf-8")
    page = open_page(path.as_uri(), java_script_enabled=False)
    assert page.locator("table").is_visible() and "the old [MASK] sail ##s" in page.locator("table").inner_text()
    assert page.get_by_role("button").count() == 0
