"""The score matrix of chapter 03: what Python computes and refuses, and that the page computes the same."""

import pytest
import torch
from browser_actions import set_range
from torch.nn import functional as F

from d2lmini.figures import ScoreMatrix

TOKENS = ["we", "saw", "it", "rain"]


def figure(**changes):
    generator = torch.Generator().manual_seed(0)
    queries, keys = torch.randn(2, 4, 16, generator=generator, dtype=torch.float64)
    return ScoreMatrix(**{**dict(tokens=TOKENS, queries=queries, keys=keys), **changes}), queries, keys


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_the_weights_are_those_of_torch(scaled, temperature):
    shown, queries, keys = figure(scaled=scaled, temperature=temperature)
    scale = 1 / temperature / (16**0.5 if scaled else 1)
    eye = torch.eye(4, dtype=torch.float64)  # with the identity as values, the output is the weights
    for causal in (False, True):
        for valid_len in (1, 3, 4):
            mask = (torch.arange(4) < valid_len).expand(4, 4)
            mask = mask & torch.ones(4, 4).tril().bool() if causal else mask
            expected = F.scaled_dot_product_attention(queries, keys, eye, attn_mask=mask, scale=scale)
            got = shown.weights(causal=causal, valid_len=valid_len)
            torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)  # the page's scores have six digits
            assert torch.equal(got == 0, ~mask)


def test_a_row_without_keys_is_zero():
    assert torch.equal(figure()[0].weights(valid_len=0), torch.zeros(4, 4, dtype=torch.float64))


def test_changes_do_not_stay():
    shown = figure()[0]
    before = shown.weights()
    shown.weights(causal=True, valid_len=2, temperature=9.0, scaled=True)
    assert torch.equal(shown.weights(), before) and shown.state["valid_len"] == 4


def test_the_fallback_shows_the_weights_and_the_settings():
    shown = figure(scaled=True, valid_len=3)[0]
    text = shown.fallback()
    assert "no causal mask, valid length 3" in text and "scores divided by" in text
    assert text.count("<td>") == 16 and f"<td>{shown.weights()[1, 2]:.2f}</td>" in text
    assert "scores not divided by" in figure()[0].fallback()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": ["we", "saw"]}, r"shape \(2, D\) for 2 tokens"),
        ({"keys": torch.zeros(4, 15)}, r"got \(4, 16\) and \(4, 15\)"),
        ({"tokens": ["we", "we", "it", "rain"]}, "must differ"),
        ({"valid_len": 5}, "from 0 to 4, not 5"),
        ({"valid_len": -1}, "from 0 to 4, not -1"),
        ({"temperature": 0.0}, "must be positive"),
        ({"queries": torch.full((4, 16), float("inf"))}, "finite"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


def test_the_page_computes_what_the_package_computes(open_figure):
    shown = figure()[0]
    page = open_figure(shown)

    settings = [(0, 0, 4, 0), (1, 0, 4, 0), (0, 1, 3, 0.5), (1, 1, 0, 0), (1, 1, 2, -1)]
    for scaled, causal, valid_len, log in settings:
        page.get_by_role("checkbox", name="divide by").set_checked(bool(scaled))
        page.get_by_role("checkbox", name="causal mask").set_checked(bool(causal))
        set_range(page, "valid length", valid_len)
        set_range(page, "temperature", log)
        expected = shown.weights(scaled=scaled, causal=causal, valid_len=valid_len, temperature=10**log)
        got = [float(cell) for cell in page.locator("tbody td").all_inner_texts()]
        assert got == pytest.approx(expected.flatten().tolist(), abs=6e-3)
        assert page.locator("td.masked").count() == 16 - sum(
            s < valid_len and (not causal or s <= t) for t in range(4) for s in range(4)
        )
        page.get_by_role("button", name="show the row of we").focus()
        note = page.locator(".d2lmini-note").inner_text()
        assert ("may attend to nothing" in note) == (valid_len == 0) and "“we”" in note
    page.keyboard.press("ArrowDown")
    assert "“saw”" in page.locator(".d2lmini-note").inner_text()
    assert page.log["errors"] == []
