"""Pixels of a brush and of its strokes."""

import torch


def cases():
    for i, size, (rows, width) in (
        (23, 1, (4, 7)),
        (9, 2, (4, 7)),
        (16, 3, (4, 7)),
        (0, 4, (4, 7)),
        (27, 4, (4, 7)),
        (35, 4, (4, 7)),
        (13, 2, (2, 7)),
    ):
        place = torch.arange(6 * width).view(6, width)
        y, x, back = i // width, i % width, (size - 1) // 2
        off = place.div(width, rounding_mode="floor") - y, place % width - x
        near = [(-back <= far) & (far < size - back) for far in off]
        yield "square", [i, size, [rows, width]], place[:rows][(near[0] & near[1])[:rows]].tolist()
    for start, end, width in ((0, 0, 5), (3, 18, 5), (24, 2, 5), (10, 14, 5), (1, 33, 8), (31, 1, 8)):
        (y0, x0), (y1, x1) = divmod(start, width), divmod(end, width)
        steps = max(abs(y1 - y0), abs(x1 - x0), 1)
        y, x = (torch.linspace(a, b, steps + 1).double().add(0.5).floor().long() for a, b in ((y0, y1), (x0, x1)))
        yield "line", [start, end, width], (y * width + x).tolist()
