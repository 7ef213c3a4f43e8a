"""The head explorer: what Python packs and refuses, and that the page shows the weights it was given."""

import pytest
import torch

from d2lmini.figures import HeadExplorer

FRENCH, ENGLISH = ["le", "chat", "noir"], ["the", "black", "cat", "."]


def maps(layers, heads, num_queries, num_keys, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(layers, heads, num_queries, num_keys, generator=generator)
    return torch.softmax(scores, -1)


WEIGHTS = {
    ("one", "cross"): maps(2, 3, 3, 4),
    ("one", "decoder"): maps(1, 2, 3, 3, 1).tril(),  # the rows do not sum to one: what is shown is what was given
    ("two", "cross"): maps(2, 3, 2, 4, 2),
    ("two", "decoder"): maps(1, 2, 2, 2, 3),
}
SENTENCES = {
    title: {"cross": (words, ENGLISH, WEIGHTS[title, "cross"]), "decoder": (words, words, WEIGHTS[title, "decoder"])}
    for title, words in (("one", FRENCH), ("two", FRENCH[:2]))
}


@pytest.mark.parametrize(("title", "name"), WEIGHTS)
def test_the_weights_come_back(title, name):
    got = HeadExplorer(SENTENCES).weights(title, name)
    torch.testing.assert_close(got.float(), WEIGHTS[title, name], rtol=0, atol=1 / 510 + 1e-6)


def test_it_is_small():
    words = [str(i) for i in range(12)]
    shown = HeadExplorer({"long": {"self": (words, words, maps(4, 8, 12, 12))}})
    assert len(shown._repr_html_()) < 36_000  # 4,608 weights, and the scripts


def test_one_layer_may_come_without_its_dimension_and_in_half_precision_on_a_graph():
    weights = WEIGHTS["two", "decoder"][0].half().requires_grad_()
    shown = HeadExplorer({"two": {"self": (FRENCH[:2], FRENCH[:2], weights)}})
    assert shown.weights("two", "self").shape == (1, 2, 2, 2)


def test_the_fallback_names_where_each_head_looks():
    weights = torch.zeros(1, 2, 3, 4)
    weights[0, 0, 2, 1], weights[0, 1, 2, 3] = 0.8, 1.0
    text = HeadExplorer({"le chat noir": {"cross": (FRENCH, ENGLISH, weights)}}).fallback()
    assert '<th scope="row">noir</th><td>black 0.80</td><td>. 1.00</td>' in text
    assert "“le chat noir”, cross, layer 1" in text


def test_the_fallback_is_of_what_is_shown_first():
    weights, best = WEIGHTS["one", "cross"], WEIGHTS["one", "cross"][1, 2, 0].max()
    assert "layer 2" in HeadExplorer(SENTENCES, layer=2).fallback()
    assert f"{best:.2f}</td></tr>" in HeadExplorer(SENTENCES, layer=2).fallback().split("chat")[0]
    assert weights.shape[1] == 3 and "head 3" not in HeadExplorer(SENTENCES, attention="decoder").fallback()


@pytest.mark.parametrize(
    ("sentences", "options", "message"),
    [
        ({}, {}, "nothing to show"),
        ({"one": {}}, {}, "nothing to show"),
        ({"one": SENTENCES["one"], "two": {"cross": SENTENCES["two"]["cross"]}}, {}, "'two' has the attentions"),
        ({"one": {"a": (FRENCH, FRENCH, WEIGHTS["one", "cross"])}}, {}, r"expected \(layers, H, 3, 3\)"),
        ({"one": {"a": (FRENCH, FRENCH, torch.ones(3, 3))}}, {}, r"have shape \(3, 3\)"),
        ({"one": {"a": (FRENCH, FRENCH, -torch.ones(1, 3, 3))}}, {}, "are they scores"),
        ({"one": {"a": (FRENCH, FRENCH, torch.full((1, 3, 3), torch.nan))}}, {}, "outside of 0 to 1"),
        (
            {"one": SENTENCES["one"], "two": {**SENTENCES["two"], "decoder": (["a"], ["b"], torch.ones(1, 1, 1))}},
            {},
            "maps of one model",
        ),
        (SENTENCES, {"attention": "encoder"}, "only cross, decoder"),
        (SENTENCES, {"layer": 3}, "layer 3 and head 1"),
        (SENTENCES, {"attention": "decoder", "head": 3}, "expected 1 to 1 and 1 to 2"),
    ],
)
def test_bad_input_is_refused(sentences, options, message):
    with pytest.raises(ValueError, match=message):
        HeadExplorer(sentences, **options)


def test_the_page_shows_the_weights_by_mouse_and_by_keyboard(open_figure):
    page = open_figure(HeadExplorer(SENTENCES))

    def numbers():
        """The weights written beside the words."""
        texts = page.locator("figure svg > text").all_text_contents()
        return [float(text) for text in texts if text.replace(".", "").isdigit()]

    def note():
        return page.locator(".d2lmini-note").inner_text()

    assert "Point at a word" in note() and numbers() == []
    # the mouse: a query, then a key; away: nothing is shown
    page.get_by_role("button", name="noir: where it looks").hover()
    expected = WEIGHTS["one", "cross"][0, 0, 2]
    assert numbers() == pytest.approx(expected.tolist(), abs=8e-3)
    assert f"“noir” looks at {ENGLISH[expected.argmax()]} {expected.max():.2f}" in note()
    page.get_by_role("button", name="black: who looks at it").hover()
    assert numbers() == pytest.approx(WEIGHTS["one", "cross"][0, 0, :, 1].tolist(), abs=8e-3)
    page.mouse.move(1, 1)
    assert numbers() == []

    # another layer, attention, sentence and head
    page.get_by_role("combobox", name="layer").select_option("2")
    for head in (2, 3):  # the last of both would be the last map in any order
        page.get_by_role("button", name=f"head {head}").click()
        page.get_by_role("button", name="le: where it looks").hover()
        assert numbers() == pytest.approx(WEIGHTS["one", "cross"][1, head - 1, 0].tolist(), abs=8e-3)
    page.get_by_role("combobox", name="sentence").select_option("1")
    page.get_by_role("button", name="chat: where it looks").hover()
    assert numbers() == pytest.approx(WEIGHTS["two", "cross"][1, 2, 1].tolist(), abs=8e-3)
    page.get_by_role("combobox", name="attention").select_option("1")  # one layer and two heads: back into range
    assert page.get_by_role("combobox", name="layer").count() == 0
    assert page.get_by_role("button", name="head 2").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="le: where it looks").hover()
    assert numbers() == pytest.approx(WEIGHTS["two", "decoder"][0, 1, 0].tolist(), abs=8e-3)

    # the keyboard alone: one stop for all words, arrows between them
    page.mouse.move(1, 1)
    page.get_by_role("combobox", name="attention").focus()
    page.keyboard.press("Tab")
    assert "“le” looks at" in note()
    page.keyboard.press("ArrowDown")
    assert "“chat” looks at" in note()
    assert numbers() == pytest.approx(WEIGHTS["two", "decoder"][0, 1, 1].tolist(), abs=8e-3)
    page.keyboard.press("ArrowRight")
    assert "“chat” is looked at by" in note()
    page.keyboard.press("Tab")
    assert page.locator(":focus").get_attribute("aria-label") == "head 2"  # the chosen one
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="head 1").get_attribute("aria-pressed") == "true"
    assert page.log["errors"] == []
