"""Sparse patterns joined from parts, the layers until pairs have met, and pairs in longer sequences."""

import torch

from d2lmini.efficient.patterns import layers_per_pair, layers_to_reach
from d2lmini.figures import PatternDesigner
from d2lmini.figures.packing import unpack
from d2lmini.figures.pattern_designer import OFF

# a part alone, in twos and all together
MIXED = (
    {},
    {"window": 3, "dilation": 4},
    {"block_size": 5, "num_global": 3},
    {"window": None, "dilation": 3, "block_size": 4, "num_global": 6},
    {"window": 2, "every": 5, "num_random": 1},
    {"window": 4, "dilation": 2, "block_size": 7, "num_global": 2, "every": 8, "num_random": 6},
)


def cases():
    T = 8
    designer = PatternDesigner(T, seeds=(3, 9))
    given = {"num_tokens": T, "draws": 2, "orders": unpack(designer.state["orders"]).tolist()}
    for i, (mixed, causal) in enumerate((parts, causal) for parts in MIXED for causal in (False, True)):
        parts, n = {**OFF, **mixed, "causal": causal}, i % 4 + 1
        parts["window"] = T if parts["window"] is None else parts["window"]
        mask = designer.mask(**parts, draw=i % 2)
        keys, layers = [row.nonzero().flatten().tolist() for row in mask], layers_per_pair(mask)
        met = (layers >= 0) & (layers <= n)
        wanted = torch.ones(T, T, dtype=torch.bool)
        wanted = wanted.tril() if causal else wanted
        yield "pattern", [given, {**parts, "draw": i % 2}], keys
        yield "layersPerPair", [keys], layers.tolist()
        yield "metAfter", [layers.tolist(), n], met.tolist()
        reached = {
            "wanted": int(wanted.sum()),
            "arrived": int(met[wanted].sum()),
            "most": layers_to_reach(mask, wanted),
        }
        yield "reach", [layers.tolist(), n, causal], reached
        for length in (13, 1000):
            yield "pairs", [T, parts, length], designer.pairs(length, **parts)
