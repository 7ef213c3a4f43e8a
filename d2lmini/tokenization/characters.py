"""Characters as tokens: the smallest vocabulary that a text can have without cutting characters up."""

from ..arguments import checked_ids


class CharacterTokenizer:
    """The characters of a text and their ids, in the order of their code points.

    Args:
        text: str; all its characters are known, and no others.

    Raises:
        ValueError: the text is empty.
    """

    def __init__(self, text):
        self.idx_to_token = sorted(set(text))
        if not self.idx_to_token:
            raise ValueError("there is no text to take characters from")
        self.token_to_idx = {token: index for index, token in enumerate(self.idx_to_token)}

    def __len__(self):
        return len(self.idx_to_token)

    def encode(self, text):
        """The ids of a text, a list of int.

        Raises:
            ValueError: a character is unknown.
        """
        unknown = sorted(set(text) - self.token_to_idx.keys())
        if unknown:
            shown = ", ".join(map(ascii, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
            raise ValueError(
                f"the text has characters that the vocabulary has not: {shown}; the first stands at "
                f"{min(map(text.index, unknown))}"
            )
        return [self.token_to_idx[character] for character in text]

    def decode(self, ids):
        """The text of ids, a list or tensor (T,).

        Raises:
            TypeError: an id is no integer.
            ValueError: an id is outside the vocabulary.
        """
        return "".join(self.to_tokens(ids))

    def to_tokens(self, ids):
        """The characters of ids, a list of str; raises as `decode`."""
        return [self.idx_to_token[index] for index in checked_ids(ids, len(self), "characters")]
