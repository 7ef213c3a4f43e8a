"""Where heads look in a sequence that repeats, and mean losses."""

import torch

from d2lmini.figures import InductionHead
from d2lmini.figures.packing import unpack

PERIOD, T = 4, 10


def cases():
    generator = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(2, 3, T, T, generator=generator)
    weights = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf).softmax(-1)
    losses = 3 * torch.rand(T, generator=generator, dtype=torch.float64)
    figure = InductionHead([str(t % PERIOD) for t in range(T)], weights, losses, PERIOD)
    attention = {"weights": unpack(figure.state["weights"], -1).tolist(), "heads": 3, "T": T}
    for layer, head, position in ((1, 1, 0), (1, 3, 5), (2, 1, 9), (2, 3, 7)):
        row = figure.weights()[layer - 1, head - 1, position]
        yield "look", [attention, {"layer": layer, "head": head, "position": position}], row.tolist()
        pairs = zip(row.topk(3).indices.tolist(), row.topk(3).values.tolist(), strict=True)
        yield "strongest", [row.tolist()], [[s, weight] for s, weight in pairs if weight >= 0.02]
    yield "look", [{"weights": [51] * 4, "heads": 1, "T": 2}, {"layer": 1, "head": 1, "position": 0}], [0.2, 0]
    yield "strongest", [[0.019, 0.02, 0.5, 0.02, 0.02]], [[2, 0.5], [1, 0.02], [3, 0.02]]
    yield "strongest", [[0.019, 0.0]], []
    for period in (1, PERIOD, 9):
        parts = losses[:period], losses[period:]
        yield "meanLosses", [losses.tolist(), period], [part.mean().item() for part in parts]
