"""What a computation costs: memory and traffic."""

import torch

from d2lmini.exercises.engine import LargestTensor, Traffic


def test_memory_is_seen():
    x, y = torch.ones(5, 1), torch.ones(1, 7)
    with LargestTensor() as seen:
        (x.expand(5, 1000) + 0).sum()
    assert seen.numel == 5000
    with LargestTensor() as seen:
        x.expand(5, 1000)
    assert seen.numel == 5
    with Traffic() as traffic:
        x @ y.reshape(1, 7)
    assert traffic.bytes == 4 * (5 + 7 + 35)
