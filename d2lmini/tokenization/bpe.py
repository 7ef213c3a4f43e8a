"""Byte-pair encoding by hand: count pairs of neighbours, merge the most frequent one, repeat."""

import random
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from ..arguments import checked_ids

LEVELS = "characters", "bytes"
# The bytes in the order of GPT-2's ids: first those that show as a character of Latin-1.
SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES = [bytes([b]) for b in sorted(range(256), key=lambda b: (b not in SHOWN, b))]


class Step(NamedTuple):
    """What one merge did; of the first step, before any merge, ``pair`` is None.

    Args:
        pair: the two tokens that became one.
        count: how often they stood side by side.
        num_tokens: length of the text in tokens, after it.
        num_symbols: how many different tokens the text now consists of. Rises, then falls.
        vocab_size: how many tokens are known by now: symbols and merges, in use or not.
    """

    pair: tuple | None
    count: int
    num_tokens: int
    num_symbols: int
    vocab_size: int


class BytePairEncoding:
    """Byte-pair encoding that can be read, for the chapter; `BPETokenizer` is the fast one.

    The text is cut into words and no merge reaches over the end of a word. The level says what a text consists of at
    first, and to which word a space belongs:

    - ``"characters"``, as UDL tells it: a word ends with its white space, so that the first of two merged tokens
      never ends in a space. A character that was not in the training text is unknown.
    - ``"bytes"``, as GPT-2 does: over UTF-8 bytes, so that nothing is unknown. A word begins with its space; letters,
      digits and other marks are words of their own.

    Each merge goes through the whole word, so that the time of a word grows with the square of its length: thousands of
    letters without a space are a matter for `BPETokenizer`.

    Args:
        symbols: list of str, or of bytes for ``"bytes"``: the tokens before any merge, which get the first ids.
        merges: list of pairs of tokens, in the order in which they were learned; each gets the next id.
        level: one of `LEVELS`.
        pattern: regular expression whose matches are the words; None: that of the level.

    Attributes:
        vocabulary: list of tokens, str or bytes; a token's id is its index.
        merges: as given.
        steps: list of `Step`, where the encoding comes from `train`, else empty.

    Raises:
        ValueError: there is no such level, or a merge has a part that is no token before it.

    Source: Sennrich, Haddow, Birch 2016, arXiv:1508.07909; UDL section 12.5.1; over bytes: Radford et al. 2019.
    """

    def __init__(self, symbols, merges=(), level="characters", pattern=None):
        self.level, self.pattern = _level(level), re.compile(pattern or _pattern(level))
        self.merges, self.steps = [tuple(pair) for pair in merges], []
        self._ids = {symbol: index for index, symbol in enumerate(symbols)}
        for left, right in self.merges:
            if left not in self._ids or right not in self._ids:
                raise ValueError(f"the merge {left!r} + {right!r} has a part that is no token before it")
            # two merges may give one token: a + bc, ab + c
            self._ids.setdefault(left + right, len(self._ids))
        self._ranks = {pair: rank for rank, pair in reversed(list(enumerate(self.merges)))}
        self.vocabulary = list(self._ids)

    @classmethod
    def train(cls, texts, num_merges, level="characters", min_frequency=1, pattern=None):
        """Learns the merges.

        The most frequent pair is merged. Among equally frequent ones it is that of the smallest ids, the left one
        first: symbols have the first ids, in sorted order (bytes: in GPT-2's), then come the merges as they are made.

        Args:
            texts: str, or iterable of str; no word reaches from one into the next.
            num_merges: how many to learn. Fewer come out where every word is one token already; ``len(merges)`` tells.
            level, pattern: as of the class.
            min_frequency: a pair that occurs less often is never merged.

        Returns:
            A `BytePairEncoding`.

        Raises:
            TypeError: a text is no str, or a number no integer.
            ValueError: there is no text, ``num_merges`` is negative, ``min_frequency`` below 1, or a text holds a lone
                surrogate.
        """
        num_merges, min_frequency = _count(num_merges, "num_merges", 0), _count(min_frequency, "min_frequency", 1)
        cutter = cls([], [], level, pattern)
        texts = [texts] if isinstance(texts, str) else list(texts)
        words = Counter(word for text in texts for word in cutter._words(text))
        if not words:
            raise ValueError("there is no text to learn from: every text is empty")
        symbols = BYTES if level == "bytes" else sorted({character for word in words for character in word})
        steps = list(learn(words, symbols, num_merges, min_frequency))
        trained = cls(symbols, [step.pair for step in steps[1:]], level, pattern)
        trained.steps = steps
        return trained

    def encode(self, text, dropout=0.0, generator=None):
        """The ids of a text: in each word, the merge that was learned first is made first.

        Args:
            text: str.
            dropout: BPE dropout (Provilkov, Emelianenko, Voita 2020, arXiv:1910.13267): the probability with which
                each possible merge is left out, each time anew. The same text gets other tokens then.
            generator: ``random.Random`` of the dropout; None: a new one.

        Returns:
            list of int (T,).

        Raises:
            TypeError: ``text`` is no str, or ``generator`` no ``random.Random``.
            ValueError: the text has an unknown character or a lone surrogate, or ``dropout`` is outside [0, 1].
        """
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout is {dropout}, expected a probability from 0 to 1")
        if generator is not None and not isinstance(generator, random.Random):
            raise TypeError(f"generator is a {type(generator).__name__}, expected a random.Random")
        words = self._words(text)
        if dropout:
            generator = generator or random.Random()
            split = [self._split(word, dropout, generator) for word in words]
        else:
            known = {word: self._split(word) for word in set(words)}
            split = [known[word] for word in words]
        return [self._ids[token] for tokens in split for token in tokens]

    def tokens(self, text, dropout=0.0, generator=None):
        """The tokens of a text as a reader sees them, list of str (T,); the arguments are those of `encode`."""
        return self.to_tokens(self.encode(text, dropout, generator))

    def to_tokens(self, ids):
        """The tokens of ids as a reader sees them: ``▁`` is a space, and a byte that is no character is ``<0xE9>``.

        Args:
            ids: list or tensor (T,) of integers.

        Returns:
            list of str (T,).
        """
        return [visible(token) for token in self._tokens(ids)]

    def decode(self, ids):
        """The text of ids. Bytes that are no UTF-8 become ``\\ufffd``.

        Args:
            ids: list or tensor (T,) of integers from 0 to V - 1.

        Returns:
            str.

        Raises:
            ValueError: an id is outside the vocabulary.
            TypeError: an id is no integer.
        """
        tokens = self._tokens(ids)
        return b"".join(tokens).decode("utf-8", "replace") if self.level == "bytes" else "".join(tokens)

    def __len__(self):
        return len(self.vocabulary)

    def _tokens(self, ids):
        return [self.vocabulary[index] for index in checked_ids(ids, len(self))]

    def _words(self, text):
        """The text in words, str or bytes."""
        check_text(text)
        words = [match[0] for match in self.pattern.finditer(text)]
        if sum(map(len, words)) != len(text):
            raise ValueError(f"the pattern {self.pattern.pattern!r} leaves out a part of the text {text[:30]!r}")
        return [word.encode() for word in words] if self.level == "bytes" else words

    def _split(self, word, dropout=0.0, generator=None):
        """The tokens of a word, a list."""
        tokens = _symbols(word)
        unknown = next((symbol for symbol in tokens if symbol not in self._ids), None)
        if unknown is not None:
            raise ValueError(
                f"{unknown!r} in {word!r} is unknown: it was not in the training text. level='bytes' knows every text"
            )
        while True:
            possible = [(self._ranks[pair], i) for i, pair in enumerate(pairwise(tokens)) if pair in self._ranks]
            if dropout:
                possible = [merge for merge in possible if generator.random() >= dropout]
            if not possible:
                return tokens
            _, i = min(possible)  # learned first; of several places the leftmost
            tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]


def learn(words, symbols, num_merges, min_frequency=1):
    """The training of a byte-pair encoding, merge by merge.

    Args:
        words: dict from a word, str or bytes, to how often it occurs.
        symbols: list of all that the words consist of; its order breaks ties.
        num_merges, min_frequency: as of `BytePairEncoding.train`.

    Yields:
        `Step`, the first one with the pair None, before any merge.
    """
    ids = {symbol: index for index, symbol in enumerate(symbols)}
    split = [_symbols(word) for word in words]  # equal words are split alike: each is kept once, with its frequency
    frequency = list(words.values())
    counts, used, where = Counter(), Counter(), defaultdict(set)  # of pairs, of tokens; in which words a pair stands

    def add(index, sign):
        for pair in pairwise(split[index]):
            counts[pair] += sign * frequency[index]
            where[pair].add(index)  # stays when the pair is gone: looked at in vain, then
        for token in split[index]:
            used[token] += sign * frequency[index]

    for index in range(len(split)):
        add(index, 1)
    yield Step(None, 0, used.total(), len(used), len(ids))
    for _ in range(num_merges):
        top = max(counts.values(), default=0)
        if top < min_frequency:
            return
        equal = [pair for pair, count in counts.items() if count == top]
        best = min(equal, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
        for index in where.pop(best):
            add(index, -1)
            split[index] = merge(split[index], best)
            add(index, 1)
        counts, used = +counts, +used  # without those that are gone
        ids.setdefault(best[0] + best[1], len(ids))
        yield Step(best, top, used.total(), len(used), len(ids))


def merge(tokens, pair):
    """The tokens with each occurrence of a pair made one token, from left to right: ``aaa`` becomes ``aa a``."""
    merged = []
    for token in tokens:
        if merged and (merged[-1], token) == pair:
            merged[-1] += token
        else:
            merged.append(token)
    return merged


def check_text(text):
    """Complains about what is no text.

    Raises:
        TypeError: it is no str.
        ValueError: it holds a lone surrogate, which no UTF-8 can write.
    """
    if not isinstance(text, str):
        raise TypeError(f"a text is a {type(text).__name__}, expected str")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} of the text is {text[error.start]!a}, one half of a surrogate pair, which is no "
            "character: was the text decoded with the right encoding?"
        ) from None


def visible(token):
    """A token, str or bytes, as a reader sees it: ``▁`` is a space, and a byte that is no character is ``<0xE9>``."""
    if isinstance(token, bytes):
        token = re.sub(r"\\x(..)", lambda m: f"<0x{m[1].upper()}>", token.decode("utf-8", "backslashreplace"))
    return token.replace(" ", "▁")


def _symbols(word):
    return [bytes([b]) for b in word] if isinstance(word, bytes) else list(word)


@cache
def _pattern(level):
    """The regular expression that cuts a text into words."""
    if level == "characters":
        return r"\S*\s|\S+"
    letter, number, other = letters_numbers_others()  # GPT-2's
    return rf"'(?:[stmd]|re|ve|ll)| ?{letter}+| ?{number}+| ?{other}+|\s+(?!\S)|\s+"


def letters_numbers_others():
    """Regular expressions of one letter, one digit or numeral, and one of what is neither and no space.

    Python's re has no \\p{L} and \\p{N}, and counts numerals such as ½ as letters: they are named here.
    """
    numerals = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) in ("Nl", "No"))
    return rf"[^\W\d_{numerals}]", rf"[\d{numerals}]", r"(?:[^\s\w]|_)"


def _level(level):
    if level not in LEVELS:
        raise ValueError(f"level is {level!r}, expected {' or '.join(map(repr, LEVELS))}")
    return level


def _count(value, name, least):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a {type(value).__name__}, expected an integer")
    if value < least:
        raise ValueError(f"{name} is {value}, expected at least {least}")
    return value
