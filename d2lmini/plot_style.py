"""The look of the book's curves: their colours and dashes, their names at their ends, ticks that do not collide."""

import textwrap

import numpy as np
from cycler import cycler
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

# Each has a contrast of 3 or more with white and with the dark page, and the first six differ for readers with
# protanopia and deuteranopia; the dashes tell them apart in a print without colours.
PALETTE = ("#2f62c5", "#fe5609", "#01a58c", "#7d2cfc", "#0199c1", "#b53c31", "#c8569f", "#767676")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 1.5, 1, 1.5)), (0, (10, 2)), (0, (3, 1, 1, 1, 1, 1)))
COLUMN = (7.5, 3)  # inches: as wide as the text of the book
STYLE = {
    # the book takes the card away and lets the drawing follow the theme: tools/sphinx_ext/plots.py
    **{"figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "auto"},
    "axes.prop_cycle": cycler(color=PALETTE),
    "lines.linewidth": 1.8,
    **{"font.size": 10, "axes.titlesize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9},
    "axes.edgecolor": "#767676",
    "svg.fonttype": "none",  # text is text: small files, and the font of the page
    "svg.hashsalt": "d2lmini",  # the same drawing has the same names inside, so an unchanged page stays as it is
}

_WRAP = 30  # characters of a name in a line
_SMALLEST = 6  # points: names are made smaller, down to this, where they are too many


def label_curves(axes, names=None):
    """Writes the names of curves at their right ends, in their colours, where a legend would cover data.

    Names are moved apart until none covers another; a thin line leads from the end of a curve to a name that is not
    next to it. Where limits or data change afterwards, the names follow.

    Args:
        axes: matplotlib axes with the curves (lines); its legend, if any, is removed.
        names: one str a curve, in the order in which they were drawn; curves behind the last name get none. None: the
            labels that the curves were drawn with (``axes.plot(..., label="name")``).

    Raises:
        ValueError: there are more names than curves.
    """
    lines = [line for line in axes.lines if not isinstance(line, _Leader)]
    if names is None:
        named = [(line, str(line.get_label())) for line in lines if not str(line.get_label()).startswith("_")]
    else:
        names = [str(name) for name in names]
        if len(names) > len(lines):
            raise ValueError(f"there are {len(names)} names for {len(lines)} curves: {names}")
        named = list(zip(lines, names, strict=False))
    if axes.get_legend() is not None:
        axes.get_legend().remove()
    for artist in list(axes.artists):
        if isinstance(artist, CurveLabels):
            artist.remove()
    axes.spines[["top", "right"]].set_visible(False)
    figure = axes.get_figure()
    if figure is not None and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")  # it makes room for the names
    if named:
        axes.add_artist(CurveLabels(named))


class _Leader(Line2D):
    """A line from the end of a curve to its name: no curve of the axes."""


class CurveLabels(Artist):
    """Names of curves in a column at the right of their axes. Made by `label_curves`.

    Where they are is computed when they are drawn, so that they fit whatever the axes have become.

    Args:
        named: list of pairs, a line of the axes and its name.
    """

    def __init__(self, named):
        super().__init__()
        self.named = named
        self.set_clip_on(False)
        self.zorder = 5

    def texts(self, renderer):
        """The names as they are drawn now, each with its leader. Returns: list of pairs (Text, Line2D)."""
        box, points = self.axes.bbox, renderer.points_to_pixels(1.0)
        ends = [(line, name, *_end(line, self.axes)) for line, name in self.named if line.get_visible()]
        ends = [end for end in ends if end[2] is not None]
        gap, size = 6 * points, 9.0
        while True:
            texts = [self._text(line, name, size) for line, name, *_ in ends]
            heights = [text.get_window_extent(renderer).height + points for text in texts]
            if sum(heights) <= box.height or size <= _SMALLEST:
                break
            size -= 0.5
        centres = spread([y for *_, y in ends], heights, box.y0, box.y1)
        labels = []
        for (line, _, x, y), text, centre in zip(ends, texts, centres, strict=True):
            text.set_position((box.x1 + gap, centre))
            near = box.x1 - x < 2 * points and abs(centre - y) < 3 * points
            style = {"color": line.get_color(), "lw": 0.0 if near else 0.7, "alpha": 0.7, "ls": (0, (1, 1.5))}
            leader = _Leader([x, box.x1, box.x1 + 0.75 * gap], [y, y, centre], **style)
            leader.set_figure(self.get_figure())
            labels.append((text, leader))
        return labels

    def _text(self, line, name, size):
        wrapped = "\n".join(textwrap.wrap(name, _WRAP, break_long_words=False)) or name
        text = Text(0, 0, wrapped, color=line.get_color(), fontsize=size, va="center", ha="left", linespacing=1.0)
        text.set_figure(self.get_figure())
        return text

    def draw(self, renderer):
        """Draws names and leaders, in pixels."""
        if self.get_visible():
            for text, leader in self.texts(renderer):
                if leader.get_linewidth():
                    leader.draw(renderer)
                text.draw(renderer)
        self.stale = False

    def get_window_extent(self, renderer=None):
        """The box around all names, which the layout of the figure leaves free."""
        renderer = renderer or self.get_figure(root=True)._get_renderer()
        boxes = [text.get_window_extent(renderer) for text, _ in self.texts(renderer)]
        if not boxes:
            return Bbox.null()
        (x0, y0), (x1, y1) = Bbox.union(boxes).get_points()
        return Bbox([[x0, y0], [x1 + renderer.points_to_pixels(6.0), y1]])  # apart from what is drawn to the right


def _end(line, axes):
    """Where a curve ends inside of its axes, in pixels. Returns: x, y; or None, None for one without points there."""
    xy = np.asarray(line.get_xydata(), dtype=float)
    if not len(xy):
        return None, None
    with np.errstate(all="ignore"):
        pixels = line.get_transform().transform(xy)
    pixels = pixels[np.isfinite(pixels).all(1)]
    if not len(pixels):
        return None, None
    pixels, box = pixels[np.argsort(pixels[:, 0], kind="stable")], axes.bbox
    inside = pixels[:, 0] <= box.x1 + 0.5
    if not inside.any():
        return None, None
    last = int(np.flatnonzero(inside)[-1])
    x, y = pixels[last]
    if last + 1 < len(pixels):  # it leaves the axes: at their edge
        (x2, y2) = pixels[last + 1]
        x, y = box.x1, y + (y2 - y) * (box.x1 - x) / (x2 - x)
    return x, min(max(y, box.y0), box.y1)


def spread(wanted, heights, low, high):
    """Moves boxes apart along a line, as little as possible.

    Args:
        wanted: list of float, where the centre of each box would be.
        heights: list of float, how high each is.
        low: the lowest end of a box; boxes that need more room than there is go on beyond both ends.
        high: the highest end.

    Returns:
        list of float: the centres, in the order of ``wanted``; no two boxes overlap.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    missing = max(0.0, sum(heights) - (high - low)) / 2
    low, high = low - missing, high + missing
    clusters = []  # [members, sum of wanted lower ends of the cluster, height]
    for i in order:
        clusters.append([[i], wanted[i] - heights[i] / 2, heights[i]])
        while len(clusters) > 1 and _start(clusters[-2], low, high) + clusters[-2][2] > _start(clusters[-1], low, high):
            members, total, height = clusters.pop()
            before = clusters[-1]
            # a member of the upper one starts so much above the start of both
            before[1] += total - len(members) * before[2]
            before[0] += members
            before[2] += height
    centres = [0.0] * len(wanted)
    for cluster in clusters:
        at = _start(cluster, low, high)
        for i in cluster[0]:
            centres[i] = at + heights[i] / 2
            at += heights[i]
    return centres


def _start(cluster, low, high):
    members, total, height = cluster
    return max(low, min(total / len(members), high - height))


class LogTicks(Locator):
    """Ticks of a logarithmic axis: few enough that their numbers do not touch, where two have room."""

    def __call__(self):
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin, vmax):
        """Ticks between two positive limits: powers of ten, 1, 2, 5 times these, or round numbers. Returns: array."""
        vmin, vmax = sorted((vmin, vmax))
        if not 0 < vmin < vmax < np.inf:
            return np.array([])
        powers = np.arange(np.floor(np.log10(vmin)), np.ceil(np.log10(vmax)) + 1)
        steps = [(1,)] if vmax / vmin >= 300 else [(1, 2, 5), (1, 3), (1,)] if vmax / vmin >= 8 else []
        choices = [np.array([step * 10.0**power for power in powers for step in some]) for some in steps]
        choices += [10.0 ** powers[::skip] for skip in range(2, len(powers) // 2 + 1)]
        if not steps:
            choices = [MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(vmin, vmax) for n in (5, 3, 2)]
        choices = [ticks[(ticks > 0.999 * vmin) & (ticks < 1.001 * vmax)] for ticks in choices]
        choices = [ticks for ticks in choices if len(ticks) > 1] or choices[:1]
        return next((ticks for ticks in choices if self._fit(ticks)), choices[-1])

    def _fit(self, ticks):
        """Whether there is room for the numbers at these ticks."""
        if self.axis is None or not hasattr(self.axis, "axes"):
            return len(ticks) <= 8
        axes, size = self.axis.axes, 9.0  # of the numbers, points
        inches = axes.bbox.transformed(axes.get_figure(root=True).dpi_scale_trans.inverted())
        if self.axis.axis_name == "y":
            return len(ticks) * 2.0 * size < 72 * inches.height
        longest = max(map(len, LogNumbers().format_ticks(ticks)), default=0)
        return len(ticks) * (0.65 * longest + 1) * size < 72 * inches.width


class LogNumbers(Formatter):
    """Numbers at the ticks of a logarithmic axis: 200 and 1,000, or powers of ten if one is too large or too small."""

    def __call__(self, x, pos=None):
        return self.format_ticks([x])[0]

    def format_ticks(self, values):
        """All ticks in one manner. Returns: list of str."""
        positive = [value for value in values if value > 0]
        plain = not positive or (max(positive) < 999_999 and min(positive) > 0.00099)
        return [("" if value <= 0 else f"{value:,.10g}" if plain else _power(value)) for value in values]


def _power(value):
    mantissa, exponent = f"{value:.1e}".split("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if float(mantissa) == 1 else f"{float(mantissa):g}·{power}"


def dress(axes):
    """A light grid, two spines instead of four, and on logarithmic axes ticks whose numbers do not collide."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(True, color="#808080", alpha=0.25, linewidth=0.7)
    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        if scale == "log":
            axis.set_major_locator(LogTicks())
            axis.set_major_formatter(LogNumbers())
            axis.set_minor_locator(NullLocator())
