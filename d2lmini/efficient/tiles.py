"""Exact attention in tiles: a few queries and a few keys at a time, so that no (T, S) matrix is ever there.

Forward, an online softmax goes from tile to tile of keys. Backward, the weights are made again, tile by tile, from the
scores and one number a query, the logarithm of its sum of exponentials. This is what a fused kernel does. In Python it
is there to be read, and slower than the kernel behind `d2lmini.scaled_dot_product_attention`, with which it agrees.
"""

import math
from functools import reduce

import torch
from torch.autograd.function import once_differentiable

from ..inputs import check_inputs, without_idle
from ..masks import as_mask, check_lens


class OnlineSoftmax:
    """A softmax average of values whose scores come a few keys at a time.

    It keeps three things for each query: ``top``, the largest score so far; ``total``, the sum of exp(score - top) so
    far; ``output``, the same sum with the values as factors. When a larger score comes, one factor rescales both sums.

    Source: Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, section 3.1.
    """

    def __init__(self):
        self.top, self.total, self.output = -math.inf, 0.0, 0.0

    def add(self, scores, values):
        """Takes in some keys.

        Args:
            scores: (..., T, n), at least one; -inf hides a key from a query.
            values: (..., n, E).
        """
        top = scores.amax(-1, keepdim=True).clamp(min=self.top)  # (..., T, 1)
        base = top.masked_fill(top == -math.inf, 0)  # no key yet: -inf less -inf would be NaN
        shrink, powers = torch.exp(self.top - base), torch.exp(scores - base)
        self.total = self.total * shrink + powers.sum(-1, keepdim=True)
        self.output = self.output * shrink + powers @ values
        self.top = top

    def average(self):
        """The average so far, (..., T, E); zeros for a query that all keys were hidden from."""
        return self.output / self.total.masked_fill(self.total == 0, 1)

    def log_sum_exp(self):
        """The logarithm of the sum of exp(score), (..., T, 1): weights are exp(score - log_sum_exp)."""
        return self.top + self.total.log()


def tiled_attention(queries, keys, values, valid_lens=None, *, mask=None, causal=False, scale=None, tile=64):
    """Scaled dot-product attention in memory linear in T and S, forward and backward; equal up to rounding.

    Beyond inputs, output and gradients there is a tile of scores and a number for each query. Tiles in which the mask
    hides all are left out. First derivatives only.

    Args:
        queries: (B, T, D) or (B, H, T, D).
        keys: (B, S, D) or (B, H, S, D).
        values: (B, S, E) or (B, H, S, E).
        valid_lens: None, or integers of shape (B,) or (B, T): how many of the first keys count.
        mask: None, or a boolean mask, True = may attend (`d2lmini.masks.as_mask`).
        causal: whether later positions are hidden; the queries are the last T of S positions, as in `causal_mask`.
        scale: factor on the dot products; None: 1/sqrt(D).
        tile: queries and keys of a tile, at least 1: an integer, or a pair (queries, keys).

    Returns:
        (B, T, E) or (B, H, T, E).

    Raises:
        TypeError, ValueError: as `d2lmini.scaled_dot_product_attention`; ValueError too where ``tile`` is below 1.

    Source: Dao et al. 2022, algorithms 1 and 4; Rabe and Staats 2021.
    """
    shape = check_inputs(queries, keys, values)
    if queries.shape[-1] != keys.shape[-1] or queries.shape[-1] == 0:
        raise ValueError(
            f"queries have {queries.shape[-1]} features and keys {keys.shape[-1]}, expected as many, at least 1"
        )
    tile = (tile, tile) if isinstance(tile, int) else tuple(tile)
    if len(tile) != 2 or min(tile) < 1:
        raise ValueError(f"tile is {tile}, expected an integer or a pair, at least 1")
    if causal and shape[-2] > shape[-1]:
        raise ValueError(f"there are {shape[-2]} queries but {shape[-1]} keys: the queries are the last positions")
    if valid_lens is not None:  # kept as lengths: their mask may be as large as the scores
        check_lens(shape, valid_lens, device=queries.device)
        valid_lens = valid_lens.view(shape[0], *[1] * (len(shape) - 3), -1, 1)  # (B, 1, 1 or T, 1)
    mask = as_mask(shape, None, mask, device=queries.device)
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    return _Tiled.apply(queries, keys, values, _Tiles(shape, tile, mask, valid_lens, causal, queries.device), scale)


class _Tiled(torch.autograd.Function):
    """The sums of half precision are in float32, whatever autocast says."""

    @staticmethod
    def forward(ctx, queries, keys, values, tiles, scale):
        ctx.tiles, ctx.scale = tiles, scale
        wide = _wide(queries.dtype)
        output = values.new_zeros(*queries.shape[:-1], values.shape[-1])  # (..., T, E)
        log_sums = values.new_full((*queries.shape[:-1], 1), -math.inf, dtype=wide)  # (..., T, 1)
        with torch.autocast(queries.device.type, enabled=False):
            for rows, in_sight in tiles:
                softmax = OnlineSoftmax()
                for columns, seen in in_sight:
                    _, _, v, scores = _scores(queries, keys, values, rows, columns, seen, scale, wide)
                    softmax.add(scores, v)
                if in_sight:
                    output[..., rows, :], log_sums[..., rows, :] = softmax.average(), softmax.log_sum_exp()
        ctx.save_for_backward(queries, keys, values, output, log_sums)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, slope):
        """With P the weights and dP = slope values^T, the gradient in the scores is P * (dP - slope . output)."""
        queries, keys, values, output, log_sums = ctx.saved_tensors
        wide, empty = log_sums.dtype, log_sums == -math.inf
        slope = slope.to(wide).masked_fill(empty, 0)  # (..., T, E)
        offset = (slope * output).sum(-1, keepdim=True)  # (..., T, 1): sum of P * dP over the keys, without P
        log_sums = log_sums.masked_fill(empty, math.inf)  # exp(-inf - inf) is 0
        d_queries, d_keys, d_values = (torch.zeros_like(x, dtype=wide) for x in (queries, keys, values))
        with torch.autocast(queries.device.type, enabled=False):
            for rows, in_sight in ctx.tiles:
                g = slope[..., rows, :]
                for columns, seen in in_sight:
                    q, k, v, scores = _scores(queries, keys, values, rows, columns, seen, ctx.scale, wide)
                    weights = torch.exp(scores - log_sums[..., rows, :])  # (..., t, s)
                    d_scores = ctx.scale * weights * (g @ v.mT - offset[..., rows, :])
                    d_values[..., columns, :] += weights.mT @ g
                    d_queries[..., rows, :] += d_scores @ k
                    d_keys[..., columns, :] += d_scores.mT @ q
        return d_queries.to(queries.dtype), d_keys.to(keys.dtype), d_values.to(values.dtype), None, None


def _scores(queries, keys, values, rows, columns, seen, scale, wide):
    """Queries, keys and values of a tile, and its scores (..., t, s), -inf where they are hidden."""
    q, k, v = (x[..., part, :].to(wide) for x, part in ((queries, rows), (keys, columns), (values, columns)))
    if seen is None:
        return q, k, v, scale * (q @ k.mT)
    q, k, v = without_idle(seen, q, k, v)
    return q, k, v, (scale * (q @ k.mT)).masked_fill(~seen, -math.inf)


def _wide(dtype):
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


class _Tiles:
    """How the (T, S) scores are cut, and what is hidden where: goes through the queries' tiles, each with its keys."""

    def __init__(self, shape, tile, mask, valid_lens, causal, device):
        self.T, self.S = shape[-2:]
        self.tile, self.mask, self.valid_lens, self.causal, self.device = tile, mask, valid_lens, causal, device

    def __iter__(self):
        """Pairs: a slice of queries, and a list of slices of keys of which these see some, with what they see."""
        for t in range(0, self.T, self.tile[0]):
            rows = slice(t, min(t + self.tile[0], self.T))
            end = rows.stop + self.S - self.T if self.causal else self.S  # later keys are all in the future
            cuts = (slice(s, min(s + self.tile[1], self.S)) for s in range(0, end, self.tile[1]))
            pairs = ((columns, self._seen(rows, columns)) for columns in cuts)
            yield rows, [(columns, seen) for columns, seen in pairs if seen is None or seen.any()]

    def _seen(self, rows, columns):
        """None: all; else a boolean tensor that broadcasts to (..., t, s), of as many dimensions as the scores."""
        parts = []
        if self.mask is not None:
            part = self.mask if self.mask.shape[-2] == 1 else self.mask[..., rows, :]
            parts.append(part if part.shape[-1] == 1 else part[..., columns])
        keys = torch.arange(columns.start, columns.stop, device=self.device)  # (s,)
        if self.valid_lens is not None:
            parts.append(keys < (self.valid_lens if self.valid_lens.shape[-2] == 1 else self.valid_lens[..., rows, :]))
        first = rows.start + self.S - self.T  # where the first of these queries stands among the keys
        if self.causal and columns.stop - 1 > first:
            parts.append(keys <= torch.arange(first, first + rows.stop - rows.start, device=self.device)[:, None])
        return reduce(torch.logical_and, parts) if parts else None
