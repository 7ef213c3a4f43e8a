"""Stochastic depth: which branches are left out, and that the mean stays."""

import pytest
import torch

from d2lmini.vision.stochastic_depth import DropPath


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_drop_path_leaves_out_whole_examples_and_keeps_the_mean():
    X = torch.rand(4000, 3, 2) + 1
    Y = DropPath(0.3)(X)
    dropped = (Y == 0).flatten(1)
    assert torch.equal(dropped.all(1), dropped.any(1))
    torch.testing.assert_close(Y[~dropped[:, 0]], X[~dropped[:, 0]] / 0.7)
    assert abs(dropped[:, 0].double().mean() - 0.3) < 0.03  # four standard deviations
    assert abs((Y.mean() / X.mean()) - 1) < 0.05


def test_drop_path_does_nothing_in_evaluation_or_at_rate_zero():
    X = torch.rand(50, 3)
    assert torch.equal(DropPath(0.9).eval()(X), X) and torch.equal(DropPath(0.0)(X), X)
    assert DropPath(0.5)(X.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_drop_path_of_no_probability(rate):
    with pytest.raises(ValueError, match="expected a probability from 0 to below 1"):
        DropPath(rate)
