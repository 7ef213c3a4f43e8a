"""Attention in linear time: a score that is a dot product of features lets the keys be summed up before a query comes.

With weights in proportion to phi(q) . phi(k), where phi makes M positive features of a query or key,

    output = phi(q) (sum_s phi(k_s) v_s^T) / phi(q) . (sum_s phi(k_s)),

and the two sums, an (M, E) matrix and an (M,) normaliser, are the same for all queries. A causal query takes the sums
up to its own position: they are the state of a recurrent network. `kernel_weights` has the same weights pair by pair.

Only keys can be hidden, from all queries alike (and later ones by ``causal``): see `d2lmini.masks.key_mask`. A query
without keys gets zeros. So does one whose features are so small that they are rounded to zero.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F

from ..inputs import check_inputs
from ..masks import causal_mask, key_mask
from ..renamed import Attribute


class LinearState(NamedTuple):
    """The sums over the keys so far: what a causal model in linear form remembers of all that it read.

    Args:
        matrix: (B, M, E) or (B, H, M, E), the sum of phi(k) v^T.
        normalizer: (B, M) or (B, H, M), the sum of phi(k).
    """

    matrix: torch.Tensor
    normalizer: torch.Tensor
    normaliser = Attribute("normaliser", "normalizer")


def elu_feature_map(x):
    """elu(x) + 1, feature by feature: x + 1 above zero, exp(x) below; so M = D.

    Args:
        x: floating-point tensor of any shape.

    Returns:
        Tensor of the same shape, positive. (Where ELU itself rounds to -1, at about -17 in float32, this does not.)

    Source: Katharopoulos et al. 2020, equation 7.
    """
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def linear_attention(
    queries, keys, values, valid_lens=None, *, mask=None, causal=False, feature_map=elu_feature_map, chunk_size=64
):
    """Attention with weights in proportion to feature_map(q) . feature_map(k), in time and memory linear in T and S.

    The causal form goes by chunks: earlier chunks come as their sums, and inside of a chunk the queries and keys meet
    pair by pair, which is faster than going token by token and gives the same.

    Args:
        queries: (B, T, D) or (B, H, T, D).
        keys: (B, S, D) or (B, H, S, D).
        values: (B, S, E) or (B, H, S, E).
        valid_lens: None, or integers (B,): how many of the first keys count.
        mask: None, or a boolean mask of the keys, (B or 1, 1, S) or (B or 1, H or 1, 1, S); True = may attend.
        causal: whether later positions are hidden; the queries are the last T of S positions, as in `causal_mask`.
        feature_map: from (..., D) to (..., M), not negative; or a pair of such, for queries and for keys.
        chunk_size: positions in a chunk; a result depends on it by rounding alone.

    Returns:
        (B, T, E) or (B, H, T, E), in the dtype of ``values``.

    Raises:
        TypeError, ValueError: as `d2lmini.scaled_dot_product_attention`; ValueError too where queries differ in
            the keys they may attend to, ``chunk_size`` is below 1, or causal queries are more than the keys.

    Source: Katharopoulos et al. 2020, section 3; Hua et al. 2022 for the chunks; UDL problem 12.11.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size is {chunk_size}, expected at least 1")
    features_q, features_k, values_1, dtype = _features(queries, keys, values, valid_lens, mask, feature_map)
    with torch.autocast(queries.device.type, enabled=False):
        if causal:
            sums = _causal_sums(features_q, features_k, values_1, chunk_size)
        else:
            sums = features_q @ (features_k.mT @ values_1)  # (..., T, M) @ (..., M, E + 1)
    return _divide(sums).to(dtype)


def kernel_weights(queries, keys, valid_lens=None, *, mask=None, causal=False, feature_map=elu_feature_map):
    """The weights of `linear_attention`, pair by pair, in quadratic time: to look at, and to compare with.

    Args:
        queries, keys, valid_lens, mask, causal, feature_map: as for `linear_attention`.

    Returns:
        (B, T, S) or (B, H, T, S); a row sums to 1, or to 0 where there is nothing to attend to.

    Raises:
        TypeError, ValueError: as `linear_attention`.

    Source: UDL problem 12.11.
    """
    features_q, features_k, _, dtype = _features(queries, keys, keys, valid_lens, mask, feature_map)
    with torch.autocast(queries.device.type, enabled=False):
        scores = features_q @ features_k.mT  # (..., T, S)
    if causal:
        scores = scores * causal_mask(*scores.shape[-2:], device=scores.device)
    return _divide(torch.cat([scores, scores.sum(-1, keepdim=True)], -1)).to(dtype)


def linear_attention_step(query, key, value, state=None, *, feature_map=elu_feature_map):
    """One position of causal `linear_attention`, as a recurrent network: what came before does not add to the cost.

    Args:
        query, key: (B, 1, D) or (B, H, 1, D), of one new position.
        value: (B, 1, E) or (B, H, 1, E).
        state: a `LinearState`, which is not changed; None: nothing came before.
        feature_map: as for `linear_attention`. One that looks at other keys, as `PositiveRandomFeatures.stable` does,
            has no recurrent form.

    Returns:
        The output (B, 1, E) or (B, H, 1, E), and the new `LinearState`.

    Raises:
        TypeError, ValueError: as `linear_attention`; ValueError too where there is more than one position.

    Source: Katharopoulos et al. 2020, section 3.4.
    """
    features_q, features_k, value_1, dtype = _features(query, key, value, None, None, feature_map)
    if query.shape[-2] != 1 or key.shape[-2] != 1:
        raise ValueError(f"there are {query.shape[-2]} queries and {key.shape[-2]} keys, expected one: a step is one")
    with torch.autocast(query.device.type, enabled=False):
        new = features_k.mT @ value_1  # (..., M, E + 1)
        matrix, normalizer = new[..., :-1], new[..., -1]
        if state is not None:
            matrix, normalizer = state.matrix + matrix, state.normalizer + normalizer
        sums = torch.cat([features_q @ matrix, features_q @ normalizer[..., None]], -1)  # (..., 1, E + 1)
    return _divide(sums).to(dtype), LinearState(matrix, normalizer)


def _features(queries, keys, values, valid_lens, mask, feature_map):
    """Checked: features (..., T, M) and (..., S, M), values with a column of ones (..., S, E + 1), the values' dtype.

    A sum over the values with a column of ones is a sum with its normaliser. Half precision is summed in float32,
    whatever autocast says: in bfloat16 a sum of ones stops at 256.
    """
    shape = check_inputs(queries, keys, values)
    seen = key_mask(shape, valid_lens, mask, device=queries.device)
    dtype = values.dtype
    queries, keys, values = (
        x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for x in (queries, keys, values)
    )
    if seen is not None:  # before the map, since 0 * NaN is NaN
        hidden = ~seen.unsqueeze(-1)  # (..., S, 1)
        keys, values = keys.masked_fill(hidden, 0), values.masked_fill(hidden, 0)
    map_q, map_k = feature_map if isinstance(feature_map, tuple) else (feature_map, feature_map)
    features_q, features_k = map_q(queries), map_k(keys)
    if features_q.shape[:-1] != queries.shape[:-1] or features_k.shape != (*keys.shape[:-1], features_q.shape[-1]):
        raise ValueError(
            f"feature_map made {tuple(features_q.shape)} of queries {tuple(queries.shape)} and "
            f"{tuple(features_k.shape)} of keys {tuple(keys.shape)}: expected (..., M) of both"
        )
    if seen is not None:
        features_k = features_k.masked_fill(hidden, 0)
    values_1 = torch.cat([values, torch.ones_like(values[..., :1])], -1)
    return features_q.to(values_1.dtype), features_k.to(values_1.dtype), values_1, dtype


def _causal_sums(features_q, features_k, values_1, chunk_size):
    """For each query the sum over the keys up to its own position: (..., T, E + 1)."""
    T, S = features_q.shape[-2], features_k.shape[-2]
    if T > S:
        raise ValueError(f"there are {T} queries but {S} keys: the queries are the last positions among the keys")
    size = min(chunk_size, max(T, 1))
    chunks = -(-T // size)

    def cut(x):  # zeros at the end, which nobody sees, fill the last chunk
        x = F.pad(x[..., x.shape[-2] - T :, :], (0, 0, 0, chunks * size - T))
        return x.unflatten(-2, (chunks, size))  # (..., chunks, size, M or E + 1)

    before = features_k[..., : S - T, :].mT @ values_1[..., : S - T, :]  # (..., M, E + 1): came first, seen by all
    Q, K, V = cut(features_q), cut(features_k), cut(values_1)
    sums = torch.cat([before.unsqueeze(-3), K[..., :-1, :, :].mT @ V[..., :-1, :, :]], -3)  # (..., chunks, M, E + 1)
    inside = (Q @ K.mT).tril() @ V  # (..., chunks, size, E + 1)
    return (Q @ sums.cumsum(-3) + inside).flatten(-3, -2)[..., :T, :]


def _divide(sums):
    """(..., n + 1) to (..., n): by the last column. Where that is 0 all features are, and so are the sums."""
    total = sums[..., -1:]
    return sums[..., :-1] / total.masked_fill(total == 0, 1)
