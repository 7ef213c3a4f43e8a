"""The vision Transformer in the page says what it says in Python: of images picked and painted, of patches shuffled."""

import html
import json
import re

import pytest
import torch
from painted import easel, greys, loaded, middle, said, settled, stroke_of_a_finger, where_weights_are_missing
from torch.testing import assert_close

from d2lmini.figures import LiveClassifier
from d2lmini.hooks import attention_rollout, capture_attention
from d2lmini.models.weights.trained import trained

SIZE = 28, 28
MODEL = trained("vit_fashion")
GRID, N = MODEL.grid, MODEL.grid[0] * MODEL.grid[1]
NEAR = dict(rtol=0, atol=1e-4)


@pytest.fixture(scope="module")
def figure():
    return LiveClassifier()


def picture(figure, n):
    """The pixels of a picture of the figure, (28, 28), from 0 to 1."""
    from d2lmini.figures.packing import unpack

    return unpack(figure.state["pictures"][n], *SIZE).float() / 255


@torch.no_grad()
def says(image, kept=None, places=None):
    """Probabilities, and weights (1, H, T, T) of each block, from the model's parts, of some patches at some places."""
    kept = list(range(N)) if kept is None else kept
    places = list(range(N)) if places is None else places
    positions = MODEL.pos_embedding[0]
    patches = MODEL.patch_embedding(image[None, None])[0]  # (N, h)
    rows = [MODEL.cls_token[0, 0] + positions[0], *(patches[i] + positions[1 + places[i]] for i in kept)]
    with capture_attention(MODEL) as seen:
        X = torch.stack(rows)[None]
        for blk in MODEL.blks:
            X = blk(X)
    return MODEL.head(X[:, 0])[0].softmax(-1), [calls[0] for calls in seen.values()]


def shown(page):
    """The probabilities that the bars have."""
    bars = page.locator("rect[data-probability]")
    return torch.tensor([float(x) for x in bars.evaluate_all("all => all.map((r) => r.dataset.probability)")])


def patches(page):
    return page.locator("svg [role=button][data-patch]")


def state_of(page):
    """Which patch is at each place, and whether it is in the sequence."""
    found = patches(page).evaluate_all("all => all.map((g) => [+g.dataset.patch, g.getAttribute('aria-pressed')])")
    return [patch for patch, _ in found], [patch for patch, there in found if there == "true"]


def shades(page):
    rects = patches(page).locator("rect")
    return torch.tensor([float(x) for x in rects.evaluate_all("all => all.map((r) => r.getAttribute('fill-opacity'))")])


def test_whole_pictures(figure, open_figure):
    page = loaded(open_figure, figure)
    for n, name in enumerate(figure.state["names"]):
        page.get_by_label("image", exact=True).select_option(name)
        settled(page)
        want, weights = says(picture(figure, n))
        assert_close(want, MODEL(picture(figure, n)[None, None])[0].softmax(-1), **NEAR)
        assert_close(shown(page), want, **NEAR)
        best = int(want.argmax())
        assert said(page) == f"The model says: {figure.state['labels'][best]}, with probability {want[best]:.2f}."
        rollout = attention_rollout(weights)[0, 0, 1:]
        assert_close(shades(page), 0.75 * rollout / rollout.max(), rtol=0, atol=1e-3)
    page.get_by_label("attention", exact=True).select_option("block 2")
    page.get_by_label("head", exact=True).select_option("head 3")
    row = weights[1][0, 2, 0, 1:]
    assert_close(shades(page), 0.75 * row / row.max(), rtol=0, atol=1e-3)
    page.get_by_label("attention", exact=True).select_option("hidden")
    assert shades(page).max() == 0
    assert page.log["errors"] == [] and len(page.log["requests"]) <= 2  # the page, and the worker's own text
    assert all(url.startswith(("file:", "blob:")) for url in page.log["requests"])
    assert f"run {figure.state['weights']['run']}" in page.locator(".d2lmini-figure").inner_text()


def test_patches_are_taken_out_and_put_back(figure, open_figure):
    page = loaded(open_figure, figure)
    whole = shown(page)
    for at in (9, 10, 24):
        patches(page).nth(at).click()
    settled(page)
    kept = [i for i in range(N) if i not in (9, 10, 24)]
    assert state_of(page) == (list(range(N)), kept)
    want, weights = says(picture(figure, 0), kept)
    assert_close(shown(page), want, **NEAR)
    rollout = attention_rollout(weights)[0, 0, 1:]
    assert_close(shades(page)[kept], 0.75 * rollout / rollout.max(), rtol=0, atol=1e-3)
    assert f"{N - 3} of {N} patches" in page.locator(".d2lmini-figure").inner_text()
    move = float(re.search(r"largest move of a probability is (\d\.\d+)", said(page))[1])
    assert move == pytest.approx((want - whole).abs().max().item(), abs=0.006)
    # the keyboard: from patch to patch with arrows, Space and Enter
    patches(page).nth(24).focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    settled(page)
    assert state_of(page)[1] == [i for i in range(N) if i not in (9, 10, 25, 32)]
    page.get_by_role("button", name="put all back").click()
    settled(page)
    assert state_of(page)[1] == list(range(N))
    assert_close(shown(page), whole)


def test_nothing_is_left(figure, open_figure):
    page = loaded(open_figure, figure)
    patches(page).evaluate_all("all => all.forEach((g) => g.dispatchEvent(new Event('click')))")
    settled(page)
    assert_close(shown(page), says(picture(figure, 0), [])[0], **NEAR)
    assert said(page).startswith("The model sees nothing, and must name a class: ") and page.log["errors"] == []


def test_shuffled_with_and_without_positions(figure, open_figure):
    page = loaded(open_figure, figure)
    whole = shown(page)
    page.get_by_label("patches", exact=True).select_option("with")
    settled(page)
    order, kept = state_of(page)
    assert order == kept and sorted(order) == list(range(N)) != order
    assert_close(shown(page), whole, **NEAR)  # each patch has its position vector: nothing moves
    page.get_by_label("patches", exact=True).select_option("without")
    settled(page)
    assert state_of(page)[0] == order
    places = [order.index(patch) for patch in range(N)]
    assert_close(shown(page), says(picture(figure, 0), None, places)[0], **NEAR)
    for at in (0, 17, 30):
        patches(page).nth(at).click()
    settled(page)
    kept = [patch for at, patch in enumerate(order) if at not in (0, 17, 30)]
    want, weights = says(picture(figure, 0), kept, places)
    assert_close(shown(page), want, **NEAR)
    rollout = dict(zip(kept, attention_rollout(weights)[0, 0, 1:].tolist(), strict=True))
    most = max(rollout.values())
    for at in (1, 20, 48):
        assert shades(page)[at].item() == pytest.approx(0.75 * rollout[order[at]] / most, abs=1e-3)
    page.get_by_role("button", name="shuffle again").click()
    settled(page)
    assert state_of(page)[0] != order


def test_the_task_gives_attention_and_rollout(figure, open_figure):
    page = loaded(open_figure, figure)
    kept = [i for i in range(N) if i % 3]
    options = {"pixels": picture(figure, 2).flatten().tolist(), "kept": kept, "places": None}
    found = page.evaluate(
        """async (options) => {
          const { attention, rollout } = await d2lminiLive.ask("vit_fashion", "classify", options).done;
          return { attention: attention.map((rows) => rows.map((row) => [...row])), rollout: [...rollout] };
        }""",
        options,
    )
    _, weights = says(picture(figure, 2), kept)
    assert_close(torch.tensor(found["attention"]), torch.stack([block[0, :, 0] for block in weights]), **NEAR)
    assert_close(torch.tensor(found["rollout"]), attention_rollout(weights)[0, 0], **NEAR)


def painted_is_classified(page):
    """What is on the painting grid is what the model was asked."""
    settled(page)
    image = torch.tensor(greys(page)).view(SIZE).float() / 255
    assert_close(shown(page), says(image)[0], **NEAR)
    assert page.get_by_label("image", exact=True).input_value() == "drawn"


def test_painting_by_mouse_and_keyboard(figure, open_figure):
    page = loaded(open_figure, figure)
    page.get_by_role("button", name="clear").click()
    settled(page)
    assert set(greys(page)) == {0} and said(page).startswith("The model sees nothing")
    # a stroke of the mouse, faster than its events: no pixel is left out
    page.mouse.move(*middle(page, SIZE, 10 * 28 + 4))
    page.mouse.down()
    page.mouse.move(*middle(page, SIZE, 10 * 28 + 20))
    page.mouse.up()
    assert [i for i, grey in enumerate(greys(page)) if grey] == [
        *range(10 * 28 + 4, 10 * 28 + 22),
        *range(11 * 28 + 4, 11 * 28 + 22),
    ]
    painted_is_classified(page)
    # the keyboard alone: a pixel in another grey, a line with Shift, and the eraser
    page.get_by_label("grey", exact=True).focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    page.get_by_label("brush", exact=True).select_option("1 pixel")
    easel(page).focus()
    row = 10 * 28 + 4  # the cursor is where the mouse began its stroke
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowUp")
    painted = [i for i, grey in enumerate(greys(page)) if grey == 153]  # 60 %
    assert painted == [row - 56, row - 28]
    painted_is_classified(page)
    assert "row 9, column 5: 60 % of white" in page.locator("figure span[aria-live]").inner_text()
    page.get_by_role("button", name="eraser").press("Enter")
    easel(page).focus()
    page.keyboard.press("Enter")
    assert [i for i, grey in enumerate(greys(page)) if grey == 153] == [row - 28]
    painted_is_classified(page)
    page.get_by_role("button", name="Reset").click()
    settled(page)
    assert_close(shown(page), says(picture(figure, 0))[0], **NEAR)
    assert page.log["errors"] == []


def test_painting_by_finger_on_a_phone(figure, open_figure):
    page = loaded(open_figure, figure, width=390, has_touch=True, theme="dark")
    before = greys(page)
    scrolled = page.evaluate("scrollY")
    stroke_of_a_finger(page, [middle(page, SIZE, i) for i in (2 * 28 + 3, 6 * 28 + 3, 8 * 28 + 5)])
    changed = [i for i, (a, b) in enumerate(zip(before, greys(page), strict=True)) if a != b]
    assert {2 * 28 + 3, 4 * 28 + 3, 6 * 28 + 3} <= set(changed) and page.evaluate("scrollY") == scrolled
    painted_is_classified(page)
    patches(page).nth(3).tap()
    page.wait_for_selector("[data-patch='3'][aria-pressed=false]")  # a click comes after the tap
    settled(page)
    assert 3 not in state_of(page)[1]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator(".d2lmini-figure").bounding_box()["height"] <= 900


def test_without_a_worker(figure, open_figure):
    page = loaded(open_figure, figure, script="delete globalThis.Worker")
    assert page.evaluate("typeof Worker") == "undefined"
    assert_close(shown(page), says(picture(figure, 0))[0], **NEAR)


def test_many_questions_end_with_the_last(figure, open_figure):
    page = loaded(open_figure, figure)
    for name in figure.state["names"] * 3 + ["bag"]:
        page.get_by_label("image", exact=True).evaluate(
            "(node, name) => { node.value = [...node.options].find((o) => o.text === name).value;"
            " node.dispatchEvent(new Event('input')); }",
            name,
        )
    settled(page)
    assert_close(shown(page), says(picture(figure, figure.state["names"].index("bag")))[0], **NEAR)


def test_without_javascript_and_without_weights(figure, open_page, tmp_path):
    path = tmp_path / "figure.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{figure._repr_html_()}', encoding="utf-8")
    text = open_page(path.as_uri(), java_script_enabled=False).locator("table").inner_text()
    for n, name in enumerate(figure.state["names"]):
        share, best = says(picture(figure, n))[0].max(-1)
        assert re.search(rf"{name}\s+{figure.state['labels'][best]}\s+{share:.2f}", text)
    page = where_weights_are_missing(figure, open_page, tmp_path / "book")
    assert "vit_fashion.js could not be loaded" in said(page)
    assert page.locator("table").inner_text() == text and page.locator("svg").count() == 0


def test_its_own_pictures_and_bad_ones():
    image = torch.arange(784).view(SIZE) % 256
    own = LiveClassifier({"</script><b>": image}, order="without")
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', own._repr_html_())[1]))
    assert state["names"] == ["</script><b>"] and state["order"] == "without"
    assert "<b>" not in own.fallback()
    for pictures, message in (
        ({}, "nothing to show"),
        ({"x": image.float()}, "'x' is torch.float32"),
        ({"x": image[:14]}, r"shape \(14, 28\)"),
        ({"x": image - 1}, "values -1 to 254, expected 0 to 255"),
    ):
        with pytest.raises(ValueError, match=message):
            LiveClassifier(pictures)
    with pytest.raises(ValueError, match="order is 'none'"):
        LiveClassifier(order="none")
