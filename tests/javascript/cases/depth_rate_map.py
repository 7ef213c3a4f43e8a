"""Bounds and shades of losses, and the steps of the points of curves."""

import math

import torch

from d2lmini.figures import DepthRateMap

LOSSES = [[2.5, 2.25, math.nan], [2.75, 3.25, 5.5]], [[3.25, 3.4, None], [3.3, None, None]], [[3.3, 3.5, None]] * 2
STEPS = [40, 40, 25]


def record(names, rows):
    """One of two depths and three rates, with points of ten steps."""
    metrics = {"loss": {}, "verdict": {}, "steps": {}, "unigram": 3.3, "uniform": 4.2}
    for name, loss in zip(names, rows, strict=True):
        metrics["loss"][name], metrics["steps"][name] = [loss], [[STEPS, STEPS]]
        metrics["verdict"][name] = [[["stuck"] * 3] * 2]
    curves = {
        f"{name}, {depth}, {rate:g}": [4.0 - 0.3 * i - depth * rate for i in range(math.ceil(made / 10))]
        for name in names
        for depth in (1, 8)
        for rate, made in zip((0.1, 0.2, 9.0), STEPS, strict=True)
    }
    config = {"depths": [1, 8], "rates": [0.1, 0.2, 9.0], "steps": 40, "points": 4}
    return {"config": config, "metrics": metrics, "curves": curves}


def cases():
    for rows in (LOSSES, LOSSES[1:], LOSSES[2:]):
        names = [str(n) for n in range(len(rows))]
        state = DepthRateMap(record(names, rows)).state
        finite = torch.tensor([math.nan if x is None else x for x in _flat(rows)] + [3.3]).double()
        least = min(finite[finite.isfinite()].tolist())
        low, high = (round(side(2 * x)) / 2 for side, x in ((math.floor, least), (math.ceil, 4.95)))
        yield "bounds", [state], {"least": least, "low": low, "high": high}
        for loss in (least, 3.0, 3.9, None):
            better = 0.0 if loss is None else max(3.3 - loss, 0.0)
            yield "share", [loss, {"unigram": 3.3, "least": least}], better / (3.3 - least) if better else 0
        cards, ends = state["recipes"], [row[1][1] for row in rows]
        most = max([4.0 - 8 * 0.2, *(end or 0 for end in ends)])
        yield "highest", [cards, 1, 1], most
    for every, made in ((10, 40), (10, 25), (7, 7), (10, 0)):
        steps = torch.arange(made + 1).double()
        ends = [(steps[i], steps[min(i + every, made)]) for i in range(0, made, every)]
        yield "middles", [len(ends), every, made], [float(a + b) / 2 for a, b in ends]


def _flat(rows):
    return [loss for recipe in rows for row in recipe for loss in row]
