"""Diagrams of chapter 06: three layers that mix a sequence, and a pair of features turned by its position.

Source: D2L section 11.6.2 and its figure 11.6.1; Su et al. 2024 for the turn.
"""

import math
from itertools import pairwise

import torch

from ...rotation import rotary
from .drawing import COLUMN, ROW, Diagram

_GAP, _STEP = 0.5, 1.3  # between tokens, in columns; between layers, in rows


class _Sketch(Diagram):
    """A diagram with straight lines in any direction, and circles."""

    narrows = False

    def line(self, start, end, colour="currentColor", *, width=1.2, opacity=1.0, tip=0.0):
        """A line between two points of the grid; with ``tip`` pixels of a head at its end."""
        (x0, y0), (x1, y1) = ((column * COLUMN, -row * ROW) for column, row in (start, end))
        points = [(x0, y0), (x1, y1)]
        if tip:
            angle = math.atan2(y1 - y0, x1 - x0)
            sides = [(x1 - tip * math.cos(angle + turn), y1 - tip * math.sin(angle + turn)) for turn in (0.4, -0.4)]
            points += [sides[0], (x1, y1), sides[1]]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._shapes_drawn.append(
            f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-opacity="{opacity}"/>'
        )
        return self

    def circle(self, name, at, radius):
        """An empty circle of ``radius`` pixels."""
        place = self._put(name, at, 2 * radius, 2 * radius)
        self._shapes_drawn.append(
            f'<circle cx="{place.x:g}" cy="{place.y:g}" r="{radius:g}" fill="none" stroke="currentColor" '
            'stroke-opacity="0.35"/>'
        )
        return self

    def arc(self, centre, radius, start, end, colour):
        """Part of a circle of ``radius`` pixels, from one angle to another, counter-clockwise from the right."""
        x, y = centre[0] * COLUMN, -centre[1] * ROW
        angles = [start + (end - start) * i / 24 for i in range(25)]
        corners = " ".join(f"{x + radius * math.cos(a):.1f},{y - radius * math.sin(a):.1f}" for a in angles)
        self._shapes_drawn.append(
            f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-opacity="0.8"/>'
        )
        return self


def ways(num_tokens=5, width=3):
    """Which vectors a convolution, a recurrent network and self-attention read, and the way from first to last.

    Args:
        num_tokens: two or more.
        width: of the convolution, odd.

    Returns:
        dict from the name of each layer to (edges, way): pairs of nodes (row, token), and those on a shortest way from
        the first input to the last output, in order.
    """
    tokens, half = range(num_tokens), width // 2
    layers = math.ceil((num_tokens - 1) / half)
    convolution = [
        ((row, i), (row + 1, j)) for row in range(layers) for j in tokens for i in tokens if abs(i - j) <= half
    ]
    places = [min(row * half, num_tokens - 1) for row in range(layers + 1)]
    path = [((row, places[row]), (row + 1, places[row + 1])) for row in range(layers)]
    chain = [((1, i), (1, i + 1)) for i in tokens[:-1]]
    recurrent = [((0, i), (1, i)) for i in tokens] + chain
    attention = [((0, i), (1, j)) for j in tokens for i in tokens]
    return {
        "convolution": (convolution, path),
        "recurrent": (recurrent, [((0, 0), (1, 0)), *chain]),
        "self-attention": (attention, [((0, 0), (1, num_tokens - 1))]),
    }


def mixing_layers(num_tokens=5, width=3):
    """Self-attention beside a convolution and a recurrent network: who reads whom, and what it costs.

    Args:
        num_tokens: two or more.
        width: of the convolution, odd.

    Returns:
        A `Diagram`.

    Raises:
        ValueError: there are fewer than two tokens, or the width is not odd and at least three.
    """
    if num_tokens < 2 or width < 3 or width % 2 == 0:
        raise ValueError(
            f"num_tokens is {num_tokens}, width {width}: expected two or more, and an odd number from 3 on"
        )
    layers = ways(num_tokens, width)
    steps = {name: len(path) for name, (_, path) in layers.items()}
    costs = {
        "convolution": ("work w N D\u00b2", "in a row: constant", "path: 2 (N - 1) / (w - 1)"),
        "recurrent": ("work N D\u00b2", "in a row: N", "path: N"),
        "self-attention": ("work N D\u00b2 and N\u00b2 D", "in a row: constant", "path: 1"),
    }
    diagram = _Sketch(
        "Three ways to mix a sequence",
        f"Three panels with the same {num_tokens} tokens below. Left, a convolution of width {width}: each vector "
        "reads its neighbours in the layer below, and the first token reaches the last after "
        f"{steps['convolution']} layers. Middle, a recurrent network: each state reads its own token and the state "
        f"before it, and the first token reaches the last after {steps['recurrent']} steps, which have to wait for "
        "each other. Right, self-attention: each output reads every token, and the first token reaches the last in "
        "one step.",
        "Orange: a shortest path from the first token to the last. N tokens, D features, width w; in a row: steps "
        "of one layer that wait for each other. The work leaves constant factors out.",
    )
    top = max(row for edges, _ in layers.values() for _, (row, _) in edges)
    for panel, (name, (edges, path)) in enumerate(layers.items()):
        left = panel * max(2.5, _GAP * num_tokens + 0.3)
        at = lambda node, left=left: (left + _GAP * node[1], _STEP * node[0])  # noqa: E731
        for edge in edges:
            on_way = edge in path
            start, end = (_inset(at(a), at(b)) for a, b in (edge, edge[::-1]))
            diagram.line(start, end, "var(--orange)" if on_way else "currentColor",
                         width=2.6 if on_way else 1, opacity=1 if on_way else 0.35, tip=6)  # fmt: skip
        for row, token in sorted({node for edge in edges for node in edge}):
            diagram.plus(f"{name} {row} {token}", at((row, token)), str(token + 1) if row == 0 else "")
        middle = left + _GAP * (num_tokens - 1) / 2
        diagram.text(name, (middle, _STEP * top + 0.8))
        for line, text in enumerate(costs[name]):
            diagram.text(f"{name}: {text}", (middle, -0.9 - 0.5 * line), text)
    return diagram


def _inset(start, end, pixels=11):
    """The point on the edge of the circle around ``start`` that looks to ``end``."""
    dx, dy = (end[0] - start[0]) * COLUMN, (end[1] - start[1]) * ROW
    length = math.hypot(dx, dy)
    return start[0] + dx / length * pixels / COLUMN, start[1] + dy / length * pixels / ROW


def turned_pairs(query=(1.0, 0.2), key=(0.9, 0.6), query_at=1, key_at=2, later=2):
    """A query's and a key's pair of features, turned by their positions with `d2lmini.rotary`.

    Args:
        query, key: the pairs before the turn, not both zero; drawn with length one.
        query_at, key_at: their positions.
        later: by how many positions both are moved on in the last panel.

    Returns:
        A `Diagram` of three panels: the query alone at its first positions, then query and key, then both moved on.
    """
    query, key = (torch.nn.functional.normalize(torch.tensor([pair]), dim=-1) for pair in (query, key))  # (1, 2)
    diagram = _Sketch(
        "A pair of features, turned by its position",
        "Three circles. Left, the pair of a query as an arrow at positions 0, 1, 2 and 3: each position turns it by "
        f"the same angle. Middle, the query at position {query_at} and the key at position {key_at}, each turned by "
        f"its own position, with the angle between them. Right, both moved on by {later} positions: both arrows have "
        "turned by the same angle, and the angle between them is as before.",
        "The product of two arrows depends on their lengths and on the angle between them; moving both on changes "
        "neither. Here a position turns by one radian.",
    )
    radius = 88
    panels = {
        "the query at positions 0 to 3": [(query, p, "var(--blue)", str(p)) for p in range(4)],
        f"query at {query_at}, key at {key_at}": [
            (query, query_at, "var(--blue)", "q"),
            (key, key_at, "var(--orange)", "k"),
        ],
        f"query at {query_at + later}, key at {key_at + later}": [
            (query, query_at + later, "var(--blue)", "q"),
            (key, key_at + later, "var(--orange)", "k"),
        ],
    }
    for panel, (name, arrows) in enumerate(panels.items()):
        x = 2.7 * panel
        diagram.circle(f"circle {panel}", (x, 0), radius).text(name, (x, -2.7))
        ends = []
        for pair, position, colour, label in arrows:
            a, b = rotary(pair[None], offset=position)[0, 0].tolist()  # (2,)
            ends.append(math.atan2(b, a))
            diagram.line((x, 0), (x + a * radius / COLUMN, b * radius / ROW), colour, width=2, tip=9)
            diagram.text(f"{panel} {label}", (x + 1.17 * a * radius / COLUMN, 1.17 * b * radius / ROW), label)
        for start, end in pairwise(ends):
            end = start + (end - start) % (2 * math.pi)
            diagram.arc((x, 0), 30, start, end, "currentColor")
    return diagram
