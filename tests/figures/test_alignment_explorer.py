"""The alignment explorer: what Python packs and refuses, and that the page shows the weights it was given."""

import pytest
import torch

from d2lmini.figures import AlignmentExplorer

ENGLISH, FRENCH = ["the", "black", "cat", "<eos>"], ["le", "chat", "noir"]
TRUE = {(0, 0), (1, 2), (2, 1)}


def rows(num_targets, num_sources, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(3 * torch.randn(num_targets, num_sources, generator=generator), -1)


WEIGHTS = {"one": rows(3, 4), "two": rows(2, 3, 1)}
SENTENCES = {"one": (ENGLISH, FRENCH, WEIGHTS["one"], TRUE), "two": (ENGLISH[1:], FRENCH[:2], WEIGHTS["two"], None)}


@pytest.mark.parametrize("title", SENTENCES)
def test_the_weights_come_back(title):
    got = AlignmentExplorer(SENTENCES).weights(title)
    torch.testing.assert_close(got.float(), WEIGHTS[title], rtol=0, atol=1 / 510 + 1e-6)


def test_the_alignment_may_be_left_out_and_weights_may_hang_on_a_graph():
    weights = WEIGHTS["two"].half().requires_grad_()
    shown = AlignmentExplorer({"two": (ENGLISH[1:], FRENCH[:2], weights)})
    assert shown.state["cards"][0]["true"] is None


def test_the_fallback_holds_the_numbers_and_marks_what_belongs_together():
    weights = torch.tensor([[1.0, 0, 0, 0], [0, 0.2, 0.8, 0], [0, 0.6, 0, 0.4]])
    text = AlignmentExplorer({"noir": (ENGLISH, FRENCH, weights, TRUE)}).fallback()
    assert '<th scope="row">chat</th><td>0.00</td><td>0.20</td><td>0.80 ✓</td><td>0.00</td>' in text
    assert '<th scope="row">noir</th><td>0.00</td><td>0.60 ✓</td><td>0.00</td><td>0.40</td>' in text
    assert text.count("0.00") == 7 and "✓ marks" in text and "&lt;eos&gt;" in text
    assert "✓" not in AlignmentExplorer(SENTENCES, sentence="two").fallback()


@pytest.mark.parametrize(
    ("sentences", "options", "message"),
    [
        ({}, {}, "nothing to show"),
        (SENTENCES, {"sentence": "three"}, "only 'one', 'two'"),
        ({"one": (FRENCH, ENGLISH, WEIGHTS["one"])}, {}, r"expected \(T, S\) = \(4, 3\)"),
        ({"one": (ENGLISH, ["<bos>", *FRENCH], WEIGHTS["one"])}, {}, "is <bos> among"),
        ({"one": (ENGLISH, FRENCH, -WEIGHTS["one"])}, {}, "are they scores"),
        ({"one": (ENGLISH, FRENCH, WEIGHTS["one"] * torch.nan)}, {}, "outside of 0 to 1"),
        ({"one": (ENGLISH, FRENCH, WEIGHTS["one"], [(0, 3)])}, {}, r"pair \(0, 3\)"),
    ],
)
def test_bad_input_is_refused(sentences, options, message):
    with pytest.raises(ValueError, match=message):
        AlignmentExplorer(sentences, **options)


def test_the_page_shows_the_weights_by_mouse_and_by_keyboard(open_figure):
    page = open_figure(AlignmentExplorer(SENTENCES))

    def numbers():
        """The weights written beside the words."""
        texts = page.locator("svg > text").all_text_contents()
        return [float(text) for text in texts if text.replace(".", "").isdigit()]

    def note():
        return page.locator(".d2lmini-note").inner_text()

    def opacities():
        return page.locator("svg > line:not(.d2lmini-true, .d2lmini-rim)").evaluate_all(
            "lines => lines.map((line) => Number(line.getAttribute('opacity')))"
        )

    weights = WEIGHTS["one"]
    assert "Point at a word" in note() and numbers() == []
    assert opacities() == pytest.approx([w if w > 0.01 else 0 for w in weights.flatten().tolist()], abs=1.1e-2)
    # the mouse: a target word, then a source word; away: nothing is shown
    page.get_by_role("button", name="noir: where it comes from").hover()
    assert numbers() == pytest.approx(weights[2].tolist(), abs=8e-3)
    assert sum(opacity > 0 for opacity in opacities()) <= 4
    assert f"“noir” comes from {ENGLISH[weights[2].argmax()]} {weights[2].max():.2f}" in note()
    assert "belongs to" not in note()
    page.get_by_role("button", name="black: where it goes").hover()
    assert numbers() == pytest.approx(weights[:, 1].tolist(), abs=8e-3)

    # the true alignment: one line for a chosen word, all of them for none
    dashes = page.locator("line.d2lmini-true:visible")
    assert dashes.count() == 0
    page.get_by_role("checkbox", name="true alignment").check()
    page.get_by_role("button", name="noir: where it comes from").hover()
    assert dashes.count() == 1 and "It belongs to “black”" in note()
    page.mouse.move(1, 1)
    assert numbers() == [] and dashes.count() == 3

    # the keyboard alone: one stop for all words, arrows between them
    page.get_by_role("checkbox", name="true alignment").focus()
    page.keyboard.press("Tab")
    assert "“le” comes from" in note()
    page.keyboard.press("ArrowRight")
    assert "“chat” comes from" in note()
    page.keyboard.press("ArrowUp")
    assert "“black” is looked at for" in note()
    assert numbers() == pytest.approx(weights[:, 1].tolist(), abs=8e-3)
    page.keyboard.press("Escape")
    assert numbers() == []

    # another sentence, whose alignment is not known
    page.get_by_role("combobox", name="sentence").select_option("1")
    page.get_by_role("button", name="chat: where it comes from").hover()
    assert numbers() == pytest.approx(WEIGHTS["two"][1].tolist(), abs=8e-3)
    assert dashes.count() == 0 and "belongs to" not in note()
    assert page.log["errors"] == []


def test_on_a_phone_the_words_stand_below_each_other(open_figure):
    page = open_figure(AlignmentExplorer(SENTENCES), width=390)
    assert page.locator(".d2lmini-scroll").evaluate("node => node.scrollWidth <= node.clientWidth")
    words = page.locator("svg [role=button]").all()
    boxes = [word.bounding_box() for word in words]
    written = [box for word, box in zip(words, boxes, strict=True) if "comes from" in word.get_attribute("aria-label")]
    assert len(written) == len(FRENCH) and len({round(box["x"]) for box in written}) <= 2
    assert [box["y"] for box in written] == sorted(box["y"] for box in written)
    page.get_by_role("button", name="noir: where it comes from").focus()
    page.keyboard.press("ArrowUp")
    assert "“chat” comes from" in page.locator(".d2lmini-note").inner_text()
    page.keyboard.press("ArrowLeft")
    assert "is looked at for" in page.locator(".d2lmini-note").inner_text()
    assert page.log["errors"] == []


def test_the_alignment_itself_is_not_told_as_attention(open_figure):
    shown = AlignmentExplorer(SENTENCES, attention=False)
    assert "The true alignment of 2 sentences" in shown._repr_html_() and "equal shares of" in shown.fallback()
    page = open_figure(shown)
    assert page.get_by_role("checkbox").count() == 0
    page.get_by_role("button", name="noir: where it comes from").hover()
    assert page.locator(".d2lmini-note").inner_text().startswith("“noir” belongs to <eos>")
