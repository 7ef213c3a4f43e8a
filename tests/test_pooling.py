"""Kernels and Nadaraya-Watson regression against plain loops, at the limits, and with wrong input."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini import pooling
from d2lmini.pooling import GaussianKernel, gaussian_with_width, nadaraya_watson

few = settings(max_examples=40, deadline=None, derandomize=True)
FORMULAS = {
    "gaussian": lambda d: math.exp(-(d**2) / 2),
    "boxcar": lambda d: float(abs(d) < 1),
    "constant": lambda d: 1.0,
    "triangular": lambda d: max(0.0, 1 - abs(d)),
    "epanechnikov": lambda d: max(0.0, 1 - d**2),
}
KERNELS = {name: getattr(pooling, name) for name in FORMULAS}


def random(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype)


def loop(x_train, y_train, x_val, formula):
    """Predictions and weights by loops over numbers; keys without a neighbour give zeros."""
    keys, values, queries = x_train.tolist(), y_train.tolist(), x_val.tolist()
    weights = torch.zeros(len(keys), len(queries), dtype=torch.float64)
    y_hat = []
    for t, query in enumerate(queries):
        similarity = [formula(k - query if isinstance(k, float) else math.dist(k, query)) for k in keys]
        total = sum(similarity)
        for s, similar in enumerate(similarity):
            weights[s, t] = similar / total if total else 0.0
        column = weights[:, t].tolist()
        if values and isinstance(values[0], list):
            y_hat.append([sum(w * v[e] for w, v in zip(column, values, strict=True)) for e in range(len(values[0]))])
        else:
            y_hat.append(sum(w * v for w, v in zip(column, values, strict=True)))
    return torch.tensor(y_hat, dtype=torch.float64), weights


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_values(name):
    x = torch.tensor([-2.5, -1.0, -0.6, 0.0, 0.3, 1.0, 4.0], dtype=torch.float64)
    expected = torch.tensor([FORMULAS[name](d) for d in x.tolist()], dtype=torch.float64)
    torch.testing.assert_close(KERNELS[name](x), expected)


def test_d2l_epanechikov_is_the_triangle():
    # what D2L calls so is no parabola: its readers' curves must stay theirs
    x = torch.tensor([0.5])
    assert pooling.epanechikov(x).item() == 0.5 and pooling.epanechnikov(x).item() == 0.75


@few
@given(
    st.sampled_from(list(KERNELS)),
    st.integers(1, 6),
    st.integers(1, 5),
    st.one_of(st.none(), st.integers(1, 3)),
    st.one_of(st.none(), st.integers(1, 4)),
    st.integers(0, 1000),
)
def test_nadaraya_watson_by_loop(name, S, T, D, E, seed):
    torch.manual_seed(seed)
    x_train, x_val = (random(n) if D is None else random(n, D) for n in (S, T))
    y_train = random(S) if E is None else random(S, E)
    y_hat, weights = nadaraya_watson(x_train, y_train, x_val, KERNELS[name])
    expected, expected_weights = loop(x_train, y_train, x_val, FORMULAS[name])
    torch.testing.assert_close(weights, expected_weights)
    torch.testing.assert_close(y_hat, expected)


@few
@given(st.integers(1, 5), st.integers(1, 4), st.floats(0.3, 3), st.integers(0, 1000))
def test_gradients_reach_everything(S, T, width, seed):
    torch.manual_seed(seed)
    inputs = [random(S, 2), random(S, 3), random(T, 2), torch.tensor(width, dtype=torch.float64)]
    for x in inputs:
        x.requires_grad_()

    def predict(x_train, y_train, x_val, width):
        return nadaraya_watson(x_train, y_train, x_val, GaussianKernel(width))[0]

    assert torch.autograd.gradcheck(predict, inputs)


def test_boxcar_with_no_key_in_reach_gives_zero():
    x_train = torch.tensor([0.0, 0.5], requires_grad=True)
    y_train = torch.tensor([3.0, 5.0], requires_grad=True)
    y_hat, weights = nadaraya_watson(x_train, y_train, torch.tensor([0.2, 9.0]), pooling.boxcar)
    assert y_hat.tolist() == [4.0, 0.0]
    assert weights.tolist() == [[0.5, 0.0], [0.5, 0.0]]
    y_hat.sum().backward()
    assert y_train.grad.tolist() == [0.5, 0.5]


def test_a_kernel_may_answer_in_booleans():
    y_hat, _ = nadaraya_watson(torch.zeros(2), torch.tensor([3.0, 5.0]), torch.zeros(1), lambda d: d.abs() < 1)
    assert y_hat.tolist() == [4.0]


def test_scalar_kernels_get_the_signed_difference():
    _, weights = nadaraya_watson(torch.tensor([-1.0, 1.0]), torch.ones(2), torch.zeros(1), lambda d: d > 0)
    assert weights[:, 0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("width", [1e-2, 1e-6, 1e-15])
def test_gaussian_at_a_tiny_width_is_the_nearest_key(width):
    width = torch.tensor(width, requires_grad=True)
    x_train, x_val = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.4, 1.6, 50.0])
    y_hat, weights = nadaraya_watson(x_train, torch.tensor([5.0, 6.0, 7.0]), x_val, GaussianKernel(width))
    assert y_hat.tolist() == [5.0, 7.0, 7.0]
    torch.testing.assert_close(weights.sum(0), torch.ones(3))
    y_hat.sum().backward()
    assert width.grad.isfinite()


def test_mask_leaves_each_point_out():
    x, y = random(6), random(6)
    mask = ~torch.eye(6, dtype=torch.bool)
    for kernel in (GaussianKernel(0.5), pooling.triangular):
        y_hat, weights = nadaraya_watson(x, y, x, kernel, mask=mask)
        assert not weights.diagonal().any()
        for i in range(6):
            rest = torch.arange(6) != i
            alone, _ = nadaraya_watson(x[rest], y[rest], x[i : i + 1], kernel)
            torch.testing.assert_close(y_hat[i : i + 1], alone)


@pytest.mark.parametrize("kernel", [GaussianKernel(0.5), pooling.constant])
def test_a_query_that_may_attend_to_nothing_gives_zero_and_finite_gradients(kernel):
    x, y = random(3).requires_grad_(), random(3).requires_grad_()
    mask = torch.ones(3, 2, dtype=torch.bool)
    mask[:, 1] = False
    y_hat, weights = nadaraya_watson(x, y, torch.zeros(2, dtype=torch.float64), kernel, mask=mask)
    assert y_hat[1] == 0 and not weights[:, 1].any()
    y_hat.sum().backward()
    assert x.grad is None or x.grad.isfinite().all()
    torch.testing.assert_close(y.grad, weights[:, 0].detach())


@pytest.mark.parametrize("kernel", KERNELS.values())
def test_no_keys_and_no_queries(kernel):
    y_hat, weights = nadaraya_watson(torch.zeros(0, 2), torch.zeros(0, 3), torch.zeros(4, 2), kernel)
    assert y_hat.shape == (4, 3) and not y_hat.any() and weights.shape == (0, 4)
    y_hat, weights = nadaraya_watson(torch.zeros(5), torch.zeros(5), torch.zeros(0), kernel)
    assert y_hat.shape == (0,) and weights.shape == (5, 0)


def test_small_distances_survive_large_coordinates():
    # |x|^2 + |y|^2 - 2xy would lose them in float32
    keys = torch.tensor([[1000.0, 0.0], [1000.0, 0.1]]).repeat(30, 1)
    _, weights = nadaraya_watson(
        keys, torch.ones(60), torch.tensor([[1000.0, 0.0]]).repeat(30, 1), GaussianKernel(0.05)
    )
    ratio = (weights[1, 0] / weights[0, 0]).item()
    assert ratio == pytest.approx(math.exp(-2), rel=1e-3)


def test_gaussian_kernel_is_what_it_says():
    assert gaussian_with_width is GaussianKernel
    assert repr(GaussianKernel(0.5)) == "GaussianKernel(width=0.5)"
    x = torch.tensor([0.0, 1.0, 3.0])
    torch.testing.assert_close(GaussianKernel(2.0)(x), torch.exp(-(x**2) / 8))


@pytest.mark.parametrize("width", [0, -1.0, math.nan, torch.tensor([1.0, 0.0])])
def test_bad_width(width):
    with pytest.raises(ValueError, match="expected above 0"):
        GaussianKernel(width)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x_train": torch.arange(4)}, TypeError, "x_train is torch.int64, expected a floating-point tensor"),
        ({"y_train": torch.arange(4)}, TypeError, "labels of classes one-hot"),
        ({"y_train": [1.0] * 4}, TypeError, "y_train is list"),
        ({"y_train": torch.ones(3)}, ValueError, "there are 4 keys in x_train but 3 values in y_train"),
        ({"x_val": torch.ones(3, 2)}, ValueError, r"x_train has shape \(4,\) and x_val \(3, 2\)"),
        ({"x_val": torch.ones(1, 1, 1)}, ValueError, "expected one or two dimensions"),
        (
            {"x_val": torch.ones(3).double()},
            ValueError,
            "x_val is torch.float64 on cpu but x_train is torch.float32",
        ),
        ({"x_val": torch.ones(3, device="meta")}, ValueError, "x_val is torch.float32 on meta"),
        ({"mask": torch.ones(4, 3)}, TypeError, "mask is torch.float32, expected a boolean tensor"),
        (
            {"mask": torch.ones(3, 4).bool()},
            ValueError,
            r"mask has shape \(3, 4\), expected \(S, T\) = \(4, 3\)",
        ),
    ],
)
def test_bad_input(change, error, message):
    arguments = {"x_train": torch.ones(4), "y_train": torch.ones(4), "x_val": torch.ones(3)} | change
    with pytest.raises(error, match=message):
        nadaraya_watson(kernel=pooling.constant, **arguments)
