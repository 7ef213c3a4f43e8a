"""Attention over patches: what Python packs and refuses, and that the page shows the weights it was given."""

import pytest
import torch

from d2lmini.figures import PatchAttention

GRID, T = (2, 3), 7  # rows and columns that differ, and a class token


def maps(heads, seed, tokens=T):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(3 * torch.randn(heads, tokens, tokens, generator=generator), -1)


def picture(seed):
    return torch.rand(8, 15, generator=torch.Generator().manual_seed(seed))


PICTURES = {
    title: (picture(i), {"block 1": maps(3, 10 * i), "block 2": maps(3, 10 * i + 1), "rollout": maps(1, 10 * i + 2)[0]})
    for i, title in enumerate(("bag", "boot"))
}
BAG, MAPS = PICTURES["bag"]


@pytest.mark.parametrize("title", PICTURES)
@pytest.mark.parametrize("name", ["block 1", "block 2", "rollout"])
def test_the_weights_come_back(title, name):
    got, want = PatchAttention(PICTURES, GRID).weights(title, name), PICTURES[title][1][name]
    torch.testing.assert_close(got.float(), want if want.dim() == 3 else want[None], rtol=0, atol=1 / 510 + 1e-6)


def test_tokens_are_named_with_and_without_a_class_token():
    names = PatchAttention(PICTURES, GRID).token_names()
    assert names[0] == "class token" and names[4] == "row 2, column 1" and len(names) == T
    assert PatchAttention({"a": (BAG, {"x": maps(1, 0, 6)})}, GRID).token_names()[3] == "row 2, column 1"


def test_it_is_small():
    pictures = {str(i): (torch.rand(28, 28), {f"block {j}": maps(4, j, 17) for j in range(4)}) for i in range(6)}
    assert len(PatchAttention(pictures, (4, 4))._repr_html_()) < 80_000


def test_the_fallback_names_where_each_head_looks_in_what_is_shown_first():
    weights = torch.zeros(2, T, T)
    weights[0, 5, 6], weights[1, 5, 0] = 0.8, 1.0
    text = PatchAttention({"a bag": (BAG, {"x": maps(2, 1), "y": weights})}, GRID, layer="y").fallback()
    assert '<th scope="row">row 2, column 2</th><td>row 2, column 3: 0.80</td><td>class token: 1.00</td>' in text
    assert "“a bag”, y:" in text and "head 3" not in text


@pytest.mark.parametrize(
    ("pictures", "options", "message"),
    [
        ({}, {}, "nothing to show"),
        ({"one": (BAG, {})}, {}, "nothing to show"),
        ({"one": PICTURES["bag"], "two": (BAG, {"rollout": MAPS["rollout"]})}, {}, "'two' has the layers"),
        ({"one": (BAG[:7], MAPS)}, {}, r"shape \(7, 15\), expected \(height, width\) that 2 x 3 patches divide"),
        ({"one": (BAG[None], MAPS)}, {}, r"shape \(1, 8, 15\)"),
        ({"one": (BAG * 255, MAPS)}, {}, "pixels of 'one' are outside"),
        ({"one": (BAG, {"x": torch.ones(2, 5, 5)})}, {}, r"expected \(H, T, T\) with T = 6 patches, or 7"),
        ({"one": (BAG, {"x": -torch.ones(2, 6, 6)})}, {}, "outside of 0 to 1"),
        ({"one": (BAG, {"x": torch.full((1, 6, 6), torch.nan)})}, {}, "outside of 0 to 1"),
        ({"one": (BAG, {"x": maps(2, 0)}), "two": (BAG, {"x": maps(3, 0)})}, {}, "of one model"),
        ({"one": (BAG, {"x": maps(2, 0), "y": maps(2, 0, 6)})}, {}, "of one model"),
        (PICTURES, {"layer": "block 3"}, "only block 1, block 2, rollout"),
        (PICTURES, {"head": 4}, "expected 1 to 3"),
        (PICTURES, {"layer": "rollout", "head": 2}, "expected 1 to 1"),
    ],
)
def test_bad_input_is_refused(pictures, options, message):
    with pytest.raises(ValueError, match=message):
        PatchAttention(pictures, GRID, **options)


def test_the_page_shows_the_weights_by_mouse_and_by_keyboard(open_figure):
    page = open_figure(PatchAttention(PICTURES, GRID))

    def numbers():
        """The weights written over the tokens."""
        texts = page.locator("figure svg > text").all_text_contents()
        return [float(text.removeprefix("class token ")) for text in texts]

    def note():
        return page.locator(".d2lmini-note").inner_text()

    def shows(title, name, head, token):
        weights = PICTURES[title][1][name]
        weights = (weights if weights.dim() == 3 else weights[None])[head - 1, token]
        assert numbers() == pytest.approx(weights.tolist(), abs=8e-3)
        shades = page.locator("figure g > rect")
        opacity = [float(shades.nth(s).get_attribute("fill-opacity")) for s in range(T)]
        assert opacity == pytest.approx((0.75 * weights / weights.max()).tolist(), abs=0.02)

    shows("bag", "block 1", 1, 0)
    assert "block 1, head 1: the class token looks at" in note()
    page.get_by_role("button", name="row 2, column 3: where").hover()
    shows("bag", "block 1", 1, 6)
    assert "the patch in row 2, column 3 looks at" in note()
    page.mouse.move(1, 1)
    shows("bag", "block 1", 1, 0)

    # another head, layer and picture; the rollout has one head, so head 3 is out of range there
    page.get_by_role("button", name="head 3").click()
    shows("bag", "block 1", 3, 0)
    page.get_by_role("combobox", name="layer").select_option("1")
    shows("bag", "block 2", 3, 0)
    page.get_by_role("combobox", name="layer").select_option("2")
    page.get_by_role("combobox", name="picture").select_option("1")
    shows("boot", "rollout", 1, 0)
    assert page.get_by_role("group", name="all maps").locator("button").all_inner_texts() == ["rollout"]
    assert note().startswith("rollout: the class token")

    # the keyboard alone: one stop for all tokens, arrows between them; the class token is above the first row
    page.get_by_role("combobox", name="layer").focus()
    page.keyboard.press("Tab")
    for key, token in (("ArrowDown", 1), ("ArrowRight", 2), ("ArrowDown", 5), ("ArrowLeft", 4), ("ArrowLeft", 4)):
        page.keyboard.press(key)
        shows("boot", "rollout", 1, token)
    for key, token in (("ArrowUp", 1), ("ArrowUp", 0)):
        page.keyboard.press(key)
        shows("boot", "rollout", 1, token)
    page.keyboard.press("Tab")
    assert page.locator(":focus").get_attribute("aria-label") == "rollout"
    assert page.log["errors"] == []
