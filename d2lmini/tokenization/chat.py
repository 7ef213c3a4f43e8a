"""The tokens of a chat model: byte pairs that know special tokens, and the template that makes one text of messages.

The byte pairs are SmolLM2's: GPT-2's over bytes, each digit a word of its own.
"""

from functools import cached_property

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from ..arguments import checked_ids
from .bpe import BYTES, SHOWN, BytePairEncoding, check_text, letters_numbers_others

# how GPT-2 writes bytes: those that show as they are, the others from U+0100 on
_HIDDEN = [byte for byte in range(256) if byte not in SHOWN]
_BYTE_CHARACTERS = {b: chr(b) for b in SHOWN} | {b: chr(256 + place) for place, b in enumerate(_HIDDEN)}

_ROLES = "system", "user", "assistant"


class ChatTokenizer:
    """Byte pairs, special tokens, and a chat template.

    A text that a reader gives is never taken for special tokens, but where `encode_chat` puts them.

    Args:
        tokens: list of str by id, bytes written as GPT-2 does.
        merges: list of pairs of str, in the order in which they were learned.
        special: those of ``tokens`` that no text spells.
        template: Jinja template of the messages, as chat models publish it.
        stop: the token that ends an answer.

    Raises:
        ValueError: the merges do not fit the tokens, or a special token is none.

    Source: Radford et al. 2019 for byte pairs over bytes; Allal et al. 2025 (SmolLM2).
    """

    def __init__(self, tokens, merges, special, template, stop):
        self.tokens, self.merges, self.template = list(tokens), [tuple(pair) for pair in merges], template
        ids = {token: index for index, token in enumerate(self.tokens)}
        unknown = [token for token in (*special, stop) if token not in ids]
        if unknown:
            raise ValueError(f"the special tokens {unknown} are no tokens of the vocabulary")
        self.special, self.stop = frozenset(ids[token] for token in special), ids[stop]
        try:
            self._tokenizer = Tokenizer(models.BPE(ids, self.merges))
        except Exception as error:  # tokenizers raises a plain Exception
            raise ValueError(f"the merges do not fit the tokens: {error}") from error
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        self._tokenizer.decoder = decoders.ByteLevel()
        self._tokenizer.add_special_tokens(list(special))

    def __len__(self):
        return len(self.tokens)

    def encode(self, text):
        """The ids of a text, a list of int; no text spells a special token.

        Raises:
            TypeError: it is no str.
            ValueError: it holds a lone surrogate.
        """
        check_text(text)
        return self._encode(text, special=False)

    def decode(self, ids, special=False):
        """The text of ids, a list or tensor of integers; special tokens are left out unless they are wanted.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        return self._tokenizer.decode(checked_ids(ids, len(self)), skip_special_tokens=not special)

    def chat(self, messages):
        """One text of messages, up to where the answer begins.

        Args:
            messages: list of dict with "role" ("system", "user" or "assistant") and "content", both str. Of what else
                there is the template knows nothing.

        Returns:
            str, with special tokens.

        Raises:
            ValueError: there is no message, or one is of another form.
        """
        messages = list(messages)
        if not messages or not all(map(_is_message, messages)):
            raise ValueError(
                "expected one message or more, each with a role (system, user, assistant) and a content, both str"
            )
        told = [{key: message[key] for key in ("role", "content")} for message in messages]
        return self._compiled.render(messages=told, add_generation_prompt=True)

    def encode_chat(self, messages):
        """The ids of `chat`, a list of int, in which the template's special tokens are tokens.

        Raises:
            ValueError: as `chat`; or a message spells a special token, with which it would end itself.
        """
        messages = list(messages)
        text = self.chat(messages)
        for message in messages:
            check_text(message["content"])
            spelled = [self.tokens[index] for index in self.special if self.tokens[index] in message["content"]]
            if spelled:
                raise ValueError(f"a message spells the special token {min(spelled)}, expected plain text")
        return self._encode(text, special=True)

    def by_hand(self):
        """The same byte pairs as a `BytePairEncoding`, to be read; its ids are others, its tokens the same."""
        to_byte = {character: bytes([byte]) for byte, character in _BYTE_CHARACTERS.items()}
        merges = [tuple(b"".join(map(to_byte.get, part)) for part in pair) for pair in self.merges]
        return BytePairEncoding(BYTES, merges, "bytes", _digits_apart())

    def _encode(self, text, special):
        self._tokenizer.encode_special_tokens = not special
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    @cached_property
    def _compiled(self):
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # a file may bring any template

        return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(self.template)


def _is_message(message):
    return isinstance(message, dict) and message.get("role") in _ROLES and isinstance(message.get("content"), str)


def _digits_apart():
    """GPT-2's pattern with every digit a word, and a space before one too."""
    letter, number, other = letters_numbers_others()
    gap = rf"\s+(?:(?={number})|(?!\S))|\s+"
    return rf"{number}|'(?:[stmd]|re|ve|ll)| ?{letter}+| ?{other}+|{gap}"
