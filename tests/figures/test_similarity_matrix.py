"""The similarity matrix: its cosines are the model's, its bets and its loss those of the package."""

import pytest
import torch

from d2lmini.figures import SimilarityMatrix
from d2lmini.figures.packing import unpack
from d2lmini.models.clip import CLIP, CLIPConfig
from d2lmini.objectives import info_nce

TEXTS = ["a bag", "a coat", "a dark shoe"]
# text 2 looks like picture 0: two pictures choose their text, two texts their picture
COSINES = torch.tensor([[0.5, 0.1, 0.6], [0.0, 0.7, 0.2], [-0.3, 0.4, 0.5]])
IMAGES = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(0))


def encode(texts):
    lens = torch.tensor([len(text.split()) for text in texts])
    tokens = torch.zeros(len(texts), 6, dtype=torch.long)
    for row, text in zip(tokens, texts, strict=True):
        row[: len(text.split())] = torch.tensor([1 + len(word) for word in text.split()])
    return tokens, lens


def test_it_shows_what_the_model_thinks():
    torch.manual_seed(0)
    sizes = {"num_embed": 8, "num_hiddens": 8, "num_heads": 2, "num_blks": 1, "arch": ((1, 4), (1, 8))}
    model = CLIP(CLIPConfig(vocab_size=8, max_len=6, dropout=0.5, **sizes)).train()
    shown = SimilarityMatrix.of(model, IMAGES, TEXTS, encode, picture=1)
    assert model.training  # as it was; looked at without dropout
    pictures, words = model.eval()(IMAGES, *encode(TEXTS))
    torch.testing.assert_close(torch.tensor(shown.state["cosines"]), pictures @ words.T, rtol=0, atol=1e-5)
    assert shown.state["temperature"] == pytest.approx(model.temperature.item(), rel=1e-5)
    for temperature in (model.temperature.item(), 0.5):
        wanted = info_nce(pictures, words, temperature, symmetric=True).item()
        assert shown.reckon(temperature)["loss"] == pytest.approx(wanted, abs=1e-4)
    assert shown.state["chosen"] == 1
    with torch.no_grad():
        model.log_scale.fill_(9.0)  # beyond the limit of the temperature
    assert SimilarityMatrix.of(model, IMAGES, TEXTS, encode).state["temperature"] == 0.01
    found = unpack(shown.state["images"][2], 28, 28) / 255
    torch.testing.assert_close(found, IMAGES[2, 0], rtol=0, atol=1 / 500)


def test_right_choices_do_not_depend_on_the_temperature():
    shown = SimilarityMatrix(IMAGES, TEXTS, COSINES, 0.07)
    assert shown.reckon(0.01)["right"] == shown.reckon(1.0)["right"] == pytest.approx([2 / 3, 2 / 3])
    assert shown.reckon(0.01)["loss"] > shown.reckon(0.3)["loss"]  # sure, and wrong


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": TEXTS[:1]}, "1 texts, expected 2 to 10"),
        ({"images": IMAGES[:2]}, r"images have shape \(2, 28, 28\), expected \(3, 1,"),
        ({"images": IMAGES.expand(3, 3, 28, 28)}, "images have shape"),
        ({"cosines": COSINES[:2]}, r"cosines have shape \(2, 3\)"),
        ({"cosines": COSINES / 0.07}, "divided by the temperature already"),
        ({"temperature": 0}, "expected 0.01 to 1"),
        ({"images": 255 * IMAGES}, "pixels are outside of 0 to 1"),
        ({"picture": 3}, "picture is 3, expected 0 to 2"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SimilarityMatrix(**{"images": IMAGES, "texts": TEXTS, "cosines": COSINES, "temperature": 0.07, **changes})


def test_the_fallback_has_all_cosines():
    text = SimilarityMatrix(IMAGES, TEXTS, COSINES, 0.07).fallback()
    assert '<th scope="col">3. a dark shoe</th>' in text and "<td>-0.30</td><td>0.40</td><td>0.50</td>" in text
    assert "67% of the pictures and 67% of the texts" in text


def test_it_is_small():
    shown = SimilarityMatrix(torch.rand(8, 28, 28), ["a dark and patterned coat"] * 8, torch.eye(8), 0.07)
    assert len(shown._repr_html_()) < 37_000


def test_the_page_bets_as_the_package_does(open_figure):
    shown = SimilarityMatrix(IMAGES, TEXTS, COSINES, 0.07)
    page = open_figure(shown, width=390)
    note, bets = page.locator(".d2lmini-note"), page.get_by_label("how the chosen one bets").locator("tr")
    slider = page.get_by_role("slider", name="temperature")

    def same(line, temperature):
        wanted = (line / temperature).softmax(0).tolist()
        found = [float(row.locator("td").last.inner_text()) for row in bets.all()]
        assert found == pytest.approx(wanted, abs=6e-4)
        told = shown.reckon(temperature)
        assert f"loss {told['loss']:.3f} nats" in note.inner_text()

    same(COSINES[0], 0.07)
    assert "2 of 3 pictures choose their text, 2 of 3 texts their picture" in note.inner_text()
    assert bets.first.locator("th").inner_text() == "✓ 1. a bag"

    page.get_by_role("button", name="text 3: a dark shoe").click()
    same(COSINES[:, 2], 0.07)
    assert bets.nth(2).locator("th").inner_text().strip() == "✓" and bets.locator("img").count() == 3

    # by keyboard: the pictures are one stop of the Tab key, arrows go on from there
    page.get_by_role("button", name="picture 1", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    same(COSINES[2], 0.07)

    slider.fill("-0.5")
    slider.press("ArrowRight")
    temperature = 10 ** float(slider.input_value())
    assert temperature > 0.316
    same(COSINES[2], temperature)

    page.get_by_role("button", name="Reset").click()
    same(COSINES[0], 0.07)
    assert page.log["errors"] == []
