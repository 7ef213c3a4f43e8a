"""Figure of chapter 02: kernel regression over points that can be moved."""

import torch

from .. import pooling
from .base import Figure, table

KERNELS = {
    "gaussian": pooling.GaussianKernel,
    "boxcar": lambda width: lambda distance: pooling.boxcar(distance / width),
    "epanechnikov": lambda width: lambda distance: pooling.epanechnikov(distance / width),
}


class KernelPooling(Figure):
    """Points on a line, the Nadaraya-Watson curve through them, and what one query makes of them.

    The reader drags points and the query, chooses kernel and width, and sees weights (dots grow with them),
    the curve, its error on the points themselves and its error with each point left out of its own answer.

    Args:
        x: (N,) keys, at least two different ones.
        y: (N,) their values.
        query: where the weights are shown.
        width: between 0.01 and 10; the kernel is a function of distance / width.
        kernel: ``"gaussian"``, ``"boxcar"`` or ``"epanechnikov"``.

    Raises:
        ValueError: wrong shapes, fewer than two different keys, an unknown kernel or a width out of range.
    """

    name = "kernel_pooling"
    title = "Pooling over points"
    hint = (
        "Drag the query along, move points, change the width and the kernel. By keyboard: arrow keys move "
        "what has the focus, Page Up and Page Down go to the next point."
    )

    def __init__(self, x, y, query, width=0.5, kernel="gaussian"):
        x, y = torch.as_tensor(x, dtype=torch.float64), torch.as_tensor(y, dtype=torch.float64)
        if x.ndim != 1 or x.shape != y.shape or len(x.unique()) < 2:
            raise ValueError(
                f"expected x (N,) and y (N,) with at least two different x, got {tuple(x.shape)} and "
                f"{tuple(y.shape)} with {len(x.unique())} different x"
            )
        if kernel not in KERNELS:
            raise ValueError(f"kernel is one of {sorted(KERNELS)}, not {kernel!r}")
        if not 0.01 <= width <= 10:
            raise ValueError(f"width must lie between 0.01 and 10, not {width}")
        pool = KERNELS[kernel](width)
        output, weights = pooling.nadaraya_watson(x, y, x.new_tensor([query]), pool)  # (1,), (N, 1)
        self.weights = weights[:, 0]
        self.output = output.item() if self.weights.any() else None  # None: nothing in reach
        self.training_error = (pooling.nadaraya_watson(x, y, x, pool)[0] - y).square().mean().item()
        others = ~torch.eye(len(x), dtype=torch.bool)
        left_out, weights = pooling.nadaraya_watson(x, y, x, pool, mask=others)
        reached = weights.any(dim=0)  # (N,): points with another one in reach
        self.alone = int((~reached).sum())
        self.left_out_error = (left_out - y)[reached].square().mean().item() if reached.any() else None
        super().__init__(
            f"Kernel regression over {len(x)} points: the weights of one query, the curve and its errors.",
            x=x,
            y=y,
            query=float(query),
            width=float(width),
            kernel=kernel,
        )

    def fallback(self):
        rows = [
            [i + 1, f"{x:.2f}", f"{y:.2f}", f"{weight:.3f}"]
            for i, (x, y, weight) in enumerate(
                zip(self.state["x"], self.state["y"], self.weights.tolist(), strict=True)
            )
        ]
        output = "nothing is in reach" if self.output is None else f"the output is {self.output:.2f}"
        left_out = "undefined" if self.left_out_error is None else f"{self.left_out_error:.3f}"
        state = self.state
        caption = (
            f"Query {state['query']:g}, {state['kernel']} kernel of width {state['width']:g}: {output}. "
            f"Mean squared error on the points {self.training_error:.3f}, leaving each out {left_out}."
        )
        return table(["point", "x", "y", "weight"], rows, caption)
