"""Attention: scaled dot products, and three ways to score a query against a key as modules.

All of it takes queries (B, T, D), keys (B, S, D) and values (B, S, E), all but `AdditiveAttention` also with heads (B,
H, T, D), ... Masks and ``valid_lens`` are those of `d2lmini.masks`. A query that may attend to nothing gets zero
weights, a zero output and a zero gradient.

Where a query, key or value takes no part (a key that no query may attend to, as in padding; a query that may
attend to nothing) its content has no effect, not even NaN. A NaN in a key that *some* queries of the example
attend to may reach the others too, since 0 * NaN is NaN.

Tracers get through in part. ``torch.compile`` gives the same, in several graphs: each call looks at the versions of its
inputs, and on a CPU at the numbers in ``valid_lens``. So ``fullgraph=True``, ``torch.export``, ``torch.func.vmap`` with
a mask and ``torch.func.jvp`` fail.
"""

from functools import partial

import torch
from torch import nn

from .inputs import check_dot, check_inputs, check_size, without_idle
from .kernels import attend, attend_with_weights
from .masks import as_mask
from .scoring import additive_scores, dot_product_weights, softmax_where, weighted_average
from .utils import PropertiesHeard, Unavailable


def scaled_dot_product_attention(
    queries,
    keys,
    values,
    valid_lens=None,
    *,
    mask=None,
    causal=False,
    scale=None,
    score_bias=None,
    dropout_p=0.0,
    return_weights=False,
):
    """Averages of the values, weighted by softmax(scale * queries . keys + score_bias).

    Runs through torch's fused kernel, which never makes the (T, S) weights, unless they are asked for, or a CPU's
    kernel would take longer than the plain formula: with dropout, or of few pairs. Asking changes the output by no
    more than rounding, except that dropout draws other random numbers. The fused kernel has no second derivatives;
    the plain formula has.

    Args:
        queries: (B, T, D) or (B, H, T, D).
        keys: (B, S, D) or (B, H, S, D).
        values: (B, S, E) or (B, H, S, E).
        valid_lens: None, or integers of shape (B,) or (B, T): how many of the first keys count.
        mask: None, or a boolean mask, True = may attend (`d2lmini.masks.as_mask`).
        causal: whether later positions are hidden, as `d2lmini.causal_mask` does; where T = S and nothing else is
            asked for, no mask is made.
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
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"dropout_p is {dropout_p}, expected a probability")
    shape = check_inputs(queries, keys, values, score_bias)
    check_dot(queries, keys)
    mask = as_mask(shape, valid_lens, mask, device=queries.device)
    compute = attend_with_weights if return_weights else attend
    return compute(queries, keys, values, mask, causal=causal, scale=scale, dropout_p=dropout_p, score_bias=score_bias)


class Attention(PropertiesHeard, nn.Module):
    """What the scoring modules share: dropout on the weights, and the weights of the last call on request.

    No weights are kept. A call remembers the queries and keys that its scores came from, detached, which grow
    with T + S where weights grow with T * S; reading `attention_weights` computes the weights from them. They
    are forgotten at the next call, in copies and pickles and, in training, as soon as the backward pass has
    gone through the output; until then autograd holds the same tensors anyway. To see several calls or a
    whole model: `d2lmini.capture_attention`.
    """

    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self._last = None

    @property
    def attention_weights(self):
        """Weights of the last call before dropout, (B, T, S), detached.

        Raises:
            Unavailable: an AttributeError and a RuntimeError: there was no call, its backward pass is over, or
                its inputs were changed in place.
        """
        return self.last_weights()

    def last_weights(self):
        """`attention_weights`, but always with a dimension of heads where the inputs had one."""
        if self._last is None:
            raise Unavailable(f"{type(self).__name__} has no weights to show: call it first (a copy starts afresh)")
        return self._last.weights()

    @property
    def _dropout_p(self):
        return self.dropout.p if self.dropout.training else 0.0

    def _remember(self, output, weights, *inputs):
        """Lets `attention_weights` be ``weights(*inputs)`` until the backward pass reaches ``output``."""
        self.__dict__["_last"] = _LastCall(weights, inputs)  # a Module's own way to set takes five times as long
        if output.requires_grad:
            output.register_hook(self._last.forget)
        return output

    def __getstate__(self):
        return {**self.__dict__, "_last": None}


class DotProductAttention(Attention):
    """Scaled dot-product attention as a module.

    Args:
        dropout: probability of dropping a weight in training.

    Source: D2L section 11.3.3.
    """

    def forward(self, queries, keys, values, valid_lens=None, *, mask=None, causal=False, score_bias=None):
        """As `scaled_dot_product_attention`: (B, T, D), (B, S, D), (B, S, E) to (B, T, E), or with heads."""
        shape = check_inputs(queries, keys, values, score_bias)
        check_dot(queries, keys)
        mask = as_mask(shape, valid_lens, mask, device=queries.device)
        output = attend(queries, keys, values, mask, causal=causal, dropout_p=self._dropout_p, score_bias=score_bias)
        weights = partial(dot_product_weights, causal=causal)
        return self._remember(output, weights, queries, keys, mask, score_bias)


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
        shape = check_inputs(queries, keys, values)
        check_size("keys", keys, self.W.out_features, "key_size")
        mask = as_mask(shape, valid_lens, mask, device=queries.device)
        if mask is not None:
            queries, keys, values = without_idle(mask, queries, keys, values)
        queries = _project(self.W, "queries", queries)  # (B, T, key_size)
        output = attend(queries, keys, values, mask, scale=1.0, dropout_p=self._dropout_p)
        return self._remember(output, partial(dot_product_weights, scale=1.0), queries, keys, mask)


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
        shape = check_inputs(queries, keys, values)
        if len(shape) != 3:
            raise ValueError(f"queries have shape {tuple(queries.shape)}, expected (B, T, query_size) without heads")
        mask = as_mask(shape, valid_lens, mask, device=queries.device)
        if mask is not None:
            queries, keys, values = without_idle(mask, queries, keys, values)
        queries = _project(self.W_q, "queries", queries)  # (B, T, h)
        keys = _project(self.W_k, "keys", keys)  # (B, S, h)
        w_v = self.w_v.weight[0]  # (h,)
        output = weighted_average(_additive_weights(queries, keys, w_v, mask), values, self._dropout_p)
        # a copy of w_v: the optimizer's next step changes the parameter in place
        return self._remember(output, _additive_weights, queries, keys, w_v.detach().clone(), mask)


class _LastCall:
    """The detached inputs of a call, and how to get its weights from them."""

    def __init__(self, compute, inputs):
        self.compute = compute
        self.inputs = [x.detach() if x is not None and x.requires_grad else x for x in inputs]
        # a tensor and its detached alias count changes in place together; inference tensors do not count
        self.versions = [None if x is None or x.is_inference() else x._version for x in self.inputs]

    @torch.no_grad()
    def weights(self):
        if self.compute is None:
            raise Unavailable(
                "the weights of the last call were let go in its backward pass: read them before it, call "
                "the module again, or use `with capture_attention(module)`"
            )
        if _LastCall(self.compute, self.inputs).versions != self.versions:
            raise Unavailable("the inputs of the last call were changed in place since: its weights are lost")
        return self.compute(*self.inputs).to(self.inputs[0].dtype)

    def forget(self, grad=None):
        self.compute, self.inputs, self.versions = None, [], []


def _additive_weights(queries, keys, w_v, mask):
    return softmax_where(additive_scores(queries, keys, w_v), mask)


def _linear(in_features, out_features):
    if in_features is None:
        return nn.LazyLinear(out_features, bias=False)
    return nn.Linear(in_features, out_features, bias=False)


def _project(linear, name, x):
    if not nn.parameter.is_lazy(linear.weight):
        check_size(name, x, linear.in_features, "the size fixed at construction or at the first call")
    return linear(x)
