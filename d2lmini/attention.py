"""Attention: scaled dot products, and three ways to score a query against a key as modules.

All of it takes queries (B, T, D), keys (B, S, D) and values (B, S, E), the functions also with heads (B, H,
T, D), ... Masks and ``valid_lens`` are those of `d2lmini.masks`. A query that may attend to nothing gets zero
weights, a zero output and a zero gradient.

Where a query, key or value takes no part (a key that no query may attend to, as in padding; a query that may
attend to nothing) its content has no effect, not even NaN. A NaN in a key that *some* queries of the example
attend to may reach the others too, since 0 * NaN is NaN.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from .capture import Attention
from .masks import as_mask
from .scoring import additive_scores, dot_product_weights, softmax_where, weighted_average


def scaled_dot_product_attention(
    queries,
    keys,
    values,
    valid_lens=None,
    *,
    mask=None,
    scale=None,
    score_bias=None,
    dropout_p=0.0,
    return_weights=False,
):
    """Averages of the values, weighted by softmax(scale * queries . keys + score_bias).

    Runs through torch's fused kernel, which never makes the (T, S) weights, unless they are asked for. Asking
    changes the output by no more than rounding, except that dropout draws other random numbers. The fused
    kernel has no second derivatives; the plain formula has.

    Args:
        queries: (B, T, D) or (B, H, T, D).
        keys: (B, S, D) or (B, H, S, D).
        values: (B, S, E) or (B, H, S, E).
        valid_lens: None, or integers of shape (B,) or (B, T): how many of the first keys count.
        mask: None, or a boolean mask, True = may attend (`d2lmini.masks.as_mask`).
        scale: factor on the dot products; None: 1/sqrt(D).
        score_bias: None, or what is added to the scores, (B or 1, T, S) or (B or 1, H or 1, T, S).
        dropout_p: probability of dropping a weight, applied always: pass 0 in evaluation.
        return_weights: whether to return the weights too.

    Returns:
        Output of shape (B, T, E) or (B, H, T, E); with ``return_weights`` a pair of it and the weights
        *before* dropout, (B, T, S) or (B, H, T, S).

    Raises:
        TypeError: an input is not a floating-point tensor, or ``valid_lens`` or ``mask`` has a wrong type.
        ValueError: shapes, dtypes or devices do not fit together.

    Source: D2L equation 11.3.6; UDL equation 12.9; Vaswani et al. 2017.
    """
    shape = _check_inputs(queries, keys, values)
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"queries have {queries.shape[-1]} features but keys have {keys.shape[-1]}: a dot product needs "
            "as many; AdditiveAttention and BilinearAttention take different sizes"
        )
    if queries.shape[-1] == 0:
        raise ValueError("queries and keys have 0 features, expected at least 1")
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"dropout_p is {dropout_p}, expected a probability")
    if score_bias is not None:
        _check_bias(score_bias, shape)
    mask = as_mask(shape, valid_lens, mask, device=queries.device)
    queries, keys, values = _without_idle(queries, keys, values, mask)
    return _dot_attention(queries, keys, values, mask, scale, dropout_p, return_weights, score_bias)


class DotProductAttention(Attention):
    """Scaled dot-product attention as a module.

    Args:
        dropout: probability of dropping a weight in training.

    Source: D2L section 11.3.3.
    """

    def forward(self, queries, keys, values, valid_lens=None, *, mask=None, score_bias=None):
        """As `scaled_dot_product_attention`: (B, T, D), (B, S, D), (B, S, E) to (B, T, E), or with heads."""
        output = scaled_dot_product_attention(
            queries, keys, values, valid_lens, mask=mask, score_bias=score_bias, dropout_p=self._dropout_p
        )
        weights = partial(_weights_of_call, score_bias=score_bias)
        return self._remember(output, weights, queries, keys, valid_lens, mask)


class BilinearAttention(Attention):
    """Scores q^T M k with a learned matrix M, for queries and keys of different sizes.

    There is no 1/sqrt(d): M learns its own scale. ``W.weight`` is M transposed, (key_size, query_size).

    Args:
        key_size: features of a key.
        dropout: probability of dropping a weight in training.
        query_size: features of a query; None: taken from the first call (until then M has no size).

    Source: Luong et al. 2015, "general"; D2L section 11.3, exercise 2.
    """

    def __init__(self, key_size, dropout=0.0, *, query_size=None):
        super().__init__(dropout)
        self.W = _linear(query_size, key_size)

    def forward(self, queries, keys, values, valid_lens=None, *, mask=None):
        """Queries (B, T, query_size), keys (B, S, key_size), values (B, S, E) to (B, T, E).

        Raises as `scaled_dot_product_attention` does.
        """
        shape = _check_inputs(queries, keys, values)
        _check_size("keys", keys, self.W.out_features, "key_size")
        mask = as_mask(shape, valid_lens, mask, device=queries.device)
        queries, keys, values = _without_idle(queries, keys, values, mask)
        queries = _project(self.W, "queries", queries)  # (B, T, key_size)
        output = _dot_attention(queries, keys, values, mask, 1.0, self._dropout_p)
        return self._remember(output, partial(_weights_of_call, scale=1.0), queries, keys, None, mask)


class AdditiveAttention(Attention):
    """Scores w_v^T tanh(W_q q + W_k k): a network of one hidden layer over each pair of query and key.

    The (B, T, S, h) features are never made at once when they are large: blocks of queries take turns, and in
    training each block is computed again in the backward pass.

    Args:
        num_hiddens: h, the size of the hidden layer.
        dropout: probability of dropping a weight in training.
        query_size: features of a query; None: taken from the first call (until then W_q has no size).
        key_size: features of a key, likewise.

    Source: D2L section 11.3.4, equation 11.3.7; Bahdanau et al. 2015.
    """

    def __init__(self, num_hiddens, dropout=0.0, *, query_size=None, key_size=None):
        super().__init__(dropout)
        self.W_k = _linear(key_size, num_hiddens)
        self.W_q = _linear(query_size, num_hiddens)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    def forward(self, queries, keys, values, valid_lens=None, *, mask=None):
        """Queries (B, T, query_size), keys (B, S, key_size), values (B, S, E) to (B, T, E).

        Raises as `scaled_dot_product_attention` does, and ValueError where there are heads.
        """
        shape = _check_inputs(queries, keys, values)
        if len(shape) != 3:
            raise ValueError(f"queries have shape {tuple(queries.shape)}, expected (B, T, query_size) without heads")
        mask = as_mask(shape, valid_lens, mask, device=queries.device)
        queries, keys, values = _without_idle(queries, keys, values, mask)
        queries = _project(self.W_q, "queries", queries)  # (B, T, h)
        keys = _project(self.W_k, "keys", keys)  # (B, S, h)
        w_v = self.w_v.weight[0]  # (h,)
        output = weighted_average(_additive_weights(queries, keys, w_v, mask), values, self._dropout_p)
        # a copy of w_v: the optimizer's next step changes the parameter in place
        return self._remember(output, _additive_weights, queries, keys, w_v.detach().clone(), mask)


def _weights_of_call(queries, keys, valid_lens, mask, *, scale=None, score_bias=None):
    shape = (*queries.shape[:-1], keys.shape[-2])
    mask = as_mask(shape, valid_lens, mask)
    return dot_product_weights(queries, keys, mask, scale=scale, score_bias=score_bias)


def _additive_weights(queries, keys, w_v, mask):
    return softmax_where(additive_scores(queries, keys, w_v), mask)


def _dot_attention(queries, keys, values, mask, scale, dropout_p, return_weights=False, score_bias=None):
    """`scaled_dot_product_attention` of inputs that are checked and rid of idle content."""
    if return_weights or 0 in (*queries.shape, *values.shape):  # kernels differ on what they make of nothing
        weights = dot_product_weights(queries, keys, mask, scale=scale, score_bias=score_bias)
        output = weighted_average(weights, values, dropout_p)
        return (output, weights.to(queries.dtype)) if return_weights else output
    empty = allowed = None
    if mask is not None:
        empty = ~mask.any(-1, keepdim=True)  # (..., T, 1)
        # for a row without keys some kernels give NaN (torch 2.4), for a full row none does
        allowed = mask | empty
    if score_bias is not None:
        added = score_bias.to(queries.dtype).expand(*queries.shape[:-1], keys.shape[-2])
        allowed = added if mask is None else added.masked_fill(~allowed, -torch.inf)
    if queries.dim() == 3:  # the fast kernels want heads
        queries, keys, values = queries[:, None], keys[:, None], values[:, None]  # (B, 1, T, D), ...
        allowed = None if allowed is None else allowed[:, None]  # (B, 1, T, S)
        output = F.scaled_dot_product_attention(queries, keys, values, allowed, dropout_p, scale=scale)[:, 0]
    else:
        output = F.scaled_dot_product_attention(queries, keys, values, allowed, dropout_p, scale=scale)
    return output if mask is None else output.masked_fill(empty, 0)  # (B, T, E) or (B, H, T, E)


def _without_idle(queries, keys, values, mask):
    """Zeros in place of the queries, keys and values that take no part, lest 0 * NaN leaks from them."""
    if mask is None:
        return queries, keys, values
    query_idle = ~mask.any(-1, keepdim=True)  # (..., T, 1)
    key_idle = ~mask.any(-2).unsqueeze(-1)  # (..., S, 1)
    return queries.masked_fill(query_idle, 0), keys.masked_fill(key_idle, 0), values.masked_fill(key_idle, 0)


def _linear(in_features, out_features):
    if in_features is None:
        return nn.LazyLinear(out_features, bias=False)
    return nn.Linear(in_features, out_features, bias=False)


def _project(linear, name, x):
    if not nn.parameter.is_lazy(linear.weight):
        _check_size(name, x, linear.in_features, "the size fixed at construction or at the first call")
    return linear(x)


def _check_size(name, x, size, origin):
    if x.shape[-1] != size:
        raise ValueError(f"{name} have {x.shape[-1]} features, expected {size} ({origin})")


def _check_bias(score_bias, shape):
    fits = score_bias.dim() == len(shape) and all(n in (1, m) for n, m in zip(score_bias.shape, shape, strict=True))
    if not fits:
        raise ValueError(f"score_bias has shape {tuple(score_bias.shape)}, which does not broadcast to {shape}")


def _check_inputs(queries, keys, values):
    """Checks what all ways of scoring need, and returns the shape of the scores."""
    for name, x in (("queries", queries), ("keys", keys), ("values", values)):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            raise TypeError(f"{name} are {getattr(x, 'dtype', type(x).__name__)}, expected a floating-point tensor")
        if x.dim() not in (3, 4) or x.dim() != queries.dim():
            raise ValueError(
                f"{name} have shape {tuple(x.shape)}, expected (batch, number, features), or "
                f"(batch, heads, number, features) for all three; queries are {tuple(queries.shape)}"
            )
        for i, what in enumerate(("batch", "heads")[: x.dim() - 2]):
            if x.shape[i] != queries.shape[i]:
                raise ValueError(f"{name} have {what} {x.shape[i]} but queries have {what} {queries.shape[i]}")
        if x.device != queries.device:
            raise ValueError(f"{name} are on {x.device} but queries are on {queries.device}: move them with .to()")
        # autocast brings them to one dtype itself
        if x.dtype != queries.dtype and not torch.is_autocast_enabled(x.device.type):
            raise ValueError(f"{name} have dtype {x.dtype} but queries have {queries.dtype}: cast them with .to()")
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(f"there are {keys.shape[-2]} keys but {values.shape[-2]} values: expected one value per key")
    return (*queries.shape[:-1], keys.shape[-2])
