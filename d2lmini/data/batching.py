"""Batches of sequences of like length: as many as a budget of tokens allows, or so many."""

import random

import torch


class TokenBatches:
    """A batch sampler: sentences of like length together, each batch within a budget, padding included.

    The order depends on ``seed`` and the epoch alone: which of the sentences of one length meet, and in which order the
    batches come. Without ``shuffle`` the shortest come first.

    Args:
        lengths: integers (N,), positions that each example takes; for a pair, the longer of its two sides.
        max_tokens: most positions in a batch: examples times the longest of them.
        shuffle: whether each epoch has another order.
        seed: integer.

    Raises:
        ValueError: there is no example, or ``max_tokens`` has no room for the longest.

    Attributes:
        epoch: the epoch whose order comes next; `set_epoch` changes it.
    """

    def __init__(self, lengths, max_tokens, shuffle=False, seed=0):
        if not len(lengths):
            raise ValueError("there are no examples to make batches of")
        if max_tokens < max(lengths):
            raise ValueError(
                f"max_tokens is {max_tokens}, but the longest example needs {max(lengths)}: raise max_tokens"
            )
        self.lengths, self.shuffle, self.seed, self.epoch = list(lengths), shuffle, seed, 0
        ascending = sorted(self.lengths)
        # (start, end) in the order of the lengths: the same in every epoch, so that len() is too
        self._ranges, start = [], 0
        for end, length in enumerate(ascending, 1):
            if (end - start) * length > max_tokens:
                self._ranges.append((start, end - 1))
                start = end - 1
        self._ranges.append((start, len(ascending)))

    def set_epoch(self, epoch):
        """Chooses the order of an epoch."""
        self.epoch = epoch

    def __len__(self):
        return len(self._ranges)

    def __iter__(self):
        order, ranges = list(range(len(self.lengths))), list(self._ranges)
        if self.shuffle:
            generator = random.Random(f"{self.seed}/{self.epoch}")
            generator.shuffle(order)
            generator.shuffle(ranges)
        order.sort(key=self.lengths.__getitem__)  # stable: a shuffled order stays shuffled within a length
        for start, end in ranges:
            yield order[start:end]


def pad(sequences, padding):
    """One tensor of sequences of unlike length.

    Args:
        sequences: list of B lists of integers.
        padding: id that fills up.

    Returns:
        int64 (B, T), T the longest length.
    """
    longest = max(map(len, sequences))
    return torch.tensor([sequence + [padding] * (longest - len(sequence)) for sequence in sequences], dtype=torch.long)


class LengthBatches:
    """A batch sampler: so many examples a batch, of like length, so that little is padding.

    With ``shuffle`` the examples are shuffled and cut into pools of ``pool`` batches, and each pool is sorted by
    length: whom an example meets changes from epoch to epoch, and so does the order of the batches. Both depend on
    ``seed`` and the epoch alone. Without ``shuffle`` the shortest come first.

    Args:
        lengths: integers (N,), positions that each example takes.
        batch_size: B; the last batch may be smaller.
        shuffle: whether each epoch has another order.
        seed: integer.
        pool: batches that are sorted together.

    Raises:
        ValueError: there is no example, or ``batch_size`` is below 1.

    Attributes:
        epoch: the epoch whose order comes next; `set_epoch` changes it.
    """

    def __init__(self, lengths, batch_size, shuffle=False, seed=0, pool=50):
        if not len(lengths):
            raise ValueError("there are no examples to make batches of")
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, expected at least 1")
        self.lengths, self.batch_size, self.shuffle, self.seed = list(lengths), batch_size, shuffle, seed
        self.pool, self.epoch = pool, 0

    def set_epoch(self, epoch):
        """Chooses the order of an epoch."""
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        order, size = list(range(len(self.lengths))), len(self.lengths)
        generator = random.Random(f"{self.seed}/{self.epoch}")
        if self.shuffle:
            generator.shuffle(order)
            size = self.pool * self.batch_size
        pools = [order[start : start + size] for start in range(0, len(order), size)]
        batches = []
        for pool in pools:
            pool.sort(key=self.lengths.__getitem__)
            batches += [pool[start : start + self.batch_size] for start in range(0, len(pool), self.batch_size)]
        if self.shuffle:
            generator.shuffle(batches)
        yield from batches
