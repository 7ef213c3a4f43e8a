"""Figure of chapter 12: byte-pair encoding of a text that the reader types, merge by merge."""

from ..tokenization.bpe import BytePairEncoding
from .base import Figure, table

# traditional; the text of UDL figure 12.8
RHYME = (
    "a sailor went to sea sea sea to see what he could see see see but all that he could see see see was the bottom of "
    "the deep blue sea sea sea"
)
LONGEST = 2000  # of a text, in code points; numbers/bpe_stepper.js knows it, too
LONGEST_WORD = 40


class BPEStepper(Figure):
    """Byte-pair encoding by hand: the reader types a text and walks through the merges.

    All is computed in the page: the text as tokens, the most frequent pairs, the merges so far, the numbers of
    tokens in the text and of different ones against merges, and what another word becomes. A text starts as its
    characters (code points; line ends of any kind are a line feed). The most frequent pair of neighbours is merged,
    everywhere, from left to right; among equals the one with the lowest ids, of the left token, then of the right one.
    Ids count the characters by code point, then the merges as they were made. What ends in white space is never the
    left one of a pair, so that a space closes its word and no token crosses words. It goes on until no pair is left.

    Args:
        text: what the merges are learned from, at most 2,000 characters.
        word: the other word.
        step: how many merges are done at first.

    Raises:
        TypeError: text or word is no string.
        ValueError: one of them is too long or holds half a surrogate pair, or there are not so many merges.

    Source: UDL section 12.5.1 and figure 12.8; Sennrich et al. 2016.
    """

    name = "bpe_stepper"
    title = "Byte-pair encoding, merge by merge"
    hint = (
        "Walk through the merges with the buttons or the slider, and watch the tokens; then type a text and a word of "
        "your own. ␣ is a space, ↵ the end of a line."
    )

    def __init__(self, text=RHYME, word="seaweed", step=0):
        for what, value, most in (("text", text, LONGEST), ("word", word, LONGEST_WORD)):
            if not isinstance(value, str):
                raise TypeError(f"{what} is a {type(value).__name__}, expected a string")
            if len(value) > most:
                raise ValueError(f"{what} has {len(value)} characters, expected at most {most}")
            if any("\ud800" <= letter <= "\udfff" for letter in value):
                raise ValueError(f"{what} holds half a surrogate pair: was it decoded with errors='surrogateescape'?")
        self.merges = _learn(text.replace("\r\n", "\n").replace("\r", "\n"))
        if not 0 <= step <= len(self.merges):
            raise ValueError(f"step is {step}, expected 0 to {len(self.merges)}: there are no more merges")
        super().__init__(
            f"Byte-pair encoding of a text of {len(text)} characters: {len(self.merges)} merges, one after the other.",
            text=text,
            word=word,
            step=step,
        )

    def fallback(self):
        rows = [
            [i, f"{_drawn(a)} + {_drawn(b)}", _drawn(a + b), count, length]
            for i, (a, b, count, length) in enumerate(self.merges[:12], start=1)
        ]
        caption = (
            f"The first {len(rows)} of the {len(self.merges)} merges of “{_drawn(self.state['text'][:60])}…”: which "
            "pair, how often it occurs, and the number of tokens after it."
        )
        return table(["merge", "pair", "becomes", "times", "tokens"], rows, caption)


def _learn(text):
    """The merges of a text: a list of (left, right, how often the pair occurs, tokens in the text afterwards)."""
    steps = BytePairEncoding.train(text, len(text)).steps[1:] if text else []
    return [(*step.pair, step.count, step.num_tokens) for step in steps]


def _drawn(text):
    return text.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")
