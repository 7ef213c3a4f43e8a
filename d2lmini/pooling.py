"""Attention pooling by similarity: kernels and Nadaraya-Watson regression.

A kernel is a function of the distance between query and key, elementwise on a tensor, and 1 at distance 0:
its scale cancels when the weights are normalised. A kernel with a method ``log`` is normalised in log space,
where nothing underflows.
"""

import torch


class GaussianKernel:
    """The Gaussian exp(-d^2 / 2 width^2) of a distance d.

    Args:
        width: above 0. A tensor makes it learnable: gradients reach it through `nadaraya_watson`; its shape
            broadcasts to the distances, (S, T).

    Raises:
        ValueError: ``width`` is not above 0.

    Source: D2L section 11.2.1 and, with a width, 11.2.3.
    """

    def __init__(self, width=1.0):
        if not bool(torch.as_tensor(width).gt(0).all()):
            raise ValueError(f"width is {width}, expected above 0 (to learn it, let its logarithm be the parameter)")
        self.width = width

    def __call__(self, distance):
        return self.log(distance).exp()

    def log(self, distance):
        """The kernel's logarithm, exact where the kernel itself underflows to 0."""
        return -0.5 * (distance / self.width) ** 2

    def __repr__(self):
        return f"GaussianKernel(width={self.width})"


gaussian = GaussianKernel()
gaussian_with_width = GaussianKernel  # D2L's name


def boxcar(distance):
    """1 below distance 1, else 0. Source: D2L section 11.2.1."""
    return (distance.abs() < 1).to(distance.dtype)


def constant(distance):
    """1 everywhere: every key counts alike. Source: D2L section 11.2.1."""
    return torch.ones_like(distance)


def triangular(distance):
    """max(0, 1 - abs(d)). Source: D2L section 11.2.1, where it goes by the name of Epanechikov."""
    return (1 - distance.abs()).clamp(min=0)


epanechikov = triangular  # D2L's name, for what D2L computes


def epanechnikov(distance):
    """max(0, 1 - d^2): what statistics calls by that name, but for a factor. Source: Epanechnikov 1969."""
    return (1 - distance**2).clamp(min=0)


def nadaraya_watson(x_train, y_train, x_val, kernel, *, mask=None):
    """Kernel regression: each prediction is the average of ``y_train`` weighted by similarity to the query.

    In terms of attention ``x_train`` are S keys, ``y_train`` their values, and ``x_val`` T queries. For
    scalars the kernel is given the signed difference key - query, for vectors the Euclidean distance.
    Gradients go as far as the kernel has any.

    A query with no key in reach (all its weights are 0) gets 0, not NaN. A `GaussianKernel` reaches as far as (d /
    width)^2 is finite: at a small width the nearest key takes all. As a plain function it
    underflows.

    Args:
        x_train: keys of shape (S,) or (S, D).
        y_train: values of shape (S,) or (S, E); labels of classes one-hot.
        x_val: queries of shape (T,) or (T, D).
        kernel: function of distances, (S, T) to (S, T).
        mask: None, or a boolean tensor (S, T), True = may attend; ``~torch.eye(S, dtype=torch.bool)`` leaves
            each point out of its own prediction.

    Returns:
        The predictions, (T,) or (T, E), and the weights, (S, T): a *column* for each query, as in D2L.

    Raises:
        TypeError: an argument is not a floating-point tensor, or the mask is not boolean.
        ValueError: shapes, dtypes or devices do not fit together.

    Source: D2L section 11.2; Nadaraya 1964, Watson 1964.
    """
    _check(x_train, y_train, x_val, mask)
    if x_train.dim() == 1:
        distance = x_train[:, None] - x_val  # (S, T)
    else:
        # by differences: the faster |x|^2 + |y|^2 - 2xy loses small distances to cancellation
        wide = torch.promote_types(x_train.dtype, torch.float32)  # cdist knows no half precision
        distance = torch.cdist(x_train.to(wide), x_val.to(wide), compute_mode="donot_use_mm_for_euclid_dist")  # (S, T)
        distance = distance.to(x_train.dtype)
    if hasattr(kernel, "log"):
        weights = _normalize_logs(kernel.log(distance), mask)
    else:
        weights = kernel(distance).to(distance.dtype)  # a kernel may answer in booleans
        if mask is not None:
            weights = weights.masked_fill(~mask, 0)
        total = weights.sum(0)  # (T,)
        weights = weights / total.masked_fill(total == 0, 1)
    return weights.mT @ y_train, weights


def _normalize_logs(logs, mask):
    """Softmax over the keys, (S, T), with columns of zeros where there is no key."""
    if mask is not None:
        logs = logs.masked_fill(~mask, -torch.inf)
    empty = (logs == -torch.inf).all(0)  # (T,)
    return logs.masked_fill(empty, 0).softmax(0).masked_fill(empty, 0)


def _check(x_train, y_train, x_val, mask):
    for name, x in (("x_train", x_train), ("y_train", y_train), ("x_val", x_val)):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
            raise TypeError(f"{name} is {kind}, expected a floating-point tensor (labels of classes one-hot)")
        if x.dim() not in (1, 2):
            raise ValueError(f"{name} has shape {tuple(x.shape)}, expected one or two dimensions")
        if (x.dtype, x.device) != (x_train.dtype, x_train.device):
            raise ValueError(f"{name} is {x.dtype} on {x.device} but x_train is {x_train.dtype} on {x_train.device}")
    if x_train.shape[1:] != x_val.shape[1:]:
        raise ValueError(
            f"x_train has shape {tuple(x_train.shape)} and x_val {tuple(x_val.shape)}: expected (S,) and "
            "(T,), or (S, D) and (T, D) with the same D"
        )
    if len(x_train) != len(y_train):
        raise ValueError(f"there are {len(x_train)} keys in x_train but {len(y_train)} values in y_train")
    if mask is not None:
        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
            raise TypeError(f"mask is {getattr(mask, 'dtype', type(mask).__name__)}, expected a boolean tensor (S, T)")
        if mask.shape != (len(x_train), len(x_val)):
            expected = (len(x_train), len(x_val))
            raise ValueError(f"mask has shape {tuple(mask.shape)}, expected (S, T) = {expected}: keys in rows")
