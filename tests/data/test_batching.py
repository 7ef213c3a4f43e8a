"""Batches of about equally many tokens: each example once, in an order of seed and epoch alone."""

import random
from itertools import pairwise

import pytest
import torch

from d2lmini.data.batching import LengthBatches, TokenBatches, pad

LENGTHS = random.Random(0).choices(range(1, 31), k=500)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("max_tokens", [30, 64, 1_000, 10**6])
def test_batches_hold_each_example_once_within_the_budget(shuffle, max_tokens):
    batches = TokenBatches(LENGTHS, max_tokens, shuffle)
    for epoch in range(3):
        batches.set_epoch(epoch)
        made = list(batches)
        assert len(made) == len(batches)
        assert sorted(index for batch in made for index in batch) == list(range(500))
        assert all(len(batch) * max(LENGTHS[i] for i in batch) <= max_tokens for batch in made)
    padded = sum(len(batch) * max(LENGTHS[i] for i in batch) for batch in made)
    assert padded < 1.2 * sum(LENGTHS) or max_tokens > 1_000


def test_batches_are_as_large_as_they_may_be():
    batches = [[LENGTHS[i] for i in batch] for batch in TokenBatches(LENGTHS, 100)]
    for batch, following in pairwise(batches):
        assert max(batch) <= min(following)
        assert (len(batch) + 1) * min(following) > 100, "the next one would have fitted in"


def test_the_order_is_of_seed_and_epoch_alone():
    def order(seed, epoch):
        batches = TokenBatches(LENGTHS, 64, True, seed)
        batches.set_epoch(epoch)
        random.seed(epoch)
        torch.manual_seed(epoch)
        return list(batches)

    state = random.getstate()
    first = order(0, 3)
    assert first == order(0, 3)
    assert first != order(0, 4) and first != order(1, 3) and order(0, 1) != order(1, 0)
    # other examples meet, not only the same batches in another order
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in order(0, 4)}
    assert order(0, 0) != list(TokenBatches(LENGTHS, 64))
    random.setstate(state)
    list(TokenBatches(LENGTHS, 64, True))
    assert random.getstate() == state, "global random numbers were drawn"


def test_batches_bad_input():
    with pytest.raises(ValueError, match="no examples"):
        TokenBatches([], 10)
    with pytest.raises(
        ValueError, match=f"max_tokens is {max(LENGTHS) - 1}, but the longest example needs {max(LENGTHS)}"
    ):
        TokenBatches(LENGTHS, max(LENGTHS) - 1)


def test_pad():
    assert pad([[1, 2], [3], []], 9).tolist() == [[1, 2], [3, 9], [9, 9]]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7, 1_000])
def test_so_many_examples_a_batch(shuffle, batch_size):
    batches = LengthBatches(LENGTHS, batch_size, shuffle, pool=5)
    for epoch in range(3):
        batches.set_epoch(epoch)
        made = list(batches)
        assert made == list(batches) and len(made) == len(batches)
        assert sorted(index for batch in made for index in batch) == list(range(500))
        assert sorted(map(len, made))[1:] == [min(batch_size, 500)] * (len(made) - 1)
        if batch_size == 7:
            padded = sum(len(batch) * max(LENGTHS[i] for i in batch) for batch in made)
            assert padded < 1.25 * sum(LENGTHS), "examples of like length meet"
    if not shuffle:
        lengths = [LENGTHS[i] for batch in made for i in batch]
        assert lengths == sorted(lengths)


def test_whom_an_example_meets_changes():
    def meetings(seed, epoch):
        batches = LengthBatches(range(1, 501), 10, True, seed, pool=5)
        batches.set_epoch(epoch)
        return [frozenset(batch) for batch in batches]

    assert meetings(0, 0) == meetings(0, 0)
    for other in (meetings(0, 1), meetings(1, 0)):
        assert len(set(other) & set(meetings(0, 0))) < 5


def test_bad_sizes_of_batches():
    with pytest.raises(ValueError, match="no examples"):
        LengthBatches([], 3)
    with pytest.raises(ValueError, match="batch_size is 0"):
        LengthBatches([1], 0)
