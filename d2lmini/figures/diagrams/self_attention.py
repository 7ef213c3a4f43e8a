"""Diagram of chapter 01: self-attention among a few tokens, each in three roles.

Source: UDL figures 12.1 and 12.3 have the same subject.
"""

import torch

from .drawing import Diagram

LARGEST = 25  # pixels: radius of a weight of 1
BAR = 74, 22  # pixels: an output
_COLOURS = ("var(--blue)", 0.45), ("var(--orange)", 0.45), ("currentColor", 0.22)  # one for each token: colour, opacity


class _Mix(Diagram):
    """A diagram with discs whose area is a weight, and bars that are cut into shares."""

    narrows = False

    def disc(self, name, at, weight, colour, opacity):
        """A disc of the area ``weight`` with the number under it."""
        place = self._put(name, at, 2 * LARGEST, 2 * LARGEST)
        self._shapes_drawn.append(
            f'<circle cx="{place.x:g}" cy="{place.y:g}" r="{LARGEST * weight**0.5:.2f}" fill="{colour}" '
            f'fill-opacity="{opacity}" stroke="{colour}"/>'
        )
        return self._write(f"{weight:.2f}", place.x, place.y + 36, kind="shape")

    def tile(self, name, at, text, width, colour, opacity):
        """A box of ``width`` pixels in the colour of a token."""
        place = self._put(name, at, width, 26)
        self._shapes_drawn.append(_area(place.x - width / 2, place.y - 13, width, 26, colour, opacity, "6"))
        return self._write(text, place.x, place.y + 4.5)

    def bar(self, name, at, shares):
        """A bar cut by ``shares`` of (size, colour, opacity), from the left."""
        place, (width, height) = self._put(name, at, *BAR), BAR
        left = place.x - width / 2
        for share, colour, opacity in shares:
            self._shapes_drawn.append(_area(left, place.y - height / 2, share * width, height, colour, opacity, "0"))
            left += share * width
        return self


def self_attention(
    tokens=("lights", "she", "their"),
    queries=((0.6, 0.3), (0.2, 0.8), (0.9, 0.0)),
    keys=((2.0, 0.0), (0.0, 2.0), (-0.5, -0.5)),
):
    """Three tokens in three roles: each asks as a query, is found by its key, hands over its value.

    Args:
        tokens: three words of at most six letters, one for each token.
        queries: (3, D), one for each token.
        keys: (3, D), likewise. The weights that are drawn are the softmax of the dot products.

    Returns:
        A `Diagram`.

    Raises:
        ValueError: there are not three tokens, queries and keys, or a word is too long.
    """
    if not len(tokens) == len(queries) == len(keys) == 3 or max(map(len, tokens)) > 6:
        raise ValueError(f"expected three words of at most six letters, queries and keys, got {', '.join(tokens)}")
    weights = torch.softmax(torch.tensor(queries) @ torch.tensor(keys).T, dim=-1).tolist()
    rows = "; ".join(
        f"{token}: " + ", ".join(f"{weight:.2f} of {other}" for weight, other in zip(row, tokens, strict=True))
        for token, row in zip(tokens, weights, strict=True)
    )
    diagram = _Mix(
        "Self-attention: three tokens, each in three roles",
        f"A table of three rows and three columns. The tokens {', '.join(tokens)} are at the left, each with its "
        "query, and again above the columns, each with its key and its value. In each cell a disc shows the attention "
        "weight that the query of the row gives to the key of the column. At the right of each row a bar shows the "
        f"output: the three values, mixed in these shares. {rows}.",
        "A row asks, a column answers. The area of a disc is the attention weight, and each row sums to 1. The bar "
        "shows in which shares the output of the row mixes the three values.",
    )
    across, down = (0.85, 1.4, 1.95), (-1.35, -2.75, -4.15)
    diagram.text("queries", (0, 0.12)).text("keys and values", (1.4, 0.72)).text("outputs", (2.78, 0.12))
    for number, (token, x, (colour, opacity)) in enumerate(zip(tokens, across, _COLOURS, strict=True), start=1):
        diagram.tile(f"key {number}", (x, 0.12), token, 50, colour, opacity)
        diagram.text(f"k{number} v{number}", (x, -0.45), f"k_{number} v_{number}")
    for number, (token, y, row, (colour, opacity)) in enumerate(
        zip(tokens, down, weights, _COLOURS, strict=True), start=1
    ):
        diagram.tile(f"query {number}", (0, y), f"{token} q_{number}", 72, colour, opacity / 2)
        for other, (x, weight) in enumerate(zip(across, row, strict=True), start=1):
            diagram.disc(f"weight {number} {other}", (x, y), weight, *_COLOURS[other - 1])
        diagram.bar(f"output {number}", (2.78, y), [(w, *look) for w, look in zip(row, _COLOURS, strict=True)])
        diagram.text(f"y{number}", (2.78, y - 0.5), f"y_{number}")
        diagram.arrow(f"query {number}", f"weight {number} 1", leave="right", enter="left")
        diagram.arrow(f"weight {number} 3", f"output {number}", leave="right", enter="left")
    return diagram


def _area(x, y, width, height, colour, opacity, round_):
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:g}" rx="{round_}" fill="{colour}" '
        f'fill-opacity="{opacity}" stroke="{colour}"/>'
    )
