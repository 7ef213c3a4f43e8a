"""Where heads look, by the package's scores of heads, and what is off."""

import torch

from d2lmini.experiments.abilities.induction import induction_scores, previous_scores

PERIOD = 4


def cases():
    T = PERIOD + 1  # the last token is the first that was said before
    weights = torch.rand(1, 1, T, T, generator=torch.Generator().manual_seed(0)).tril()
    weights /= weights.sum(-1, keepdim=True)
    row, ids = weights[0, 0, -1].tolist(), [5, 3, 8, 2, 5]
    yield "headShare", [row, ids, "induction"], induction_scores(weights, PERIOD).item()
    before = previous_scores(weights[..., -2:, -2:]).item()
    for shade, share in (("before", before), ("first", row[0]), ("itself", row[-1])):
        yield "headShare", [row, ids, shade], share
    yield "headShare", [row, [5, 3, 8, 2, 7], "induction"], 0  # it was not said before
    yield "headShare", [row, [5, 3, 5, 2, 5], "induction"], row[1] + row[3]
    for shade, share in (("first", 1), ("itself", 1), ("before", 0), ("induction", 0)):
        yield "headShare", [[1], [5], shade], share

    head, block = {"block": 2, "head": 1}, {"block": 3, "head": None}
    yield "isOff", [[head, block], head], True
    yield "isOff", [[head, block], {"block": 2, "head": None}], False
    yield "toggled", [[head], block], [head, block]
    yield "toggled", [[head, block], head], [block]
    for at, gone in (((2, 1), True), ((2, 0), False), ((3, 0), True)):
        yield "isGone", [[head, block], *at], gone

    settings = {"chat": True, "temperature": 0, "top_k": 0, "top_p": 1, "seed": 1, "count": 100}
    nothing = {"temperature": 0, "top_k": None, "top_p": None, "min_p": None}
    yield "filtersOf", [settings], nothing
    some = {"temperature": 1, "top_k": 3, "top_p": 0.9}
    yield "filtersOf", [{**settings, **some}], {**nothing, **some}
    yield "inputOf", [settings, "why?"], {"messages": [{"role": "user", "content": "why?"}]}
    yield "inputOf", [{**settings, "chat": False}, "why?"], {"text": "why?"}
