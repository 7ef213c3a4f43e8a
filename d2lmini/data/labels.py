"""What the data of the fine-tunings share: splits, a tokenizer handed in, batches of like length."""

import torch
from torch.utils.data import DataLoader

from ..objectives.sentence_pairs import shortened
from ..training import DataModule
from .batching import LengthBatches, pad
from .text_encoder import TextEncoder


class LabelledText(DataModule):
    """Texts with labels, in splits, for an encoder such as BERT.

    A batch is a list: tokens (B, T), padded on the right; segments (B, T), 0 and, for a second text, 1; valid_lens
    (B,); last the labels; all int64. Training batches come in another order each epoch, by ``seed`` and
    ``loader.batch_sampler.set_epoch(epoch)``, which `Trainer` calls; the others begin with the shortest.

    Attributes:
        splits: names of the splits, a tuple.
        encoder: the `TextEncoder` of the tokenizer.
        left_out: dict from a reason to the number of examples left out for it.
        cut: dict from a split to the number of texts cut to ``max_len``, known once its batches have been asked for.
    """

    splits = ("train", "val", "test")

    def _set_up(self, examples, tokenizer, left_out=None):
        self._examples, self._items = examples, {}
        self.encoder = TextEncoder(tokenizer)
        self.left_out, self.cut = left_out or {}, {}

    def examples(self, split):
        """The examples of a split, a list.

        Raises:
            ValueError: there is no such split.
        """
        if split not in self.splits:
            raise ValueError(f"there is no split {split!r}, only {', '.join(self.splits)}")
        return self._examples[split]

    def get_dataloader(self, train):
        """Batches of the training split, shuffled, or of the validation split."""
        return self.loader("train" if train else "val")

    def loader(self, split, shuffle=None):
        """Batches of a split.

        Args:
            split: one of ``splits``.
            shuffle: None: only ``"train"``.

        Raises:
            ValueError: there is no such split, or a text needs more than ``max_len`` tokens.
        """
        items = self._encoded(split)
        batches = self._batches(items, split == "train" if shuffle is None else shuffle)
        return DataLoader(items, batch_sampler=batches, collate_fn=self._collate)

    def in_order(self, split, batches):
        """Puts what was computed of the batches of ``loader(split, shuffle=False)`` into the order of the examples.

        Args:
            split: one of ``splits``.
            batches: iterable; of each batch what can be gone through row by row, as a tensor (B, ...).

        Returns:
            list with one entry of each example (of questions: of each window).

        Raises:
            ValueError: there are more or fewer rows than examples.
        """
        items = self._encoded(split)
        order = [index for batch in self._batches(items, False) for index in batch]
        rows = [row for batch in batches for row in batch]
        if len(rows) != len(order):
            raise ValueError(f"there are {len(rows)} rows but {len(order)} examples in {split!r}: is a batch missing?")
        placed = [None] * len(rows)
        for index, row in zip(order, rows, strict=True):
            placed[index] = row
        return placed

    def _batches(self, items, shuffle):
        return LengthBatches([len(item[0]) for item in items], self.batch_size, shuffle, self.seed)

    def _encoded(self, split):
        if split not in self._items:
            self._items[split] = self._encode(self.examples(split), split)
        return self._items[split]

    def _encode(self, examples, split):
        """Of each example a tuple: list of tokens, list of segments, label."""
        raise NotImplementedError(f"{type(self).__name__} has no _encode(examples, split)")

    def _joined(self, firsts, seconds=None, split=None):
        """Lists of ids as sequences with special tokens, (tokens, segments) of each, none longer than ``max_len``."""
        seconds = [None] * len(firsts) if seconds is None else seconds
        joined = [self.encoder.join(*texts) for texts in zip(firsts, seconds, strict=True)]
        lengths = [len(tokens) for tokens, _ in joined]
        long = [place for place, length in enumerate(lengths) if length > self.max_len]
        if long and not self.truncate:
            raise ValueError(
                f"{len(long)} of {len(joined)} texts have more than {self.max_len} tokens, special ones included "
                f"(number {long[0]} has {lengths[long[0]]}, the longest {max(lengths)}): raise max_len, as far as the "
                "model has positions, or let truncate=True cut them on the right"
            )
        for place in long:
            joined[place] = self.encoder.join(*shortened(firsts[place], seconds[place], self.max_len))
        if split is not None:
            self.cut[split] = len(long)
        return joined

    def _inputs(self, items):
        tokens = pad([item[0] for item in items], self.encoder.pad_id)
        segments = pad([item[1] for item in items], 0)
        return [tokens, segments, torch.tensor([len(item[0]) for item in items])]

    def _collate(self, items):
        return [*self._inputs(items), torch.tensor([item[-1] for item in items])]


def check_labels(labels, num_texts, num_classes):
    """Labels as a list of int.

    Raises:
        ValueError: there are more or fewer than texts, or one is no class.
    """
    labels = [int(label) for label in labels]
    if len(labels) != num_texts:
        raise ValueError(f"there are {num_texts} texts but {len(labels)} labels")
    for place, label in enumerate(labels):
        if not 0 <= label < num_classes:
            raise ValueError(f"label {place} is {label}, expected 0 to {num_classes - 1}")
    return labels


def check_limits(batch_size, max_len, least, name="max_len", why=": special tokens and one more of each text"):
    """Raises ValueError where a batch or a sequence would have no room."""
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    if max_len < least:
        raise ValueError(f"{name} is {max_len}, expected at least {least}{why}")
