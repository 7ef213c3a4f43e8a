"""Weights in fewer bits: what is kept, and how near to the original it is."""

import pytest
import torch

from d2lmini.models.weights.rounding import restored, rounded


@pytest.fixture
def tensors():
    torch.manual_seed(0)
    return {
        "matrix": torch.randn(5, 7) * torch.tensor([1e-3, 1.0, 50.0, 0.0, 1.0])[:, None],
        "bias": torch.randn(5),
        "token": torch.randn(1, 1, 4),
        "patches": torch.randn(3, 2, 2, 2),
    }


def test_int8_is_within_half_a_step_of_each_row(tensors):
    kept = rounded(tensors, "int8")
    again = restored(kept)
    assert again.keys() == tensors.keys()
    for name in ("matrix", "token", "patches"):
        assert kept[name].dtype == torch.int8 and kept[name].shape == tensors[name].shape
        assert kept[f"{name}.scale"].dtype == torch.float32 and kept[f"{name}.scale"].shape == tensors[name].shape[:1]
        assert kept[name].min() >= -127
        step = tensors[name].flatten(1).abs().amax(1, keepdim=True) / 127
        assert ((again[name] - tensors[name]).flatten(1).abs() <= step / 2 + 1e-7).all()
    # the largest of a row is kept to the last bits, whatever the other rows are
    torch.testing.assert_close(again["matrix"].abs().amax(1), tensors["matrix"].abs().amax(1))
    assert again["matrix"][3].eq(0).all()
    assert again["bias"].equal(tensors["bias"]) and kept["bias"].dtype == torch.float32


def test_what_is_rounded_twice_is_rounded_once(tensors):
    once = rounded(tensors, "int8")
    twice = rounded(restored(once), "int8")
    assert all(twice[name].equal(once[name]) for name in once if not name.endswith(".scale"))


def test_float16(tensors):
    kept = rounded(tensors, "float16")
    assert kept.keys() == tensors.keys()
    assert kept["matrix"].dtype == torch.float16 and kept["bias"].dtype == torch.float32
    again = restored(kept)
    assert again["matrix"].dtype == torch.float32 and again["matrix"].equal(tensors["matrix"].half().float())


def test_a_parameter_that_is_called_scale_is_no_scale():
    tensors = {"norm.scale": torch.ones(3), "W": torch.randn(2, 2)}
    assert restored(rounded(tensors, "int8")).keys() == tensors.keys()


@pytest.mark.parametrize(
    ("tensor", "kind", "message"),
    [
        (torch.ones(2, 2), "int4", "kind is 'int4', expected 'int8' or 'float16'"),
        (torch.full((2, 2), torch.nan), "int8", "W has numbers that are not finite"),
        (torch.full((2,), torch.inf), "int8", "W has numbers that are not finite"),
        (torch.full((2, 2), 1e5), "float16", r"W reaches 1e\+05, more than float16 holds"),
    ],
)
def test_what_cannot_be_rounded(tensor, kind, message):
    with pytest.raises(ValueError, match=message):
        rounded({"W": tensor}, kind)
