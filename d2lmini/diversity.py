"""How varied generated texts are, and how much they repeat themselves: numbers for lists of token lists.

A token may be anything that can be a key of a dict: an integer, a word. A text that is shorter than n has no n-grams
and does not count.
"""

import bisect
import math
from collections import Counter, defaultdict


def distinct_n(sequences, n):
    """How many different n-grams all texts together have, over how many n-grams.

    It falls as there is more text, since words come again in any: compare equal amounts only.

    Args:
        sequences: the texts, lists of tokens.
        n: 1 or more.

    Returns:
        Above 0, up to 1 (nothing occurs twice).

    Raises:
        TypeError: a text is a str.
        ValueError: ``n`` is below 1, or no text has n tokens.

    Source: Li et al. 2016, who divide by the number of tokens.
    """
    counts = sum(_counted(sequences, n), Counter())
    return len(counts) / counts.total()


def repetition_rate(sequences, n):
    """Share of a text's n-grams that have occurred before in the same text, in the mean over texts.

    Args, Raises: those of `distinct_n`.

    Returns:
        0 (no n-gram twice) up to, but not, 1.

    Source: Welleck et al. 2020, their seq-rep-n.
    """
    counted = [counts for counts in _counted(sequences, n) if counts]
    return math.fsum(1 - len(counts) / counts.total() for counts in counted) / len(counted)


def self_bleu(sequences, n=4):
    """BLEU of each text with all the others as its references, in the mean: high where texts are alike.

    Orders 1 to n weigh the same, as far as a text is long enough; an order without a match counts as a tenth of one
    match. The time grows with the text, not with its square. It rises with the number of texts: compare equal numbers.

    Args:
        sequences: two or more texts, lists of tokens, none empty.
        n: longest n-gram that counts.

    Returns:
        0 (almost) to 1.

    Raises:
        TypeError: a text is a str.
        ValueError: ``n`` is below 1, there are fewer than two texts, or an empty one.

    Source: Zhu et al. 2018 (Texygen).
    """
    sequences = _checked(sequences, n)
    if len(sequences) < 2 or not all(sequences):
        raise ValueError(f"expected two texts or more, and none empty; their lengths are {list(map(len, sequences))}")
    counted = [[_ngrams(sequence, m) for sequence in sequences] for m in range(1, n + 1)]
    most = [_two_most(counts) for counts in counted]
    lengths = sorted(map(len, sequences))
    scores = []
    for i, sequence in enumerate(sequences):
        logs = []
        for counts, largest in zip((c[i] for c in counted), most, strict=True):
            if counts:
                matches = sum(min(count, _elsewhere(largest[gram], count)) for gram, count in counts.items())
                logs.append(math.log((matches or 0.1) / counts.total()))
        shortfall = min(0.0, 1 - _closest(lengths, len(sequence)) / len(sequence))
        scores.append(math.exp(shortfall + math.fsum(logs) / len(logs)))
    return math.fsum(scores) / len(scores)


def _two_most(counted):
    """For each n-gram the two largest counts that it has in any text."""
    largest_two = defaultdict(lambda: (0, 0))
    for counts in counted:
        for gram, count in counts.items():
            first, second = largest_two[gram]
            largest_two[gram] = (count, first) if count > first else (first, max(second, count))
    return largest_two


def _elsewhere(largest, own):
    """The largest count in another text than the one that has ``own``."""
    first, second = largest
    return second if own == first else first


def _closest(lengths, own):
    """Of sorted lengths, one of them ``own``, the closest other one; the shorter of two."""
    i = bisect.bisect_left(lengths, own)
    return min(lengths[max(0, i - 1) : i] + lengths[i + 1 : i + 2], key=lambda length: abs(length - own))


def _counted(sequences, n):
    """The n-grams of each text."""
    counted = [_ngrams(sequence, n) for sequence in _checked(sequences, n)]
    if not any(counted):
        raise ValueError(f"there are {len(counted)} texts, none with {n} tokens: nothing to count")
    return counted


def _checked(sequences, n):
    if n < 1:
        raise ValueError(f"n is {n}, expected at least 1")
    sequences = list(sequences)
    if any(isinstance(sequence, str) for sequence in sequences):
        raise TypeError("expected lists of tokens, got a str: split it, or make a list of its characters")
    return [sequence.tolist() if hasattr(sequence, "tolist") else list(sequence) for sequence in sequences]


def _ngrams(tokens, n):
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))
