"""D2L's data module: 512 short pairs to train on, cut and padded to nine words, with a vocabulary of words."""

import re

import torch

from ..tokenization.vocabulary import Vocab
from ..training import DataModule
from .tatoeba import tatoeba_text
from .text_encoder import check_lists


class MTFraEng(DataModule):
    """The first lines of Tatoeba's English-French pairs, as D2L prepares them.

    The file is sorted by length, so these are its shortest sentences. The vocabulary knows the words that occur twice
    in training *and* validation lines together, as D2L has it, and there is one validation line more than ``num_val``.
    For honest splits see `d2lmini.data.translation.Tatoeba`.

    Args:
        batch_size: B.
        num_steps: T, words a sentence, ``<eos>`` included. Longer sentences are cut, and so lose their ``<eos>``.
        num_train: lines to train on.
        num_val: lines to validate on, less one.

    Raises:
        DataError: the file is not on this machine and could not be fetched, or is damaged.
        ValueError: an argument is below 1.

    Attributes:
        arrays: source (N, T), target with ``<bos>`` first (N, T), source lengths (N,), target with ``<eos>`` last
            (N, T), all int64.
        src_vocab, tgt_vocab: a `Vocab` each.

    Source: D2L section 10.5.
    """

    def __init__(self, batch_size, num_steps=9, num_train=512, num_val=128):
        super().__init__()
        self.save_hyperparameters()
        for name, value in self.hparams.items():
            if value < 1:
                raise ValueError(f"{name} is {value}, expected at least 1")
        self.arrays, self.src_vocab, self.tgt_vocab = self._build_arrays(self._download())

    def _download(self):
        return tatoeba_text()

    def _preprocess(self, text):
        plain = re.sub("[\u202f\xa0]", " ", text.lower())  # French has spaces at which no line may break
        return re.sub(r"(?<=[^ ])([,.!?])", r" \1", plain)

    def _tokenize(self, text, max_examples=None):
        lines = text.split("\n")[: max_examples and max_examples + 1]  # one more than asked: so does D2L
        pairs = [pair for pair in (line.split("\t") for line in lines) if len(pair) == 2]
        return tuple([[*filter(None, pair[side].split(" ")), "<eos>"] for pair in pairs] for side in (0, 1))

    def _build_arrays(self, raw_text, src_vocab=None, tgt_vocab=None):
        most = self.num_train + self.num_val
        head = "\n".join(raw_text.split("\n", most + 1)[: most + 1])  # not all of the file, which would take seconds
        src, tgt = self._tokenize(self._preprocess(head), most)
        src, src_vocab = self._build_array(src, src_vocab)
        tgt, tgt_vocab = self._build_array(tgt, tgt_vocab, start=["<bos>"])
        lens = (src != src_vocab["<pad>"]).sum(1)
        return (src, tgt[:, :-1], lens, tgt[:, 1:]), src_vocab, tgt_vocab

    def _build_array(self, sentences, vocab, start=()):
        padding = ["<pad>"] * self.num_steps
        sentences = [[*start, *(sentence + padding)[: self.num_steps]] for sentence in sentences]
        if vocab is None:
            # reserved, so that a special token has an id even where nothing is padded
            vocab = Vocab(sentences, min_freq=2, reserved_tokens=["<pad>", "<eos>", *start])
        return torch.tensor(vocab[sentences]), vocab

    def get_dataloader(self, train):
        """Batches of the training lines, shuffled, or of the others: tuples like `arrays`."""
        training, rest = slice(self.num_train), slice(self.num_train, None)
        return self.get_tensorloader(self.arrays, train, training if train else rest)

    def build(self, src_sentences, tgt_sentences):
        """Arrays of other sentences, by the vocabularies that are there.

        Args:
            src_sentences: list of str.
            tgt_sentences: list of str, as many.

        Returns:
            Four tensors like `arrays`.

        Raises:
            TypeError: one of them is one str.
            ValueError: they differ in number, are none, more than ``num_train + num_val + 1``, or one is empty or has
                a tab or a line end. D2L's code leaves such a sentence out without a word.
        """
        most = self.num_train + self.num_val + 1
        check_lists(src_sentences, tgt_sentences)
        if not len(src_sentences) == len(tgt_sentences):
            raise ValueError(f"there are {len(src_sentences)} source but {len(tgt_sentences)} target sentences")
        if not 0 < len(src_sentences) <= most:
            raise ValueError(f"there are {len(src_sentences)} sentences, expected 1 to {most}")
        pairs = list(zip(src_sentences, tgt_sentences, strict=True))
        for position, pair in enumerate(pairs):
            for sentence in pair:
                if not sentence.strip() or "\t" in sentence or "\n" in sentence:
                    raise ValueError(f"sentence {position} is {sentence!r}, expected words on one line without tabs")
        lines = "\n".join(map("\t".join, pairs))
        return self._build_arrays(lines, self.src_vocab, self.tgt_vocab)[0]
