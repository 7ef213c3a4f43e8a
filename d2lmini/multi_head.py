"""Multi-head attention: H attentions side by side, each in h / H features, with the weights of one in h.

Queries, keys and values are projected to h = ``num_hiddens`` features and cut into H heads of d = h / H. Masks and
``valid_lens`` are those of `d2lmini.masks`. Heads may share their keys and values in G groups, to make the cache small.
"""

from functools import partial

import torch
from torch import nn

from .attention import Attention
from .cache import KeyValueCache
from .inputs import check_inputs, check_projections, check_score_bias, without_idle
from .kernels import attend
from .masks import as_mask, with_causal
from .scoring import dot_product_weights


class HeadsAttention(Attention):
    """Scaled dot-product attention of heads (B, H, n, d). Its output, before W_o, is what each head contributes.

    It stands inside of modules that have checked their inputs. `d2lmini.capture_attention` records (B, H, T, S); the
    attribute has D2L's shape.

    Args:
        dropout: probability of dropping a weight in training.
        scale: factor on the dot products; None: 1/sqrt(d).
    """

    def __init__(self, dropout=0.0, scale=None):
        super().__init__(dropout)
        self.scale = scale

    def forward(self, queries, keys, values, mask=None, *, causal=False, score_bias=None):
        """Heads (B, H, T, d), (B, G, S, d), (B, G, S, d) to (B, H, T, d); a mask that broadcasts to (B, H, T, S)."""
        how = {"causal": causal, "scale": self.scale}
        dropout_p = self.dropout.p if self.dropout.training else 0.0
        if keys.shape[1] != queries.shape[1]:
            keys, values = (for_each_query_head(X, queries.shape[1]) for X in (keys, values))
        output = attend(queries, keys, values, mask, dropout_p=dropout_p, score_bias=score_bias, **how)
        weights = partial(dot_product_weights, **how)
        return self._remember(output, weights, queries, keys, mask, score_bias)

    @property
    def attention_weights(self):
        """Weights of the last call before dropout, (B * H, T, S), detached; raises as `DotProductAttention` does."""
        return self.last_weights().flatten(0, 1)


class MultiHeadAttention(nn.Module):
    """Multi-head attention, with the parameters of D2L: ``W_q``, ``W_k``, ``W_v`` and ``W_o``.

    ``attention`` is where the heads attend: `capture_attention` and ``attention.attention_weights`` show its weights.
    Attends as `d2lmini.scaled_dot_product_attention` does; asking for weights changes nothing.

    Args:
        num_hiddens: h, features of the output and, unless ``head_size`` says otherwise, of all heads together.
        num_heads: H, a divisor of h. Without grouped keys no parameter depends on it.
        dropout: probability of dropping a weight in training.
        bias: whether the four projections add a bias.
        query_size, key_size, value_size: features of the inputs; None: h.
        qk_norm: None, or what makes a norm of a size, as ``nn.RMSNorm``: one for the queries of every head, one for the
            keys, before they are turned by ``rotary``.
        head_size: d, features of each head; None: h / H. With it H need not divide h, and H * d may be more or less.
        scale: factor on the dot products; None: 1/sqrt(d).
        num_kv_heads: G, a divisor of H: heads of keys and values, each shared by H / G query heads, which follow each
            other; None: H. With 1 this is multi-query attention.

    Raises:
        ValueError: ``num_heads`` does not divide ``num_hiddens``, ``num_kv_heads`` does not divide ``num_heads``, or
            ``head_size`` is below 1.

    Source: D2L section 11.5; UDL section 12.3.3; Vaswani et al. 2017, section 3.2.2; Henry et al. 2020 for ``qk_norm``;
    Shazeer 2019 and Ainslie et al. 2023 for ``num_kv_heads``.
    """

    def __init__(
        self,
        num_hiddens,
        num_heads,
        dropout=0.0,
        bias=False,
        *,
        query_size=None,
        key_size=None,
        value_size=None,
        qk_norm=None,
        head_size=None,
        scale=None,
        num_kv_heads=None,
    ):
        super().__init__()
        if num_heads < 1 or (head_size is None and num_hiddens % num_heads):
            raise ValueError(f"num_hiddens is {num_hiddens}, expected a multiple of num_heads, {num_heads}")
        if head_size is not None and head_size < 1:
            raise ValueError(f"head_size is {head_size}, expected at least 1")
        if num_kv_heads is not None and (num_kv_heads < 1 or num_heads % num_kv_heads):
            raise ValueError(f"num_kv_heads is {num_kv_heads}, expected a divisor of num_heads, {num_heads}")
        d = num_hiddens // num_heads if head_size is None else head_size
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads or num_heads
        self.attention = HeadsAttention(dropout, scale)
        self.W_q = nn.Linear(query_size or num_hiddens, num_heads * d, bias=bias)
        self.W_k = nn.Linear(key_size or num_hiddens, self.num_kv_heads * d, bias=bias)
        self.W_v = nn.Linear(value_size or num_hiddens, self.num_kv_heads * d, bias=bias)
        self.W_o = nn.Linear(num_heads * d, num_hiddens, bias=bias)
        self.input_sizes = tuple(linear.in_features for linear in (self.W_q, self.W_k, self.W_v))
        self.q_norm, self.k_norm = (None if qk_norm is None else qk_norm(d) for _ in range(2))

    def forward(
        self,
        queries,
        keys,
        values,
        valid_lens=None,
        *,
        mask=None,
        causal=False,
        score_bias=None,
        rotary=None,
        head_mask=None,
    ):
        """Every query's heads attend to the keys, and W_o mixes what they bring.

        Args:
            queries: (B, T, query_size).
            keys: (B, S, key_size).
            values: (B, S, value_size).
            valid_lens: None, or integers of shape (B,) or (B, T): how many of the first keys count.
            mask: None, or a boolean mask, True = may attend (`d2lmini.masks.as_mask`).
            causal: whether later positions are hidden; the queries are the last of all positions.
            score_bias: None, or what is added to the scores: a tensor (B or 1, H or 1, T, S), or a function of the
                projected queries (B, H, T, d) and of S that returns one (`RelativePositionEmbedding.scores`).
            rotary: None, or a function of heads (B, H, n, d) and the position of the first that returns the same shape
                (`d2lmini.rotary`); queries and keys are aligned at their ends.
            head_mask: None, or factors of the heads' outputs, (H,) or (B, H): 0 switches a head off, and the
                gradient says how much the loss depends on it.

        Returns:
            (B, T, h).

        Raises:
            TypeError: ``valid_lens`` or ``mask`` is of a wrong type.
            ValueError: shapes, sizes or devices do not fit.
        """
        queries, keys, values, mask, causal = self._checked(queries, keys, values, valid_lens, mask, causal, rotary)
        queries, keys, values = self.to_heads(queries, keys, values)  # (B, H, T, d), (B, G, S, d), (B, G, S, d)
        if rotary is not None:
            queries, keys = rotary(queries, keys.shape[2] - queries.shape[2]), rotary(keys, 0)
        return self._attend_and_mix(queries, keys, values, mask, causal, score_bias, head_mask)

    def extend(
        self,
        queries,
        keys,
        values,
        cache,
        valid_lens=None,
        *,
        mask=None,
        causal=False,
        score_bias=None,
        rotary=None,
        head_mask=None,
    ):
        """As `forward`, of keys that follow those in a cache: the queries attend to all of them.

        Args:
            queries: (B, T, query_size).
            keys: (B, n, key_size); None with ``values``: attend to what is in ``cache`` alone.
            values: (B, n, value_size).
            cache: a `KeyValueCache` that goes before ``keys``; not changed. S counts both, in the other arguments too,
                which are those of `forward`.

        Returns:
            (B, T, h), and the `KeyValueCache` of all S keys and values.

        Raises:
            TypeError, ValueError: as `forward`; ValueError where the cache is of another size.
        """
        inputs, past = (queries, keys, values), cache.length
        queries, keys, values, mask, causal = self._checked(*inputs, valid_lens, mask, causal, rotary, past)
        queries, keys, values = self.to_heads(queries, keys, values)
        if keys is not None:
            new = KeyValueCache(keys if rotary is None else rotary(keys, past), values)
            if not past:
                cache.check_next(new)
            cache = cache.append(new) if past else new
        if rotary is not None:
            queries = rotary(queries, cache.length - queries.shape[2])
        check_inputs(queries[:, :: self.num_heads // self.num_kv_heads], *cache)
        return self._attend_and_mix(queries, *cache, mask, causal, score_bias, head_mask), cache

    def project(self, keys, values, *, rotary=None, offset=0):
        """Keys (B, S, key_size) and values (B, S, value_size) as a `KeyValueCache`, the first at position ``offset``.

        For keys that stay the same, as the decoder's are of the encoder's output, call this once and pass the result
        to `extend` with neither keys nor values.
        """
        check_projections(self.input_sizes, None, keys, values)
        _, keys, values = self.to_heads(None, keys, values)
        return KeyValueCache(keys if rotary is None else rotary(keys, offset), values)

    def empty_cache(self, batch):
        """A `KeyValueCache` of no positions, (batch, G, 0, d), to start from."""
        weight = self.W_o.weight
        empty = weight.new_empty(batch, self.num_kv_heads, 0, weight.shape[1] // self.num_heads)
        return KeyValueCache(empty, empty)

    def transpose_qkv(self, X):
        """Projected X (B, n, h) with the heads as further examples, (B * H, n, h / H), as in D2L section 11.5.2."""
        return X.unflatten(-1, (self.num_heads, -1)).transpose(1, 2).flatten(0, 1)

    def transpose_output(self, X):
        """The way back from `transpose_qkv`: (B * H, n, h / H) to (B, n, h)."""
        return X.unflatten(0, (-1, self.num_heads)).transpose(1, 2).flatten(2)

    def to_heads(self, queries, keys, values):
        """Each (B, n, size), projected, cut into heads and normed if that is wanted; None stays None.

        Queries are (B, H, n, d), keys and values (B, G, n, d).
        """
        H, G = self.num_heads, self.num_kv_heads
        queries, keys, values = (
            X if X is None else linear(X).unflatten(-1, (num, -1)).transpose(1, 2)  # (B, H or G, n, d)
            for linear, num, X in ((self.W_q, H, queries), (self.W_k, G, keys), (self.W_v, G, values))
        )
        return (queries, keys, values) if self.q_norm is None else self._normed(queries, keys, values)

    def _normed(self, queries, keys, values):
        if self.q_norm is None:
            return queries, keys, values
        norms = (self.q_norm, queries), (self.k_norm, keys)
        return *(X if X is None else norm(X) for norm, X in norms), values

    def _checked(self, queries, keys, values, valid_lens, mask, causal, rotary, past=None):
        """The inputs, of which what no head may see is zero, the mask of the scores, and what is left of ``causal``."""
        one_input = queries is keys is values and queries.dim() == 3  # then there is nothing that may not fit together
        if not one_input or (queries.shape[-1],) * 3 != self.input_sizes:
            check_projections(self.input_sizes, queries, keys, values, past, rotary)
        if valid_lens is None and mask is None:
            return queries, keys, values, None, causal
        num_keys = (past or 0) + (0 if keys is None else keys.shape[1])
        shape = (len(queries), self.num_heads, queries.shape[1], num_keys)
        mask = as_mask(shape, valid_lens, mask, device=queries.device)  # (B or 1, H or 1, T or 1, S or 1)
        if causal:
            mask = with_causal(shape, mask, queries.device)
        if torch.is_grad_enabled():  # else a NaN that no head sees gets into the weights' gradients
            queries, keys, values = without_idle(mask.any(1), queries, keys, values)
        return queries, keys, values, mask, False

    def _attend_and_mix(self, queries, keys, values, mask, causal, score_bias, head_mask):
        """Heads of queries (B, H, T, d), keys and values (B, G, S, d) to (B, T, h)."""
        if callable(score_bias):
            score_bias = score_bias(queries, keys.shape[2])
        if score_bias is not None:
            check_score_bias(score_bias, (*queries.shape[:3], keys.shape[2]))
        output = self.attention(queries, keys, values, mask, causal=causal, score_bias=score_bias)  # (B, H, T, d)
        if head_mask is not None:
            output = with_head_mask(output, head_mask)
        return self.W_o(output.transpose(1, 2).flatten(2))  # (B, T, h)


def for_each_query_head(X, num_heads):
    """Keys or values (B, G, S, d) of G groups, each repeated for its query heads: (B, H, S, d)."""
    return X.repeat_interleave(num_heads // X.shape[1], dim=1)


def with_head_mask(output, head_mask):
    """Multiplies what each head brings, (B, H, T, d), by its factor of ``head_mask``, (H,) or (B, H).

    Raises:
        ValueError: the factors have another shape.
    """
    batch, num_heads = output.shape[:2]
    if tuple(head_mask.shape) not in ((num_heads,), (batch, num_heads)):
        raise ValueError(
            f"head_mask has shape {tuple(head_mask.shape)}, expected ({num_heads},) or ({batch}, {num_heads})"
        )
    return output * head_mask[..., None, None]
