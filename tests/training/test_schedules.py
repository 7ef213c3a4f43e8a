"""The learning rate over the steps."""

import math

import pytest
import torch
from torch import nn

from d2lmini.training import WarmupCosine, WarmupInverseSqrt, WarmupLinear


def test_inverse_square_root_is_that_of_the_paper():
    h, warmup = 512, 4000
    schedule = WarmupInverseSqrt(warmup)
    for step in (1, 7, 3999, 4000, 4001, 100_000):
        paper = h**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert (h * warmup) ** -0.5 * schedule(step) == pytest.approx(paper)
    with pytest.raises(ValueError, match="warmup is 0"):
        WarmupInverseSqrt(0)


@pytest.mark.parametrize(
    "schedule",
    [
        *(WarmupInverseSqrt(1), WarmupInverseSqrt(4), WarmupCosine(0, 5), WarmupCosine(3, 5)),
        *(WarmupLinear(0, 5, 0), WarmupLinear(0, 5, 5), WarmupLinear(2, 5, 1, 0.1)),
    ],
)
def test_each_can_be_given_to_torch_which_counts_from_0(schedule):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    torchs = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    for step in range(8):
        assert 0 <= torchs.get_last_lr()[0] == schedule(step) <= 1
        optimizer.step()
        torchs.step()


def test_cosine_warms_up_and_comes_down():
    schedule = WarmupCosine(warmup=10, total=110, floor=0.2)
    assert [schedule(step) for step in (1, 5, 10, 60, 110, 500)] == pytest.approx([0.1, 0.5, 1, 0.6, 0.2, 0.2])
    assert schedule(35) == pytest.approx(0.2 + 0.8 * math.cos(math.pi / 8) ** 2)
    assert WarmupCosine(0, 10)(0) == 1
    # torch's own cosine, which has no warm-up
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50, eta_min=0.1)
    for step in range(50):
        assert WarmupCosine(0, 50, 0.1)(step) == pytest.approx(cosine.get_last_lr()[0])
        optimizer.step()
        cosine.step()
    for wrong in ((10, 10), (-1, 10), (0, 10, 1.5)):
        with pytest.raises(ValueError, match="expected"):
            WarmupCosine(*wrong)


def test_linear_has_a_plateau():
    schedule = WarmupLinear(warmup=10, total=110, decay=50, floor=0.2)
    assert [schedule(step) for step in (1, 5, 10, 60, 85, 110, 500)] == pytest.approx([0.1, 0.5, 1, 1, 0.6, 0.2, 0.2])
    assert WarmupLinear(0, 10, 0)(1000) == 1
    for options in ((5, 10, 6), (-1, 10, 2), (0, 10, -1)):
        with pytest.raises(ValueError, match="0 <= warmup <= total - decay and decay >= 0"):
            WarmupLinear(*options)
    with pytest.raises(ValueError, match="floor is 2"):
        WarmupLinear(0, 10, 5, 2)
