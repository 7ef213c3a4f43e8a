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


@pytest.mark.parametrize("schedule", [
    WarmupInverseSqrt(1), WarmupInverseSqrt(10), WarmupCosine(0, 40), WarmupCosine(10, 40), WarmupLinear(0, 40, 10),
    WarmupLinear(10, 40, 0),
], ids=repr)  # fmt: skip
def test_each_schedule_runs_in_torchs_scheduler_from_step_zero(schedule):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    rates = scheduler.get_last_lr()
    for _ in range(50):
        optimizer.step()
        scheduler.step()
        rates += scheduler.get_last_lr()
    assert rates == [schedule(step) for step in range(51)] and max(rates) == 1 and min(rates) >= 0
    assert rates[0] == (0 if schedule.warmup else 1)


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
