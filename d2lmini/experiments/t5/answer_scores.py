"""How answers that are texts are scored: ratios of sums over the examples, with standard errors."""

import math
from collections import Counter


def exact(answer, wanted):
    """1 of 1 where an answer is the right one to the letter."""
    return float(answer == wanted), 1.0


def overlap(answer, wanted):
    """F1 of the words that two texts share, order left aside, as ROUGE-1 without stemming.

    Source: Lin 2004, "ROUGE".
    """
    given, right = answer.split(), wanted.split()
    shared = sum((Counter(given) & Counter(right)).values())
    return (2 * shared / (len(given) + len(right)) if given or right else 1.0), 1.0


def entities(answer, wanted):
    """What an answer adds to F1 of entities: those that two lists share, twice, and those of both.

    An entity is its type and its words; where in the text they stand is not asked.
    """
    given, right = _entities_of(answer), _entities_of(wanted)
    return 2.0 * sum((given & right).values()), float(sum(given.values()) + sum(right.values()))


def _entities_of(text):
    return Counter(piece.strip() for piece in text.split(";") if piece.strip() not in ("", "none"))


def ratio(rows):
    """The score, in percent, of rows (numerator, denominator), with its standard error over the examples.

    The error is that of a ratio of means, by its linear terms; of a share it is the binomial one.
    """
    value, parts = _linear(rows)
    return {"score": 100 * value, "error": 100 * _error(parts), "examples": len(rows)}


def difference(rows, others):
    """The score of rows less that of others, of the same examples, with the standard error of the difference."""
    if len(rows) != len(others):
        raise ValueError(f"there are {len(rows)} rows but {len(others)} others: they have to be of the same examples")
    (value, parts), (other, other_parts) = _linear(rows), _linear(others)
    differences = [a - b for a, b in zip(parts, other_parts, strict=True)]
    return {"difference": 100 * (value - other), "error": 100 * _error(differences)}


def _linear(rows):
    """A ratio of sums, and how far each row moves it."""
    above, below = (sum(column) for column in zip(*rows, strict=True))
    value = above / below if below else 0.0
    return value, [(a - value * b) / (below / len(rows)) if below else 0.0 for a, b in rows]


def _error(parts):
    """Of the mean of parts, which add up to the sum of their deviations."""
    n = len(parts)
    mean = sum(parts) / n
    return math.sqrt(sum((part - mean) ** 2 for part in parts) / max(n - 1, 1) / n)
