"""What attention is given: whether it fits together, and what of it takes no part.

Whoever is called from outside checks here, in one line, and what he calls does not check again. Of masks and
``valid_lens`` `d2lmini.masks` is in charge.
"""

import math

import torch


def check_inputs(queries, keys, values, score_bias=None):
    """Checks what all ways of scoring need, and returns the shape of the scores, (B, T, S) or (B, H, T, S)."""
    if not _fit(queries, keys, values):
        _explain(queries, keys, values)
    shape = (*queries.shape[:-1], keys.shape[-2])
    if score_bias is not None:
        check_score_bias(score_bias, shape)
    return shape


def _fit(queries, keys, values):
    return (
        isinstance(queries, torch.Tensor)
        and isinstance(keys, torch.Tensor)
        and isinstance(values, torch.Tensor)
        and queries.dim() in (3, 4)
        and queries.shape[:-2] == keys.shape[:-2] == values.shape[:-2]  # (B,) or (B, H)
        and keys.shape[-2] == values.shape[-2]
        and queries.device == keys.device == values.device
        and queries.dtype == keys.dtype == values.dtype
        and queries.is_floating_point()
    )


def _explain(queries, keys, values):
    """Raises for what does not fit; under autocast different dtypes do."""
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


def check_score_bias(score_bias, shape):
    """Raises ValueError where it does not broadcast to scores of that shape."""
    given = tuple(score_bias.shape)
    if len(given) != len(shape) or any(n not in (1, m) for n, m in zip(given, shape, strict=True)):
        raise ValueError(f"score_bias has shape {given}, which does not broadcast to {shape}")


def check_dot(queries, keys):
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"queries have {queries.shape[-1]} features but keys have {keys.shape[-1]}: a dot product needs "
            "as many; AdditiveAttention and BilinearAttention take different sizes"
        )
    if queries.shape[-1] == 0:
        raise ValueError("queries and keys have 0 features, expected at least 1")


def check_size(name, x, size, origin):
    if x.shape[-1] != size:
        raise ValueError(f"{name} have {x.shape[-1]} features, expected {size} ({origin})")


def check_projections(sizes, queries, keys, values, past=None, rotary=None):
    """Checks what `d2lmini.MultiHeadAttention` projects, (B, n, size) each.

    ``past`` positions are in a cache; None: there is no cache.

    Raises:
        ValueError: a shape, a size or a device does not fit, or there is nothing to attend to.
    """
    if (keys is None) != (values is None) or (keys is None and past is None):
        raise ValueError("expected keys and values, or neither and a cache")
    if keys is None and rotary is not None:
        raise ValueError("rotary needs the keys as they are projected, but they are all in the cache: pass None")
    for name, X, size in zip(("W_q", "W_k", "W_v"), (queries, keys, values), sizes, strict=True):
        if X is not None and (X.dim() != 3 or X.shape[-1] != size):
            raise ValueError(f"the input of {name} has shape {tuple(X.shape)}, expected (B, n, {size})")
    if keys is not None:
        check_inputs(keys if queries is None else queries, keys, values)


def without_idle(mask, queries, *keys):
    """Queries that may attend to nothing, and keys and values that no query may attend to, become zero: 0 * NaN is NaN.

    On a CPU what is finite stays as it is, for it has no effect anyway. ``mask`` has the dimensions of the scores, of
    whose keys ``keys`` are the last; None stays None.
    """
    distinct = {id(x): x for x in (queries, *keys) if x is not None}  # in self-attention all may be one
    dirty = {i for i, x in distinct.items() if not is_known_finite(x)}
    if not dirty:
        return queries, *keys
    idle, unseen = ~mask.any(-1).unsqueeze(-1), ~mask.any(-2).unsqueeze(-1)  # (..., T, 1), (..., S, 1)
    return (
        queries.masked_fill(idle, 0) if id(queries) in dirty else queries,
        *(x.masked_fill(unseen[..., -x.shape[-2] :, :], 0) if id(x) in dirty else x for x in keys),
    )


def is_known_finite(x):
    # to look costs less than to copy, but a GPU would have to wait; a sum that only overflows costs a copy
    return x.device.type == "cpu" and math.isfinite(x.detach().sum())
