"""Tokens of a picture: their names, their neighbours, shades and largest weights."""

import torch

from d2lmini.figures import PatchAttention

ROWS, COLUMNS = 2, 3


def cases():
    generator = torch.Generator().manual_seed(0)
    for extra in (0, 1):
        T, grid = ROWS * COLUMNS + extra, {"rows": ROWS, "columns": COLUMNS, "extra": extra}
        weights = torch.softmax(3 * torch.randn(1, T, T, generator=generator), -1)
        figure = PatchAttention({"one": (torch.rand(4, 6), {"block 1": weights})}, (ROWS, COLUMNS))
        for t, name in enumerate(figure.token_names()):
            yield "called", [grid, t], name
        tokens = (extra + torch.arange(ROWS * COLUMNS)).view(ROWS, COLUMNS)
        padded = torch.nn.functional.pad(tokens, (1, 1, 1, 1), value=-1)
        if extra:
            padded[0, 1:-1] = 0
            for step, beside in (([1, 0], 1), ([-1, 0], -1), ([0, 1], -1)):
                yield "neighbour", [grid, 0, *step], beside
        for row in range(ROWS):
            for column in range(COLUMNS):
                for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                    beside = padded[1 + row + down, 1 + column + right].item()
                    yield "neighbour", [grid, tokens[row, column].item(), down, right], beside
        for row in figure.weights("one", "block 1")[0][:3]:
            yield "shades", [row.tolist()], (0.75 * row / row.max()).tolist()
            top = row.topk(3)
            want = [[w, s] for w, s in zip(top.values.tolist(), top.indices.tolist(), strict=True) if w >= 0.005]
            yield "strongest", [row.tolist()], want
    yield "shades", [[0.0, 0.0]], [0.0, 0.0]
    yield "strongest", [[0.004, 0.99, 0.005]], [[0.99, 1], [0.005, 2]]
