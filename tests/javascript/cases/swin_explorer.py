"""Attention in windows: who may attend, what has reached a patch, and what it costs."""

import torch

from d2lmini.figures import SwinExplorer


def cases():
    for height, width, M, layer in ((4, 4, 2, 5), (6, 6, 3, 3), (4, 6, 2, 4), (6, 3, 3, 2), (3, 6, 3, 2), (4, 4, 4, 2)):
        figure = SwinExplorer({"night": torch.zeros(height, width)}, 1, (M,), num_hiddens=10)
        for shifted in (False, True):
            windows = {"rows": height, "columns": width, "window_size": M, "shifted": shifted}
            for t in (0, height * width // 2):
                heard = [figure.mask(M, i, shifted) for i in range(layer, 0, -1)]
                yield "mayAttend", [windows, layer, t], heard[0][t].nonzero().flatten().tolist()
                taken, row = torch.zeros(height * width, dtype=torch.long), torch.eye(height * width)[t]
                for n, may in enumerate(heard, start=1):
                    row = (row @ may.float() > 0).float()
                    taken[(taken == 0) & (row > 0)] = n
                assert torch.equal(taken > 0, figure.reached(M, layer, shifted)[t])
                yield "layersTaken", [windows, layer, t], taken.tolist()
            for n in (1, 2):
                want = M // 2 if shifted and n == 2 and min(height, width) > M else 0
                yield "shift", [windows, n], want
        yield "costs", [windows, 10], figure.costs(M)
