"""Drawing diagrams: boxes on a grid, arrows with shapes on them, and the shapes that a real forward pass has.

A diagram is text that a person can edit. It shows itself as inline SVG in ``currentColor`` and two accents, so that it
follows the theme of the book, of JupyterLab and of Colab; its title and description say the same in words.
"""

import html
import itertools
import re
from copy import deepcopy
from dataclasses import dataclass

import torch

from ..base import asset

COLUMN, ROW = 100, 50  # of the grid, in pixels
HEIGHT = 32  # of a box
MARGIN = 16
_ids = itertools.count()  # two diagrams of one page must not share the ids of their arrow heads
_STYLE = """
.d2lmini-diagram { margin: 0.5rem 0 1rem; overflow-x: auto; }
.d2lmini-diagram svg { display: block; height: auto; background: none; max-width: 100%; }
.d2lmini-diagram svg { min-width: calc(0.92 * var(--width)); }
@media (min-width: 768px) { .d2lmini-diagram svg { min-width: calc(0.8 * var(--width)); } }
.d2lmini-diagram text { font: 13px system-ui, sans-serif; fill: currentColor; }
.d2lmini-diagram a text { text-decoration: underline; }
.d2lmini-diagram text.shape { font: 12px ui-monospace, monospace; }
.d2lmini-diagram figcaption { font-size: 0.9rem; font-weight: normal; margin-top: 0.3rem; }
"""


@dataclass
class _Place:
    """A thing on the drawing: its centre and its size, in pixels, y downwards."""

    x: float
    y: float
    width: float
    height: float

    def edge(self, side):
        """The middle of an edge: "top", "bottom", "left", "right"."""
        dx, dy = {"top": (0, -0.5), "bottom": (0, 0.5), "left": (-0.5, 0), "right": (0.5, 0)}[side]
        return self.x + dx * self.width, self.y + dy * self.height


@dataclass
class _Arrow:
    start: str
    end: str
    shape: str
    of: str | None
    leave: str
    enter: str
    around: float
    side: str
    at: float


class Diagram:
    """Boxes on a grid and arrows between them, drawn in the order in which they are named.

    Every method that adds something returns the diagram, so that calls can be chained. Places are (column, row), rows
    going up, as data flow in most figures of this field. ``W_q`` in a text is W with a subscript.

    Args:
        title: in a few words.
        description: what is to be seen, in whole sentences, for those who cannot see it.
        caption: a sentence under the drawing; None: none.
    """

    def __init__(self, title, description, caption=None):
        self.title, self.description, self.caption = title, description, caption
        self.places, self._shapes_drawn, self.arrows, self.frames = {}, [], [], []

    def box(self, name, at, text=None, *, width=1.6, accent=None, link=None):
        """A box called ``name`` that says ``text`` (else its name), ``width`` in columns; accent "blue" or "orange".

        ``link``: an address to which the words lead; None: none.
        """
        place = self._put(name, at, width * COLUMN - 12, HEIGHT)
        colour = f"var(--{accent})" if accent else "currentColor"
        self._shapes_drawn.append(
            f'<rect x="{place.x - place.width / 2:g}" y="{place.y - HEIGHT / 2:g}" width="{place.width:g}" '
            f'height="{HEIGHT}" rx="6" fill="{colour}" fill-opacity="{0.16 if accent else 0.05}" stroke="{colour}"/>'
        )
        self._write(text or name, place.x, place.y + 4.5)
        if link:
            self._shapes_drawn[-1] = f'<a href="{html.escape(link)}">{self._shapes_drawn[-1]}</a>'
        return self

    def text(self, name, at, text=None):
        """Words without a box: what comes in and what goes out."""
        words = text or name
        place = self._put(name, at, 8 * len(words), 20)
        return self._write(words, place.x, place.y + 4.5)

    def plus(self, name, at, sign="+"):
        """A sum, as of a residual connection; or another sign in a circle."""
        place = self._put(name, at, 20, 20)
        self._shapes_drawn.append(
            f'<circle cx="{place.x:g}" cy="{place.y:g}" r="10" fill="none" stroke="currentColor"/>'
        )
        return self._write(sign, place.x, place.y + 4.5)

    def arrow(self, start, end, shape="", *, of=None, leave="top", enter="bottom", around=0.0, side="right", at=0.5):
        """An arrow from one thing to another.

        Args:
            start, end: names.
            shape: written beside it, by the letters of the legend: "(B, T, h)".
            of: name of the submodule whose output this is (`on`); "input 0" is the first argument of the module.
            leave, enter: the edges: "top", "bottom", "left", "right".
            around: not 0: a way around, that leaves the arrow from ``start`` upwards just before its end and passes so
                many columns to the right (negative: to the left), as a residual connection does.
            side: of an upright arrow, on which the shape stands.
            at: where along it, from 0 to 1.

        Raises:
            ValueError: nothing is called so.
        """
        for name in (start, end):
            if name not in self.places:
                raise ValueError(f"nothing in this diagram is called {name!r}, only {', '.join(self.places)}")
        self.arrows.append(_Arrow(start, end, shape, of, leave, enter, around, side, at))
        return self

    def frame(self, text, names, *, pad=(26, 18)):
        """A dashed frame around things, as for what is repeated; ``pad``: pixels to the sides, and above and below."""
        inside = [self.places[name] for name in names]
        left, right = min(p.edge("left")[0] for p in inside) - pad[0], max(p.edge("right")[0] for p in inside) + pad[0]
        top, bottom = min(p.edge("top")[1] for p in inside) - pad[1], max(p.edge("bottom")[1] for p in inside) + pad[1]
        self.frames.append((text, left, top, right, bottom))
        return self

    def on(self, module, *inputs, **options):
        """This diagram with the sizes of a real call in place of the letters.

        Args:
            module: the module that the diagram draws.
            inputs, options: what it is called with.

        Returns:
            A `Diagram`; this one stays as it is.

        Raises:
            ValueError: a shape of the call does not fit its letters: another number of dimensions, or one letter with
                two sizes; or the module has no such part.
        """
        shapes = shapes_of(module, *inputs, **options)
        drawn, sizes = deepcopy(self), {}
        for arrow in drawn.arrows:
            if arrow.of is None:
                continue
            if arrow.of not in shapes:
                raise ValueError(f"{type(module).__name__} has no part {arrow.of!r} that gave a tensor")
            letters, shape = re.findall(r"[^(), ]+", arrow.shape), shapes[arrow.of]
            if len(letters) != len(shape):
                raise ValueError(f"{arrow.of} gives {shape}, which is not {arrow.shape}")
            for letter, size in zip(letters, shape, strict=True):
                if sizes.setdefault(letter, size) != size:
                    raise ValueError(f"{letter} is {sizes[letter]} elsewhere, but {size} in {arrow.of}: {shape}")
            arrow.shape = f"({', '.join(map(str, shape))})"
        for arrow in drawn.arrows:  # arrows that carry what another one was measured to be
            if arrow.of is None and arrow.shape:
                arrow.shape = re.sub(r"[^(), ]+", lambda m: str(sizes.get(m[0], m[0])), arrow.shape)
        return drawn

    def _put(self, name, at, width, height):
        if name in self.places:
            raise ValueError(f"there is already a {name!r} in this diagram")
        self.places[name] = _Place(at[0] * COLUMN, -at[1] * ROW, width, height)
        return self.places[name]

    def _write(self, text, x, y, *, kind="", anchor="middle"):
        parts = re.split(r"_(\w)", text)  # every second is a subscript
        inner = "".join(
            f'<tspan dy="3" font-size="10">{html.escape(p)}</tspan><tspan dy="-3">&#8203;</tspan>'
            if i % 2
            else html.escape(p)
            for i, p in enumerate(parts)
        )
        self._shapes_drawn.append(f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{inner}</text>')
        return self

    def _path(self, arrow):
        """The corners of an arrow, and where its shape is written: x, y and whether that is above a level line."""
        start, end = self.places[arrow.start], self.places[arrow.end]
        x0, y0 = start.edge(arrow.leave)
        if arrow.around:
            through = next(self.places[a.end] for a in self.arrows if a.start == arrow.start and not a.around)
            out, low = start.x + arrow.around * COLUMN, through.edge("bottom")[1] + 14
            x1, y1 = end.edge("right" if arrow.around > 0 else "left")
            return [(start.x, low), (out, low), (out, y1), (x1, y1)], (out, (low + y1) / 2, False)
        x1, y1 = end.edge(arrow.enter)
        upright = arrow.leave in ("top", "bottom"), arrow.enter in ("top", "bottom")
        if upright == (True, True):
            if x0 == x1:
                return [(x0, y0), (x1, y1)], (x1, y0 + arrow.at * (y1 - y0), False)
            middle = (y0 + y1) / 2
            return [(x0, y0), (x0, middle), (x1, middle), (x1, y1)], (x1, (middle + y1) / 2, False)
        if upright == (True, False):
            return [(x0, y0), (x0, y1), (x1, y1)], (x0 + arrow.at * (x1 - x0), y1, True)
        if upright == (False, True):
            return [(x0, y0), (x1, y0), (x1, y1)], (x1, y0 + arrow.at * (y1 - y0), False)
        middle = (x0 + x1) / 2
        corners = [(x0, y0), (x1, y1)] if y0 == y1 else [(x0, y0), (middle, y0), (middle, y1), (x1, y1)]
        return corners, (x0 + arrow.at * (x1 - x0), min(y0, y1), True)

    def _svg(self):
        drawing, tip = deepcopy(self), f"d2lmini-tip-{next(_ids)}"
        xs = [x for p in self.places.values() for x in (p.edge("left")[0], p.edge("right")[0])]
        ys = [y for p in self.places.values() for y in (p.edge("top")[1], p.edge("bottom")[1])]
        for arrow in self.arrows:
            corners, (x, y, level) = self._path(arrow)
            points = " ".join(f"{a:g},{b:g}" for a, b in corners)
            drawing._shapes_drawn.append(
                f'<polyline points="{points}" fill="none" stroke="currentColor" marker-end="url(#{tip})"/>'
            )
            xs += [a for a, _ in corners]
            if arrow.shape:
                wide, right = 7.3 * len(arrow.shape), arrow.side == "right"
                if level:
                    drawing._write(arrow.shape, x, y - 7, kind="shape")
                    xs += [x - wide / 2, x + wide / 2]
                    ys.append(y - 18)
                else:
                    sign, anchor = (1, "start") if right else (-1, "end")
                    drawing._write(arrow.shape, x + 7 * sign, y + 4, kind="shape", anchor=anchor)
                    xs.append(x + (7 + wide) * sign)
        for text, left, top, right, bottom in self.frames:
            drawing._shapes_drawn.insert(
                0,
                f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}" rx="10" '
                'fill="none" stroke="currentColor" stroke-dasharray="4 4" stroke-opacity="0.6"/>',
            )
            drawing._write(text, left + 8, top + 16, kind="shape", anchor="start")
            xs += [left, right]
            ys += [top, bottom]
        left, top = min(xs) - MARGIN, min(ys) - MARGIN
        width, height = max(xs) - left + MARGIN, max(ys) - top + MARGIN
        links = any(shape.startswith("<a ") for shape in drawing._shapes_drawn)
        role = "group" if links else "img"  # an img hides links
        return (
            # text of 13 and 12 pixels does not shrink below 11 on a phone, below 9.6 elsewhere: what is wider scrolls
            f'<svg role="{role}" viewBox="{left:g} {top:g} {width:g} {height:g}" width="{width:g}" '
            f'style="--width:{width:g}px" stroke-width="1.2" xmlns="http://www.w3.org/2000/svg">'
            f"<title>{html.escape(self.title)}</title><desc>{html.escape(self.description)}</desc>"
            f'<defs><marker id="{tip}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path d="M0 0.5L8 4L0 7.5z" fill="currentColor"/></marker></defs>'
            + "".join(drawing._shapes_drawn)
            + "</svg>"
        )

    def _repr_html_(self):
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return (
            f'<style>{asset("theme.css")}{_STYLE}</style><figure class="d2lmini-diagram" role="group" tabindex="0" '
            f'aria-label="{html.escape(self.title)}">{self._svg()}{caption}</figure>'
        )

    def __repr__(self):
        return f"Diagram of {self.title}: {self.description}"


@torch.no_grad()
def shapes_of(module, *inputs, **options):
    """The shapes that a real call has.

    Args:
        module: any module.
        inputs, options: what it is called with.

    Returns:
        dict from the name of each part, as ``named_modules`` has it ("" the module itself), to the shape of its output,
        of its first tensor where it gives several; and from "input 0", "input 1", ... to those of the arguments.
    """
    shapes = {f"input {i}": tuple(x.shape) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}

    def note(name):
        def hook(part, given, output):
            first = output[0] if isinstance(output, tuple) else output
            if isinstance(first, torch.Tensor):
                shapes[name] = tuple(first.shape)

        return hook

    hooks = [part.register_forward_hook(note(name)) for name, part in module.named_modules()]
    try:
        module(*inputs, **options)
    finally:
        for hook in hooks:
            hook.remove()
    return shapes
