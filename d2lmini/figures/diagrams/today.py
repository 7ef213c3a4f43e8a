"""Diagram of chapter 19: the block of 2017 and today's, side by side.

Source: Vaswani et al. 2017, section 3; Touvron et al. 2023 for today's, without grouped queries, which are Ainslie et
al. 2023's.
"""

from .drawing import Diagram

_THEN = [
    ("attention", "attention, H key heads", "blue"),
    ("plus1", None, None),
    ("norm1", "layer norm", None),
    ("ffn", "network with ReLU", "orange"),
    ("plus2", None, None),
    ("norm2", "layer norm", None),
]
_NOW = [
    ("addnorm1", "RMS norm", None),
    ("attention", "attention, G key heads", "blue"),
    ("addnorm1+", None, None),
    ("addnorm2", "RMS norm", None),
    ("ffn", "SwiGLU network", "orange"),
    ("addnorm2+", None, None),
]


def todays_block():
    """The block of 2017 beside today's: what changed places, and what was exchanged.

    Returns:
        A `Diagram` of a `d2lmini.TransformerEncoderBlock` of today's form, drawn on the right.
    """
    diagram = Diagram(
        "A block of 2017 and one of today",
        "Left, from the bottom up: positions are added to the tokens before the first block; attention, in which each "
        "of H heads has keys of its own; a sum with what went in; a layer norm; a network with a ReLU; a sum; a layer "
        "norm. Right: an RMS norm; attention, in which H query heads share G key heads, and whose queries and keys are "
        "turned by their positions; a sum with what went in; an RMS norm; a SwiGLU network; a sum. Nothing is normed "
        "on the way that leads around the branches.",
        "Four parts were exchanged: norms, network, positions, heads of keys. The norms also moved into the branches.",
    )
    for x, name, parts, around in ((-1.75, "2017", _THEN, -1.2), (1.75, "today", _NOW, 1.2)):
        prefix = "2017 " if name == "2017" else ""
        diagram.text(f"{name} title", (x, -0.9), name).text(f"{prefix}X", (x, 0), "X")
        row, last, bottom = 0.0, f"{prefix}X", f"{prefix}X"
        if prefix:
            row, last = 1.1, "2017 positions"
            diagram.box(last, (x, row), "+ positions", width=2.0).arrow("2017 X", last)
            bottom = last
        for part, text, accent in parts:
            row += 0.85 if text is None else 1.5 if last == bottom else 1.0
            place = prefix + part
            if text is None:
                diagram.plus(place, (x, row)).arrow(last, place).arrow(bottom, place, around=around)
            else:
                diagram.box(place, (x, row), text, width=2.0, accent=accent)
                shape = "(B, T, h)" if last == bottom == "X" else ""
                diagram.arrow(last, place, shape, of="input 0" if shape else None, side="left", at=0.4)
            last = place
            if part in ("norm1", "addnorm1+"):
                bottom = place
        diagram.text(f"{prefix}output", (x, row + 1.1), "output").arrow(last, f"{prefix}output")
    row = -diagram.places["attention"].y / 50
    diagram.box("rotary", (-0.05, row), "rotation", width=1.0, accent="blue")
    return diagram.arrow("rotary", "attention", leave="right", enter="left")
