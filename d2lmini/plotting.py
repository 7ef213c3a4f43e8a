"""Static figures: curves and heat maps, on an opaque white card that reads in a light and in a dark page."""

import numpy as np
import torch
from matplotlib import pyplot as plt

from .plot_style import COLUMN, DASHES, PALETTE, STYLE, dress, label_curves
from .shell import running_shell


def use_svg_display():
    """Shows figures as SVG in a notebook, on an opaque card, in the book's style. Outside IPython only the style is
    set.

    Source: D2L section 2.4.2.
    """
    plt.rcParams.update(STYLE)
    if running_shell():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg")


if running_shell():  # also what a chapter draws with d2l.plt alone is SVG
    use_svg_display()


def set_figsize(figsize=COLUMN):
    """Sets the size of the figures that follow, in inches; without an argument, the width of the book's column.

    Source: D2L section 2.4.2.
    """
    use_svg_display()
    plt.rcParams["figure.figsize"] = figsize


def set_axes(axes, xlabel, ylabel, xlim, ylim, xscale, yscale, legend):
    """Sets labels, limits (None: automatic) and scales of matplotlib axes and, unless ``legend`` is empty, writes the
    names of the curves at their ends (`label_curves`).

    Raises:
        ValueError: there are more names than curves.

    Source: D2L section 2.4.2.
    """
    axes.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale, yscale=yscale)
    axes.set(**{name: limits for name, limits in (("xlim", xlim), ("ylim", ylim)) if limits is not None})
    dress(axes)
    if legend:
        label_curves(axes, legend)


def plot(
    X,
    Y=None,
    xlabel=None,
    ylabel=None,
    legend=(),
    xlim=None,
    ylim=None,
    xscale="linear",
    yscale="linear",
    fmts=None,
    figsize=COLUMN,
    axes=None,
):
    """Draws one curve or several, each with its name at its right end.

    Args:
        X: abscissae: one sequence for all curves, or one a curve; the ordinates where ``Y`` is None.
        Y: ordinates, likewise.
        xlabel: label of the x axis.
        ylabel: label of the y axis.
        legend: one name a curve, for the first curves or for all.
        xlim: pair of limits, None: automatic.
        ylim: likewise.
        xscale: "linear", "log", ...
        yscale: likewise.
        fmts: matplotlib formats, taken in turn; None: the colours and dashes of the book.
        figsize: in inches; of a new figure. The default is the width of the book's column.
        axes: where to draw (cleared first); None: the current axes.

    Raises:
        ValueError: ``X`` and ``Y`` differ in the number of curves, or in the length of one; or there are more
            names than curves.

    Source: D2L section 2.4.2.
    """
    if Y is None:
        Y = _curves(X)
        X = [range(len(y)) for y in Y]
    else:
        X, Y = _curves(X), _curves(Y)
        if len(X) == 1:
            X = X * len(Y)
    if len(X) != len(Y):
        raise ValueError(f"X holds {len(X)} sequences but Y {len(Y)}: expected one in X, or one a curve")
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        if len(x) != len(y):
            raise ValueError(f"curve {i} has {len(x)} abscissae but {len(y)} ordinates")

    if axes is None:
        set_figsize(figsize)
        axes = plt.gca()
    axes.cla()
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        if fmts is None:
            axes.plot(x, y, color=PALETTE[i % len(PALETTE)], linestyle=DASHES[i % len(DASHES)])
        else:
            axes.plot(x, y, fmts[i % len(fmts)])
    set_axes(axes, xlabel, ylabel, xlim, ylim, xscale, yscale, legend)


def show_heatmaps(matrices, xlabel, ylabel, titles=None, figsize=(2.5, 2.5), cmap="Reds"):
    """Shows matrices of attention weights in a grid, all on one colour scale.

    Args:
        matrices: (rows, columns, T, S), queries down and keys across; any device; float16, bfloat16, 32 or 64.
        xlabel: label under the bottom row, usually "Keys".
        ylabel: label left of the first column, usually "Queries".
        titles: one a column, None: none.
        figsize: of the whole figure, in inches.
        cmap: matplotlib colour map.

    Raises:
        ValueError: ``matrices`` has not four dimensions or is empty, or the titles are not one a column.

    Source: D2L section 11.1.1.
    """
    matrices = np.asarray(_numpy(matrices))
    if matrices.ndim != 4 or not matrices.size:
        raise ValueError(
            f"matrices have shape {matrices.shape}, expected (rows, columns, T, S), none of them 0: "
            "reshape one matrix to (1, 1, T, S)"
        )
    grid = matrices.shape[:2]
    if titles is not None and len(titles) != grid[1]:
        raise ValueError(f"there are {len(titles)} titles for {grid[1]} columns")
    use_svg_display()
    fig, axes = plt.subplots(*grid, figsize=figsize, layout="constrained", squeeze=False, sharex=True, sharey=True)
    # one scale, for the one colour bar must be right for all
    scale = {"vmin": np.nanmin(matrices), "vmax": np.nanmax(matrices)}
    for place, ax in np.ndenumerate(axes):
        image = ax.imshow(matrices[place], cmap=cmap, **scale)
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_major_locator().set_params(integer=True)  # there is no key 2.5
        if titles is not None:
            ax.set_title(titles[place[1]])
    plt.setp(axes[-1], xlabel=xlabel)
    plt.setp(axes[:, 0], ylabel=ylabel)
    fig.colorbar(image, ax=axes, shrink=0.6)


def _numpy(x):
    """A tensor as an array that matplotlib can draw; anything else as it is."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().cpu()
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


def _curves(X):
    """A list of sequences from one sequence of numbers, or from several."""
    X = _numpy(X)
    if not len(X) or np.ndim(_numpy(X[0])) == 0:
        X = [[_numpy(x) for x in X] if isinstance(X, (list, tuple)) else X]
    return [_numpy(x) for x in X]
