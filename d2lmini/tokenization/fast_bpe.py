"""A trained byte-pair encoding, fast, that gives back every text exactly."""

import json
from itertools import chain
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from ..arguments import checked_ids
from .bpe import check_text
from .vocabulary import SPECIAL_TOKENS  # their ids are 0, 1, 2, 3

# Merges stay inside a word with the space before it. An apostrophe closes its word: l'homme is l' and homme.
_WORD = r" ?\p{L}+['’]?| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class BPETokenizer:
    """Byte-pair encoding over UTF-8 bytes, so that no text is unknown and ``decode(encode(text)) == text``.

    It stands wherever a `Vocab` does: ``len(t)``, ``t["<pad>"]``, ``t.to_tokens(ids)``. No text is ever taken for
    one of the four special tokens: ``encode("<eos>")`` is five characters.

    Args:
        tokenizer: a ``tokenizers.Tokenizer``, as `train` and `load` make it.

    Source: Sennrich, Haddow, Birch 2016, arXiv:1508.07909; over bytes: Radford et al. 2019.
    """

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._tokenizer.encode_special_tokens = True  # as ordinary text

    @classmethod
    def train(cls, sentences, vocab_size):
        """Learns the merges. The same sentences give the same merges, whatever their order.

        Args:
            sentences: iterable of str; for a joint encoding, those of both languages.
            vocab_size: tokens in all, special ones and the 256 bytes among them. Fewer come out of a text that has
                no more pairs occurring twice; ``len`` tells.

        Returns:
            A `BPETokenizer`.

        Raises:
            ValueError: ``vocab_size`` has no room for the bytes and the special tokens, or there is no text, or one
                holds a lone surrogate.
            TypeError: ``sentences`` is one str.
        """
        smallest = len(SPECIAL_TOKENS) + 256
        if vocab_size < smallest:
            raise ValueError(
                f"vocab_size is {vocab_size}, expected at least {smallest}: 256 bytes and {len(SPECIAL_TOKENS)} special"
                " tokens"
            )
        sentences = _texts(sentences)
        if not any(sentences):
            raise ValueError("there is no text to learn from: every sentence is empty")
        tokenizer = _with_words(models.BPE())
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator((" " + text for text in sentences), trainer, len(sentences))
        return cls(tokenizer)

    @classmethod
    def of(cls, tokens, merges):
        """A tokenizer that was learned before.

        Args:
            tokens: list of str, by id, bytes written as GPT-2 does; the first are `SPECIAL_TOKENS`.
            merges: list of pairs of str, in the order in which they were learned.

        Raises:
            ValueError: the first tokens are others, or a merge is of no tokens.
        """
        if tuple(tokens[: len(SPECIAL_TOKENS)]) != SPECIAL_TOKENS:
            raise ValueError(f"the first tokens are {tokens[:4]}, expected {', '.join(SPECIAL_TOKENS)}")
        ids = {token: index for index, token in enumerate(tokens)}
        try:
            tokenizer = _with_words(models.BPE(ids, [tuple(pair) for pair in merges]))
        except Exception as error:  # tokenizers raises a plain Exception
            raise ValueError(f"the merges do not fit the tokens: {error}") from error
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
        return cls(tokenizer)

    @property
    def merges(self):
        """What was learned: pairs of tokens, as `of` takes them."""
        return [tuple(pair) for pair in json.loads(self._tokenizer.to_str())["model"]["merges"]]

    @property
    def byte_tokens(self):
        """All tokens by id, bytes written as GPT-2 does: what `of` takes."""
        return [self._tokenizer.id_to_token(index) for index in range(len(self))]

    def encode(self, text):
        """The ids of a text, a list of int, without ``<bos>`` and ``<eos>``."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts):
        """The ids of several texts, a list of lists; much faster than one by one.

        Raises:
            TypeError: ``texts`` is one str, or holds something else than str.
            ValueError: a text holds a lone surrogate, which is no character.
        """
        # No token reaches over a space, so equal words need be encoded only once. The first word gets a space too: it
        # is then the same token as inside a sentence.
        cut = [text.split(" ") if text else [] for text in _texts(texts)]
        words = list(set(chain.from_iterable(cut)))
        encodings = self._tokenizer.encode_batch_fast([" " + word for word in words])
        ids = {word: encoding.ids for word, encoding in zip(words, encodings, strict=True)}
        return [list(chain.from_iterable(map(ids.__getitem__, sentence))) for sentence in cut]

    def encode_with_offsets(self, texts):
        """The ids of several texts, and from where in the text each of them is.

        Returns:
            list of (ids, offsets) of each text; offsets is a list of (start, end) in characters, a space before a word
            included. Pieces of one character all have that character.

        Raises: those of `encode_batch`.
        """
        encoded = []
        for text in _texts(texts):
            ids, offsets, place = [], [], 0
            words = text.split(" ") if text else []
            for word, encoding in zip(words, self._tokenizer.encode_batch([" " + word for word in words]), strict=True):
                ids += encoding.ids
                # the space that was put before the first word is not in the text
                offsets += [(max(place + start - 1, 0), place + end - 1) for start, end in encoding.offsets]
                place += len(word) + 1
            encoded.append((ids, offsets))
        return encoded

    def decode(self, ids):
        """The text of ids; special tokens are left out. Bytes that are no UTF-8 become ``\\ufffd``.

        Args:
            ids: list or tensor (T,) of integers from 0 to V - 1.

        Returns:
            str.

        Raises:
            TypeError: an id is no integer.
            ValueError: an id is outside the vocabulary.
        """
        ids = checked_ids(ids, len(self))
        text = self._tokenizer.decode([i for i in ids if i >= len(SPECIAL_TOKENS)], skip_special_tokens=False)
        return text.removeprefix(" ")

    def to_tokens(self, ids):
        """The tokens of ids as a reader sees them: ``▁`` marks where a word begins.

        Args:
            ids: one integer, or a list or tensor (T,) of them.

        Returns:
            str, or list of str.
        """
        if hasattr(ids, "__len__") and getattr(ids, "ndim", 1):
            return [self.to_tokens(index) for index in ids]
        (index,) = checked_ids([ids], len(self))
        if index < len(SPECIAL_TOKENS):
            return SPECIAL_TOKENS[index]
        return self._tokenizer.decode([index]).replace(" ", "▁")

    def __len__(self):
        return self._tokenizer.get_vocab_size()

    def __getitem__(self, tokens):
        """The id of a token in the form that `to_tokens` gives, or a list of ids; `unk` where there is none."""
        if isinstance(tokens, (list, tuple)):
            return [self[token] for token in tokens]
        if tokens in SPECIAL_TOKENS:
            return SPECIAL_TOKENS.index(tokens)
        ids = self._tokenizer.encode(tokens.replace("▁", " ")).ids
        return ids[0] if len(ids) == 1 else self.unk

    @property
    def unk(self):
        """The id that stands for what is no token. No text encodes to it."""
        return SPECIAL_TOKENS.index("<unk>")

    def save(self, path):
        """Writes a JSON file that `load` reads."""
        Path(path).write_text(self._tokenizer.to_str(), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no tokenizer, or has other special tokens than ours.
        """
        data = Path(path).read_bytes()
        try:
            text = data.decode("utf-8")
            json.loads(text)
            tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # tokenizers raises a plain Exception
            raise ValueError(f"{path} is no saved tokenizer: {error}") from error
        ids = [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS]
        if ids != list(range(len(SPECIAL_TOKENS))):
            raise ValueError(
                f"{path} gives {', '.join(SPECIAL_TOKENS)} the ids {ids}, expected 0 to {len(SPECIAL_TOKENS) - 1}: "
                "BPETokenizer.save did not write it"
            )
        return cls(tokenizer)


def _with_words(model):
    """A ``tokenizers.Tokenizer`` that cuts a text into our words of bytes."""
    tokenizer = Tokenizer(model)
    split = pre_tokenizers.Split(Regex(_WORD), "isolated")
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _texts(texts):
    if isinstance(texts, str):
        raise TypeError("expected a list of sentences, got one str: put it into a list")
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"sentence {position} is a {type(text).__name__}, expected str")
        check_text(text)
    return texts
