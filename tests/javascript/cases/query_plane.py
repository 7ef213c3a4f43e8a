"""A query among keys in the plane: weights, output, the hull of values, and places for names."""

import torch

from d2lmini.figures import QueryPlane


def hull(points):
    """The corners, counter-clockwise from the leftmost: from each, the one that leaves all others to the left."""
    a, b, c = points[:, None, None], points[None, :, None], points[None, None]
    turns = (b - a)[..., 0] * (c - a)[..., 1] - (b - a)[..., 1] * (c - a)[..., 0]  # (from, to, other)
    edges = (turns >= 0).all(-1) & ~torch.eye(len(points), dtype=torch.bool)
    at = first = points[:, 0].argmin().item()
    corners = [points[first].tolist()]
    while (at := edges[at].nonzero().item()) != first:
        corners.append(points[at].tolist())
    return corners


def places(points, letter, side):
    """For each name the first corner that is inside and free; else that is inside; else the first."""
    wide, found = 1.3 * letter, []
    taken = [torch.tensor([[x - 6, x + 6], [y - 6, y + 6]]) for x, y in points]
    for x, y in points:
        corners = [(dx, dy) for dx in (14, -14 - wide) for dy in (-8, 8 + letter)]
        boxes = [torch.tensor([[x + dx, x + dx + wide], [y + dy - letter, y + dy]]) for dx, dy in corners]
        inside = [bool((box > 0).all() and (box < side).all()) for box in boxes]
        free = [
            all((torch.minimum(box, other)[:, 1] <= torch.maximum(box, other)[:, 0]).any() for other in taken)
            for box in boxes
        ]
        best = max(range(4), key=lambda i: (inside[i] and free[i], inside[i]))  # the first of the best
        found.append(dict(zip("xy", corners[best], strict=True)))
        taken.append(boxes[best])
    return found


def cases():
    generator = torch.Generator().manual_seed(0)
    for score, temperature, size in (("dot", 0.5, 3), ("distance", 1.0, 5), ("distance", 7.0, 8), ("dot", 1.0, 6)):
        drawn = 2 * torch.rand(1 + 2 * size, 2, generator=generator, dtype=torch.float64) - 1
        query, *rest = drawn.round(decimals=4).tolist()
        figure = QueryPlane(query, rest[:size], rest[size:], temperature, score)
        query, keys, values = (figure.state[key] for key in ("query", "key_points", "values"))
        state = {"query": query, "keys": keys, "score": score, "temperature": temperature}
        yield "weights", [state], figure.weights.tolist()
        yield "output", [figure.weights.tolist(), values], figure.output.tolist()
        yield "convexHull", [values], hull(torch.tensor(values, dtype=torch.float64))
    square = [[0, 0], [1, 0], [2, 0], [2, 2], [0, 2], [1, 1]]
    yield "convexHull", [square], [[0, 0], [2, 0], [2, 2], [0, 2]]

    above, below, left, right = -8, 20, -14 - 15.6, 14  # letters of 12
    for points, corners in (
        ([[170, 170]], [(right, above)]),
        ([[335, 5]], [(left, below)]),
        ([[100, 162], [135, 150]], [(right, below), (right, above)]),
        ([[100, 162], [136, 150]], [(right, above), (right, above)]),
        ([[170, 170]] * 5, [(right, above), (right, below), (left, above), (left, below), (right, above)]),
    ):
        yield "beside", [points, 12, 340], [{"x": x, "y": y} for x, y in corners]
    for letter, side in ((12, 140), (12, 200), (20, 240), (12, 20)):
        points = (side * torch.rand(20, 2, generator=generator)).round().tolist()
        yield "beside", [points, letter, side], places(points, letter, side)
