"""The experiment on weights in few bits: which tokens are scored, and what is compared."""

import copy
from dataclasses import replace

import pytest
import torch

from d2lmini.experiments.real_model import bases
from d2lmini.experiments.real_model.quantized import FLOAT, PRESETS, Format, compared, losses, measure, real, unchanged
from d2lmini.quantized import quantize, quantize_model, weight_bytes


def test_every_token_but_the_first_is_scored_once_in_its_window():
    model, _ = bases.load("toy")
    tokens = torch.randint(90, (12,), generator=torch.Generator().manual_seed(0))
    found = losses(model, tokens, 5)
    assert found.shape == (11,) and found.dtype == torch.float64
    for place in range(1, 12):
        start = (place - 1) // 5 * 5
        expected = -model(tokens[None, start:place])[0, -1].log_softmax(-1)[tokens[place]]
        torch.testing.assert_close(found[place - 1].float(), expected)


def test_a_difference_has_the_error_of_its_own_mean():
    exact = torch.tensor([1.0, 5.0, 3.0, 7.0]).double()
    found = compared(exact + torch.tensor([0.1, 0.3, 0.1, 0.3]), exact)
    assert found["nats"] == pytest.approx(4.2) and found["more"] == pytest.approx(0.2)
    assert found["error"] == pytest.approx((4 * 0.01 / 3) ** 0.5 / 2, rel=1e-6)
    assert compared(exact, exact)["error"] == 0


def test_what_was_rounded_before_stays():
    model, _ = bases.load("toy")
    assert unchanged(model, model) == 1
    rounded = copy.deepcopy(model)
    for module in rounded.modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            module.weight.data.copy_(quantize(module.weight, 4, 8).dequantize())
    again = quantize_model(rounded, 4, 8, embedding_bits=4)
    assert unchanged(again, rounded) > 0.99 > 0.1 > unchanged(again, model)
    assert unchanged(quantize_model(rounded, 8), rounded) < 0.5


def test_measured():
    config = replace(PRESETS["smoke"], formats=(Format("8", 8), Format("4", 4, 4)), num_tokens=40, window=20)
    found = real(config)
    model, _ = bases.load("toy")
    assert list(found["formats"]) == [FLOAT, "8", "4"] and found["parameters"] == 18_064
    for name, rounded in {FLOAT: model, "8": quantize_model(model), "4": quantize_model(model, 4, 4)}.items():
        scores = found["formats"][name]
        assert scores["bytes"] == weight_bytes(rounded) and scores["token_s"] > 0
    more = [abs(scores["texts"]["book"]["more"]) for scores in found["formats"].values()]
    assert more[0] == 0 < more[1] < more[2]
    tokens = {"a": torch.arange(30), "b": torch.arange(30).flip(0)}
    assert list(measure(model, tokens, 10, config)["formats"]["8"]["texts"]) == ["a", "b"]


def test_a_text_that_is_too_short():
    with pytest.raises(ValueError, match=r"book has .* tokens, expected 10000000 and one more"):
        real(replace(PRESETS["smoke"], num_tokens=10_000_000))
