"""From queries and keys to weights, and from weights to an average: the arithmetic inside `d2lmini.attention`.

`attend` is what all dot-product attention goes through, by torch's fused kernel or by the formula. `masked_softmax`
checks what it is given. The other functions are what the modules run once they have checked their inputs and made
one mask of ``valid_lens`` and ``mask`` (`d2lmini.masks.as_mask`).
"""

import math

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .masks import as_mask, with_causal

# the largest block of additive features made at once, in elements: 16 MiB in float32
ADDITIVE_BLOCK = 2**22


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
        if all(map(_is_known_finite, looked_at)):
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
    return weighted_average(_softmax_of_scores(queries, keys, mask, score_bias, scale), values, dropout_p)


def _kernel(queries, keys, values, mask, score_bias, causal, scale, dropout_p):
    if queries.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        # there the backward pass in bf16 takes twice (196 tokens) to thirteen times (17) the time of float32's
        full, dtype = (x.float() for x in (queries, keys, values)), torch.get_autocast_dtype("cpu")
        with torch.autocast("cpu", enabled=False):
            return _kernel(*full, mask, score_bias, causal, scale, dropout_p).to(dtype)
    if queries.device.type == "cpu" and keys.stride(-1) != 1:
        keys = keys.contiguous()  # else it takes up to five times as long
    if score_bias is not None:
        mask = _added(mask, score_bias.to(queries.dtype)).expand(*queries.shape[:-1], keys.shape[-2])
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


def without_idle(mask, queries, *keys):
    """Queries that may attend to nothing, and keys and values that no query may attend to, become zero: 0 * NaN is NaN.

    On a CPU what is finite stays as it is, for it has no effect anyway. ``mask`` has the dimensions of the scores, of
    whose keys ``keys`` are the last; None stays None.
    """
    distinct = {id(x): x for x in (queries, *keys) if x is not None}  # in self-attention all may be one
    dirty = {i for i, x in distinct.items() if not _is_known_finite(x)}
    if not dirty:
        return queries, *keys
    idle, unseen = ~mask.any(-1).unsqueeze(-1), ~mask.any(-2).unsqueeze(-1)  # (..., T, 1), (..., S, 1)
    return (
        queries.masked_fill(idle, 0) if id(queries) in dirty else queries,
        *(x.masked_fill(unseen[..., -x.shape[-2] :, :], 0) if id(x) in dirty else x for x in keys),
    )


def _is_known_finite(x):
    # to look costs less than to copy, but a GPU would have to wait; a sum that only overflows costs a copy
    return x.device.type == "cpu" and math.isfinite(x.detach().sum())


def _added(mask, score_bias):
    """What is added to the scores: the bias, and -inf where the mask is False."""
    return score_bias if mask is None else score_bias.masked_fill(~mask, -torch.inf)


def masked_softmax(X, valid_lens=None, *, mask=None):
    """Softmax over the keys that may be attended to; the others weigh exactly 0, whatever their score.

    Args:
        X: scores of shape (B, T, S) or (B, H, T, S); not changed. (T, S) without ``valid_lens``.
        valid_lens: None, or integers of shape (B,) or (B, T): how many of the first keys count.
        mask: None, or a boolean mask, True = may attend (`d2lmini.masks.as_mask`).

    Returns:
        Weights of the shape and dtype of ``X``. Rows sum to 1, or are 0 where nothing may be attended to.

    Raises:
        TypeError: ``X`` is not floating-point, or ``valid_lens`` or ``mask`` is of the wrong type.
        ValueError: ``valid_lens`` or ``mask`` does not fit ``X``.

    Source: D2L section 11.3.2.1.
    """
    if not isinstance(X, torch.Tensor) or not X.is_floating_point():
        raise TypeError(f"scores are {getattr(X, 'dtype', type(X).__name__)}, expected a floating-point tensor")
    return softmax_where(X, as_mask(X.shape, valid_lens, mask, device=X.device))


def softmax_where(scores, mask):
    """Softmax over the last dimension where ``mask`` is True (None: everywhere); a row without any is zero."""
    if mask is None:
        return scores.softmax(-1)
    empty = ~mask.any(-1, keepdim=True)  # (..., T, 1)
    # rows of -inf would give NaN in value and gradient: empty rows are computed from zeros, then cleared
    blocked = torch.zeros_like(empty, dtype=scores.dtype).masked_fill(~empty, -torch.inf)
    return torch.where(mask, scores, blocked).softmax(-1).masked_fill(empty, 0)


def dot_product_weights(queries, keys, mask=None, score_bias=None, *, causal=False, scale=None):
    """Weights (..., T, S) of scores scale * q . k, plus a bias; the scale is 1/sqrt(D) unless given. D2L 11.3.6."""
    may_be_idle = mask is not None
    if causal:
        mask = with_causal((*queries.shape[:-1], keys.shape[-2]), mask, queries.device)
    if not may_be_idle:
        return _softmax_of_scores(queries, keys, mask, score_bias, scale)
    queries, keys = without_idle(mask, queries, keys)
    empty = ~mask.any(-1, keepdim=True)  # (..., T, 1): rows whose softmax would be NaN
    return _softmax_of_scores(queries, keys, mask | empty, score_bias, scale).masked_fill(empty, 0)


def _softmax_of_scores(queries, keys, mask, score_bias, scale):
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    scores = _widen(queries) @ _widen(keys).mT  # (..., T, S)
    if mask is None and score_bias is None:
        return scores.mul_(scale).softmax(-1)
    added = _added(mask, scores.new_zeros(()) if score_bias is None else score_bias)
    return torch.add(added, scores, alpha=scale).softmax(-1)


def additive_scores(queries, keys, w_v):
    """Scores w_v . tanh(q + k), (B, T, S), of projected queries (B, T, h) and keys (B, S, h). D2L equation 11.3.7."""

    def scores(block):
        return torch.tanh(block[:, :, None] + keys[:, None]) @ w_v  # (B, t, S, h) to (B, t, S)

    batch, num_queries, num_hiddens = queries.shape
    per_query = batch * keys.shape[1] * num_hiddens
    if num_queries * per_query <= ADDITIVE_BLOCK:
        return scores(queries)
    blocks = queries.split(max(1, ADDITIVE_BLOCK // per_query), dim=1)
    # checkpointed, for otherwise autograd keeps the features of every block
    return torch.cat([checkpoint(scores, b, use_reentrant=False, preserve_rng_state=False) for b in blocks], dim=1)


def weighted_average(weights, values, dropout_p=0.0):
    """Averages (..., T, E) of the values (..., S, E), in their dtype, under weights (..., T, S)."""
    output = F.dropout(weights, dropout_p) @ values.to(weights.dtype)
    return output.to(values.dtype)


def _widen(x):
    # half precision is scored in float32, as the fused kernels do
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
