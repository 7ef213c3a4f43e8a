"""The live curve of a training run."""

import io
import time

from ..shell import in_notebook, running_shell
from ..utils import HyperParameters

_MOST_POINTS = 500  # drawn of a line; with more of them a draw would take longer, and show no more
_SHARE = 0.1  # of the time, at most, goes into drawing
_PAUSE = 0.5  # seconds, at least, from one draw to the next
_WORDS = {"train": "training", "val": "validation", "acc": "accuracy"}


def in_words(label):
    """What a reader sees of a curve's label. Returns: str, as "validation loss" of "val_loss"."""
    return " ".join(_WORDS.get(word, word) for word in label.split("_"))


class ProgressBoard(HyperParameters):
    """Curves that grow while they are watched, in a notebook; elsewhere it only collects the points.

    A draw takes as long for many points as for few, and draws take at most a tenth of the time. When the cell is
    done, what is shown is the whole figure, also where a notebook is executed without anybody watching.

    Args:
        xlabel: label of the x axis.
        ylabel: label of the y axis.
        xlim: pair of limits, None: automatic.
        ylim: likewise.
        xscale: "linear", "log", ...
        yscale: likewise.
        ls: line styles, taken in turn; None: the book's dashes.
        colors: of the lines, taken in turn; None: the book's colours.
        fig: matplotlib figure to draw on; None: one of its own.
        axes: axes of ``fig``; None: new ones.
        figsize: in inches.
        display: False: show nothing.

    Source: D2L section 3.2.1.
    """

    def __init__(
        self,
        xlabel=None,
        ylabel=None,
        xlim=None,
        ylim=None,
        xscale="linear",
        yscale="linear",
        ls=None,
        colors=None,
        fig=None,
        axes=None,
        figsize=(7.5, 3),
        display=True,
    ):
        self.save_hyperparameters()
        self.clear()
        self._handle = None  # of the output that is shown
        self._shell = None  # whose cells' ends are listened to
        self._dirty = False
        self._next_draw = 0.0

    def clear(self):
        """Forgets all points."""
        self.points = {}  # label -> [[x, ...], [y, ...]]
        self._waiting = {}  # label -> points since the last mean
        for line in getattr(self, "_lines", {}).values():
            line.remove()
        self._lines = {}

    def draw(self, x, y, label, every_n=1):
        """Adds a point to a curve.

        Args:
            x: number.
            y: number.
            label: which curve; a new label starts one.
            every_n: the curve has the means of so many points each.
        """
        waiting = self._waiting.setdefault(label, [])
        waiting.append((float(x), float(y)))
        if len(waiting) < every_n:
            return
        xs, ys = self.points.setdefault(label, [[], []])
        xs.append(sum(point[0] for point in waiting) / len(waiting))
        ys.append(sum(point[1] for point in waiting) / len(waiting))
        waiting.clear()
        self._dirty = True
        if self.display and in_notebook():
            self._listen()
            if time.perf_counter() >= self._next_draw:
                self.show()

    def show(self):
        """Shows the figure as it is now, in the place of the one before."""
        from IPython.display import display

        start = time.perf_counter()
        output = {"image/svg+xml": self.svg(), "text/plain": str(self)}
        if self._handle is None:
            self._handle = display(output, raw=True, display_id=True)
        else:
            self._handle.update(output, raw=True)
        self._dirty = False
        end = time.perf_counter()
        self._next_draw = end + max(_PAUSE, (end - start) * (1 / _SHARE - 1))

    def svg(self):
        """The figure as SVG, on an opaque card."""
        import matplotlib

        from ..plot_style import STYLE

        stream = io.StringIO()
        with matplotlib.rc_context(STYLE):
            self._update()
            self.fig.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
        return stream.getvalue()

    def _update(self):
        from ..plot_style import DASHES, PALETTE, dress, label_curves

        dashes, colors = self.ls or DASHES, self.colors or PALETTE
        if self.fig is None:
            from matplotlib.figure import Figure  # not pyplot's: an inline backend would show it once more

            self.fig = Figure(figsize=self.figsize)
        if self.axes is None:
            self.axes = self.fig.add_subplot()
        for i, (label, (xs, ys)) in enumerate(self.points.items()):
            if label not in self._lines:
                style = {"ls": dashes[i % len(dashes)], "color": colors[i % len(colors)]}
                (self._lines[label],) = self.axes.plot([], [], label=in_words(label), **style)
            # a single point would be no line
            self._lines[label].set(marker="." if len(xs) == 1 else "", data=(_thin(xs), _thin(ys)))
        self.axes.relim()
        self.axes.set(xlabel=self.xlabel or "", ylabel=self.ylabel or "", xscale=self.xscale, yscale=self.yscale)
        self.axes.autoscale_view()
        self.axes.set(**{k: v for k, v in (("xlim", self.xlim), ("ylim", self.ylim)) if v is not None})
        dress(self.axes)
        label_curves(self.axes)

    def _listen(self):
        """Makes the end of the cell show what the last draw did not."""
        if self._shell is None:
            self._shell = running_shell()
            self._shell.events.register("post_run_cell", self._at_end_of_cell)

    def _at_end_of_cell(self, *result):
        if self._dirty:
            self.show()
        self._shell.events.unregister("post_run_cell", self._at_end_of_cell)
        # the next cell gets a figure of its own
        self._shell, self._handle, self._next_draw = None, None, 0.0

    def __str__(self):
        return ", ".join(f"{label} {ys[-1]:.3g}" for label, (_, ys) in self.points.items())

    def __getstate__(self):
        # a copy draws a figure of its own
        fresh = {"fig": None, "axes": None, "_lines": {}, "_handle": None, "_shell": None}
        return {**self.__dict__, **fresh}


def _thin(values):
    """At most `_MOST_POINTS` means of neighbours instead of all values."""
    size = -(-len(values) // _MOST_POINTS)
    if size <= 1:
        return values
    return [sum(part) / len(part) for part in (values[i : i + size] for i in range(0, len(values), size))]
