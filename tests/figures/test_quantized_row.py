"""The row in few bits: what it computes is an independent quantisation, and the page computes the same."""

import re

import pytest
import torch
from torch.testing import assert_close

import d2lmini as d2l
from d2lmini.figures import QuantizedRow

ROWS = {
    "one": 0.1 * torch.randn(64, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    "other": 0.1 * torch.randn(64, generator=torch.Generator().manual_seed(1), dtype=torch.float64),
}
ROWS["one"][40] = 1.3  # an outlier
SETTINGS = [(bits, group, minimum) for bits in (2, 4, 8) for group in (0, 32, 16) for minimum in (False, True)]


def figure(**changes):
    return QuantizedRow(**{**dict(rows=ROWS), **changes})


@pytest.mark.parametrize(("bits", "group", "minimum"), SETTINGS)
def test_each_weight_goes_to_the_nearest_level(bits, group, minimum):
    shown = figure()
    weights = torch.tensor(shown.state["rows"][0], dtype=torch.float64)
    parts = weights.view(-1, group or 64)
    if minimum:
        levels = torch.stack([torch.linspace(part.min(), part.max(), 2**bits, dtype=torch.float64) for part in parts])
    else:
        most = 2 ** (bits - 1) - 1
        ends = parts.abs().amax(1, keepdim=True)
        levels = ends * torch.arange(-most, most + 1, dtype=torch.float64) / most
    nearest = (parts[:, :, None] - levels[:, None]).abs().argmin(-1)
    want = levels.gather(1, nearest).flatten()
    found = shown.quantized(0, bits, group, minimum)
    assert_close(torch.tensor(found["values"], dtype=torch.float64), want, rtol=1e-9, atol=1e-12)
    assert found["error"] == pytest.approx((want - weights).square().mean().item())
    assert found["largest"] == pytest.approx((want - weights).abs().max().item())
    assert found["bytes"] == pytest.approx((64 * bits / 8 + len(parts) * (4 if minimum else 2)) / 64)
    assert len(found["steps"]) == len(parts)


def test_a_group_confines_an_outlier():
    shown = figure()
    whole, grouped = shown.quantized(group=0), shown.quantized(group=16)
    weights = shown.state["rows"][0]
    missed = [[abs(a - b) for a, b in zip(found["values"], weights, strict=True)] for found in (whole, grouped)]
    assert max(missed[0][:32]) > 4 * max(missed[1][:32])  # far from the outlier
    assert missed[0][32:48] == pytest.approx(missed[1][32:48])  # its own group: as before


def test_zeros_stay_zeros():
    zeros = figure(rows={"zeros": torch.zeros(32), "zeros and one": torch.eye(32)[0]})
    for minimum in (False, True):
        assert zeros.quantized(0, 4, 0, minimum)["values"] == [0.0] * 32
        assert zeros.quantized(0, 4, 0, minimum)["error"] == 0.0


def test_pieces_of_trained_weights():
    shown = QuantizedRow.of(bits=3)
    matrix = d2l.trained("gpt_shakespeare").blks[-1].ffn.dense2.weight.detach().double()
    pieces = matrix.view(-1, 96)
    spread = pieces.abs().amax(1) / pieces.std(1)
    for row, at in ((0, spread.argmax()), (1, spread.argmin())):
        assert shown.state["rows"][row] == pytest.approx(pieces[at].tolist(), rel=1e-5)
        assert f"(row {int(at) // 8})" in shown.state["names"][row]
    assert spread.max() > 6  # there is an outlier to be seen


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": {}}, "nothing to show"),
        ({"rows": {"a": torch.ones(33)}}, "'a' has 33 weights, expected a multiple of 32, at most 128"),
        ({"rows": {"a": torch.ones(160)}}, "160 weights"),
        ({"rows": {"a": torch.tensor(1.0)}}, "'a' is not one axis of weights"),
        ({"rows": {"a": torch.ones(32, 5)}}, "'a' is not one axis of weights"),
        ({"rows": {"a": torch.ones(32), "b": torch.ones(64)}}, "'b' has 64 weights, the first row"),
        ({"rows": {"a": torch.full((32,), float("nan"))}}, "finite"),
        ({"bits": 9}, "bits is 9, expected an integer from 2 to 8"),
        ({"bits": 2.5}, r"bits is 2\.5"),
        ({"group": 8}, "group is 8, expected 0"),
        ({"row": "third"}, "no row 'third', only 'one', 'other'"),
        ({"weight": 64}, "weight is 64, expected 0 to 63"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


def test_a_matrix_that_is_too_narrow_is_refused():
    with pytest.raises(ValueError, match=r"shape \(4, 64\), expected \(O, I\) with I at least 96"):
        QuantizedRow.of(torch.randn(4, 64))


def test_the_fallback_has_all_groups_of_all_rows():
    text = figure(bits=5).fallback()
    assert text.count("<tr>") == 7 and "5 bits, symmetric" in text
    for row in range(2):
        for group in (0, 32, 16):
            found = figure().quantized(row, 5, group, False)
            assert f"<td>{found['error']:.3g}</td><td>{found['largest']:.3f}</td><td>{found['bytes']:.3f}</td>" in text


def number(text):
    return float(text.replace("−", "-"))


def test_the_page_computes_the_same(open_figure):
    shown = figure(bits=3, weight=5)
    page = open_figure(shown)

    def sees(row, bits, group, minimum, weight):
        found = shown.quantized(row, bits, group, minimum)
        cells = page.locator("tbody tr.chosen td").all_inner_texts()
        assert number(cells[0]) == pytest.approx(found["error"], rel=5e-3)
        assert number(cells[1]) == pytest.approx(found["bytes"], abs=1e-3)
        for line, size in zip(page.locator("tbody tr").all(), (0, 32, 16), strict=True):
            error = line.locator("td").first.inner_text()
            assert number(error) == pytest.approx(shown.quantized(row, bits, size, minimum)["error"], rel=5e-3)
        said = page.locator(".d2lmini-note").inner_text()
        level, missed = re.search(r"= (-?\d+\.\d+), an error of (\d+\.\d+)", said).groups()
        value = shown.state["rows"][row][weight]
        assert said.startswith(f"Weight {weight} is {value:.4f}.")
        assert float(level) == pytest.approx(found["values"][weight], abs=6e-5)
        assert float(missed) == pytest.approx(abs(found["values"][weight] - value), abs=6e-5)

    sees(0, 3, 0, False, 5)
    page.get_by_role("slider", name="bits").press("ArrowRight")
    page.get_by_role("combobox", name="one scale for").select_option("16")
    sees(0, 4, 16, False, 5)
    page.get_by_role("checkbox", name="with a minimum").check()
    sees(0, 4, 16, True, 5)
    page.get_by_role("combobox", name="row").select_option("1")
    page.get_by_role("combobox", name="one scale for").select_option("32")
    sees(1, 4, 32, True, 5)
    box = page.locator("svg").first.bounding_box()
    scale = box["width"] / 340
    page.mouse.move(box["x"] + (44 + 40.5 * 292 / 64) * scale, box["y"] + 20)
    sees(1, 4, 32, True, 40)
    page.get_by_role("button", name="Reset").click()
    sees(0, 3, 0, False, 5)
    assert page.log["errors"] == []
