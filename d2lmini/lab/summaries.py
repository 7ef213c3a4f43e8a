"""What is written down of a run: thinned curves, the values of several seeds, standard errors."""

import math
from statistics import mean, stdev


def curves(history, *names):
    """Curves of a training: ``step`` and ``train_loss`` in at most 200 points, and of the history what is named.

    Args:
        history: of a `Trainer`.
        names: lists of the history; those with a value a step are thinned, too.
    """
    steps = len(history["step"])
    width = max(1, -(-steps // 200))
    thinned = {"step": [history["step"][min(i + width, steps) - 1] for i in range(0, steps, width)]}
    for name in ("train_loss", *names):
        values = history[name]
        thinned[name] = means(values, width) if len(values) == steps and not name.startswith("val_") else values
    return thinned


def means(values, width):
    """Means of ``width`` consecutive values, the last one of what is left, to six decimals."""
    return [round(mean(values[i : i + width]), 6) for i in range(0, len(values), width)]


def columns(rows):
    """A list of dicts with the same keys, one of each seed, as a dict of lists."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def summary(scores):
    """``mean`` and ``spread``, the standard deviation, of the scores of several seeds; of one, a spread of None."""
    return {"mean": mean(scores), "spread": stdev(scores) if len(scores) > 1 else None}


def share(hits):
    """``accuracy``, the share of booleans that are true, and its standard ``error``, sqrt(p (1 - p) / n)."""
    p = mean(map(float, hits))
    return {"accuracy": p, "error": math.sqrt(p * (1 - p) / len(hits))}


def standard_error(values):
    """Of the mean of values of independent examples; None where there is but one."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
