"""Tiles, and what is known, kept and moved after each, as OnlineSoftmax knows it."""

import math

import torch

from d2lmini.figures import TilingStepper
from d2lmini.masks import causal_mask

T, S = 5, 7


def cases():
    generator = torch.Generator().manual_seed(0)
    given = [2 * torch.randn(*size, generator=generator).double() for size in ((T, 3), (S, 3), (S, 2))]
    for tile, causal, step in (
        ((2, 2), False, 3),
        ((3, 3), True, 4),
        ((2, 3), False, 9),
        ((5, 1), True, 5),
        ((2, 2), True, 6),
    ):
        stepper = TilingStepper(*given, tiles=[tile], causal=causal, step=step)
        inputs = {**{key: stepper.state[key] for key in ("scores", "values", "num_features")}, "causal": causal}
        shape = {"scores": [0] * T, "values": [0] * S, "causal": causal}
        steps, seen = stepper.steps(tile, causal), causal_mask(T, S) if causal else torch.ones(T, S, dtype=torch.bool)
        tiles = [{"rows": list(range(T)[rows]), "columns": list(range(S)[columns])} for rows, columns in steps]
        for t, s in ((0, 2), (0, 3), (4, 6)):
            yield "sees", [shape, t, s], bool(seen[t, s])
        yield "cuts", [inputs, tile], tiles
        yield "memory", [inputs, tiles, step], stepper.memory(step, tile, causal)
        found = [_known(stepper, tile, causal, step, t) for t in range(T)]
        yield "known", [inputs, tiles[:step]], found
        scores = torch.tensor(inputs["scores"]).double().masked_fill(~seen, -math.inf)
        plain = scores.softmax(-1) @ torch.tensor(inputs["values"]).double()
        averages = stepper.known(step, tile, causal)["average"]
        for t, sums in enumerate(found):
            if sums and t % 2:
                yield "average", [sums], averages[t].tolist()
                yield "errorOf", [inputs, t, sums], (averages[t] - plain[t]).abs().max().item()
        status = [["never"] * S for _ in range(T)]
        for i, one in enumerate(tiles, start=1):
            for t in one["rows"]:
                for s in one["columns"]:
                    status[t][s] = "now" if i == step else "gone" if i < step else "to come"
        yield "statuses", [{**inputs, "scores": [0] * T}, tiles, step], status


def _known(stepper, tile, causal, step, t):
    """The sums of a query after some tiles, and how its last tile changed them."""
    own = [
        (i, columns)
        for i, (rows, columns) in enumerate(stepper.steps(tile, causal)[:step], start=1)
        if t in range(T)[rows]
    ]
    if not own:
        return None

    def sums(i):
        known = stepper.known(i, tile, causal)
        return {"top": known["top"][t].item(), "total": known["total"][t].item(), "output": known["output"][t].tolist()}

    now, before = sums(own[-1][0]), sums(own[-2][0]) if own[1:] else None
    scores = torch.tensor(stepper.state["scores"]).double()
    seen = causal_mask(T, S)[t] if causal else torch.ones(S, dtype=torch.bool)
    fresh = (scores[t].masked_fill(~seen, -math.inf)[own[-1][1]] - now["top"]).exp().sum().item()
    factor = math.exp(before["top"] - now["top"]) if before else 0
    return {**now, "before": before, "factor": factor, "fresh": fresh}
