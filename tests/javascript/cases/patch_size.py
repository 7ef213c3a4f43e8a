"""What patches of several sizes cost."""

import torch

from d2lmini.figures import PatchSize

PARTS = ("embedding", "projections", "network", "attention")


def cases():
    for high, wide, h, hidden, blocks in ((12, 24, 8, 20, 3), (12, 12, 64, 128, 2)):
        sizes = {"num_hiddens": h, "mlp_num_hiddens": hidden, "num_blks": blocks}
        figure = PatchSize(torch.zeros(high, wide), (2, 3, 6, 12), **sizes)
        for size in figure.state["patch_sizes"]:
            costs = figure.costs(size)
            total = sum(costs[part] for part in PARTS)
            yield "costs", [{"high": high, "wide": wide, **sizes}, size], {**costs, "operations": total}
