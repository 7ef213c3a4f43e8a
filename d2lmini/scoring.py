"""From queries and keys to weights, and from weights to an average: the formulas, as they are on paper.

`masked_softmax` checks what it is given. The other functions are what modules run once they have checked their inputs
and made one mask of ``valid_lens`` and ``mask`` (`d2lmini.masks.as_mask`).
"""

import math

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from .inputs import without_idle
from .masks import as_mask, with_causal

# the largest block of additive features made at once, in elements: 16 MiB in float32
ADDITIVE_BLOCK = 2**22


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
        return softmax_of_scores(queries, keys, mask, score_bias, scale)
    queries, keys = without_idle(mask, queries, keys)
    empty = ~mask.any(-1, keepdim=True)  # (..., T, 1): rows whose softmax would be NaN
    return softmax_of_scores(queries, keys, mask | empty, score_bias, scale).masked_fill(empty, 0)


def softmax_of_scores(queries, keys, mask, score_bias, scale):
    """Weights (..., T, S) where the mask leaves every query a key."""
    scale = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    scores = _widen(queries) @ _widen(keys).mT  # (..., T, S)
    if mask is None and score_bias is None:
        return scores.mul_(scale).softmax(-1)
    added = added_to_scores(mask, scores.new_zeros(()) if score_bias is None else score_bias)
    return torch.add(added, scores, alpha=scale).softmax(-1)


def added_to_scores(mask, score_bias):
    """What is added to the scores: the bias, and -inf where the mask is False."""
    return score_bias if mask is None else score_bias.masked_fill(~mask, -torch.inf)


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
