"""Figure of chapter 02: weights, output and both errors, and what is refused."""

import html
import json
import re

import pytest
import torch

import d2lmini.figures as figures


def kernel_pooling(**changes):
    settings = dict(x=[0.0, 1.0, 2.0, 4.5], y=[1.0, 3.0, 2.0, 7.0], query=0.5, width=0.7, kernel="gaussian")
    return figures.KernelPooling(**{**settings, **changes})


def test_kernel_pooling_shows_weights_output_and_both_errors():
    figure = kernel_pooling()
    x, y = torch.tensor(figure.state["x"]).double(), torch.tensor(figure.state["y"]).double()
    weights = torch.softmax(-((x - 0.5) ** 2) / (2 * 0.7**2), dim=0)
    torch.testing.assert_close(figure.weights, weights)
    assert figure.output == pytest.approx((weights @ y).item())
    scores = -((x[:, None] - x[None]) ** 2) / (2 * 0.7**2)
    error = ((torch.softmax(scores, dim=1) @ y - y) ** 2).mean().item()
    scores.fill_diagonal_(-torch.inf)
    left_out_error = ((torch.softmax(scores, dim=1) @ y - y) ** 2).mean().item()
    assert figure.training_error == pytest.approx(error)
    assert figure.left_out_error == pytest.approx(left_out_error)
    assert f"the output is {figure.output:.2f}" in figure.fallback()
    assert f"{figure.training_error:.3f}, leaving each out {figure.left_out_error:.3f}" in figure.fallback()


@pytest.mark.parametrize("kernel", ["boxcar", "epanechnikov"])
def test_kernel_pooling_says_when_nothing_is_in_reach(kernel):
    figure = kernel_pooling(kernel=kernel, query=3.2, width=1.1)
    assert figure.output is None and "nothing is in reach" in figure.fallback()
    assert figure.alone == 1  # the point at 4.5 sees no other one
    figure = kernel_pooling(kernel=kernel, width=0.5)
    assert figure.alone == 4 and figure.left_out_error is None and "undefined" in figure.fallback()
    assert figure.training_error == 0


def test_kernel_pooling_carries_its_state():
    shown = kernel_pooling(kernel="boxcar")._repr_html_()
    state = json.loads(html.unescape(re.search(r'data-state="([^"]*)"', shown)[1]))
    assert state == {
        "x": [0, 1, 2, 4.5], "y": [1, 3, 2, 7], "query": 0.5, "width": 0.7, "kernel": "boxcar"
    }  # fmt: skip
    assert "<table>" in shown.split("<script")[0] and len(shown) < 29_000


def test_kernel_pooling_as_a_widget():
    pytest.importorskip("anywidget")
    widget = kernel_pooling().widget()
    assert widget.x == [0, 1, 2, 4.5] and widget.width == 0.7 and widget.kernel == "gaussian"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [1.0, 2.0]}, "expected x"),
        ({"x": [[0.0], [1.0]], "y": [[0.0], [1.0]]}, "expected x"),
        ({"x": [1.0] * 4}, "with 1 different x"),
        ({"kernel": "cosine"}, "kernel is one of"),
        ({"width": 0.0}, "between 0.01 and 10"),
        ({"width": float("nan")}, "between 0.01 and 10"),
        ({"y": [float("inf"), 0.0, 0.0, 0.0]}, "finite"),
        ({"query": float("nan")}, "finite"),
    ],
)
def test_kernel_pooling_refuses_bad_input(changes, message):
    with pytest.raises(ValueError, match=message):
        kernel_pooling(**changes)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_axes_have_names_and_numbers_at_their_places(open_figure, width):
    page = open_figure(kernel_pooling(), width=width)
    svg = page.locator("svg").first
    texts = svg.locator("> text").evaluate_all(
        "all => all.map((n) => [n.textContent, n.getAttribute('text-anchor'), +n.getAttribute('x')])"
    )
    assert {"x", "y"} < {text for text, *_ in texts}
    below = {float(text): x for text, anchor, x in texts if anchor == "middle"}
    assert len(below) >= 3 and {0.0, 2.0} < set(below)
    dots = svg.locator("g[aria-label^=point]").evaluate_all("all => all.map((n) => n.getAttribute('transform'))")
    at = [float(re.search(r"\((\S+)", text)[1]) for text in dots]  # of the points at 0, 1, 2 and 4.5
    assert [at[0], at[2]] == pytest.approx([below[0.0], below[2.0]])


def test_the_plot_of_the_errors_leaves_the_table_where_it_is(open_figure):
    page = open_figure(kernel_pooling())
    table = page.locator("tbody")
    before = table.bounding_box()
    page.get_by_role("checkbox", name="show the errors").check()
    assert page.locator("svg:visible").count() == 2 and table.bounding_box() == before
    assert {"0.01", "0.1", "1", "10"} < set(page.locator("svg").last.locator("text").all_text_contents())
