"""WNUT-17: names of persons, places and things in what people write on the web."""

import torch
from torch.nn.utils.rnn import pad_sequence

from ..metrics import span_f1
from ..objectives.masking import IGNORE_INDEX
from . import registry
from .labels import LabelledText, check_limits
from .store import DataError

ENTITIES = "corporation", "creative-work", "group", "location", "person", "product"
TAGS = ("O", *(f"{mark}-{entity}" for entity in ENTITIES for mark in "BI"))
_FILES = {"train": "wnut17train.conll", "val": "emerging.dev.conll", "test": "emerging.test.annotated"}


class EmergingEntities(LabelledText):
    """WNUT-17 in its official split: sentences whose words are tagged by the entity that they belong to.

    The first word of an entity has the tag ``B-`` and its type, its other words ``I-``, all other words ``O``: 13 tags
    for six types. Training text is from Twitter, validation from YouTube, the test from Reddit, Stack Overflow and
    Twitter, and the three share no sentence; the texts were
    chosen so that few names come again.

    A word is cut into pieces, of which the first has the tag of the word; the others, special tokens and padding have
    `IGNORE_INDEX`, which no loss counts. A word without any piece (some tokenizers drop characters that nobody sees)
    has no label, and counts as ``O`` in what is predicted.

    Args:
        tokenizer: see `TextEncoder`.
        batch_size: B.
        max_len: most tokens of a sentence, special ones included.
        label_all: whether the other pieces of a word are labelled, too; ``B-`` then goes on as ``I-``. What is
            predicted for a word is what is predicted for its first piece, all the same.
        truncate: whether sentences that are too long are cut on the right; else they are an error. Words cut off count
            as ``O`` in what is predicted, and their entities as missed.
        seed: of the order of the batches.
        download: whether to fetch what is not on this machine.

    Raises:
        DataError: a file is missing or damaged.

    Attributes:
        tag_names: the 13 tags, in the order of their labels.

    Source: Derczynski, Nichols, van Erp, Limsopatham 2017; pieces as in Devlin et al. 2019, section 5.3.
    """

    tag_names = TAGS

    def __init__(self, tokenizer, batch_size=32, max_len=256, label_all=False, truncate=False, seed=0, download=True):
        super().__init__()
        self.save_hyperparameters(ignore=["tokenizer"])
        check_limits(batch_size, max_len, 3)
        read = {split: parse_conll(_read(file, download), file) for split, file in _FILES.items()}
        self._set_up(read, tokenizer)

    def build(self, sentences, tags=None):
        """One batch of any sentences, as the loaders give them, in the order given.

        Args:
            sentences: list of B lists of words.
            tags: B lists of tags, as many as words; None: the batch has no labels.

        Returns:
            tokens (B, T), segments (B, T), valid_lens (B,), and labels (B, T) if there are tags.

        Raises:
            ValueError: there is no sentence, one is empty or too long, or the tags do not fit.
        """
        if not len(sentences):
            raise ValueError("there are no sentences")
        untagged = tags is None
        tags = [["O"] * len(words) for words in sentences] if untagged else tags
        if len(tags) != len(sentences):
            raise ValueError(f"there are {len(sentences)} sentences but tags of {len(tags)}")
        batch = self._collate(self._encode(list(zip(sentences, tags, strict=True)), None))
        return batch[:3] if untagged else batch

    def word_tags(self, sentences, predictions):
        """The tags of words from what was predicted for pieces.

        Args:
            sentences: list of lists of words.
            predictions: of each sentence labels (T,) of its tokens, in the order of `build`: special ones included, and
                padding may follow.

        Returns:
            list of lists of tags, as many as words.

        Raises:
            ValueError: there are more or fewer predictions than sentences, or too few labels for a sentence.
        """
        if len(predictions) != len(sentences):
            raise ValueError(f"there are {len(sentences)} sentences but predictions of {len(predictions)}")
        tagged = []
        for number, (row, (_, words)) in enumerate(zip(predictions, self.encoder.encode_words(sentences), strict=True)):
            words = words[: self.max_len - 2]  # the others were cut off
            if len(row) < len(words) + 2:
                raise ValueError(
                    f"sentence {number} has {len(words) + 2} tokens, but {len(row)} were predicted: are they in the "
                    "order of the examples? in_order brings them there"
                )
            tags = ["O"] * len(sentences[number])
            for place, word in reversed(list(enumerate(words, 1))):  # so that the first piece is the last to write
                if word >= 0:
                    tags[word] = TAGS[int(row[place])]
            tagged.append(tags)
        return tagged

    def score(self, split, predictions):
        """Precision, recall and F1 of whole entities; see `d2lmini.metrics.span_f1`.

        Args:
            split: one of ``splits``.
            predictions: of each sentence labels (T,) of its tokens, in the order of `examples`: what
                ``in_order(split, batches)`` gives, each batch labels (B, T).

        Returns:
            `d2lmini.metrics.SpanScore`.

        Raises:
            ValueError: as `word_tags`.
            ImportError: seqeval is not installed.
        """
        sentences, tags = zip(*self.examples(split), strict=True)
        return span_f1(self.word_tags(sentences, predictions), tags)

    def _encode(self, examples, split):
        _check_tags(examples)
        encoded = self.encoder.encode_words([words for words, _ in examples])
        joined = self._joined([ids for ids, _ in encoded], split=split)
        items = []
        for (tokens, segments), (_, words), (_, tags) in zip(joined, encoded, examples, strict=True):
            labels = self._labels(words[: len(tokens) - 2], tags)
            items.append((tokens, segments, [IGNORE_INDEX, *labels, IGNORE_INDEX]))
        return items

    def _labels(self, words, tags):
        labels, last = [], -1
        for word in words:
            label = IGNORE_INDEX if word < 0 else TAGS.index(tags[word])
            if word >= 0 and word == last:  # not its first piece
                # I- follows B- in TAGS
                label = IGNORE_INDEX if not self.label_all else label + 1 if tags[word].startswith("B") else label
            last = max(word, last)
            labels.append(label)
        return labels

    def _collate(self, items):
        labels = [torch.tensor(item[-1]) for item in items]
        return [*self._inputs(items), pad_sequence(labels, batch_first=True, padding_value=IGNORE_INDEX)]


def parse_conll(text, name="the text"):
    """The sentences of a text of lines "word, tab, tag", with an empty line, or a tab, after each sentence.

    Args:
        text: str.
        name: what to call it in an error.

    Returns:
        list of (words, tags), two lists of str of one length.

    Raises:
        DataError: a line has no tag, a word has a space inside, or a tag is none of `TAGS`.
    """
    sentences, words, tags = [], [], []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip():
            word, _, tag = line.partition("\t")
            if word.split() != [word] or tag not in TAGS:
                raise DataError(f"line {number} of {name} is {line[:60]!r}, expected a word, a tab and one of {TAGS}")
            words.append(word)
            tags.append(tag)
        elif words:
            sentences.append((words, tags))
            words, tags = [], []
    return sentences


def _check_tags(examples):
    for number, (words, tags) in enumerate(examples):
        if len(words) != len(tags):
            raise ValueError(f"sentence {number} has {len(words)} words but {len(tags)} tags")
        for tag in tags:
            if tag not in TAGS:
                raise ValueError(f"sentence {number} has the tag {tag!r}, expected one of {', '.join(TAGS)}")


def _read(file, download):
    path = registry.path("wnut17", file, download)
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: {error}") from error
