"""The window explorer: what Python computes and refuses, and that the page computes the same."""

import itertools
import re
from itertools import pairwise

import pytest
import torch

from d2lmini.figures import SwinExplorer

PICTURES = {"slope": torch.linspace(0, 1, 28 * 28).view(28, 28), "night": torch.zeros(28, 28)}


def pieces(window, shift, size=14):
    """The windows along a side, as lists of rows."""
    borders = [0, *range(shift or window, size, window), size]
    return [list(range(a, b)) for a, b in pairwise(borders)]


@pytest.mark.parametrize(("window", "layer", "shift"), [(2, 1, 0), (2, 2, 1), (7, 2, 3), (7, 3, 0), (14, 2, 0)])
def test_who_may_attend_is_who_stands_in_the_same_piece(window, layer, shift):
    piece = {i: n for n, piece in enumerate(pieces(window, shift)) for i in piece}
    where = torch.tensor([[100 * piece[r] + piece[c] for c in range(14)] for r in range(14)]).flatten()
    assert torch.equal(SwinExplorer(PICTURES).mask(window, layer), where[:, None] == where)


def test_a_window_as_long_as_one_side_is_not_shifted():
    figure = SwinExplorer({"half": torch.zeros(28, 14)}, window_sizes=(7,), window_size=7)
    assert torch.equal(figure.mask(7, 2), figure.mask(7, 1))


def test_without_shifts_nothing_leaves_a_window():
    figure = SwinExplorer(PICTURES)
    assert torch.equal(figure.reached(7, 6, shifted=False), figure.mask(7, 1))


def test_what_has_reached_a_patch():
    figure = SwinExplorer(PICTURES)
    assert torch.equal(figure.reached(7, 1), figure.mask(7, 1))
    # of the corner's shifted window, rows and columns 0 to 2, all lie in the first window of the layer before
    assert figure.reached(7, 2)[0].sum() == 49
    assert figure.reached(7, 2)[7 * 14 + 7].all()  # the middle looks into all four windows
    assert not figure.reached(7, 2).all() and figure.reached(7, 3).all()  # each window has a patch that had heard all
    assert not figure.reached(2, 8)[0].all()
    assert figure.reached(14, 1).all()


def test_costs():
    costs = SwinExplorer(PICTURES, num_hiddens=10).costs(7)
    assert costs == {"scores": 196 * 49, "attention": 4 * 196 * 49 * 10, "projections": 8 * 196 * 100}


def test_the_fallback():
    text = SwinExplorer(PICTURES).fallback()
    assert '<th scope="row">14 x 14</th><td>1</td><td>38,416</td>' in text
    heard = [int(SwinExplorer(PICTURES).reached(2, n)[105].sum()) for n in (1, 2, 3, 4, 6, 8)]
    assert "".join(f"<td>{n}</td>" for n in heard) + "</tr>" in text
    assert heard[:2] == [4, 16]


def test_it_is_small():
    assert len(SwinExplorer(PICTURES)._repr_html_()) < 40_000


@pytest.mark.parametrize(
    ("pictures", "options", "message"),
    [
        ({}, {}, "nothing to show"),
        ({"a": torch.zeros(28, 28), "b": torch.zeros(14, 14)}, {}, r"expected one \(height, width\)"),
        ({"a": torch.zeros(1, 28, 28)}, {}, r"expected one \(height, width\)"),
        ({"a": torch.full((28, 28), 255.0)}, {}, "outside of 0 to 1"),
        ({"a": torch.full((28, 28), torch.nan)}, {}, "outside of 0 to 1"),
        (PICTURES, {"patch_size": 3}, "28 x 28 pixels, which patches of 3 do not divide"),
        (PICTURES, {"window_sizes": (4,)}, "14 x 14 patches, which windows of 4 do not divide"),
        (PICTURES, {"window_sizes": (7, 2)}, r"must increase, not \[7, 2\]"),
        (PICTURES, {"window_size": 3}, "no window size 3, only"),
        (PICTURES, {"layer": 9}, "layer 9: expected 1 to 8"),
    ],
)
def test_bad_input_is_refused(pictures, options, message):
    with pytest.raises(ValueError, match=message):
        SwinExplorer(pictures, **options)


def test_the_page_computes_the_same_by_mouse_and_by_keyboard(open_figure):
    figure = SwinExplorer(PICTURES)
    page = open_figure(figure)

    def shades(colour):
        """Which patches are shaded in a colour, (196,)."""
        nodes = page.locator("figure svg > rect[role=button]")
        found = nodes.evaluate_all(
            "all => all.map(n => [n.getAttribute('fill'), Number(n.getAttribute('fill-opacity'))])"
        )
        return torch.tensor([fill == colour and opacity > 0 for fill, opacity in found])

    def layers_and_strengths():
        found = page.locator("figure svg > rect[role=button]").evaluate_all(
            "all => all.map(n => [Number(n.dataset.layers), Number(n.getAttribute('fill-opacity'))])"
        )
        return torch.tensor(found).unbind(1)

    def check(window, layer, patch, shifted=True):
        may, heard = (f(window, layer, shifted)[patch] for f in (figure.mask, figure.reached))
        assert torch.equal(shades("#ff7a00"), may) and torch.equal(shades("#2f9bff"), heard & ~may)
        took, strengths = layers_and_strengths()
        assert torch.equal(took == 1, may) and torch.equal(took > 0, heard)
        # a shade for each number of layers, so that the way is seen where all is reached
        seen = [strengths[took == k].unique() for k in range(2, int(took.max()) + 1)]
        assert all(len(one) == 1 for one in seen)
        assert all((later < earlier).all() for earlier, later in itertools.pairwise(seen))
        note = page.locator(".d2lmini-note").inner_text()
        assert f"Layer {layer}," in note and f"may attend to {may.sum()} of 196 patches" in note
        assert f"row {patch // 14 + 1}, column {patch % 14 + 1}" in note
        assert f"After this layer {'all' if heard.all() else int(heard.sum())} have reached it" in note

    def layer(value):
        page.get_by_role("slider", name="layer").fill(str(value))

    check(7, 1, 105)
    page.get_by_role("button", name="patch in row 2, column 12", exact=True).hover()
    check(7, 1, 25)
    layer(2)
    check(7, 2, 25)
    assert "37 are masked" in page.locator(".d2lmini-note").inner_text()
    page.get_by_role("checkbox").uncheck()
    page.mouse.move(1, 1)
    check(7, 2, 105, shifted=False)
    page.get_by_role("checkbox").check()
    page.get_by_role("combobox", name="window").select_option("2")
    layer(5)
    check(2, 5, 105)
    costs = [int(n.replace(",", "")) for n in re.findall(r"[\d,]+$", page.locator("tbody").inner_text(), re.M)]
    assert costs[:3] == [196, 4, 784] and costs[-2:] == [figure.costs(2)["attention"], figure.costs(2)["projections"]]
    page.get_by_role("combobox", name="window").select_option("14")
    layer(2)
    check(14, 2, 105)

    # another picture, and the keyboard alone: one stop for all patches, arrows between them
    before = page.locator("figure image").get_attribute("href")
    page.get_by_role("combobox", name="picture").select_option("1")
    assert page.locator("figure image").get_attribute("href") != before
    page.get_by_role("combobox", name="window").select_option("7")
    page.get_by_role("checkbox").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    check(7, 2, 6 * 14 + 6)
    page.keyboard.press("Tab")
    assert page.locator("figure svg :focus").count() == 0
    assert page.log["errors"] == []
