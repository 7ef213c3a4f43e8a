"""Sentence polarity: is a sentence of a film review for the film or against it?"""

from itertools import pairwise

import torch

from . import registry
from .fashion_mnist import stratified_order
from .labels import LabelledText, check_labels, check_limits
from .store import DataError
from .tatoeba import clean, sentence_key
from .text_encoder import check_lists

FOLDS = 10
_FILES = "rt-polarity.neg", "rt-polarity.pos"  # by label


class SentencePolarity(LabelledText):
    """Sentences of film reviews, 0 against the film and 1 for it, as many of one as of the other.

    There is no official split. Here the sentences are put into an order drawn by ``seed``, in which the classes take
    turns, and cut into ten folds: fold number ``fold`` is the test set, the next one is for validation, the other eight
    are to train on. So the ten values of ``fold`` make a tenfold cross-validation, in which every sentence is tested
    once. A sentence that comes again, but for case and punctuation, is left out: `left_out` tells how many (of the
    real data two). Sentences that differ in a word or two, of which there are some, stay where they fall.

    The text is as published: lower case, with spaces around the punctuation.

    Args:
        tokenizer: see `TextEncoder`.
        batch_size: B.
        max_len: most tokens of a text, special ones included.
        fold: 0 to 9.
        fraction: share of the training labels to use, above 0 and at most 1. They are the first of the same order: of
            each class as many, and those of a smaller share are among those of a larger one.
        truncate: whether texts that are too long are cut on the right; else they are an error.
        seed: of the order of the sentences and of the batches.
        download: whether to fetch what is not on this machine.

    Raises:
        ValueError: there is no such fold or fraction, or the fraction is less than a sentence of each class.
        DataError: a file is missing or damaged.

    Attributes:
        class_names: names of the labels, a tuple.

    Source: Pang and Lee 2005, section 2; tenfold cross-validation as in Kim 2014, arXiv:1408.5882.
    """

    class_names = ("negative", "positive")

    def __init__(
        self,
        tokenizer,
        batch_size=32,
        max_len=128,
        fold=0,
        fraction=1.0,
        truncate=False,
        seed=0,
        download=True,
    ):
        super().__init__()
        self.save_hyperparameters(ignore=["tokenizer"])
        check_limits(batch_size, max_len, 3)
        if fold not in range(FOLDS):
            raise ValueError(f"fold is {fold}, expected 0 to {FOLDS - 1}")
        read = [(text, label) for label, file in enumerate(_FILES) for text in _lines(file, download)]
        distinct = {}
        for text, label in read:
            distinct.setdefault(sentence_key(text), (text, label))
        fresh = list(distinct.values())
        order = stratified_order(torch.tensor([label for _, label in fresh]), seed).tolist()
        bounds = [len(order) * k // FOLDS for k in range(FOLDS + 1)]
        parts = [order[start:end] for start, end in pairwise(bounds)]
        test, val, *train = parts[fold:] + parts[:fold]
        train = _share([index for part in train for index in part], fraction)
        chosen = {"train": train, "val": val, "test": test}
        examples = {split: [fresh[index] for index in indices] for split, indices in chosen.items()}
        self._set_up(examples, tokenizer, {"comes again": len(read) - len(fresh)})

    def build(self, texts, labels=None):
        """One batch of any texts, as the loaders give them, in the order given.

        Args:
            texts: list of B str.
            labels: B integers, 0 or 1; None: the batch has none.

        Returns:
            tokens (B, T), segments (B, T), valid_lens (B,), and labels (B,) if there are any.

        Raises:
            TypeError: ``texts`` is one str, or holds something else than str.
            ValueError: there is no text, one is empty or too long, or labels do not fit.
        """
        check_lists(texts)
        if not len(texts):
            raise ValueError("there are no texts")
        labels = None if labels is None else check_labels(labels, len(texts), len(self.class_names))
        joined = self._joined([ids for ids, _ in self.encoder.encode(texts)])
        inputs = self._inputs(joined)
        return inputs if labels is None else [*inputs, torch.tensor(labels)]

    def _encode(self, examples, split):
        joined = self._joined([ids for ids, _ in self.encoder.encode([text for text, _ in examples])], split=split)
        return [(*texts, label) for texts, (_, label) in zip(joined, examples, strict=True)]


def _share(order, fraction):
    """The first of an order in which the classes take turns."""
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction is {fraction}, expected above 0 and at most 1: 1 % is 0.01")
    number = round(fraction * len(order))
    if number < 2:
        raise ValueError(f"fraction is {fraction}, which is {number} of {len(order)} sentences, expected 2 or more")
    return order[:number]


def _lines(file, download):
    path = registry.path("rt_polarity", file, download)
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error}): the archive at Cornell is Latin-1") from error
    lines = [clean(line) for line in lines]
    if not all(lines):
        raise DataError(f"line {lines.index('') + 1} of {path} is empty")
    return lines
