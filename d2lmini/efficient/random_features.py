"""Performer's features: random ones, positive, whose dot products are exp(q . k / sqrt(D)) on average."""

import math

import torch

from ..buffers import ExactBuffers


class PositiveRandomFeatures(ExactBuffers):
    """Features phi with phi(q) . phi(k) equal, on average over the draw, to exp(scale * q . k): softmax's kernel.

    With u = sqrt(scale) q and rows w of a Gaussian matrix the features are exp(w . u - u . u / 2) / sqrt(M). They are
    positive, so weights are, too, and where exp(scale * q . k) is small they hardly vary.

    ``features(x)`` keeps that average, for queries as for keys. ``features.stable`` is a pair of maps for
    `d2lmini.linear_attention` whose largest feature is near 1: factors that cancel in the weights are left out.

    Args:
        num_inputs: D, features of a query or key.
        num_features: M; the variance falls as 1 / M.
        orthogonal: whether rows are drawn at right angles to each other, D at a time, which keeps the average and
            lowers the variance.
        scale: factor on the dot products; None: 1/sqrt(D).
        generator: ``torch.Generator`` for the draw, or None.

    Raises:
        ValueError: a size is below 1, or ``scale`` is not positive.

    Source: Choromanski et al. 2021, lemma 1 and section 2.
    """

    exact = ("w",)

    def __init__(self, num_inputs, num_features, *, orthogonal=True, scale=None, generator=None):
        super().__init__()
        if num_inputs < 1 or num_features < 1:
            raise ValueError(f"num_inputs is {num_inputs} and num_features {num_features}, expected at least 1")
        self.scale = 1 / math.sqrt(num_inputs) if scale is None else scale
        if not (self.scale > 0 and math.isfinite(self.scale)):
            raise ValueError(f"scale is {scale}, expected a positive one, and finite")
        self.orthogonal = orthogonal
        self.register_buffer("w", torch.empty(num_features, num_inputs))
        self.redraw(generator)

    def redraw(self, generator=None):
        """Draws the rows anew, as one may do every so many steps of training."""
        num_features, num_inputs = self.w.shape
        w = torch.randn(num_features, num_inputs, generator=generator)
        if self.orthogonal:
            blocks = [_directions(num_inputs, generator) for _ in range(-(-num_features // num_inputs))]
            w = torch.cat(blocks)[:num_features] * w.norm(dim=1, keepdim=True)  # lengths as independent rows have
        self.w.copy_(w)

    def forward(self, x):
        """(..., D) to (..., M)."""
        return self.log_features(x).exp() / math.sqrt(len(self.w))

    def log_features(self, x):
        """Logarithms of the features without their 1 / sqrt(M): (..., D) to (..., M)."""
        x = x * math.sqrt(self.scale)
        return x @ self.w.to(x.dtype).T - x.square().sum(-1, keepdim=True) / 2

    @property
    def stable(self):
        """A pair of maps, for queries and for keys, for `d2lmini.linear_attention` and `d2lmini.kernel_weights`.

        A query's features share a factor of its own, those of all keys of an example and head one factor; both cancel.
        """
        return self._of_queries, self._of_keys

    def _of_queries(self, x):
        logs = self.log_features(x)
        return (logs - logs.detach().amax(-1, keepdim=True)).exp()

    def _of_keys(self, x):
        logs = self.log_features(x)
        return (logs - logs.detach().amax((-2, -1), keepdim=True)).exp() if logs.numel() else logs

    def variance(self, queries, keys):
        """The variance of phi(q) . phi(k) over draws of independent rows, in closed form.

        With u and v the scaled query and key it is ``exp(2 u . v) (exp(|u + v|^2) - 1) / M``. Orthogonal rows
        have less.

        Args:
            queries: (..., T, D).
            keys: (..., S, D).

        Returns:
            (..., T, S).

        Source: Choromanski et al. 2021, lemma 2.
        """
        u, v = queries * math.sqrt(self.scale), keys * math.sqrt(self.scale)
        dots = u @ v.mT  # (..., T, S)
        squares = u.square().sum(-1, keepdim=True) + v.square().sum(-1).unsqueeze(-2) + 2 * dots
        return torch.exp(2 * dots) * torch.expm1(squares) / len(self.w)


def _directions(size, generator):
    """Rows at right angles to each other, of length 1, each of them in every direction alike: (size, size)."""
    q, r = torch.linalg.qr(torch.randn(size, size, generator=generator))
    return (q * r.diagonal().sign()).T  # without the signs LAPACK's choice would favour some directions
