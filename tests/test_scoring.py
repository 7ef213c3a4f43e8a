"""The masked softmax, and the faults of D2L's that it has not."""

import pytest
import torch

from d2lmini.scoring import masked_softmax


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_masked_softmax_leaves_its_argument_and_takes_a_leaf_that_needs_gradients():
    X = torch.randn(2, 3, 4, requires_grad=True)
    before = X.detach().clone()
    masked_softmax(X, torch.tensor([2, 3])).square().sum().backward()
    assert torch.equal(X.detach(), before)
    assert X.grad[0, :, :2].all() and not X.grad[0, :, 2:].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_valid_length_zero_gives_zero_weights_and_finite_gradients(dtype):
    X = torch.randn(2, 3, 4).to(dtype).requires_grad_()
    weights = masked_softmax(X, torch.tensor([0, 3]))
    assert weights.dtype == dtype
    assert not weights[0].any()
    torch.testing.assert_close(weights[1].sum(-1), torch.ones(3, dtype=dtype), rtol=1e-2, atol=0)
    (weights * torch.randn(4).to(dtype)).sum().backward()
    assert not X.grad[0].any() and X.grad[1].isfinite().all() and X.grad[1].any()


@pytest.mark.parametrize("length", [-1, 5])
def test_lengths_above_S_or_negative_do_not_pass_silently(length):
    with pytest.raises(ValueError, match=f"valid_lens holds {length}"):
        masked_softmax(torch.zeros(2, 3, 4), torch.tensor([length, 1]))


def test_length_two_and_a_half_does_not_count_as_three():
    with pytest.raises(TypeError, match="expected integers"):
        masked_softmax(torch.zeros(1, 3, 4), torch.tensor([2.5]))


@pytest.mark.parametrize("low", [-1e7, -1e30])
def test_scores_under_minus_a_million_let_no_masked_position_win(low):
    weights = masked_softmax(torch.full((1, 1, 4), low), torch.tensor([2]))
    assert weights.tolist() == [[[0.5, 0.5, 0, 0]]]
