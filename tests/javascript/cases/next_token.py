"""From scores of the next token to draws."""

import math
from collections import Counter

import torch

from d2lmini.figures import NextToken
from d2lmini.figures.draft_verify import _draw, _generator
from d2lmini.figures.packing import unpack

V = 12
SETTINGS = ((1, V, 1), (0.5, V, 0.9), (2, 5, 1), (1.35, 8, 0.8), (0.1, V, 1), (1, 1, 1), (4, V, 0.01), (1, V, 0.5))


def cases():
    scores = torch.randint(12, (3, V), generator=torch.Generator().manual_seed(0)).double()
    scores[1] = 0  # all the same: the mass of half of them is met
    figure = NextToken(["a", "b", "c"], list("abcdefghijkl"), scores)
    packed, unit = unpack(figure.state["logits"], 3, V, kind="<u2"), figure.state["unit"]
    for context, below in enumerate(packed.tolist()):
        values, order = figure.logits()[context].sort(descending=True, stable=True)
        yield "ranking", [below, unit], {"order": order.tolist(), "scores": values.tolist()}
        for seed, (temperature, top_k, top_p) in enumerate(SETTINGS if context < 2 else SETTINGS[:1]):
            after = figure.probabilities(context, temperature, top_k, top_p)[order]
            before = figure.probabilities(context)[order]
            size = int((after > 0).sum())
            settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
            yield (
                "distributions",
                [values.tolist(), settings],
                {
                    "size": size,
                    "before": before.tolist(),
                    "heated": (values / temperature).softmax(0).tolist(),
                    "after": after[:size].tolist(),
                },
            )
            p, random = after[:size], _generator(seed)
            yield "total", [before[size:].tolist()], before[size:].sum().item()
            yield "bits", [p.tolist()], torch.special.entr(p).sum().item() / math.log(2)
            counts = Counter(_draw(p, next(random)) for _ in range(20))
            yield "drawnPlaces", [p.tolist(), seed, 20], [list(pair) for pair in sorted(counts.items())]
    yield "bits", [[1, 0]], 0
