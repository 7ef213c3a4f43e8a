"""Names at the ends of curves, colours that read on white and on dark, ticks that do not collide."""

import itertools

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

from d2lmini.plot_style import DASHES, PALETTE, CurveLabels, LogNumbers, LogTicks, dress, label_curves, spread
from d2lmini.plotting import plot

pytestmark = pytest.mark.usefixtures("book_plots")


def names_of(axes):
    """The names at the curves as they are drawn: text, colour, box, and the leader from the curve's end."""
    axes.figure.draw_without_rendering()
    renderer = axes.figure._get_renderer()
    (labels,) = [artist for artist in axes.artists if isinstance(artist, CurveLabels)]
    return [
        (text.get_text(), text.get_color(), text.get_window_extent(renderer), leader)
        for text, leader in labels.texts(renderer)
    ]


def overlaps(boxes):
    return [(a, b) for a, b in itertools.combinations(boxes, 2) if a.y0 < b.y1 - 1e-6 and b.y0 < a.y1 - 1e-6]


def linear(colour):
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]


def contrast(one, other):
    light = sorted(np.dot([0.2126, 0.7152, 0.0722], linear(colour)) + 0.05 for colour in (one, other))
    return light[1] / light[0]


@pytest.mark.parametrize("paper", ["white", "#14181e", "#111111"])
def test_each_colour_reads_on_white_and_on_dark(paper):
    assert len(set(PALETTE)) >= 6
    assert [colour for colour in PALETTE if contrast(colour, paper) < 3] == []


# Machado, Oliveira and Fernandes 2009, severity 1
PROTANOPIA = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTERANOPIA = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]


def lab(colour, eye):
    x = np.clip(np.array(eye) @ linear(colour), 0, 1)
    x = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ x
        / [0.9505, 1, 1.089]
    )
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", [np.eye(3), PROTANOPIA, DEUTERANOPIA], ids=["all", "protanopia", "deuteranopia"])
def test_six_colours_differ_for_every_reader(eye):
    apart = [np.linalg.norm(lab(a, eye) - lab(b, eye)) for a, b in itertools.combinations(PALETTE[:6], 2)]
    assert min(apart) > 25


def test_curves_differ_without_colours():
    plot([1, 2], [[i, i + 1] for i in range(6)])
    assert len({str(line._unscaled_dash_pattern) for line in plt.gca().lines}) == 6 == len(DASHES)


def test_names_are_at_the_ends_of_the_curves_in_their_colours_and_no_legend_is():
    plot([1, 2, 3], [[1, 2, 3], [3, 2, 1]], legend=["rises", "falls"])
    axes = plt.gca()
    assert axes.get_legend() is None
    (rises, blue, up, _), (falls, orange, down, _) = names_of(axes)
    assert (rises, falls, blue, orange) == ("rises", "falls", *PALETTE[:2])
    for box, y in ((up, 3), (down, 1)):
        assert box.y0 < axes.transData.transform((3, y))[1] < box.y1 and box.x0 > axes.bbox.x1


@pytest.mark.parametrize(
    "ends", [[1.0] * 6, [0, 0, 0, 1, 1, 1], [0.5, 0.51, 0.49, 0.5, 0.9, 0.1], list(range(25))], ids=str
)
def test_names_never_cover_each_other_nor_leave_the_figure(ends):
    plot([0, 1], [[0.5, end] for end in ends], legend=[f"contestant {i}" for i in range(len(ends))])
    found = names_of(plt.gca())
    boxes, page = [box for _, _, box, _ in found], plt.gcf().bbox
    assert overlaps(boxes) == [] and len(found) == len(ends)
    assert min(box.x0 for box in boxes) >= plt.gca().bbox.x1
    assert max(box.x1 for box in boxes) <= page.x1 and min(box.y0 for box in boxes) >= page.y0
    assert max(box.y1 for box in boxes) <= page.y1


def test_a_line_leads_to_a_name_that_is_not_at_its_curve():
    plot([[0, 1], [0, 0.5]], [[0, 1], [0, 0.2]], legend=["whole", "ends early"], xlim=(0, 1))
    (_, _, _, near), (_, _, _, far) = names_of(plt.gca())
    assert near.get_linewidth() == 0 and far.get_linewidth() > 0
    assert far.get_xydata()[0] == pytest.approx(plt.gca().transData.transform((0.5, 0.2)))


def test_the_end_is_where_the_curve_leaves_the_axes_and_nan_is_no_end():
    plot([[0, 2], [0, 1, 2]], [[0, 2], [0, 0.25, float("nan")]], legend=["cut", "nan"], xlim=(0, 1))
    (_, _, _, cut), (_, _, _, nan) = names_of(plt.gca())
    to_data = plt.gca().transData.inverted().transform
    assert to_data(cut.get_xydata()[0]) == pytest.approx([1, 1]) and to_data(nan.get_xydata()[0])[1] == pytest.approx(
        0.25
    )


def test_names_follow_what_is_changed_later():
    plot([0, 1], [[0, 1]], legend=["a"])
    plt.gca().set_ylim(0, 10)
    ((_, _, box, _),) = names_of(plt.gca())
    assert box.y0 < plt.gca().transData.transform((1, 1))[1] < box.y1


def test_a_chapter_that_draws_by_itself_labels_its_curves():
    _, axes = plt.subplots()
    axes.plot([0, 1], [0, 1], "k--", label="diagonal")
    axes.plot([0, 1], [1, 1])
    axes.legend()
    label_curves(axes)
    assert axes.get_legend() is None and [name[:2] for name in names_of(axes)] == [("diagonal", "k")]
    label_curves(axes, ["one", "two"])  # anew, in the place of those before
    assert [name[0] for name in names_of(axes)] == ["one", "two"]


def test_long_names_go_on_in_another_line():
    plot([0, 1], [[0, 1]], legend=["a name that is much longer than the margin of a figure"])
    ((text, *_),) = names_of(plt.gca())
    assert max(map(len, text.split("\n"))) <= 30 and len(text.split("\n")) == 2


def test_more_names_than_curves_are_refused():
    with pytest.raises(ValueError, match="there are 2 names for 1 curves"):
        plot([1, 2], [3, 4], legend=["a", "b"])
    plot([1, 2], [[3, 4], [5, 6]], legend=["the first alone"])
    assert [name[0] for name in names_of(plt.gca())] == ["the first alone"]


def test_curves_without_points_or_out_of_sight_get_no_name():
    plot([[5, 6], [], [0, 1]], [[1, 1], [], [0, 1]], legend=["right of it", "empty", "seen"], xlim=(0, 2))
    assert [name[0] for name in names_of(plt.gca())] == ["seen"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([5, 1], [5, 1]),
        ([5, 5], [4.5, 5.5]),
        ([5, 5, 5.5], [4.1667, 5.1667, 6.1667]),
        ([0, 0.2], [0.5, 1.5]),
        ([10, 10], [8.5, 9.5]),
        ([5] * 12, [i - 0.5 for i in range(12)]),
    ],
)
def test_spread_moves_as_little_as_possible(wanted, expected):
    assert spread(wanted, [1] * len(wanted), 0, 10) == pytest.approx(expected, abs=1e-4)


def test_spread_never_overlaps():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 12))
        heights, wanted = rng.uniform(0.1, 1.5, n), rng.uniform(0, 10, n)
        centres = spread(list(wanted), list(heights), 0, 10)
        order = np.argsort(centres)
        gaps = np.diff(np.array(centres)[order]) - (heights[order][1:] + heights[order][:-1]) / 2
        assert (gaps > -1e-9).all()
        if heights.sum() <= 10:
            assert min(c - h / 2 for c, h in zip(centres, heights, strict=True)) > -1e-9
            assert max(c + h / 2 for c, h in zip(centres, heights, strict=True)) < 10 + 1e-9


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (200, 700, ["200", "300", "400", "500", "600", "700"]),
        (100, 2000, ["100", "200", "500", "1,000", "2,000"]),
        (1, 1000, ["1", "10", "100", "1,000"]),
        (1e4, 1e9, ["10⁴", "10⁵", "10⁶", "10⁷", "10⁸", "10⁹"]),
        (1e-14, 1, ["10⁻¹⁴", "10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]),
        (2e6, 9e6, ["2·10⁶", "4·10⁶", "6·10⁶", "8·10⁶"]),
    ],
)
def test_ticks_of_a_logarithmic_axis(low, high, labels):
    ticks = LogTicks().tick_values(low, high)
    assert LogNumbers().format_ticks(ticks) == labels


def test_ticks_of_limits_that_are_none():
    assert len(LogTicks().tick_values(-1, 10)) == len(LogTicks().tick_values(0, 0)) == 0
    assert LogNumbers()(0.5) == "0.5" and LogNumbers()(-1) == ""


@pytest.mark.parametrize(
    "limits", [(90, 700), (1.1, 1.9), (0.3, 40), (1e-8, 1e9), (450, 65_000), (2e5, 4e6), (1, 8)], ids=str
)
def test_numbers_of_a_logarithmic_axis_do_not_collide(limits):
    for width in (2.5, 3.2, 4.5, 7.5):
        plot([1, 2], xscale="log", xlim=limits, figsize=(width, 2))
        plt.gcf().set_size_inches(width, 2)
        plt.gcf().draw_without_rendering()
        boxes = [label.get_window_extent() for label in plt.gca().get_xticklabels() if label.get_text()]
        assert 2 <= len(boxes) <= 12 and plt.gca().get_xticklabels(minor=True) == []
        assert [(a, b) for a, b in itertools.pairwise(boxes) if a.x1 > b.x0] == []


def test_a_dressed_plot_has_a_light_grid_and_two_spines():
    _, axes = plt.subplots()
    dress(axes)
    assert [side for side in axes.spines if axes.spines[side].get_visible()] == ["left", "bottom"]
    assert axes.xaxis.get_gridlines()[0].get_visible() and axes.get_axisbelow()
