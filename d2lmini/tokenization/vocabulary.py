"""D2L's vocabulary of words, and the rules that split sentences into words and join them again."""

import re
from collections import Counter

from ..arguments import check_integer

# l'homme is l' and homme; the king's is the, king and 's
_WORDS = re.compile(r"'s\b|\w+(?:-\w+)*(?='s\b)|\w+(?:-\w+)*'?|[^\w\s]")
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocab:
    """Words and their ids. The ids follow the order of the alphabet; ``<unk>`` is always there.

    Args:
        tokens: list of str, or list of lists of str.
        min_freq: words that occur less often are unknown.
        reserved_tokens: list of str that get an id whether they occur or not.

    Raises:
        TypeError: ``tokens`` is one str.

    Attributes:
        idx_to_token: list of str.
        token_to_idx: dict from str to int.
        token_freqs: list of (str, int), the most frequent first.

    Source: D2L section 9.2.2.
    """

    def __init__(self, tokens=(), min_freq=0, reserved_tokens=()):
        if isinstance(tokens, str):
            raise TypeError("tokens is one str, expected a list of words: split it first")
        flat = [token for line in tokens for token in (line if isinstance(line, (list, tuple)) else [line])]
        self.token_freqs = Counter(flat).most_common()
        frequent = {token for token, count in self.token_freqs if count >= min_freq}
        self.idx_to_token = sorted({"<unk>", *reserved_tokens, *frequent})
        self.token_to_idx = {token: index for index, token in enumerate(self.idx_to_token)}

    def __len__(self):
        return len(self.idx_to_token)

    def __getitem__(self, tokens):
        """The id of a word, or the list of ids of a list of words, nested as it is; `unk` for an unknown word."""
        if isinstance(tokens, (list, tuple)):
            return [self[token] for token in tokens]
        return self.token_to_idx.get(tokens, self.unk)

    def to_tokens(self, indices):
        """The words of ids.

        Args:
            indices: an integer, or a list or tensor (T,) of integers.

        Returns:
            str for an integer, else a list of str, also where there is only one.

        Raises:
            IndexError: an id is not in the vocabulary.
            ValueError: it is no integer.
        """
        if hasattr(indices, "__len__") and getattr(indices, "ndim", 1) and not isinstance(indices, (str, bytes)):
            return [self.to_tokens(index) for index in indices]
        index = check_integer("an id", indices)
        if not 0 <= index < len(self):
            raise IndexError(f"id {index} is outside the vocabulary of {len(self)} words")
        return self.idx_to_token[index]

    @property
    def unk(self):
        """The id of unknown words."""
        return self.token_to_idx["<unk>"]


class WordTokenizer(Vocab):
    """A `Vocab` that also encodes and decodes sentences, in the interface of `d2lmini.tokenization.BPETokenizer`.

    Args:
        sentences: list of str. All their words are known.
    """

    def __init__(self, sentences):
        super().__init__([split_sentence(text) for text in sentences], reserved_tokens=SPECIAL_TOKENS)

    def encode_batch(self, texts):
        """The ids of several sentences, a list of lists of int."""
        return [self[split_sentence(text)] for text in texts]

    def decode(self, ids):
        """The French sentence of ids (T,); ``<pad>``, ``<bos>`` and ``<eos>`` are left out."""
        words = self.to_tokens(list(ids))
        return join_words([word for word in words if word not in SPECIAL_TOKENS[:3]])


def split_sentence(text):
    """The words and punctuation marks of a sentence: ``"l'homme voit."`` gives ``["l'", "homme", "voit", "."]``."""
    return _WORDS.findall(text)


def join_words(words, space_before="?"):
    """The sentence of words, the inverse of `split_sentence` on the grammar corpus.

    Args:
        words: list of str.
        space_before: the marks that keep a space before them: French has one before ``?``, English none.

    Returns:
        str.
    """
    text = " ".join(words)
    marks = "".join(mark for mark in ".,?!" if mark not in space_before)
    text = re.sub(rf" (?=[{marks}]|'s\b)", "", text)
    return text.replace("' ", "'")
