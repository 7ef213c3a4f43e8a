"""Static figures: what is drawn, on what, and what cannot be drawn."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
import torch

matplotlib.use("Agg")
from d2lmini.plot_style import COLUMN, PALETTE, CurveLabels
from d2lmini.plotting import plot, plt, set_axes, set_figsize, show_heatmaps, use_svg_display


@pytest.fixture(autouse=True)
def fresh():
    with matplotlib.rc_context():
        yield
    plt.close("all")


def drawn():
    """Heat maps of the current figure, as arrays, and its axes (without the colour bar's)."""
    axes = [ax for ax in plt.gcf().axes if ax.get_label() != "<colorbar>"]
    return [np.asarray(ax.images[0].get_array()) for ax in axes], axes


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.bool], ids=str)
def test_heatmaps_take_any_tensor(dtype):
    weights = torch.rand(1, 2, 3, 4)
    if dtype == torch.float32:
        weights.requires_grad_()
    shown = weights.detach().to(dtype)
    show_heatmaps(weights if dtype == torch.float32 else shown, "Keys", "Queries", titles=["a", "b"])
    arrays, axes = drawn()
    for array, matrix in zip(arrays, shown[0], strict=True):
        assert np.array_equal(array, matrix.double().numpy())
    assert [ax.get_title() for ax in axes] == ["a", "b"]


def test_heatmaps_label_the_edges_and_share_one_scale():
    matrices = torch.zeros(2, 3, 4, 5)
    matrices[1, 2] = 3
    show_heatmaps(matrices, "Keys", "Queries", figsize=(7, 4), cmap="Blues")
    _, axes = drawn()
    assert [ax.get_xlabel() for ax in axes] == [""] * 3 + ["Keys"] * 3
    assert [ax.get_ylabel() for ax in axes] == ["Queries", "", ""] * 2
    assert {ax.images[0].get_clim() for ax in axes} == {(0.0, 3.0)}
    assert axes[0].images[0].get_cmap().name == "Blues"
    assert tuple(plt.gcf().get_size_inches()) == (7, 4)
    assert len(plt.gcf().axes) == 7  # one colour bar


def test_heatmaps_survive_nan_and_take_arrays_and_lists():
    show_heatmaps(np.array([[[[np.nan, 1.0, 3.0]]]]), "x", "y")
    assert drawn()[1][0].images[0].get_clim() == (1.0, 3.0)
    show_heatmaps([[[[0.0, 2.0]]]], "x", "y")
    assert drawn()[0][0].tolist() == [[0.0, 2.0]]


@pytest.mark.parametrize("shape", [(3, 4), (1, 3, 4), (1, 1, 0, 4), (0, 1, 3, 4)])
def test_heatmaps_of_a_wrong_shape(shape):
    with pytest.raises(ValueError, match=r"expected \(rows, columns, T, S\), none of them 0: reshape"):
        show_heatmaps(torch.zeros(shape), "Keys", "Queries")
    assert not plt.get_fignums()


def test_heatmaps_with_the_wrong_number_of_titles():
    with pytest.raises(ValueError, match="there are 1 titles for 2 columns"):
        show_heatmaps(torch.zeros(1, 2, 3, 4), "Keys", "Queries", titles=["one"])


@pytest.mark.parametrize(
    "draw", [lambda: plot([1, 2], [3, 4]), lambda: show_heatmaps(torch.eye(3)[None, None], "", "")]
)
def test_figures_are_on_an_opaque_white_card(draw, tmp_path):
    plt.rcParams.update({"figure.facecolor": "none", "axes.facecolor": "none"})
    draw()
    plt.savefig(tmp_path / "figure.png")
    pixels = plt.imread(tmp_path / "figure.png")
    assert pixels[0, 0].tolist() == [1, 1, 1, 1] and (pixels[..., 3] == 1).all()


def curves():
    return [(line.get_xdata().tolist(), line.get_ydata().tolist(), line.get_linestyle()) for line in plt.gca().lines]


@pytest.mark.parametrize(
    ("X", "Y", "expected"),
    [
        ([1, 2, 3], None, [([0, 1, 2], [1, 2, 3])]),
        ([1, 2], [3, 4], [([1, 2], [3, 4])]),
        ([1, 2], [[3, 4], [5, 6]], [([1, 2], [3, 4]), ([1, 2], [5, 6])]),
        ([[1, 2], [7, 8, 9]], [[3, 4], [5, 6, 7]], [([1, 2], [3, 4]), ([7, 8, 9], [5, 6, 7])]),
        (torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True), [([1, 2], [3, 4])]),
        (torch.tensor([1.0, 2.0]), [torch.tensor([3.0, 4.0]).bfloat16()], [([1, 2], [3, 4])]),
        (
            [torch.tensor(1.0), torch.tensor(2.0)],
            np.array([[3, 4], [5, 6]]),
            [([1, 2], [3, 4]), ([1, 2], [5, 6])],
        ),
        ([], None, [([], [])]),
    ],
)
def test_plot_curves(X, Y, expected):
    plot(X, Y)
    assert [line[:2] for line in curves()] == expected


def test_plot_dresses_the_axes():
    y = [1, 10, 100]
    dress = {"legend": ["a", "b"], "xlim": [0, 4], "yscale": "log", "fmts": ("-", "r:"), "figsize": (5, 2)}
    plot([1, 2, 3], [y, y, y, y, y], "x", "f(x)", **dress)
    axes = plt.gca()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "f(x)")
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert axes.get_xlim() == (0, 4) and axes.get_ylim()[1] > 100
    (labels,) = [artist for artist in axes.artists if isinstance(artist, CurveLabels)]
    assert axes.get_legend() is None and [name for _, name in labels.named] == ["a", "b"]
    assert [line[2] for line in curves()] == ["-", ":", "-", ":", "-"]
    assert tuple(plt.gcf().get_size_inches()) == (5, 2)


def test_a_plot_is_as_wide_as_the_column_in_the_colours_of_the_book():
    plot([1, 2], [[3, 4], [5, 6]])
    assert tuple(plt.gcf().get_size_inches()) == COLUMN
    assert [line.get_color() for line in plt.gca().lines] == list(PALETTE[:2])
    plt.close("all")
    _, axes = plt.subplots()  # what a chapter draws by itself afterwards, too
    axes.plot([1, 2])
    assert axes.lines[0].get_color() == PALETTE[0]


def test_text_of_a_figure_is_text_and_the_same_drawing_has_the_same_names_inside(tmp_path):
    files = []
    for i in range(2):
        plot([1, 2], [[3, 4]], "step", legend=["loss"])
        plt.savefig(tmp_path / f"{i}.svg", metadata={"Date": None})
        plt.close("all")
        files.append((tmp_path / f"{i}.svg").read_text())
    assert ">step</text>" in files[0] and ">loss</text>" in files[0] and files[0] == files[1]


def test_plot_on_given_axes_clears_them():
    _, (left, right) = plt.subplots(1, 2)
    left.plot([1, 2])
    plot([5, 6], axes=left)
    assert len(left.lines) == 1 and not right.lines


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[1, 2], [3, 4]], [[1, 2]] * 3, "X holds 2 sequences but Y 3"),
        ([1, 2], [3, 4, 5], "curve 0 has 2 abscissae but 3 ordinates"),
    ],
)
def test_plot_of_what_does_not_fit(X, Y, message):
    with pytest.raises(ValueError, match=message):
        plot(X, Y)
    assert not plt.get_fignums()


def test_set_axes_and_set_figsize():
    set_figsize((6, 1))
    axes = plt.gca()
    set_axes(axes, "a", "b", None, [1, 2], "linear", "linear", [])
    assert tuple(plt.gcf().get_size_inches()) == (6, 1)
    assert axes.get_ylim() == (1, 2) and axes.get_legend() is None


def test_use_svg_display_in_a_shell_asks_for_svg(monkeypatch):
    asked = []
    backend = SimpleNamespace(set_matplotlib_formats=asked.append)
    monkeypatch.setitem(sys.modules, "matplotlib_inline", SimpleNamespace(backend_inline=backend))
    monkeypatch.setitem(sys.modules, "matplotlib_inline.backend_inline", backend)
    shell = SimpleNamespace(get_ipython=object)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    use_svg_display()
    assert asked == ["svg"]
    shell.get_ipython = lambda: None
    use_svg_display()
    assert asked == ["svg"]


@pytest.mark.slow
def test_use_svg_display_without_ipython():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['IPython', 'ipywidgets', 'matplotlib_inline']));"
        "import matplotlib; matplotlib.use('Agg');"
        "import d2lmini as d2l; d2l.use_svg_display(); d2l.plot([1, 2]); print(d2l.plt.get_fignums())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[1]", done.stderr
