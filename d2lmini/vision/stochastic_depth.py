"""Stochastic depth: in training, a residual branch is left out for some of the examples."""

import torch
from torch import nn


class DropPath(nn.Module):
    """Sets the whole branch of an example to zero with a probability, in training alone.

    What is kept is divided by ``1 - rate``, so that the mean stays. It stands on a branch, before the sum:
    ``X + drop_path(sublayer(X))``; an example without its branch passes the sublayer unchanged.

    Args:
        rate: probability of leaving out the branch, from 0 to below 1.

    Raises:
        ValueError: ``rate`` is outside of that.

    Source: Huang et al. 2016, "Deep networks with stochastic depth".
    """

    def __init__(self, rate=0.0):
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"rate is {rate}, expected a probability from 0 to below 1")
        self.rate = rate

    def forward(self, X):
        """X (N, ...), a branch, to the same shape."""
        if not self.training or self.rate == 0:
            return X
        keep = 1 - self.rate
        kept = torch.rand(len(X), *[1] * (X.dim() - 1), device=X.device) < keep  # (N, 1, ...)
        return X * (kept / keep).to(X.dtype)

    def extra_repr(self):
        return f"rate={self.rate}"
