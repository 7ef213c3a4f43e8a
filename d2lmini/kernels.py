"""Which way to the same averages is fastest: torch's fused kernel, or the formula of `d2lmini.scoring`.

`attend` is what all dot-product attention goes through. What a CPU is slow at stands here and nowhere else: few keys,
dropout, keys that lie feature by feature, bfloat16.
"""

import torch
import torch.nn.functional as F

from .inputs import is_known_finite, without_idle
from .masks import with_causal
from .scoring import added_to_scores, dot_product_weights, softmax_of_scores, weighted_average


def attend(queries, keys, values, mask=None, *, causal=False, scale=None, dropout_p=0.0, score_bias=None):
    """Averages (..., T, E) of the values, by the fused kernel, which never makes the (T, S) weights, if that is faster.

    The arguments are those of `d2lmini.scaled_dot_product_attention`, checked; ``mask`` has the dimensions of the
    scores. What takes no part has no effect, as told in `d2lmini.attention`.
    """
    shape = (*queries.shape[:-1], keys.shape[-2])
    average = _formula if _formula_is_better(shape, queries, keys, values, dropout_p, mask) else _kernel
    may_be_idle = mask is not None  # a causal mask alone leaves each query a key, and each key a query
    if causal and not (average is _kernel and mask is None and score_bias is None and shape[-2] == shape[-1]):
        mask, causal = with_causal(shape, mask, queries.device), False  # the kernel's own aligns starts
    if not may_be_idle:
        return average(queries, keys, values, mask, score_bias, causal, scale, dropout_p)
    if queries.device.type == "cpu":
        output = average(queries, keys, values, mask, score_bias, False, scale, dropout_p)
        looked_at = (output, queries, keys) if output.requires_grad else (output,)
        if all(map(is_known_finite, looked_at)):
            return output
    queries, keys, values = without_idle(mask, queries, keys, values)
    empty = ~mask.any(-1, keepdim=True)  # (..., T, 1): rows for which some ways give NaN
    return average(queries, keys, values, mask | empty, score_bias, False, scale, dropout_p).masked_fill(empty, 0)


def _formula_is_better(shape, queries, keys, values, dropout_p, mask):
    """Whether to make the weights: the kernel would take longer, or cannot be relied on."""
    if 0 in shape or 0 in values.shape:  # kernels differ on what they make of nothing
        return True
    if queries.device.type != "cpu":
        return False
    if shape[-2] == 1 and keys.stride(-1) != 1:  # keys that lie feature by feature, as `d2lmini.cache` may have them
        return True
    # a CPU's kernel makes weights itself if it is to drop some; of a few keys it is slow with a mask, and backward
    few = shape[-2] * shape[-1] <= 256
    return dropout_p > 0 or (few and (mask is not None or (queries.requires_grad and torch.is_grad_enabled())))


def _formula(queries, keys, values, mask, score_bias, causal, scale, dropout_p):
    return weighted_average(softmax_of_scores(queries, keys, mask, score_bias, scale), values, dropout_p)


def _kernel(queries, keys, values, mask, score_bias, causal, scale, dropout_p):
    if queries.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        # there the backward pass in bf16 takes twice (196 tokens) to thirteen times (17) the time of float32's
        full, dtype = (x.float() for x in (queries, keys, values)), torch.get_autocast_dtype("cpu")
        with torch.autocast("cpu", enabled=False):
            return _kernel(*full, mask, score_bias, causal, scale, dropout_p).to(dtype)
    if queries.device.type == "cpu" and keys.stride(-1) != 1:
        keys = keys.contiguous()  # else it takes up to five times as long
    if score_bias is not None:
        mask = added_to_scores(mask, score_bias.to(queries.dtype)).expand(*queries.shape[:-1], keys.shape[-2])
    if queries.dim() == 4:
        return F.scaled_dot_product_attention(queries, keys, values, mask, dropout_p, causal, scale=scale)
    # the fast kernels want heads
    queries, keys, values = queries.unsqueeze(1), keys.unsqueeze(1), values.unsqueeze(1)  # (B, 1, T, D), ...
    mask = None if mask is None else mask.unsqueeze(1)  # (B, 1, T, S)
    return F.scaled_dot_product_attention(queries, keys, values, mask, dropout_p, causal, scale=scale).squeeze(1)


def attend_with_weights(queries, keys, values, mask=None, *, causal=False, scale=None, dropout_p=0.0, score_bias=None):
    """The averages of `attend` and the weights before dropout, (..., T, S)."""
    if causal and mask is not None:
        mask, causal = with_causal((*queries.shape[:-1], keys.shape[-2]), mask, queries.device), False
    weights = dot_product_weights(queries, keys, mask, score_bias, causal=causal, scale=scale)
    if mask is not None:
        _, values = without_idle(mask, None, values)
    return weighted_average(weights, values, dropout_p), weights.to(queries.dtype)
