"""Masked guessing: what is recorded is what models say of each place; one word is shown, others are hidden."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from d2lmini import results
from d2lmini.data.text_encoder import TextEncoder
from d2lmini.figures import MaskGuess
from d2lmini.models.bert import BERTForPretraining
from d2lmini.models.bert_config import BERT_CONFIGS
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.tokenization import BPETokenizer, SubwordTokenizer

TEXTS = ["the black cat sleeps here .", "a dog eats"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENIZERS = {
    "pieces": SubwordTokenizer.train("wordpiece", TEXTS * 2, 60, SPECIAL),
    "bytes": BPETokenizer.train(TEXTS * 2, 280),
}
CARD = {
    "tokens": ["I", "love", "##ly", "cars"],
    "guesses": [
        [["I", 0.5], ["we", 0.25]],
        [["hate", 0.125], ["like", 0.75]],
        [["##ly", 1.0]],
        [["cars", 0.0001], ["dogs", 0.5]],
    ],
    "truth_probability": [0.5, 0.06, 1.0, 0.0001],
    "from_left": {"guesses": [None, [["am", 0.5], ["love", 0.25]], [["you", 0.5]], []]},
}


def card(**changes):
    return {**CARD, **changes}


def models(tokenizer, dropout=0.0):
    V = len(tokenizer)
    torch.manual_seed(0)
    bert = BERTForPretraining(replace(BERT_CONFIGS["toy"], vocab_size=V, dropout=dropout))
    gpt = GPT(replace(GPT_CONFIGS["toy"], vocab_size=V, dropout=dropout))
    with torch.no_grad():
        for model in (bert, gpt):  # guesses that differ
            for parameter in model.parameters():
                parameter.mul_(3)
    return bert, gpt


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
@torch.no_grad()
def test_each_place_is_masked_by_itself(tokenizer):
    bert, gpt = models(tokenizer, dropout=0.3)
    shown = MaskGuess.of(bert, tokenizer, TEXTS, top=4, from_left=gpt)
    assert bert.training and gpt.training
    encoder = TextEncoder(tokenizer)
    for n, (ids, _) in enumerate(encoder.encode(TEXTS)):
        assert shown.state["passages"][n]["tokens"] == encoder.pieces(ids)
        for t, truth in enumerate(ids):
            whole = torch.tensor([[encoder.cls_id, *ids, encoder.sep_id]])
            hidden = whole.clone()
            hidden[0, t + 1] = encoder.mask_id
            for left, logits in (
                (False, bert.eval()(hidden)[0][0, t + 1]),
                (True, gpt.eval()(whole[:, : t + 1])[0, -1]),
            ):
                wanted = logits.softmax(0)
                found = shown.guesses(n, t, left)
                likeliest = [name.replace("\n", "↵") for name in encoder.pieces(wanted.topk(4).indices)]
                assert [name for name, _ in found] == likeliest
                assert_close(torch.tensor([p for _, p in found]), wanted.topk(4).values, rtol=0, atol=1e-5)
                assert shown.truth_probability(n, t, left) == pytest.approx(wanted[truth].item(), abs=1e-5)


def test_a_function_may_look_from_the_left_and_nothing_is_asked_of_it_but_logits():
    tokenizer = TOKENIZERS["pieces"]
    bert, gpt = models(tokenizer)
    asked = MaskGuess.of(bert, tokenizer, TEXTS, from_left=lambda X: gpt.eval()(X), passage=1, position=2)
    assert asked.state == MaskGuess.of(bert, tokenizer, TEXTS, from_left=gpt, passage=1, position=2).state


def test_what_is_given_comes_back():
    shown = MaskGuess([CARD], position=1)
    assert shown.guesses(0, 1) == [("like", pytest.approx(0.75, abs=1e-5)), ("hate", pytest.approx(0.125, abs=1e-5))]
    assert shown.guesses(0, 0, True) == shown.guesses(0, 3, True) == []
    truths = [[shown.truth_probability(0, t, left) for t in range(4)] for left in (False, True)]
    assert truths == [
        pytest.approx([0.5, 0.06, 1, 0.0001], abs=1e-5),
        [None, pytest.approx(0.25, abs=1e-5), None, None],
    ]
    bare = MaskGuess([card(from_left=CARD["from_left"]["guesses"])], position=1)
    assert bare.state == shown.state


def test_it_begins_with_the_word_that_the_right_side_gives_away():
    state = MaskGuess([CARD]).state
    assert (state["passage"], state["position"], state["revealed"]) == (0, 2, True)  # 1.0 - 0: nothing from the left
    assert MaskGuess([card(from_left=None)]).state["position"] == 2  # 1.0
    sure = card(from_left={"guesses": CARD["from_left"]["guesses"], "truth_probability": [0, 0.25, 0.9, 0]})
    chosen = MaskGuess([sure, CARD]).state
    assert (chosen["passage"], chosen["position"]) == (1, 2)
    assert [passage["telling"] for passage in chosen["passages"]] == [0, 2]
    assert MaskGuess([CARD, sure], passage=1).state["position"] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"passages": []}, "nothing to show"),
        ({"passages": [{"tokens": ["a"]}]}, "has tokens: expected tokens and guesses"),
        ({"passages": [card(truth=1)]}, "truth_probability"),
        ({"passages": [card(tokens=[], guesses=[])]}, "0 tokens, expected 1 to 40"),
        ({"passages": [card(tokens=["a"] * 41)]}, "41 tokens"),
        ({"passages": [card(guesses=CARD["guesses"][:3])]}, "4 tokens, guesses of 3"),
        ({"passages": [card(truth_probability=[0.5])]}, "truth_probability of 1"),
        ({"passages": [card(guesses=[[["I", 1.5]], *CARD["guesses"][1:]])]}, "of probabilities"),
        ({"passages": [card(guesses=[[["a", 0.7], ["b", 0.7]], *CARD["guesses"][1:]])]}, "of probabilities"),
        ({"passages": [card(guesses=[[[str(i), 0.01] for i in range(13)], *CARD["guesses"][1:]])]}, "at most 12"),
        ({"passages": [card(truth_probability=[0.5, 2, 1, 0])]}, "'love', truth_probability 2, expected a prob"),
        ({"passages": [card(truth_probability=[0.3, 0, 1, 0])]}, "0.3, but 0.500 among the guesses"),
        ({"passages": [CARD, card(from_left=None)]}, "some passages have from_left"),
        ({"passage": 1}, "passage is 1, expected 0 to 0"),
        ({"position": 4}, "position is 4, expected 0 to 3"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        MaskGuess(**{"passages": [CARD], **changes})


def test_models_and_tokenizers_that_do_not_fit_are_refused():
    tokenizer = TOKENIZERS["pieces"]
    bert, _ = models(tokenizer)
    with pytest.raises(ValueError, match=r"tokens but the model .*of another model"):
        MaskGuess.of(bert, TOKENIZERS["bytes"], TEXTS)
    with pytest.raises(ValueError, match="no token for a mask"):
        MaskGuess.of(bert, SubwordTokenizer.train("wordpiece", TEXTS * 2, 60, SPECIAL[:4]), TEXTS)
    with pytest.raises(ValueError, match="top is 13, expected 1 to 12"):
        MaskGuess.of(bert, tokenizer, TEXTS, top=13)
    with pytest.raises(TypeError, match="one str"):
        MaskGuess.of(bert, tokenizer, TEXTS[0])
    with pytest.raises(ValueError, match="tokens but 64 positions"):
        MaskGuess.of(bert, tokenizer, [TEXTS[0] * 30])


def test_the_fallback_tells_of_every_word():
    text = MaskGuess([CARD]).fallback()
    assert text.count("<tr>") == 5
    assert '<th scope="row">love</th><td>like 0.750</td><td>0.060</td><td>am 0.500</td><td>0.250</td>' in text
    assert "<td>nothing</td><td>not known</td>" in text and "<td>dogs 0.500</td><td>&lt; 0.001</td>" in text
    assert "left" not in MaskGuess([card(from_left=None)]).fallback()


def test_it_is_small():
    guesses = [[[f"word{6 * t + i}", 0.1] for i in range(6)] for t in range(14)]
    one = {"tokens": [f"word{t}" for t in range(14)], "guesses": guesses, "truth_probability": [0.1] * 14}
    one["truth_probability"][3:] = [0.05] * 11
    guesses[0][0], guesses[0][1] = ["word0", 0.1], ["word1", 0.1]
    assert len(MaskGuess([{**one, "from_left": one}] * 5)._repr_html_()) < 37_000


ROWS = """all => all.filter((g) => g.style.display !== 'none').map((g) => [
  g.querySelector('text').textContent, g.querySelector('text:last-of-type').textContent,
  g.querySelector('rect').getAttribute('fill'), +g.querySelector('rect').getAttribute('width')])"""


def test_the_page_hides_until_it_is_asked_and_then_tells_what_the_models_think(open_figure):
    words = ["we", "hate", "##ly", "cars"]
    other = card(tokens=words, guesses=[[["we", 0.4]], *CARD["guesses"][1:]], truth_probability=None)
    page = open_figure(MaskGuess([CARD, other], position=0), width=390)
    page.get_by_role("button", name="hide", exact=True).click()
    line, note = page.get_by_role("group", name="words to hide"), page.locator(".d2lmini-note")
    field, figures = page.get_by_role("textbox", name="your guess"), page.locator("figure")

    def rows(n):
        return figures.nth(n).locator("svg g").evaluate_all(ROWS)

    def words():
        return line.get_by_role("button").all_text_contents()

    assert words() == ["[MASK]", "love", "##ly", "cars"]
    assert "Word 1 of 4 is hidden" in note.inner_text()
    assert [row[:3] for row in rows(0)] == [["?", "0.500", "var(--blue)"], ["?", "0.250", "var(--blue)"]]
    assert rows(1) == []  # the bars are there, the words are not

    line.get_by_role("button", name="hide love").click()
    assert words() == ["I", "[MASK]", "##ly", "cars"]
    assert "love" not in "".join(page.locator("figure").all_inner_texts()) + note.inner_text()
    field.fill(" Hate ")
    assert rows(0)[0][0] == "?"
    field.press("Enter")
    assert words() == CARD["tokens"]
    blue, orange = "var(--blue)", "var(--orange)"
    like, hate, truth = rows(0)
    assert [like[:3], hate[:3], truth[:3]] == [
        ["like", "0.750", blue],
        ["hate", "0.125", blue],
        ["✓ love", "0.060", orange],
    ]
    assert like[3] == pytest.approx(6 * hate[3], rel=1e-3) and hate[3] == pytest.approx(
        0.125 / 0.06 * truth[3], rel=1e-3
    )
    assert [row[:3] for row in rows(1)] == [["am", "0.500", blue], ["✓ love", "0.250", orange]]
    heads = [figures.nth(n).locator("div").all_inner_texts()[1] for n in (0, 1)]
    assert heads == ["I [MASK] ##ly cars", "I [MASK]"]
    said = note.inner_text()
    assert "both sides: “love” is not among its 2 likeliest, it has 0.060. Yours, “Hate”, is its second, 0.125." in said
    assert "left side alone: “love” is its second guess, 0.250. Yours, “Hate”, is not among them." in said

    # another word by keyboard: hidden again; marks of pieces do not count in a guess; nothing from the left
    page.get_by_role("button", name="hide love").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert words()[2] == "[MASK]" and field.input_value() == "" and rows(0)[0][0] == "?"
    field.fill("ly")
    page.get_by_role("button", name="reveal").click()
    assert "“##ly” is its first guess, 1.000. Yours, “ly”, is its first, 1.000." in note.inner_text()
    assert [row[:2] for row in rows(1)] == [["you", "0.500"], ["✓ ##ly", "not among the 1 likeliest"]]
    line.get_by_role("button", name="hide cars").click()
    page.get_by_role("button", name="reveal").click()
    assert [row[1] for row in rows(0)] == ["0.500", "< 0.001"] and rows(1) == []
    assert "left side alone has no guess here." in note.inner_text()

    page.get_by_role("combobox", name="sentence").select_option("1")
    assert words() == ["we", "hate", "[MASK]", "cars"]  # its telling word
    line.get_by_role("button", name="hide hate").click()
    page.get_by_role("button", name="reveal").click()
    assert [row[:2] for row in rows(0)] == [["like", "0.750"], ["✓ hate", "0.125"]]
    page.get_by_role("button", name="Reset").click()
    assert words() == CARD["tokens"] and rows(0)[0][0] == "✓ I"
    assert page.log["errors"] == []


WIDEST = "Math.max(...[...document.querySelectorAll('svg g rect')].map((bar) => +bar.getAttribute('width')))"
RECORDED = results.load("bert_pretrain", "laptop")["metrics"]["guesses"]  # those of chapter 13


@pytest.mark.parametrize("width", [390, 768])
def test_the_first_state_teaches_and_all_fit(open_figure, width):
    """At first the right word is likely from both sides and hardly from the left; the bars fill their scale."""
    page = open_figure(MaskGuess(RECORDED), width=width)
    page.evaluate("document.body.style.cssText = 'margin: 0 16px; font-family: system-ui'")
    rows = [figure.locator("svg g").evaluate_all(ROWS) for figure in page.locator("figure").all()]
    likely, unlikely = ([row for row in of if row[0].startswith("✓")] for of in rows)
    assert float(likely[0][1]) > 0.5 > 0.05 > float(unlikely[0][1]) and rows[0][0] == likely[0]
    figure, note = page.locator(".d2lmini-figure"), page.locator(".d2lmini-key")
    for n in range(len(RECORDED)):
        page.get_by_role("combobox", name="sentence").select_option(str(n))
        words = page.get_by_role("group", name="words to hide").get_by_role("button")
        for t in range(words.count()):
            words.nth(t).click()
            end = float(note.inner_text().split()[-1].strip("."))
            best = max(view["guesses"][t][0][1] for view in (RECORDED[n], RECORDED[n]["from_left"]))
            assert best <= end <= max(2.5 * best, 0.05)
            assert page.evaluate(WIDEST) == pytest.approx(166 * best / end, rel=0.01)
            for name in ("reveal", "hide"):
                page.get_by_role("button", name=name, exact=True).click()
                assert figure.bounding_box()["height"] <= (900 if width == 390 else 620)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.log["errors"] == []
