"""Position encodings: attention alone sees a set, so the order has to be put in.

Absolute: `PositionalEncoding` (sines) and `LearnedPositionalEncoding` are added to the embeddings. Relative:
`RelativePositionEmbedding` (Shaw), `RelativePositionBias` (T5) and `alibi` are added to the scores, for ``score_bias``
of `d2lmini.MultiHeadAttention`; what turns queries and keys instead is `d2lmini.rotation`. All count in float32 or
better whatever the dtype.

The relative ones align queries and keys at their *ends*, as `d2lmini.causal_mask` does: with a cache the T queries
are the last of S positions. The offset of a key is its position less that of the query: s - (t + S - T).
"""

import math

import torch
from torch import nn

from .buffers import ExactBuffers
from .masks import position_offsets
from .rotation import position_angles


def sinusoidal(num, num_hiddens, *, offset=0, device=None):
    """Sines and cosines of falling frequency: P[i, 2j] = sin(i w_j), P[i, 2j+1] = cos(i w_j), w_j = 10000^(-2j/d).

    Going on by k positions turns each pair (2j, 2j+1) by the angle k w_j, wherever one starts.

    Args:
        num: how many positions.
        num_hiddens: d; where it is odd the last sine has no cosine.
        offset: position of the first row.
        device: where to make it.

    Returns:
        float32 tensor of shape (num, num_hiddens).

    Raises:
        ValueError: a size is negative, or ``num_hiddens`` below 1.

    Source: D2L equation 11.6.2; Vaswani et al. 2017, section 3.5.
    """
    if num_hiddens < 1 or num < 0 or offset < 0:
        raise ValueError(
            f"num is {num}, num_hiddens {num_hiddens} and offset {offset}: expected num_hiddens of at least 1 and no "
            "other below 0"
        )
    angles = position_angles(num, offset, num_hiddens, 10000.0, device)  # (num, ceil(d / 2))
    pairs = torch.stack([angles.sin(), angles.cos()], -1)  # (num, ceil(d / 2), 2)
    return pairs.flatten(1)[:, :num_hiddens].float()


class PositionalEncoding(ExactBuffers):
    """Adds `sinusoidal` positions to embeddings.

    ``P``, (1, max_len, num_hiddens), moves with the module, stays in float32, and is in no checkpoint: it follows from
    the arguments, and ``max_len`` is only how much of it is made beforehand. Positions past it work too.

    Args:
        num_hiddens: d, any size from 1.
        dropout: probability of dropping an element of the sum in training.
        max_len: positions made beforehand.

    Source: D2L section 11.6.3.
    """

    exact = ("P",)

    def __init__(self, num_hiddens, dropout=0.0, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("P", sinusoidal(max_len, num_hiddens)[None], persistent=False)

    def forward(self, X, offset=0):
        """Embeddings X (B, T, d) at positions offset, offset + 1, ...; returns (B, T, d).

        Raises:
            ValueError: ``X`` does not have d features, or ``offset`` is negative.
        """
        _check_embeddings(X, self.P.shape[-1], offset)
        end = offset + X.shape[1]
        if end <= self.P.shape[1]:
            P = self.P[:, offset:end]
        else:
            P = sinusoidal(X.shape[1], X.shape[2], offset=offset, device=X.device)
        return self.dropout(X + P.to(X.dtype))


class LearnedPositionalEncoding(nn.Module):
    """Adds a learned vector per position to embeddings; there is none past ``max_len``.

    Args:
        num_hiddens: d.
        dropout: probability of dropping an element of the sum in training.
        max_len: how many positions there are; ``P`` is a parameter of shape (1, max_len, num_hiddens).

    Source: D2L section 11.6, exercise 2; Gehring et al. 2017. Initial standard deviation 0.02: Devlin et al. 2019.
    """

    def __init__(self, num_hiddens, dropout=0.0, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.P = nn.Parameter(0.02 * torch.randn(1, max_len, num_hiddens))

    def forward(self, X, offset=0):
        """Embeddings X (B, T, d) at positions offset, offset + 1, ...; returns (B, T, d).

        Raises:
            ValueError: ``X`` does not have d features, ``offset`` is negative, or a position is past ``max_len``.
        """
        _check_embeddings(X, self.P.shape[-1], offset)
        end = offset + X.shape[1]
        if end > self.P.shape[1]:
            raise ValueError(
                f"positions up to {end - 1} are asked for but only {self.P.shape[1]} are learned (max_len): cut the "
                "sequence, or train with a larger max_len"
            )
        return self.dropout(X + self.P[:, offset:end].to(X.dtype))


class RelativePositionEmbedding(nn.Module):
    """A learned vector a_o for each offset o from -k to k; farther offsets share the outermost ones.

    With keys k_s and values v_s, Shaw et al. score q_t . (k_s + a_o) / sqrt(d), which is ``score_bias=shaw.scores``,
    and average v_s + a'_o with a second table a', which adds ``other.average(weights)``. Neither makes (T, S, d).

    Args:
        num_hiddens: d, features of a query (of one head).
        max_offset: k; ``weight`` is (2k + 1, d), row o + k for offset o.

    Source: Shaw et al. 2018, equations 3-5; D2L section 11.6, exercise 3.
    """

    def __init__(self, num_hiddens, max_offset):
        super().__init__()
        if max_offset < 0:
            raise ValueError(f"max_offset is {max_offset}, expected 0 or more")
        self.max_offset = max_offset
        self.weight = nn.Parameter(torch.randn(2 * max_offset + 1, num_hiddens) / math.sqrt(num_hiddens))

    def forward(self, num_queries, num_keys=None):
        """The vector of each pair of query and key: (T, S, d).

        Raises:
            ValueError: there are more queries than keys.
        """
        return self.weight[self._rows(num_queries, num_keys)]

    def scores(self, queries, num_keys):
        """Their part of the scores, q_t . a_o / sqrt(d), for queries (..., T, d): (..., T, S).

        Raises:
            ValueError: the queries do not have d features, or are more than the keys.
        """
        num_hiddens = self.weight.shape[1]
        if queries.shape[-1] != num_hiddens:
            raise ValueError(f"queries have {queries.shape[-1]} features, expected {num_hiddens} (num_hiddens)")
        rows = self._rows(queries.shape[-2], num_keys)
        by_offset = queries @ self.weight.to(queries.dtype).T / math.sqrt(num_hiddens)  # (..., T, 2k + 1)
        return by_offset.gather(-1, rows.expand(*queries.shape[:-1], num_keys))  # (..., T, S)

    def average(self, weights):
        """Their part of the output, the average of a_o by attention weights (..., T, S): (..., T, d).

        Raises:
            ValueError: there are more queries than keys.
        """
        rows = self._rows(*weights.shape[-2:]).expand(weights.shape)
        by_offset = weights.new_zeros(*weights.shape[:-1], len(self.weight)).scatter_add(-1, rows, weights)
        return by_offset @ self.weight.to(weights.dtype)  # (..., T, 2k + 1) to (..., T, d)

    def _rows(self, num_queries, num_keys):
        offsets = position_offsets(num_queries, num_keys, device=self.weight.device)
        return offsets.clamp(-self.max_offset, self.max_offset) + self.max_offset  # (T, S)


class RelativePositionBias(nn.Module):
    """A learned number per head and bucket of offsets, added to the scores.

    Small distances have a bucket each. From n = half of a side's m buckets on, buckets widen in geometric progression
    up to ``max_distance``; all beyond share the last. For distance x:
    n + floor((m - n) log(x / n) / log(max_distance / n)).

    Args:
        num_heads: H.
        num_buckets: even, at least 4 (2 if not bidirectional).
        max_distance: where the last bucket would end; it takes the rest; above the number of buckets of one distance
            each.
        bidirectional: whether keys after the query have half of the buckets; else all of them count as distance 0.

    Source: Raffel et al. 2020 (T5), section 2.1, and its published code.
    """

    def __init__(self, num_heads, num_buckets=32, max_distance=128, *, bidirectional=True):
        super().__init__()
        one_side = num_buckets // 2 if bidirectional else num_buckets
        self.exact = one_side // 2
        if num_buckets % 2 or self.exact < 1 or max_distance <= self.exact:
            raise ValueError(
                f"num_buckets is {num_buckets} and max_distance {max_distance}: expected an even number of at least "
                f"{4 if bidirectional else 2} and a distance above the {self.exact} with a bucket each"
            )
        self.one_side, self.max_distance, self.bidirectional = one_side, max_distance, bidirectional
        self.weight = nn.Parameter(torch.randn(num_buckets, num_heads) * 0.02)

    def forward(self, num_queries, num_keys=None):
        """The bias of the scores of T queries and S keys (None: T): (1, H, T, S).

        Raises:
            ValueError: there are more queries than keys.
        """
        offsets = position_offsets(num_queries, num_keys, device=self.weight.device)
        return self.weight[self.bucket(offsets)].permute(2, 0, 1)[None]  # (T, S, H) to (1, H, T, S)

    def bucket(self, offsets):
        """The bucket of each offset, key position less query position: integers of the same shape."""
        distance = offsets.abs() if self.bidirectional else (-offsets).clamp(min=0)
        wide = self.one_side - self.exact
        growth = torch.log(distance.clamp(min=self.exact) / self.exact) / math.log(self.max_distance / self.exact)
        far = self.exact + (growth * wide).long()
        bucket = torch.where(distance < self.exact, distance, far.clamp(max=self.one_side - 1))
        return bucket + self.one_side * (offsets > 0) if self.bidirectional else bucket


def alibi(num_heads, num_queries, num_keys=None, *, device=None):
    """What ALiBi adds to the scores: minus the distance times the slope of the head, 2^(-8 i / H) for head i = 1 ... H.

    Args:
        num_heads: H; the published code has another rule where it is no power of two.
        num_queries: T.
        num_keys: S, at least T; None: T.
        device: where to make it.

    Returns:
        float32 tensor (1, H, T, S); 0 at later positions, which a causal mask hides.

    Source: Press et al. 2022, section 3.
    """
    slopes = 2.0 ** (-8 / num_heads * torch.arange(1, num_heads + 1, device=device))  # (H,)
    offsets = position_offsets(num_queries, num_keys, device=device).clamp(max=0)  # (T, S)
    return (slopes[:, None, None] * offsets)[None]  # (1, H, T, S)


def _check_embeddings(X, num_hiddens, offset):
    if X.dim() != 3 or X.shape[-1] != num_hiddens:
        raise ValueError(f"X has shape {tuple(X.shape)}, expected (batch, positions, {num_hiddens})")
    if offset < 0:
        raise ValueError(f"offset is {offset}, expected 0 or more")
