"""Drawing diagrams: boxes on a grid, and arrows with shapes on them.

A diagram is text that a person can edit. It shows itself as inline SVG in ``currentColor`` and two accents, so that it
follows the theme of the book, of JupyterLab and of Colab; its title and description say the same in words.
"""

import functools
import html
import itertools
import re
from copy import deepcopy
from dataclasses import dataclass

from . import layout
from .layout import HEIGHT, ROW
from .shapes import shapes_of

COLUMN = 100  # of the grid, in pixels
MARGIN = 4
_ids = itertools.count()  # two diagrams of one page must not share the ids of their arrow heads


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
class Picture:
    """A diagram as it is drawn: its SVG, how many pixels that is wide, and where words beside arrows are.

    ``labels``: list of (left, top, right, bottom).
    """

    svg: str
    width: float
    labels: list


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


def _recorded(method):
    """A method whose calls are kept, so that `layout` can repeat them for a narrower page."""

    @functools.wraps(method)
    def recorded(self, *args, **options):
        self.calls.append((method.__name__, args, options))
        return method(self, *args, **options)

    return recorded


class Diagram:
    """Boxes on a grid and arrows between them, drawn in the order in which they are named.

    Every method that adds something returns the diagram, so that calls can be chained. Places are (column, row), rows
    going up, as data flow in most figures of this field. ``W_q`` in a text is W with a subscript.

    Args:
        title: in a few words.
        description: what is to be seen, in whole sentences, for those who cannot see it.
        caption: a sentence under the drawing; None: none.
    """

    narrows = True  # whether all of it is drawn by the methods below
    column, row, folds = COLUMN, ROW, False  # pixels; whether words may go on in a second line

    def __init__(self, title, description, caption=None):
        self.title, self.description, self.caption = title, description, caption
        self.calls, self.places, self._shapes_drawn, self.arrows, self.frames = [], {}, [], [], []

    @_recorded
    def box(self, name, at, text=None, *, width=1.6, accent=None, link=None):
        """A box called ``name`` that says ``text`` (else its name), ``width`` in columns; accent "blue" or "orange".

        ``link``: an address to which the words lead; None: none.
        """
        lines = self._lines(text or name, width * self.column - 26)
        widest = max(map(len, lines)) * layout.LETTER + 12 if self.folds else 0
        place = self._put(name, at, max(width * self.column - 12, widest), HEIGHT + layout.LINE * (len(lines) - 1))
        colour = f"var(--{accent})" if accent else "currentColor"
        self._shapes_drawn.append(
            f'<rect x="{place.x - place.width / 2:g}" y="{place.y - place.height / 2:g}" width="{place.width:g}" '
            f'height="{place.height}" rx="6" fill="{colour}" fill-opacity="{0.16 if accent else 0.05}" '
            f'stroke="{colour}"/>'
        )
        self._write_lines(lines, place)
        if link:
            words = "".join(self._shapes_drawn[-len(lines) :])
            self._shapes_drawn[-len(lines) :] = [f'<a href="{html.escape(link)}">{words}</a>']
        return self

    @_recorded
    def text(self, name, at, text=None):
        """Words without a box: what comes in and what goes out."""
        lines = self._lines(text or name, max(1.4 * self.column, 90))
        return self._write_lines(lines, self._put(name, at, 8 * max(map(len, lines)), 5 + layout.LINE * len(lines)))

    @_recorded
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

    @_recorded
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
        self.places[name] = _Place(at[0] * self.column, -at[1] * self.row, width, height)
        return self.places[name]

    def _lines(self, text, width):
        return layout.lines(text, width) if self.folds else [text]

    def _write_lines(self, lines, place):
        for i, line in enumerate(lines):
            self._write(line, place.x, place.y + 4.5 + (i - (len(lines) - 1) / 2) * layout.LINE)
        return self

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
            out, low = start.x + arrow.around * self.column, through.edge("bottom")[1] + 14
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

    def picture(self):
        """Returns: `Picture`."""
        drawing, tip, labels = deepcopy(self), f"d2lmini-tip-{next(_ids)}", []
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
                if level and self.folds and len(corners) == 3 and wide > abs(corners[2][0] - corners[1][0]) - 12:
                    (x, y), level = corners[0], False  # no room over the level part: beside the upright one
                    y = (y + corners[1][1]) / 2
                if level:
                    said = self._lines(arrow.shape, abs(corners[-1][0] - corners[0][0]) - 12)
                    for i, line in enumerate(reversed(said)):
                        drawing._write(line, x, y - 7 - i * layout.LINE, kind="shape")
                    wide = 7.3 * max(map(len, said))
                    xs += [x - wide / 2, x + wide / 2]
                    ys.append(y - 3 - layout.LINE * len(said))
                    labels.append((x - wide / 2, ys[-1], x + wide / 2, y - 4))
                else:
                    sign, anchor = (1, "start") if right else (-1, "end")
                    drawing._write(arrow.shape, x + 7 * sign, y + 4, kind="shape", anchor=anchor)
                    xs.append(x + (7 + wide) * sign)
                    left, right = sorted((x + 7 * sign, xs[-1]))
                    labels.append((left, y - 6, right, y + 7))
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
        return Picture(
            f'<svg role="{role}" viewBox="{left:g} {top:g} {width:g} {height:g}" width="{width:g}" '
            f'style="--width:{width:g}px" stroke-width="1.2" xmlns="http://www.w3.org/2000/svg">'
            f"<title>{html.escape(self.title)}</title><desc>{html.escape(self.description)}</desc>"
            f'<defs><marker id="{tip}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path d="M0 0.5L8 4L0 7.5z" fill="currentColor"/></marker></defs>'
            + "".join(drawing._shapes_drawn)
            + "</svg>",
            width,
            labels,
        )

    def _repr_html_(self):
        return layout.element(self)

    def __repr__(self):
        return f"Diagram of {self.title}: {self.description}"
