"""The steps of D2L's notebooks 11.1 to 11.3, in our own code, through ``import d2lmini as d2l``."""

import math

import matplotlib
import pytest
import torch

matplotlib.use("Agg")
import d2lmini as d2l


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    yield
    d2l.plt.close("all")


def image():
    """The heat map drawn last, as an array."""
    return d2l.plt.gcf().axes[0].images[0].get_array()


def test_11_1_exact_match_as_a_heat_map():
    attention_weights = torch.eye(10).reshape((1, 1, 10, 10))
    d2l.show_heatmaps(attention_weights, xlabel="Keys", ylabel="Queries")
    assert (image() == torch.eye(10).numpy()).all()


KERNELS = (d2l.gaussian, d2l.boxcar, d2l.constant, d2l.epanechikov)


def samples():
    x_train, _ = torch.sort(torch.rand(40) * 5)
    x_val = torch.arange(0, 5, 0.1)
    return x_train, 2 * torch.sin(x_train) + x_train + torch.randn(40), x_val, 2 * torch.sin(x_val) + x_val


def test_11_2_kernels_plotted():
    d2l.use_svg_display()
    _, axes = d2l.plt.subplots(1, 4, sharey=True, figsize=(12, 3))
    x = torch.arange(-2.5, 2.5, 0.1)
    for kernel, ax in zip(KERNELS, axes, strict=True):
        ax.plot(x.detach().numpy(), kernel(x).detach().numpy())
    peaks = [ax.lines[0].get_ydata().max() for ax in axes]
    assert peaks == pytest.approx([1] * 4, abs=1e-5)


@pytest.mark.parametrize(
    "kernel",
    [*KERNELS, *map(d2l.gaussian_with_width, (0.1, 0.2, 0.5, 1))],
    ids=lambda kernel: getattr(kernel, "__name__", repr(kernel)),
)
def test_11_2_regression_on_40_points(kernel):
    x_train, y_train, x_val, y_val = samples()
    y_hat, attention_w = d2l.nadaraya_watson(x_train, y_train, x_val, kernel)
    d2l.check_shape(y_hat, (50,))
    d2l.check_shape(attention_w, (40, 50))
    torch.testing.assert_close(attention_w.sum(0), torch.ones(50))
    torch.testing.assert_close(y_train @ attention_w, y_hat)
    d2l.plot(x_val, [y_hat, y_val], "x", "y", legend=["y_hat", "y"])
    d2l.plt.imshow(attention_w.detach().numpy(), cmap="Reds")
    error, spread = (y_hat - y_val).square().mean(), (y_train.mean() - y_val).square().mean()
    if kernel is d2l.constant:
        torch.testing.assert_close(error, spread)
    else:
        assert error < 0.5 * spread


def test_11_3_masked_softmax():
    weights = d2l.masked_softmax(torch.rand(2, 2, 4), torch.tensor([2, 3]))
    assert (weights > 0).sum(-1).tolist() == [[2, 2], [3, 3]]
    weights = d2l.masked_softmax(torch.rand(2, 2, 4), torch.tensor([[1, 3], [2, 4]]))
    assert (weights > 0).sum(-1).tolist() == [[1, 3], [2, 4]]
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2))
    d2l.check_shape(torch.bmm(torch.ones((2, 3, 4)), torch.ones((2, 4, 6))), (2, 3, 6))


KEYS, LENS = torch.normal(0, 1, (2, 10, 2)), torch.tensor([2, 6])
VALUES = torch.normal(0, 1, (2, 10, 4))


@pytest.mark.parametrize(
    ("attention", "query_size"),
    [(d2l.DotProductAttention(dropout=0.5), 2), (d2l.AdditiveAttention(num_hiddens=8, dropout=0.1), 20)],
    ids=["dot product", "additive"],
)
def test_11_3_attention_with_its_weights_shown(attention, query_size):
    queries = torch.normal(0, 1, (2, 1, query_size))
    attention.eval()
    d2l.check_shape(attention(queries, KEYS, VALUES, LENS), (2, 1, 4))
    d2l.show_heatmaps(attention.attention_weights.reshape((1, 1, 2, 10)), xlabel="Keys", ylabel="Queries")
    assert (image() > 0).sum(1).tolist() == [2, 6]


def test_11_3_dot_product_by_hand():
    queries = torch.normal(0, 1, (2, 1, 2))
    scores = torch.bmm(queries, KEYS.transpose(1, 2)) / math.sqrt(2)
    expected = torch.bmm(d2l.masked_softmax(scores, LENS), VALUES)
    torch.testing.assert_close(d2l.DotProductAttention(0.5).eval()(queries, KEYS, VALUES, LENS), expected)
