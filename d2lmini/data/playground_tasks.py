"""What can be learned in the playground, each task by its name, as playground_tasks.js of the page has it."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import torch

_ALPHABET, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
_LEAST, _MOST, _LETTERS = 200, 1_000_000, 250  # characters of a text, and different ones


@dataclass
class Task:
    """What a task is.

    Args:
        size: of an example.
        tokens: what each is written as.
        draw: a function: ``draw(generator, N, size)`` gives prompts, answers and given, as `PlaygroundData.draw`.
        most: the largest size.
        held_out_place: whether it is the place in a text that is held out; ``draw`` then takes ``held_out``, too.
    """

    size: int
    tokens: list
    draw: Callable
    most: int = 256
    held_out_place: bool = False


def _guessed(prompts, answers):
    """Examples of whose answers everything is to be guessed."""
    return prompts, answers, torch.zeros_like(answers, dtype=torch.bool)


def _letters_task(answer):
    def task(letters, size=6, **_):
        def draw(generator, number, size):
            shown = torch.randint(letters, (number, size), generator=generator)
            return _guessed(torch.cat([shown, torch.full((number, 1), letters)], 1), answer(shown))

        return Task(size, [*_ALPHABET[:letters], ">"], draw)

    return task


def _look_up(letters, size=4, **_):
    """Pairs of a key and its value, then the keys once more: what was the value of each?"""

    def draw(generator, number, size):
        keys = _different(generator, number, size, letters)
        values = letters + torch.randint(10, (number, size), generator=generator)
        order = _different(generator, number, size, size)
        asked = _pairs(keys.gather(1, order), values.gather(1, order))
        prompts, answers = torch.cat([_pairs(keys, values), asked[:, :1]], 1), asked[:, 1:]
        return prompts, answers, answers < letters

    return Task(size, [*_ALPHABET[:letters], *_DIGITS], draw, most=letters)


def _recall(letters, size=6, **_):
    """A word of different letters, then pieces of it: which letter comes after this one?"""

    def draw(generator, number, size):
        word = _different(generator, number, size, letters)
        at, places, given = torch.full((number,), size), [], []
        for _ in range(2 * size):
            begins = (torch.rand(number, generator=generator) < 0.25) | (at >= size - 1)  # with a letter that is told
            at = torch.randint(size, (number,), generator=generator).where(begins, at + 1)
            places.append(at)
            given.append(begins)
        return word, word.gather(1, torch.stack(places, 1)), torch.stack(given, 1)  # (N, 2 * size)

    return Task(size, list(_ALPHABET[:letters]), draw, most=letters)


def _different(generator, number, size, end):
    """Rows of so many different numbers from 0 to before ``end``."""
    return torch.rand(number, end, generator=generator).argsort(1)[:, :size]


def _pairs(keys, values):
    return torch.stack([keys, values], 2).flatten(1)  # (N, 2 * size)


def _add(backwards, size=2, **_):
    def draw(generator, number, size):
        a, b = torch.randint(10, (2, number, size), generator=generator)
        powers = 10 ** torch.arange(size, -1, -1)
        total = ((a + b) * powers[1:]).sum(1, keepdim=True)
        digits = total // powers % 10  # (N, size + 1)
        plus, equals = (torch.full((number, 1), token) for token in (10, 11))
        return _guessed(torch.cat([a, plus, b, equals], 1), digits.flip(1) if backwards else digits)

    return Task(size, [*_DIGITS, "+", "="], draw, most=15)  # beyond it sums of the page are not exact


def _next_letter(text, size=32, **_):
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    tokens = sorted(set(text), key=lambda letter: letter.encode("utf-16-be", "surrogatepass"))  # as JavaScript sorts
    least = max(_LEAST, 20 * (size + 1))
    if not least <= len(text) <= _MOST:
        bound = f"at least {least:,}" if len(text) < least else f"at most {_MOST:,}"
        raise ValueError(f"the text has {len(text):,} characters, expected {bound}")
    if len(tokens) < 2:
        raise ValueError("the text is one character alone: there is nothing to learn")
    if len(tokens) > _LETTERS:
        raise ValueError(f"the text has {len(tokens):,} different characters, expected at most {_LETTERS}")
    number_of = {token: number for number, token in enumerate(tokens)}
    ids = torch.tensor([number_of[letter] for letter in text])
    cut = int(len(ids) * 0.9)

    def draw(generator, number, size, held_out):
        part = ids[cut:] if held_out else ids[:cut]
        starts = torch.randint(len(part) - size, (number, 1), generator=generator)
        windows = part[starts + torch.arange(size + 1)]  # (N, size + 1)
        return _guessed(windows[:, :1], windows[:, 1:])

    return Task(size, tokens, draw, most=int(len(ids) * 0.1) - 1, held_out_place=True)


TASKS = {
    "copy": _letters_task(lambda shown: shown),
    "reverse": _letters_task(lambda shown: shown.flip(1)),
    "sort": _letters_task(lambda shown: shown.sort(1).values),
    "look up": _look_up,
    "recall": _recall,
    "add": _add,
    "text": _next_letter,
}
