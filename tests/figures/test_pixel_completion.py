"""The completion figure: what Python packs and refuses, and that the page shows what the model did, pixel by pixel."""

import base64
import copy
import re

import pytest
import torch

from d2lmini.figures.pixel_completion import PixelCompletion, completion_walk
from d2lmini.hooks import capture_attention
from d2lmini.models.image_gpt import ImageGPT, ImageGPTConfig

HEIGHT, WIDTH, GIVEN = 4, 3, 2
LEVELS = [0.0, 0.2, 0.5, 0.7, 1.0]
FIRST, STEPS = GIVEN * WIDTH, (HEIGHT - GIVEN) * WIDTH


def make_model(height=HEIGHT, width=WIDTH):
    torch.manual_seed(0)
    model = ImageGPT(ImageGPTConfig((height, width), len(LEVELS), 12, 20, 2, 2)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def complete(model, num, seed=0, given=GIVEN):
    generator = torch.Generator().manual_seed(seed)
    top = torch.randint(len(LEVELS), (1, given, model.img_size[1]), generator=generator).repeat(num, 1, 1)
    return model.complete(top, generator=generator, return_probabilities=True)


MODEL = make_model()
DRAWN = {name: complete(MODEL, num, seed) for seed, (name, num) in enumerate({"a boot": 2, "a bag": 1}.items())}
WALKS = {
    name: [completion_walk(MODEL, image, GIVEN, p) for image, p in zip(*drawn, strict=True)]
    for name, drawn in DRAWN.items()
}
TRUE = {name: [[k % 5 for k in range(3 * r, 3 * r + 3)] for r in range(HEIGHT)] for name in WALKS}


def looks(image):
    """Weights of the last layer for the drawn pixels, (steps, H, T)."""
    with capture_attention(MODEL) as seen:
        MODEL(image[None])
    return seen["blks.1.attention.attention"][0][0, :, FIRST:].transpose(0, 1).detach()


def test_the_probabilities_come_back():
    shown = PixelCompletion(LEVELS, WALKS)
    for name, (images, probabilities) in DRAWN.items():
        for sample in range(len(images)):
            got = shown.probabilities(name, sample)
            torch.testing.assert_close(got.float(), probabilities[sample], rtol=0, atol=1 / 510 + 1e-6)


def test_the_attention_comes_back():
    where, weights = PixelCompletion(LEVELS, WALKS).attention("a boot", 1)
    want = looks(DRAWN["a boot"][0][1])
    assert where.shape == weights.shape == (STEPS, 2, 6)
    torch.testing.assert_close(weights.float(), want.gather(-1, where), rtol=0, atol=1 / 510 + 1e-6)
    torch.testing.assert_close(weights.float(), want.sort(descending=True).values[..., :6], rtol=0, atol=1 / 510 + 1e-6)
    steps = torch.arange(STEPS)[:, None, None]
    assert (where[weights > 0] <= (FIRST + steps).expand(where.shape)[weights > 0]).all()  # nothing from later places


def test_the_mean_of_the_heads():
    image, probabilities = DRAWN["a bag"][0][0], DRAWN["a bag"][1][0]
    walk = completion_walk(MODEL, image, GIVEN, probabilities, mean_heads=True, shown=3)
    where, weights = PixelCompletion(LEVELS, {"a bag": [walk]}).attention("a bag")
    want = looks(image).mean(1, keepdim=True)
    assert where.shape == (STEPS, 1, 3)
    torch.testing.assert_close(weights.float(), want.gather(-1, where), rtol=0, atol=1 / 510 + 1e-6)


def test_large_pictures_have_places_of_two_bytes():
    model = make_model(20, 15)
    images, probabilities = complete(model, 1, given=18)
    walk = completion_walk(model, images[0], 18, probabilities[0])
    where, weights = PixelCompletion(LEVELS, {"large": [walk]}).attention("large")
    with capture_attention(model) as seen:
        model(images)
    want = seen["blks.1.attention.attention"][0][0, :, 270:].transpose(0, 1).detach()
    assert where.max() > 256
    torch.testing.assert_close(weights.float(), want.gather(-1, where), rtol=0, atol=1 / 510 + 1e-6)


def test_it_is_small():
    """Six completions of 14 x 14 pixels, 16 grey values and 4 heads: less than 80 KB with all scripts."""
    torch.manual_seed(0)
    model = ImageGPT(ImageGPTConfig(14, 16, 16, 16, 4, 1))
    images, probabilities = model.complete(torch.zeros(6, 7, 14, dtype=torch.long), return_probabilities=True)
    walks = [completion_walk(model, image, 7, p) for image, p in zip(images, probabilities, strict=True)]
    names = dict(zip("abc", (walks[:2], walks[2:4], walks[4:]), strict=True))
    text = PixelCompletion(torch.linspace(0, 1, 16), names, dict.fromkeys("abc", images[0]))._repr_html_()
    assert 60_000 < len(text) + 7_000 < 100_000


def test_the_fallback_gives_what_was_drawn():
    text = PixelCompletion(LEVELS, WALKS).fallback()
    image, probabilities = DRAWN["a boot"][0][0], DRAWN["a boot"][1][0]
    last = " ".join(f"{100 * LEVELS[k]:.0f}" for k in image[-1].tolist())
    mean = probabilities[-WIDTH:].gather(-1, image[-1][:, None]).mean().item()
    row = re.search(r'<th scope="row">4</th><td>([\d ]+)</td><td>([\d.]+)</td>', text)
    assert row[1] == last and float(row[2]) == pytest.approx(mean, abs=0.011)
    assert text.count("<tr>") == 1 + HEIGHT - GIVEN and "given the first 2 of 4 rows" in text


def changed(**parts):
    walks = copy.deepcopy(WALKS)
    walks["a bag"][0].update(parts)
    return walks


@pytest.mark.parametrize(
    ("walks", "options", "message"),
    [
        ({}, {}, "nothing to show"),
        ({"a boot": []}, {}, "nothing to show"),
        (changed(given=1), {}, "'a bag' has another size"),
        (changed(heads=1), {}, "'a bag' has another size, number of given rows or of heads"),
        (changed(pixels=[0] * 11), {}, "'a bag' has 11 pixels, expected 4 x 3 below 5"),
        (changed(pixels=[5] * 12), {}, "expected 4 x 3 below 5"),
        (changed(weights=base64.b64encode(b"12").decode()), {}, "weights of picture 'a bag' have 2 bytes, expected 72"),
        (WALKS, {"step": 0}, "step is 0, expected 1 to 6"),
        (WALKS, {"step": 7}, "step is 7"),
        (WALKS, {"true": {name: [[0, 1, 2]] for name in WALKS}}, "the true picture 'a boot' has 3 pixels"),
        (WALKS, {"true": {name: [[5] * 12] for name in WALKS}}, "expected 4 x 3 below 5"),
    ],
)
def test_bad_input_is_refused(walks, options, message):
    with pytest.raises(ValueError, match=message):
        PixelCompletion(LEVELS, walks, **options)


def test_bad_levels_and_bad_completions():
    with pytest.raises(ValueError, match="expected grey values from 0 to 1"):
        PixelCompletion([0.0, 0.2, 0.5, 0.7, 255.0], WALKS)
    images, probabilities = DRAWN["a bag"]
    with pytest.raises(ValueError, match="probabilities of 5 pixels, expected 6"):
        completion_walk(MODEL, images[0], GIVEN, probabilities[0, 1:])


def test_the_page_by_mouse_and_by_keyboard(open_figure):
    page = open_figure(PixelCompletion(LEVELS, WALKS, TRUE))

    def fills(figure):
        rects = page.locator(".d2lmini-panels > *").nth(figure).locator("svg > rect[shape-rendering]")
        return rects.evaluate_all("nodes => nodes.map((node) => node.getAttribute('fill'))")

    def grey(k):
        return "rgb(" + ",".join([str(int(255 * LEVELS[k] + 0.5))] * 3) + ")"

    def note():
        return page.locator(".d2lmini-note").inner_text()

    def agrees(name, sample, head, step):
        """The page shows this step: pixels up to it, the probability of the drawn one, and where the head looks."""
        image, probabilities = DRAWN[name][0][sample], DRAWN[name][1][sample]
        index = FIRST + step - 1
        row, column = divmod(index, WIDTH)
        pixels = image.flatten().tolist()
        seen = fills(0)
        assert seen[: index + 1] == [grey(k) for k in pixels[: index + 1]]
        assert all(fill.startswith("url(#") for fill in seen[index + 1 :])
        assert f"Pixel {step} of {STEPS}, row {row + 1}, column {column + 1}" in note()
        p = float(re.search(r"with probability ([\d.]+)", note())[1])
        assert p == pytest.approx(probabilities[step - 1, pixels[index]].item(), abs=8e-3)
        number = "".join(page.locator("figure").nth(1).locator("text").all_text_contents())
        assert float(number) == p
        best, where = looks(image)[step - 1, head].max(-1)
        shown = re.search(r"looks most at (.*?) \(([\d.]+)\)", note())
        assert float(shown[2]) == pytest.approx(best.item(), abs=8e-3)
        assert (shown[1] == "the start sign") == (where == 0)
        if where > 0:  # the largest circle lies on that pixel
            circles = (
                page.locator("figure")
                .nth(0)
                .locator("circle")
                .evaluate_all(
                    "nodes => nodes.filter((n) => n.style.display !== 'none')"
                    ".map((n) => ['r', 'cx', 'cy'].map((key) => Number(n.getAttribute(key))))"
                )
            )
            _, x, y = max(circles)
            assert (y // 20 * WIDTH + x // 20) == where - 1

    agrees("a boot", 0, 0, 1)
    assert fills(2) == [grey(k) for row in TRUE["a boot"] for k in row]
    # the mouse: forth and back, not past the ends, and straight to a pixel
    page.get_by_role("button", name="next pixel").click()
    agrees("a boot", 0, 0, 2)
    for _ in range(3):
        page.get_by_role("button", name="one pixel back").click(force=True)  # it says that it is disabled
    agrees("a boot", 0, 0, 1)
    drawing = page.locator("figure").nth(0).locator("svg").bounding_box()
    page.mouse.click(drawing["x"] + 0.5 * drawing["width"], drawing["y"] + 0.9 * drawing["height"])
    agrees("a boot", 0, 0, 5)
    # head, sample, picture; a picture with one sample takes the choice away
    page.get_by_role("combobox", name="head").select_option("1")
    agrees("a boot", 0, 1, 5)
    page.get_by_role("combobox", name="sample").select_option("1")
    agrees("a boot", 1, 1, 5)
    page.get_by_role("combobox", name="picture").select_option("1")
    assert page.get_by_role("combobox", name="sample").count() == 0
    agrees("a bag", 0, 1, 5)
    page.get_by_role("combobox", name="picture").select_option("0")
    agrees("a boot", 0, 1, 5)
    # the keyboard: the slider with arrows and ends
    slider = page.get_by_role("slider", name="pixel")
    slider.focus()
    page.keyboard.press("Home")
    agrees("a boot", 0, 1, 1)
    page.keyboard.press("ArrowRight")
    agrees("a boot", 0, 1, 2)
    # playing: with the keyboard too, it runs to the end and stops there
    player = page.get_by_role("button", name="play")
    player.focus()
    page.keyboard.press("Enter")
    assert page.locator(":focus").inner_text() == "❚❚ pause"
    page.wait_for_function("document.querySelector('.d2lmini-note').textContent.startsWith('Pixel 6 of')", timeout=5000)
    page.get_by_role("button", name="play").wait_for(timeout=5000)
    agrees("a boot", 0, 1, 6)
    page.keyboard.press("Enter")  # once more, from the first
    page.wait_for_function("document.querySelector('.d2lmini-note').textContent.startsWith('Pixel 2 of')", timeout=5000)
    page.keyboard.press("Enter")
    stopped = note()
    page.wait_for_timeout(350)
    assert note() == stopped and page.locator(".d2lmini-note").get_attribute("aria-live") == "polite"
    assert page.log["errors"] == []
