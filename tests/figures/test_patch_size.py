"""The patch-size figure: its costs against a real model's, and that the page computes the same."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.figures import PatchSize
from d2lmini.models.vit import ViT

PICTURE = torch.rand(12, 24, generator=torch.Generator().manual_seed(0))
SIZES = (2, 3, 6, 12)
PARTS = ("embedding", "projections", "network", "attention")


def figure(**changes):
    settings = dict(picture=PICTURE, patch_sizes=SIZES, num_hiddens=8, mlp_num_hiddens=20, num_blks=3)
    return PatchSize(**{**settings, **changes})


@pytest.mark.parametrize("size", SIZES)
def test_the_costs_are_those_of_a_real_model(size):
    costs = figure().costs(size)
    model = ViT((12, 24), size, 8, 20, 2, 3, 0.0, 0.0, num_classes=5, num_channels=1).eval()
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(torch.rand(1, 1, 12, 24))
    head = 2 * 8 * 5  # the classifier's, which the figure leaves out
    assert sum(costs[part] for part in PARTS) == counter.get_total_flops() - head
    assert costs["tokens"] == model.pos_embedding.shape[1]
    assert costs["position_parameters"] == model.pos_embedding.numel()
    assert costs["embedding_parameters"] == sum(p.numel() for p in model.patch_embedding.parameters())


def test_attention_alone_grows_with_the_square():
    one, other = figure().costs(6), figure().costs(3)
    assert one["tokens"] == 9 and other["tokens"] == 33
    assert 9**2 * other["attention"] == 33**2 * one["attention"] and 9 * other["network"] == 33 * one["network"]


def test_the_fallback_has_a_line_for_each_size():
    text = figure().fallback()
    costs = figure().costs(3)
    total = sum(costs[part] for part in PARTS)
    assert f'<th scope="row">3 x 3</th><td>33</td><td>80</td><td>264</td><td>{total:,}</td>' in text
    assert text.count("<tr>") == 5 and "12 x 24 pixels" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"picture": torch.zeros(3, 8, 8)}, r"shape \(3, 8, 8\)"),
        ({"picture": 255 * PICTURE}, "outside of 0 to 1"),
        ({"patch_sizes": (2, 5)}, "12 x 24 pixels, which patches of 5 do not divide"),
        ({"patch_sizes": (6, 3)}, "must increase"),
        ({"patch_sizes": ()}, "must increase"),
        ({"patch_size": 4}, "no patch size 4"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


def test_the_page_computes_what_the_package_computes(open_figure):
    shown = figure(patch_size=6)
    page = open_figure(shown)

    def check(size):
        costs = shown.costs(size)
        total = sum(costs[part] for part in PARTS)
        counts = (costs["tokens"], costs["embedding_parameters"], costs["position_parameters"], total)
        assert page.locator("tbody td").all_inner_texts() == [f"{n:,}" for n in counts]
        texts = page.locator("div > svg text").all_text_contents()
        assert texts[1::2] == [f"{100 * costs[part] / total:.1f} % ({costs[part]:,})" for part in PARTS]
        bars = page.locator("div > svg rect")
        widths = [float(bars.nth(i).get_attribute("width")) for i in range(4)]
        assert widths == pytest.approx([240 * costs[part] / total for part in PARTS])
        assert f"{12 // size} × {24 // size} patches" in page.locator("figcaption").inner_text()
        assert page.locator("figure path").get_attribute("d").count("M") == 12 // size + 24 // size - 2

    check(6)
    slider = page.get_by_role("slider", name="patch size")
    assert slider.get_attribute("aria-valuetext") == "6 by 6 pixels"
    slider.focus()
    page.keyboard.press("ArrowRight")
    check(12)
    for size in (6, 3, 2):
        page.keyboard.press("ArrowLeft")
        check(size)
    assert "finest cut" in page.locator(".d2lmini-note").inner_text()
    assert page.log["errors"] == []
