"""Sums of several numbers as text: the question, and a response with or without written steps.

    question                     17+85+60+44=
    the answer alone                               602.
    steps: running sums                    201,261,602.     17 + 85 = 102, 102 + 60 = 162, 162 + 44 = 206
    filler in place of steps               ________602.

Numbers of a question are written as we write them. All that a model writes has its digits in the reverse order, the
ones first, as carries go (Lee et al. 2024), and as many of them for every number, so that the length of a response
tells nothing but how many summands there are. "." ends it. A token is a character.
"""

from dataclasses import dataclass

import torch

from d2lmini.objectives.masking import IGNORE_INDEX

CHARACTERS = "0123456789+=,._"
PLUS, EQUALS, COMMA, END, FILLER = range(10, 15)
FORMS = "answer", "steps", "filler"


@dataclass(frozen=True)
class Sums:
    """Questions with summands of ``digits`` digits, at most ``longest`` of them.

    Raises:
        ValueError: a number is too small.
    """

    digits: int
    longest: int

    def __post_init__(self):
        if self.digits < 1 or self.longest < 2:
            raise ValueError(f"there are {self.longest} summands of {self.digits} digits, expected 2 of 1 or more")

    @property
    def width(self):
        """Digits of each number that is written: as many as the largest sum has."""
        return len(str(self.longest * (10**self.digits - 1)))

    def draw(self, size, num, generator=None):
        """Summands (size, num), all of ``digits`` digits; of one digit 0, too."""
        low = 10 ** (self.digits - 1) if self.digits > 1 else 0
        return torch.randint(low, 10**self.digits, (size, num), generator=generator)

    def questions(self, summands):
        """Tokens (B, num (digits + 1)) of summands (B, num)."""
        powers = 10 ** torch.arange(self.digits - 1, -1, -1)
        digits = summands[..., None] // powers % 10  # (B, num, digits)
        signs = torch.full_like(summands, PLUS)
        signs[:, -1] = EQUALS
        return torch.cat([digits, signs[..., None]], 2).flatten(1)

    def written(self, numbers):
        """Numbers (B, n) as a model writes them, the ones first, a comma or the end behind each: (B, n (width + 1))."""
        digits = numbers[..., None] // 10 ** torch.arange(self.width) % 10  # (B, n, width)
        signs = torch.full_like(numbers, COMMA)
        signs[:, -1] = END
        return torch.cat([digits, signs[..., None]], 2).flatten(1)

    def responses(self, summands, form, wrong=0.0, generator=None):
        """What follows a question.

        Args:
            summands: (B, num).
            form: one of `FORMS`.
            wrong: share of the rows whose steps are those of another question; the answer stays right.

        Returns:
            Tokens (B, L), and how many of the first ones are given to the model: fillers are not learned.
        """
        sums = summands.cumsum(1)[:, 1:]  # (B, num - 1): after the second summand, the third, ...
        if form == "answer":
            return self.written(sums[:, -1:]), 0
        if wrong and sums.shape[1] > 1:
            others = self.draw(*summands.shape, generator).cumsum(1)[:, 1:]
            swapped = torch.rand(len(sums), 1, generator=generator) < wrong
            sums = torch.cat([torch.where(swapped, others, sums)[:, :-1], sums[:, -1:]], 1)
        tokens = self.written(sums)
        given = tokens.shape[1] - self.width - 1 if form == "filler" else 0
        tokens[:, :given] = FILLER
        return tokens, given

    def length(self, form, num):
        """Tokens of a question and its response, the end included."""
        return num * (self.digits + 1) + (1 if form == "answer" else num - 1) * (self.width + 1)

    def batch(self, size, nums, form, wrong=0.0):
        """Questions to learn from, each of a number of summands drawn from ``nums``.

        Returns:
            inputs (B, T) and the tokens that follow each, (B, T), `IGNORE_INDEX` where nothing is to be learned: in the
            question, in fillers, and behind the end. T is that of the longest.
        """
        T, counts = self.length(form, max(nums)), torch.tensor(nums)[torch.randint(len(nums), (size,))].tolist()
        X, Y = torch.full((size, T), END), torch.full((size, T), IGNORE_INDEX)
        row = 0
        for num in sorted(set(counts)):
            summands = self.draw(counts.count(num), num)
            asked = self.questions(summands)
            response, given = self.responses(summands, form, wrong)
            rows, first = slice(row, row + len(asked)), asked.shape[1] + given
            tokens = torch.cat([asked, response], 1)
            X[rows, : tokens.shape[1]] = tokens
            Y[rows, first : tokens.shape[1]] = tokens[:, first:]
            row += len(asked)
        return X[:, :-1].contiguous(), Y[:, 1:].contiguous()

    def read(self, tokens):
        """A response as numbers.

        Args:
            tokens: list of int.

        Returns:
            list of the numbers that it holds, the last of them the answer, without fillers; None where it is none: it
            never ends, or something in it is no number of ``width`` digits.
        """
        tokens = [token for token in tokens if token != FILLER]
        if END not in tokens:
            return None
        parts = text_of(tokens[: tokens.index(END)]).split(",")
        if any(len(part) != self.width or not part.isdigit() for part in parts):
            return None
        return [int(part[::-1]) for part in parts]


def text_of(tokens):
    """Tokens as the characters that they are."""
    return "".join(CHARACTERS[token] for token in tokens)


def adds_up(summands, numbers):
    """Of each number of a chain, whether it is the one before it and the next summand: list of bool.

    The first one is compared with the sum of the first two summands. A number that stands behind a wrong one may so
    well be right: this asks whether a model adds, not whether it is on the way to the answer. Numbers for which there
    is no summand any more are wrong.
    """
    before, right = summands[0], []
    for i, number in enumerate(numbers):
        right.append(i + 1 < len(summands) and number == before + summands[i + 1])
        before = number
    return right
