"""The order of the batches: it depends on seed and epoch alone, and processes share it."""

import math

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from toy_line import Stream
from toy_training import Tokens

from d2lmini.training.batches import epoch_batches, is_repeat, share


def order(loader, *args, disturb=False, **kwargs):
    batches = []
    for batch in epoch_batches(loader, *args, **kwargs):
        batches.append([part.tolist() for part in batch])
        if disturb:  # what a model draws
            torch.rand(7), np.random.rand(3)
    return batches


def test_the_order_depends_on_seed_and_epoch_alone():
    loader = Tokens().train_dataloader()
    first = order(loader, 5, 0)
    assert first == order(loader, 5, 0, disturb=True) == order(Tokens().train_dataloader(), 5, 0)
    assert first != order(loader, 5, 1) and first != order(loader, 6, 0)
    assert order(loader, 5, 0, skip=4) == first[4:] and order(loader, 5, 0, skip=10) == []


def test_going_through_the_data_leaves_the_random_numbers_of_the_model_alone():
    import random

    def drawn():
        return torch.rand(1).item(), np.random.rand(), random.random()

    def seeded():
        torch.manual_seed(0), np.random.seed(0), random.seed(0)

    seeded()
    expected = drawn()
    seeded()
    order(Tokens().train_dataloader(), 5, 0)
    assert drawn() == expected


def test_loaders_with_a_generator_or_set_epoch():
    generator = torch.Generator()
    loader = DataLoader(TensorDataset(torch.arange(30)), 4, shuffle=True, generator=generator)
    first = order(loader, 5, 0)
    assert first == order(loader, 5, 0) != order(loader, 5, 1)

    class Counting(torch.utils.data.SequentialSampler):
        def set_epoch(self, epoch):
            self.epoch = epoch

    sampler = Counting(range(30))
    for loader in (
        DataLoader(TensorDataset(torch.arange(30)), 4, sampler=sampler),
        DataLoader(TensorDataset(torch.arange(30)), batch_sampler=torch.utils.data.BatchSampler(sampler, 4, False)),
    ):
        for made, epoch in ((loader, 3), (share(loader, 0, 2), 4)):
            order(made, 5, epoch)
            assert sampler.epoch == epoch


def test_workers_do_not_change_the_order():
    data = Tokens(num_examples=12, noise=False)
    loader = data.train_dataloader()
    parallel = DataLoader(loader.dataset, 4, shuffle=True, num_workers=1)
    assert order(parallel, 5, 0) == order(loader, 5, 0)


@pytest.mark.parametrize("processes", [2, 3, 4, 7])
def test_shares_are_all_batches_once_and_of_one_length(processes):
    loader = DataLoader(TensorDataset(torch.arange(23)), 4, shuffle=True)  # six batches
    whole = order(loader, 1, 0)
    shares = [share(loader, rank, processes) for rank in range(processes)]
    assert {len(part) for part in shares} == {math.ceil(6 / processes)}
    parts = [order(part, 1, 0) for part in shares]
    assert {len(part) for part in parts} == {math.ceil(6 / processes)}
    real = [
        batch
        for i, together in enumerate(zip(*parts, strict=True))
        for part, batch in zip(shares, together, strict=True)
        if not is_repeat(part, i)
    ]
    assert real == whole


def test_data_that_cannot_be_shared():
    loader = DataLoader(Stream(), batch_size=None)
    assert share(loader, 0, 1) is loader
    with pytest.raises(TypeError, match="without a batch sampler, which 2 processes cannot share"):
        share(loader, 0, 2)
