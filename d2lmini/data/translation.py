"""Data to train a translation from English to French with, and to score it: `Multi30k`, `Tatoeba`, `GrammarCorpus`."""

import gzip
import zlib

import torch
from torch.utils.data import DataLoader

from ..tokenization import BPETokenizer
from ..tokenization.vocabulary import WordTokenizer
from ..training import DataModule
from . import registry
from .batching import TokenBatches, pad
from .grammar import make_sentences
from .store import DataError
from .tatoeba import clean, parse_pairs, sentence_key, split_by_sentence, tatoeba_text
from .text_encoder import check_lists

# split: name of its files
_MULTI30K = {
    "train": "train",
    "val": "val",
    "test2016": "test_2016_flickr",
    "test2017": "test_2017_flickr",
    "mscoco": "test_2017_mscoco",
    "test2018": "test_2018_flickr",
}


class TranslationData(DataModule):
    """What the translation data share: splits, one tokenizer for both languages, batches within a budget of tokens.

    A batch is D2L's tuple (src, tgt, lens, label): source with ``<eos>`` (B, S), target with ``<bos>`` in front (B, T),
    source lengths (B,), target with ``<eos>`` at the end (B, T), all int64 and padded with ``<pad>``. Training batches
    come in another order each epoch, by ``seed`` and ``loader.batch_sampler.set_epoch(epoch)``, which `Trainer` calls.

    Attributes:
        splits: names of the splits, a tuple.
        dataset: the `DataSet` of the pairs, with its licence; None: they are made.
        tokenizer, src_vocab, tgt_vocab: one object, so that embeddings can be tied.
        left_out: dict from a reason to the number of training pairs left out for it. Too long ones are known, and
            counted, once training batches have been asked for.
    """

    splits = ("train", "val", "test")
    dataset = None

    def _set_up(self, pairs, tokenizer):
        self._pairs = pairs
        self.tokenizer = self.src_vocab = self.tgt_vocab = tokenizer
        self.left_out = {}
        self._encoded = {}

    def pairs(self, split):
        """The sentence pairs of a split, a list of (source, target).

        Raises:
            ValueError: there is no such split.
        """
        if split not in self.splits:
            raise ValueError(f"there is no split {split!r}, only {', '.join(self.splits)}")
        return self._pairs[split]

    def references(self, split):
        """What to translate and to compare with: list of sources, and list of the references of each, in order."""
        pairs = self.pairs(split)
        return [source for source, _ in pairs], [[target] for _, target in pairs]

    def get_dataloader(self, train):
        """Batches of the training split, shuffled, or of the validation split."""
        return self.loader("train" if train else "val")

    def loader(self, split):
        """Batches of a split; in training shuffled, else the shortest sentences first.

        Raises:
            ValueError: there is no such split, a sentence needs more than ``max_tokens``, or, outside of training, more
                than ``max_len``.
        """
        train = split == "train"
        if split not in self._encoded:
            self._encoded[split] = self._encode(self.pairs(split), train)
        examples = self._encoded[split]
        lengths = [1 + max(len(source), len(target)) for source, target in examples]  # one for <eos>
        batches = TokenBatches(lengths, self.max_tokens, train, self.seed)
        return DataLoader(examples, batch_sampler=batches, collate_fn=self._collate)

    def build(self, src_sentences, tgt_sentences):
        """One batch of any sentences, as the loaders give them.

        Args:
            src_sentences: list of B str.
            tgt_sentences: list of B str.

        Returns:
            Four tensors (B, S), (B, T), (B,), (B, T).

        Raises:
            TypeError: a list is one str, or holds something else than str.
            ValueError: the lists are empty or differ in length, or a sentence is empty or longer than ``max_len``.
        """
        check_lists(src_sentences, tgt_sentences)
        if len(src_sentences) != len(tgt_sentences):
            raise ValueError(f"there are {len(src_sentences)} source but {len(tgt_sentences)} target sentences")
        return self._collate(list(zip(self._ids(src_sentences), self._ids(tgt_sentences), strict=True)))

    def encode_source(self, sentences):
        """Sources to translate.

        Args:
            sentences: list of B str.

        Returns:
            Ids with ``<eos>`` (B, S) and their numbers (B,), both int64.

        Raises: as `build`.
        """
        return self._sources(self._ids(sentences))

    def decode(self, ids):
        """The text of ids up to the first ``<eos>``.

        Args:
            ids: list or tensor (T,), or several of them, (B, T).

        Returns:
            str, or list of B str.
        """
        ids = ids.tolist() if isinstance(ids, torch.Tensor) else list(ids)
        if ids and not isinstance(ids[0], int):
            return [self.decode(row) for row in ids]
        end = self.tokenizer["<eos>"]
        return self.tokenizer.decode(ids[: ids.index(end)] if end in ids else ids)

    def _ids(self, sentences):
        check_lists(sentences)
        if not len(sentences):
            raise ValueError("there are no sentences")
        for position, text in enumerate(sentences):
            if not isinstance(text, str):
                raise TypeError(f"sentence {position} is a {type(text).__name__}, expected str")
            if not clean(text):
                raise ValueError(f"sentence {position} is empty")
        encoded = self.tokenizer.encode_batch([clean(text) for text in sentences])
        for position, ids in enumerate(encoded):
            if len(ids) + 1 > self.max_len:
                raise ValueError(
                    f"sentence {position} has {len(ids) + 1} tokens with <eos>, but max_len is {self.max_len}: "
                    f"{sentences[position][:60]!r}"
                )
        return encoded

    def _encode(self, pairs, train):
        sides = [list(side) for side in zip(*pairs, strict=True)]
        if not train:
            return list(zip(*map(self._ids, sides), strict=True))
        examples = list(zip(*map(self.tokenizer.encode_batch, sides), strict=True))
        kept = [pair for pair in examples if max(map(len, pair)) + 1 <= self.max_len]
        self.left_out["longer than max_len"] = len(examples) - len(kept)
        return kept

    def _sources(self, sources):
        end, padding = (self.tokenizer[token] for token in ("<eos>", "<pad>"))
        return pad([[*ids, end] for ids in sources], padding), torch.tensor([len(ids) + 1 for ids in sources])

    def _collate(self, examples):
        begin, end, padding = (self.tokenizer[token] for token in ("<bos>", "<eos>", "<pad>"))
        src, lens = self._sources([source for source, _ in examples])
        tgt = pad([[begin, *target] for _, target in examples], padding)
        return src, tgt, lens, pad([[*target, end] for _, target in examples], padding)


class Multi30k(TranslationData):
    """Captions of photographs: 29,000 pairs to train on, the official validation set and four official test sets.

    The text is as published, cased and not tokenised; only spaces are made single. Training pairs of which a side is
    also in a held-out set, but for case and punctuation, are left out: `left_out` tells how many.

    Args:
        max_tokens: most positions in a batch, padding included.
        vocab_size: V, of the joint byte-pair encoding, which is learnt from the training split.
        max_len: most tokens in a sentence, ``<eos>`` included.
        seed: of the order of the batches.
        download: whether to fetch what is not on this machine.

    Raises:
        DataError: a file is missing or damaged.

    Source: Elliott et al. 2016, 2017.
    """

    splits = tuple(_MULTI30K)
    dataset = registry.get("multi30k")

    def __init__(self, max_tokens=4096, vocab_size=8000, max_len=256, seed=0, download=True):
        super().__init__()
        self.save_hyperparameters()
        pairs = {split: _read_two(_MULTI30K[split], download) for split in self.splits}
        held_out = [sentence for split in self.splits[1:] for sentence in map(_keys, pairs[split])]
        english, french = (set(side) for side in zip(*held_out, strict=True))
        keys = [(pair, *_keys(pair)) for pair in pairs["train"]]
        fresh = [pair for pair, source, target in keys if source not in english and target not in french]
        pairs["train"] = fresh
        self._set_up(pairs, BPETokenizer.train([text for pair in fresh for text in pair], vocab_size))
        self.left_out["in a held-out set"] = len(keys) - len(fresh)


def _keys(pair):
    return sentence_key(pair[0]), sentence_key(pair[1])


def _read_two(file, download):
    """The pairs of two files of Multi30k, one sentence a line."""
    sides = []
    for language in ("en", "fr"):
        path = registry.path("multi30k", f"{file}.{language}.gz", download)
        try:
            text = gzip.decompress(path.read_bytes()).decode("utf-8")
        except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
            raise DataError(f"{path} is cut off, not gzip or not UTF-8: {error}") from error
        sides.append([clean(line) for line in text.removesuffix("\n").split("\n")])
    english, french = sides
    if len(english) != len(french):
        raise DataError(f"{file} of multi30k has {len(english)} lines in English but {len(french)} in French")
    for number, pair in enumerate(zip(english, french, strict=True), 1):
        if not all(pair):
            raise DataError(f"line {number} of {file} of multi30k is empty in one language")
    return list(zip(english, french, strict=True))


class Tatoeba(TranslationData):
    """All of the short sentences of which D2L takes the first 641, in splits that share no sentence on either side.

    One English sentence has several French ones in the file, so a source of a test split has several references; see
    `references`. The splits come from `d2lmini.data.tatoeba.split_by_sentence`. What ``I am`` and ``I'm`` share counts
    as nothing: near copies of test sentences are still in training.

    Args, Raises: those of `Multi30k`.

    Source: tatoeba.org, in the selection of manythings.org/anki of 2019.
    """

    dataset = registry.get("tatoeba_enfr")

    def __init__(self, max_tokens=4096, vocab_size=16000, max_len=256, seed=0, download=True):
        super().__init__()
        self.save_hyperparameters()
        pairs = split_by_sentence(parse_pairs(tatoeba_text(download), "fra.txt"))
        self._set_up(pairs, BPETokenizer.train([text for pair in pairs["train"] for text in pair], vocab_size))

    def references(self, split):
        """The distinct sources of a split, and the list of all references of each."""
        grouped = {}
        for source, target in self.pairs(split):
            grouped.setdefault(source, []).append(target)
        return list(grouped), list(grouped.values())


class GrammarCorpus(TranslationData):
    """Sentences made by `d2lmini.data.grammar`, with the true alignment of their words; ships with the package.

    The tokens are words, so row and column of an attention map are the indices of an alignment. Validation and test
    hold sentence patterns that training has none of, made of words and constructions that training has.

    Args:
        num_pairs: sentences of all splits together.
        max_tokens, max_len: as for `Multi30k`.
        seed: of the sentences and of the order of the batches.
    """

    def __init__(self, num_pairs=12_000, max_tokens=2048, max_len=64, seed=0):
        super().__init__()
        self.save_hyperparameters()
        self._sentences = make_sentences(num_pairs, seed)
        pairs = {split: [(s.english, s.french) for s in made] for split, made in self._sentences.items()}
        self._set_up(pairs, WordTokenizer([text for pair in pairs["train"] for text in pair]))

    def sentences(self, split):
        """The `d2lmini.data.grammar.Sentence` of each pair of a split, in the order of `pairs`."""
        self.pairs(split)  # raises where there is no such split
        return self._sentences[split]
