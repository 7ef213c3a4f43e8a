"""Three ways to learn pieces of words, by the `tokenizers` library, behind one interface: for comparing them."""

import json

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from ..arguments import checked_ids
from .bpe import BYTES, BytePairEncoding, check_text, visible

KINDS = "bpe", "wordpiece", "unigram"
_UNKNOWN = "<unk>"
_BYTE_OF = dict(zip(sorted(pre_tokenizers.ByteLevel.alphabet()), BYTES, strict=True))  # as the library writes bytes


class SubwordTokenizer:
    """A vocabulary of pieces of words.

    - ``"bpe"``: byte-pair encoding over bytes, with GPT-2's words. Nothing is unknown.
    - ``"wordpiece"``: as BERT cuts: words and marks; in each word, from left to right, the longest piece that is known;
      pieces inside of a word begin with ``##``. A word that cannot be cut is unknown as a whole. The library *learns*
      the pieces as byte-pair encoding does, by frequency; Schuster and Nakajima choose by likelihood.
    - ``"unigram"``: a probability for each piece, and the likeliest cut of a word; learned from a large vocabulary by
      leaving out what the likelihood misses least. A word begins with ``▁``. A character that was not in the training
      text is unknown.

    Args:
        kind: one of `KINDS`.
        tokenizer: a ``tokenizers.Tokenizer``, as `train` makes it.

    Source: Sennrich, Haddow, Birch 2016, arXiv:1508.07909; Schuster, Nakajima 2012; Kudo 2018, arXiv:1804.10959.
    """

    def __init__(self, kind, tokenizer):
        self.kind, self._tokenizer = kind, tokenizer

    @classmethod
    def train(cls, kind, texts, vocab_size, special_tokens=()):
        """Learns a vocabulary.

        The same texts give the same ``"bpe"`` each time. The library's trainer of ``"wordpiece"`` breaks ties at random
        (some twenty of 4,000 pieces differ from run to run), and in that of ``"unigram"`` equally likely pieces may
        exchange their ids.

        Args:
            kind: one of `KINDS`.
            texts: list of str.
            vocab_size: tokens in all. Fewer come out where the texts do not have so many; ``len`` tells.
            special_tokens: list of str that no text encodes to, such as ``"[CLS]"``; their ids are ``tokenizer[name]``.
                ``"unigram"`` takes a text that spells one for it, all the same.

        Returns:
            A `SubwordTokenizer`.

        Raises:
            ValueError: there is no such kind, no text, a text with a lone surrogate, or ``vocab_size`` has no room for
                the single characters (of ``"bpe"``: bytes).
            TypeError: ``texts`` is one str, or holds something else than str.
        """
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}, expected one of {', '.join(map(repr, KINDS))}")
        texts = _checked(texts)
        if not any(text.strip() for text in texts):
            raise ValueError("there is no text to learn from: every text is empty")
        least = len(BYTES) if kind == "bpe" else 1 + len({c for text in texts for c in text})
        least += len(special_tokens)
        if vocab_size < least:
            unit = "bytes" if kind == "bpe" else "characters of the texts"
            raise ValueError(f"vocab_size is {vocab_size}, expected at least {least}: the {unit} must have room")
        tokenizer, trainer = _MAKERS[kind](vocab_size)
        if special_tokens:
            trainer.special_tokens = [*special_tokens, *trainer.special_tokens]
            tokenizer.encode_special_tokens = True  # as ordinary text
        tokenizer.train_from_iterator(texts, trainer, len(texts))
        return cls(kind, tokenizer)

    def encode(self, text):
        """The ids of a text, list of int (T,)."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts):
        """The ids of several texts, a list of lists.

        Raises:
            TypeError: ``texts`` is one str, or holds something else than str.
            ValueError: a text holds a lone surrogate, which is no character.
        """
        return [encoding.ids for encoding in self._tokenizer.encode_batch(_checked(texts))]

    def encode_with_offsets(self, texts):
        """The ids of several texts, and from where in the text each of them is: as `BPETokenizer`'s."""
        return [(encoding.ids, _offsets(encoding)) for encoding in self._tokenizer.encode_batch(_checked(texts))]

    def __getitem__(self, token):
        """The id of a token, as the library writes it.

        Raises:
            KeyError: there is none.
        """
        index = self._tokenizer.token_to_id(token)
        if index is None:
            raise KeyError(f"{token!r} is no token of this vocabulary")
        return index

    def to_tokens(self, ids):
        """The tokens of ids, list of str (T,), as a reader sees them: of the bpe, ``▁`` is a space.

        Raises:
            TypeError: an id is no integer.
            ValueError: an id is outside the vocabulary.
        """
        tokens = [self._tokenizer.id_to_token(index) for index in self._ids(ids)]
        return [visible(_bytes(token)) for token in tokens] if self.kind == "bpe" else tokens

    def tokens(self, text):
        """The tokens of a text, list of str (T,)."""
        return self.to_tokens(self.encode(text))

    def decode(self, ids):
        """The text of ids. Only ``"bpe"`` gives back every text: unknown pieces, and for WordPiece spaces, are lost.

        Raises:
            TypeError: an id is no integer.
            ValueError: an id is outside the vocabulary.
        """
        return self._tokenizer.decode(self._ids(ids))

    def _ids(self, ids):
        return checked_ids(ids, len(self))

    def num_unknown(self, ids):
        """How many ids are the unknown token; of ``"bpe"`` none."""
        unknown = self._tokenizer.token_to_id(_UNKNOWN)
        return sum(index == unknown for index in ids)

    def __len__(self):
        return self._tokenizer.get_vocab_size()

    def by_hand(self):
        """The same byte-pair encoding as a `BytePairEncoding`, whose dropout can be seeded; the library's cannot.

        Raises:
            ValueError: it is none, or has special tokens, which byte-pair encoding by hand does not know.
        """
        if self.kind != "bpe":
            raise ValueError(f"by_hand is of kind 'bpe', this is {self.kind!r}")
        if self._tokenizer.get_added_tokens_decoder():
            raise ValueError("by_hand has no special tokens, this encoding has")
        merges = json.loads(self._tokenizer.to_str())["model"]["merges"]
        return BytePairEncoding(BYTES, [(_bytes(left), _bytes(right)) for left, right in merges], "bytes")


def _offsets(encoding):
    """Offsets of the library, but for a ``▁`` that it put before the text: it is of no character."""
    offsets = encoding.offsets
    if encoding.tokens[:1] == ["▁"] and len(offsets) > 1 and offsets[0][1] > offsets[1][0]:
        offsets = [(0, 0), *offsets[1:]]
    return offsets


def _checked(texts):
    if isinstance(texts, str):
        raise TypeError("expected a list of texts, got one str: put it into a list")
    texts = list(texts)
    for text in texts:
        check_text(text)
    return texts


def _bytes(token):
    return b"".join(_BYTE_OF[character] for character in token)


def _bpe(vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )


def _wordpiece(vocab_size):
    tokenizer = Tokenizer(models.WordPiece(unk_token=_UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return tokenizer, trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=[_UNKNOWN], show_progress=False)


def _unigram(vocab_size):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer, trainers.UnigramTrainer(
        vocab_size=vocab_size, special_tokens=[_UNKNOWN], unk_token=_UNKNOWN, show_progress=False
    )


_MAKERS = {"bpe": _bpe, "wordpiece": _wordpiece, "unigram": _unigram}
