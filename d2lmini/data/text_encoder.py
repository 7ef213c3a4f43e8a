"""One interface over the tokenizers that a fine-tuning may be handed: pieces, whence each comes, special tokens."""

import bisect
from itertools import accumulate

import torch
from tokenizers import Tokenizer

from ..arguments import checked_ids
from ..objectives.sentence_pairs import get_tokens_and_segments
from ..tokenization import SPECIAL_TOKENS

# BERT's name, RoBERTa's, D2L's, and what stands for it in a `BPETokenizer`
_NAMES = {
    "cls": ("[CLS]", "<s>", "<cls>", "<bos>"),
    "sep": ("[SEP]", "</s>", "<sep>", "<eos>"),
    "pad": ("[PAD]", "<pad>"),
    "mask": ("[MASK]", "<mask>", "<unk>"),
}


def check_lists(*lists):
    """Raises TypeError where a list of texts is one str, whose letters would be texts."""
    for texts in lists:
        if isinstance(texts, str):
            raise TypeError("expected a list of texts, got one str: put it into a list")


class TextEncoder:
    """What data for BERT need of a tokenizer. No text is taken for a special token, and none is cut or padded.

    Args:
        tokenizer: a `BPETokenizer`; a `SubwordTokenizer` with special tokens; a ``tokenizers.Tokenizer``, as the
            ``tokenizer.json`` of a published model gives it, which is copied and not changed, or a tokenizer of
            `transformers` that has one inside.

    Raises:
        TypeError: it is none of these.
        ValueError: it has no token for a class, a separator or padding.

    Attributes:
        cls_id, sep_id, pad_id: ids of ``[CLS]``, ``[SEP]``, ``[PAD]``, under whatever name: of a `BPETokenizer`
            ``<bos>``, ``<eos>``, ``<pad>``.
        mask_id: id of ``[MASK]``; of a `BPETokenizer` that of ``<unk>``, which no text encodes to; None where there is
            none.
    """

    def __init__(self, tokenizer):
        tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
        self._library = isinstance(tokenizer, Tokenizer)
        if self._library:
            tokenizer = Tokenizer.from_str(tokenizer.to_str())
            tokenizer.no_truncation()
            tokenizer.no_padding()
            tokenizer.encode_special_tokens = True  # as ordinary text
        elif not hasattr(tokenizer, "encode_with_offsets"):
            raise TypeError(
                f"the tokenizer is a {type(tokenizer).__name__}, expected a BPETokenizer, a SubwordTokenizer or a "
                "tokenizers.Tokenizer"
            )
        self._tokenizer = tokenizer
        for role, names in _NAMES.items():
            if role == "mask" and (self._library or not hasattr(tokenizer, "unk")):
                names = names[:2]  # elsewhere texts encode to <unk>
            ids = [index for index in map(self._id, names) if index is not None]
            if not ids and role != "mask":
                raise ValueError(
                    f"the tokenizer has none of {', '.join(names)}: train it with special tokens, or take the one that "
                    "belongs to the model"
                )
            setattr(self, f"{role}_id", ids[0] if ids else None)

    def __len__(self):
        """V, the size of the vocabulary, special tokens included."""
        return self._tokenizer.get_vocab_size() if self._library else len(self._tokenizer)

    @property
    def special_ids(self):
        """The ids of class, separator, padding and mask, a list."""
        ids = (self.cls_id, self.sep_id, self.pad_id, self.mask_id)
        return [index for index in ids if index is not None]

    def encode(self, texts):
        """The pieces of several texts.

        Args:
            texts: list of str.

        Returns:
            list of (ids, offsets), one of each text: list of int (T,), and list of (start, end) in characters of the
            text, without the spaces around a piece. A piece of spaces alone is from nowhere: start equals end.

        Raises:
            TypeError: ``texts`` is one str, or holds something else than str.
            ValueError: a text is empty, or nothing but spaces.
        """
        check_lists(texts)
        texts = list(texts)
        for position, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"text {position} is a {type(text).__name__}, expected str")
            if not text.strip():
                raise ValueError(f"text {position} is empty")
        if self._library:
            encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
            pairs = [(encoding.ids, encoding.offsets) for encoding in encodings]
        else:
            pairs = self._tokenizer.encode_with_offsets(texts)
        return [(ids, _trimmed(text, offsets)) for text, (ids, offsets) in zip(texts, pairs, strict=True)]

    def encode_words(self, sentences):
        """The pieces of sentences that are cut into words, and the word that each piece is of.

        Args:
            sentences: list of lists of str; no word has a space inside.

        Returns:
            list of (ids, words), one of each sentence: two lists of int (T,). A piece of no word (a space) has -1; a
            word may have no piece (some tokenizers drop characters that nobody sees).

        Raises:
            ValueError: a sentence has no words, or a word is empty or has a space inside.
        """
        for position, words in enumerate(sentences):
            if not words or any(word.split() != [word] for word in words):
                wrong = next((word for word in words if word.split() != [word]), None)
                what = "has no words" if wrong is None else f"has the word {wrong!r}, expected one without spaces"
                raise ValueError(f"sentence {position} {what}")
        encoded = self.encode([" ".join(words) for words in sentences])
        return [(ids, _word_of_each(offsets, words)) for (ids, offsets), words in zip(encoded, sentences, strict=True)]

    def decode(self, ids):
        """The text of ids (T,), by the tokenizer itself: spaces and capitals may be lost."""
        return self._tokenizer.decode(checked_ids(ids))

    def pieces(self, ids):
        """What ids (T,) are called, list of str: the tokenizer's own names, with its marks of words."""
        if self._library:
            return [self._tokenizer.id_to_token(index) or "" for index in checked_ids(ids)]
        return self._tokenizer.to_tokens(checked_ids(ids))

    def join(self, first, second=None):
        """The sequence of one text or of two, as BERT puts them: class, first, separator, second, separator.

        Args:
            first, second: lists of ids.

        Returns:
            ids (T,) and segments (T,), lists: 0 up to the first separator, itself included, then 1.

        Source: D2L section 15.8.4.
        """
        return get_tokens_and_segments(first, second, self.cls_id, self.sep_id)

    def word_starts(self, tokens):
        """Which tokens begin a word: what masking of whole words asks for.

        Words are those of the vocabulary's own marks: what has no ``##`` in front, or has ``▁`` or ``Ġ``.

        Args:
            tokens: ids, an integer tensor (...).

        Returns:
            booleans (...). The four of `special_ids` count as words.
        """
        if not hasattr(self, "_starts"):
            self._starts = torch.tensor(self._marks())  # (V,)
        return self._starts[tokens.long().cpu()].to(tokens.device)

    def _marks(self):
        pieces = self.pieces(range(len(self)))
        special = set(self.special_ids)
        if any(piece.startswith("##") for piece in pieces):
            return [not piece.startswith("##") for piece in pieces]
        return [index in special or piece[:1] in ("▁", "Ġ") for index, piece in enumerate(pieces)]

    def _id(self, name):
        if self._library:
            return self._tokenizer.token_to_id(name)
        if hasattr(self._tokenizer, "unk"):  # a BPETokenizer
            return self._tokenizer[name] if name in SPECIAL_TOKENS else None
        try:
            return self._tokenizer[name]
        except KeyError:
            return None


def _trimmed(text, offsets):
    """Offsets without the spaces that a tokenizer counts to a piece."""
    trimmed = []
    for start, end in offsets:
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        trimmed.append((start, end))
    return trimmed


def _word_of_each(offsets, words):
    """The index of the word in which each piece begins; -1 for a piece from nowhere."""
    starts = list(accumulate((len(word) + 1 for word in words[:-1]), initial=0))
    return [bisect.bisect_right(starts, start) - 1 if end > start else -1 for start, end in offsets]
