"""ImageGPT in the page draws from Python's distributions, looks where Python's looks, and is greedy as Python's is."""

import re

import pytest
import torch
from painted import easel, greys, loaded, middle, said, settled, stroke_of_a_finger, where_weights_are_missing
from torch.testing import assert_close

from d2lmini.figures import LiveCompletion
from d2lmini.figures.packing import unpack
from d2lmini.hooks import capture_attention
from d2lmini.models.weights.trained import trained

MODEL = trained("image_gpt_fashion")
SIZE = HEIGHT, WIDTH = MODEL.img_size
LEVELS, K = MODEL.trained.extra["levels"], MODEL.num_levels
GIVEN = HEIGHT // 2
FIRST, STEPS = GIVEN * WIDTH, (HEIGHT - GIVEN) * WIDTH
BYTES = [int(255 * level + 0.5) for level in LEVELS]
NEAR = dict(rtol=0, atol=1e-4)
TASK = """async (options) => {
  const steps = [];
  const done = await d2lminiLive.ask("image_gpt_fashion", "complete", options, (step) => steps.push({
    index: step.index,
    values: step.values,
    probabilities: step.probabilities.map((row) => [...row]),
    looks: step.looks.map((row) => [...row]),
  })).done;
  return { done, steps };
}"""


@pytest.fixture(scope="module")
def figure():
    return LiveCompletion()


def picture(figure, n):
    """The grey levels of a picture of the figure, (HEIGHT, WIDTH)."""
    return unpack(figure.state["pictures"][n], *SIZE)


@torch.no_grad()
def knows(image, temperature=1.0):
    """Of each pixel of the lower half: its probabilities (K,), and the mean weights (T,) of the last layer's heads."""
    with capture_attention(MODEL.blks[-1]) as seen:
        scores = MODEL(image[None])[0].flatten(0, 1)
    (weights,) = next(iter(seen.values()))[0]  # (H, T, T)
    return (scores[FIRST:] / temperature).softmax(-1), weights.mean(0)[FIRST:]


def drawn(page):
    """The levels that the painting grid shows, (HEIGHT, WIDTH)."""
    return torch.tensor([BYTES.index(grey) for grey in greys(page)]).view(SIZE)


def numbers(page, selector, name):
    return page.locator(selector).evaluate_all(f"all => all.map((node) => Number(node.dataset.{name}))")


def agrees(page, index, temperature=1.0):
    """The bars and circles of a pixel of the lower half are Python's."""
    image = drawn(page)
    probabilities, looks = (rows[index - FIRST] for rows in knows(image, temperature))
    assert_close(torch.tensor(numbers(page, "rect[data-probability]", "probability")), probabilities, **NEAR)
    where, weights = (torch.tensor(numbers(page, "circle[data-place]", name)) for name in ("place", "weight"))
    assert_close(weights, looks.topk(len(weights)).values, **NEAR)
    assert_close(weights, looks[where.long()], **NEAR)
    note, value = page.locator(".d2lmini-note").inner_text(), image.flatten()[index]
    row, column = divmod(index, WIDTH)
    assert f"row {row + 1}, column {column + 1}: {100 * LEVELS[value]:.0f} % of white" in note
    assert f"probability {probabilities[value]:.2f}" in note


def test_the_task_draws_from_pythons_distributions(figure, open_figure):
    page = loaded(open_figure, figure)
    top = picture(figure, 1)[:GIVEN]
    for temperature in (1.0, 0.6):
        options = {"top": top.flatten().tolist(), "temperature": temperature, "seed": 3, "completions": 2}
        found = page.evaluate(TASK, options)
        assert found["done"] == 2 and [step["index"] for step in found["steps"]] == list(range(FIRST, HEIGHT * WIDTH))
        for n in range(2):
            values = torch.tensor([step["values"][n] for step in found["steps"]])
            image = torch.cat([top.flatten(), values]).view(SIZE)
            probabilities, looks = knows(image, temperature)
            assert_close(torch.tensor([s["probabilities"][n] for s in found["steps"]]), probabilities, **NEAR)
            for step, row in zip(found["steps"], looks, strict=True):
                assert_close(torch.tensor(step["looks"][n]), row[: step["index"] + 1], **NEAR)
            assert (probabilities.gather(1, values[:, None]) > 0).all()
    first, again, other = (
        [step["values"] for step in page.evaluate(TASK, options | {"seed": seed, "temperature": 1})["steps"]]
        for seed in (3, 3, 4)
    )
    assert first == again != other
    # greedy is Python's
    tops = torch.stack([picture(figure, n)[:GIVEN] for n in range(3)])
    for top, want in zip(tops, MODEL.complete(tops, temperature=0), strict=True):
        options = {"top": top.flatten().tolist(), "temperature": 0, "seed": 1, "completions": 1}
        values = [step["values"][0] for step in page.evaluate(TASK, options)["steps"]]
        assert values == want[GIVEN:].flatten().tolist()


def test_by_mouse_and_by_keyboard(figure, open_figure):
    page = loaded(open_figure, figure)
    assert torch.equal(drawn(page)[:GIVEN], picture(figure, 0)[:GIVEN])
    assert re.fullmatch(r"3 completions are done: ([\d.]+, ){2}[\d.]+ bits per pixel at this temperature\.", said(page))
    agrees(page, HEIGHT * WIDTH - 1)  # the last one drawn
    probabilities, _ = knows(drawn(page))
    own = -probabilities.gather(1, drawn(page).flatten()[FIRST:, None]).log2().mean().item()
    assert float(said(page).split(": ")[1].split(",")[0]) == pytest.approx(own, abs=0.006)
    page.mouse.move(*middle(page, SIZE, FIRST + 20))  # pointed at
    agrees(page, FIRST + 20)
    page.mouse.move(5, 5)
    agrees(page, HEIGHT * WIDTH - 1)
    page.mouse.click(*middle(page, SIZE, FIRST + 31))  # stays
    page.mouse.move(5, 5)
    agrees(page, FIRST + 31)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    agrees(page, FIRST + 31 + WIDTH + 1)
    # another completion, and all of them once more at temperature 0: they are alike, and Python's
    before = drawn(page)
    page.get_by_role("button", name="completion 2").press("Enter")
    assert not torch.equal(drawn(page), before)
    agrees(page, FIRST + 31 + WIDTH + 1)
    page.get_by_label("temperature", exact=True).press("Home")
    assert said(page) == ""  # what is drawn now has no number yet
    settled(page)
    want = MODEL.complete(picture(figure, 0)[None, :GIVEN], temperature=0)[0]
    assert torch.equal(drawn(page), want)
    page.get_by_label("completions", exact=True).select_option("1")
    settled(page)
    assert torch.equal(drawn(page), want) and page.locator(".d2lmini-maps button").count() == 1
    assert said(page) == "One completion is done: 0.00 bits per pixel at this temperature."
    assert page.log["errors"] == [] and all(url.startswith(("file:", "blob:")) for url in page.log["requests"])
    assert f"run {figure.state['weights']['run']}" in page.locator(".d2lmini-figure").inner_text()


def test_painting_by_mouse_keyboard_and_finger(open_figure):
    page = loaded(open_figure, LiveCompletion(completions=1, temperature=0), width=390, has_touch=True, theme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="clear").click()
    page.get_by_label("brush", exact=True).select_option("1 pixel")
    page.get_by_label("grey", exact=True).press("ArrowLeft")
    page.mouse.move(*middle(page, SIZE, 2 * WIDTH + 3))
    page.mouse.down()
    page.mouse.move(*middle(page, SIZE, 2 * WIDTH + 8))
    page.mouse.up()
    easel(page).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    stroke_of_a_finger(page, [middle(page, SIZE, i) for i in (5 * WIDTH + 4, (GIVEN + 2) * WIDTH + 4)])
    settled(page)
    top = torch.zeros(GIVEN, WIDTH, dtype=torch.long)
    top[2, 3:9] = top[3, 3] = top[5, 4] = top[6, 4] = K - 2  # and nothing below the line
    assert torch.equal(drawn(page)[:GIVEN], top)
    assert torch.equal(drawn(page), MODEL.complete(top[None], temperature=0)[0])
    assert page.get_by_label("image", exact=True).input_value() == "drawn"
    page.touchscreen.tap(*middle(page, SIZE, FIRST + 5))
    assert f"row {GIVEN + 1}, column 6" in page.locator(".d2lmini-note").inner_text()
    assert page.locator(".d2lmini-figure").bounding_box()["height"] <= 900 and page.log["errors"] == []


def test_it_stops_and_starts_again(open_figure):
    page = loaded(open_figure, LiveCompletion(completions=1))
    whole = drawn(page)
    page.evaluate(
        """() => {
          const player = [...document.querySelectorAll("button")].find((node) => node.textContent === "complete");
          player.click();
          const note = document.querySelector(".d2lmini-note");
          new MutationObserver((_, observer) => {
            if (player.textContent !== "stop" || !/row 9, column 2:/.test(note.textContent)) return;
            observer.disconnect();
            player.click();
          }).observe(note, { childList: true });
        }"""
    )
    page.wait_for_function("document.querySelector('.d2lmini-said').textContent.startsWith('Stopped')")
    assert said(page) == f"Stopped after {WIDTH + 2} of {STEPS} pixels."
    page.wait_for_timeout(300)
    assert greys(page).count(None) == STEPS - WIDTH - 2 and page.get_by_role("button", name="stop").count() == 0
    page.get_by_role("button", name="complete", exact=True).press("Enter")
    page.get_by_label("seed", exact=True).press("ArrowRight")  # a new question stops the one before
    settled(page)
    other = drawn(page)
    page.get_by_label("seed", exact=True).press("ArrowLeft")
    settled(page)
    assert torch.equal(drawn(page), whole) and not torch.equal(other, whole)
    page.get_by_role("button", name="complete", exact=True).press("Enter")
    page.get_by_role("button", name="Reset").click()  # in the middle
    page.wait_for_timeout(100)
    settled(page)
    assert torch.equal(drawn(page), whole) and page.log["errors"] == []


def test_no_motion_where_none_is_wanted(open_figure):
    page = loaded(
        open_figure, LiveCompletion(completions=1), reduced_motion="reduce", script="delete globalThis.Worker"
    )
    page.evaluate(
        """() => {
          window.told = new Set();
          const note = document.querySelector(".d2lmini-note");
          new MutationObserver(() => told.add(note.textContent)).observe(note, { childList: true });
        }"""
    )
    page.get_by_label("seed", exact=True).press("ArrowRight")
    settled(page)
    assert page.evaluate("told.size") <= 2  # nothing, then the last pixel
    agrees(page, HEIGHT * WIDTH - 1)


def test_without_javascript_and_without_weights(figure, open_page, tmp_path):
    path = tmp_path / "figure.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{figure._repr_html_()}', encoding="utf-8")
    text = open_page(path.as_uri(), java_script_enabled=False).locator("table").inner_text()
    for n, name in enumerate(figure.state["names"]):
        pixels = picture(figure, n).flatten()[FIRST:]
        probabilities, _ = knows(picture(figure, n))
        bits = -probabilities.gather(1, pixels[:, None]).log2().mean()
        right = (probabilities.argmax(1) == pixels).float().mean()
        assert re.search(rf"{name}\s+{bits:.2f}\s+{100 * right:.0f} %", text)
    page = where_weights_are_missing(figure, open_page, tmp_path / "book")
    assert "image_gpt_fashion.js could not be loaded" in said(page)
    assert page.locator("table").inner_text() == text and page.locator("svg").count() == 0


def test_bad_pictures_and_settings():
    image = torch.zeros(SIZE, dtype=torch.long)
    assert LiveCompletion({"nothing": image}).state["names"] == ["nothing"]
    for options, message in (
        ({"pictures": {}}, "nothing to show"),
        ({"pictures": {"x": image[:3]}}, "expected integers of shape"),
        ({"pictures": {"x": image + K}}, f"values {K} to {K}, expected 0 to {K - 1}"),
        ({"temperature": 2.5}, "temperature is 2.5, expected 0 to 2"),
        ({"seed": 0}, "seed is 0"),
        ({"completions": 5}, "completions is 5"),
    ):
        with pytest.raises(ValueError, match=message):
            LiveCompletion(**options)
