"""Masks: which query may attend to which key.

A mask is boolean and ``True`` means *may attend*, as in ``torch.nn.functional.scaled_dot_product_attention``
(and the opposite of ``torch.nn.MultiheadAttention``). `as_mask` is the one place where ``valid_lens`` and
masks are checked and brought to one form; all of attention goes through it.
"""

import torch


def as_mask(shape, valid_lens=None, mask=None, *, device=None):
    """Turns ``valid_lens``, a mask, or both into one boolean mask that broadcasts against scores.

    The number of dimensions of ``mask`` says what it means, with or without heads, so that the same mask
    serves both: two are (T, S), three are (B, T, S), four are (B, H, T, S). Any of them may have size 1. With
    both arguments a query may attend where both allow it.

    Args:
        shape: shape of the scores: (B, T, S) or (B, H, T, S); (T, S) takes a mask only.
        valid_lens: None, or integers of shape (B,) or (B, T): how many of the first keys may be attended to.
        mask: None, or a boolean tensor as above.
        device: where the scores are; ``valid_lens`` and ``mask`` must be there too. None: not checked.

    Returns:
        None where both arguments are None, else a boolean tensor with as many dimensions as ``shape``.

    Raises:
        TypeError: ``valid_lens`` is not an integer tensor, or ``mask`` is not a boolean one.
        ValueError: a shape does not fit, a length is negative or above S (seen on a CPU alone), or a device differs.
    """
    if valid_lens is None and mask is None:
        return None
    if len(shape) not in (2, 3, 4):
        raise ValueError(f"scores have shape {tuple(shape)}, expected (T, S), (B, T, S) or (B, H, T, S)")
    if valid_lens is not None:
        valid_lens = _mask_of_lens(shape, valid_lens, device)
    if mask is not None:
        mask = _fit_mask(shape, mask, device)
    if valid_lens is None or mask is None:
        return mask if valid_lens is None else valid_lens
    return valid_lens & mask


def padding_mask(valid_lens, num_keys):
    """The mask that hides padding: key s may be attended to where s < ``valid_lens``.

    Args:
        valid_lens: integers of shape (B,), or (B, T) for a length per query.
        num_keys: S.

    Returns:
        Boolean tensor of shape (B, 1, S) or (B, T, S).

    Raises:
        TypeError: ``valid_lens`` is not an integer tensor.
        ValueError: it has neither one nor two dimensions, or (seen on a CPU alone) a length is negative or above S.

    Source: D2L section 11.3.2.1.
    """
    return _below("valid_lens", valid_lens, num_keys)


def key_mask(shape, valid_lens=None, mask=None, *, device=None):
    """Which keys may be attended to, where that is the same for every query, as padding is.

    What sums the keys up before a query comes, as linear and low-rank attention do, can hide no key from some queries
    and show it to others.

    Args:
        shape, valid_lens, mask, device: as in `as_mask`, but ``valid_lens`` is (B,), and the dimension of queries in
            ``mask`` has size 1.

    Returns:
        None where both arguments are None, else a boolean tensor (B or 1, S) or (B or 1, H or 1, S).

    Raises:
        TypeError, ValueError: as `as_mask`; ValueError where queries differ in what they may attend to.
    """
    mask = as_mask(shape, valid_lens, mask, device=device)
    if mask is None:
        return None
    if mask.shape[-2] != 1:
        raise ValueError(
            f"the queries have masks of their own, {tuple(mask.shape)}, but here the keys are summed up once for all "
            "queries: expected valid_lens of shape (B,), or a mask whose dimension of queries is 1, as (B, 1, S)"
        )
    return mask.squeeze(-2)


def token_mask(shape, valid_lens=None, mask=None, *, device=None):
    """Which tokens of a sequence that attends to itself are no padding: those that some token may attend to.

    Args:
        shape: (B, T) of the tokens.
        valid_lens, mask, device: as in `as_mask`, with S = T.

    Returns:
        None where both arguments are None, else a boolean tensor (B, T).

    Raises:
        TypeError, ValueError: as `as_mask`.
    """
    batch, length = shape
    mask = as_mask((batch, length, length), valid_lens, mask, device=device)  # (B or 1, T or 1, T or 1)
    return None if mask is None else mask.any(1).expand(batch, length)


def causal_mask(num_queries, num_keys=None, *, device=None):
    """The mask that hides the future: a query may attend to its own position and to earlier ones.

    With more keys than queries the two are aligned at their *ends*: the queries are the last T positions of a
    sequence of S, as when the keys of earlier positions come from a cache. (``is_causal=True`` of torch
    aligns the starts.)

    Args:
        num_queries: T.
        num_keys: S, at least T; None: T.
        device: where to make the mask.

    Returns:
        Boolean tensor of shape (T, S): True where s <= t + S - T.

    Raises:
        ValueError: a size is negative, or there are more queries than keys.

    Source: D2L section 11.7.5; UDL section 12.7.2.
    """
    return position_offsets(num_queries, num_keys, device=device) <= 0


def with_causal(shape, mask, device):
    """A mask that fits scores of ``shape`` (None: all may attend) and `causal_mask`, as one; None where nothing is hid.

    A single query is the last position, from which nothing is hidden.
    """
    if shape[-2] == 1:
        return mask
    causal = causal_mask(*shape[-2:], device=device)[(None,) * (len(shape) - 2)]  # (1, T, S) or (1, 1, T, S)
    return causal if mask is None else mask & causal


def sliding_window_mask(num_queries, window, *, causal=True, num_keys=None, dilation=1, device=None):
    """The mask of local attention: only positions less than ``window`` steps away may be attended to.

    A position is always within its own window, so that a causal window holds ``window`` positions and one
    that looks both ways ``2 * window - 1``. Queries and keys are aligned at their ends, as in `causal_mask`.

    Args:
        num_queries: T.
        window: reach in steps, the position itself counted; at least 1.
        causal: whether later positions are hidden.
        num_keys: S, at least T; None: T.
        dilation: positions in a step; with 2 only every other position is in the window, which reaches twice as far.
        device: where to make the mask.

    Returns:
        Boolean tensor of shape (T, S): with o = t + S - T - s, True where o is a multiple of ``dilation`` and
        0 <= o < window * dilation (causal) or abs(o) < window * dilation.

    Raises:
        ValueError: a size is negative, ``window`` or ``dilation`` is below 1, or there are more queries than keys.

    Source: Beltagy et al. 2020 (Longformer); Jiang et al. 2023 (Mistral) for the causal one; UDL section 12.9.
    """
    if window < 1:
        raise ValueError(f"window is {window}, expected at least 1: a position is in its own window")
    if dilation < 1:
        raise ValueError(f"dilation is {dilation}, expected at least 1: 1 is a window without gaps")
    offsets, reach = position_offsets(num_queries, num_keys, device=device), window * dilation
    near = (offsets <= 0) & (offsets > -reach) if causal else offsets.abs() < reach
    return near if dilation == 1 else near & (offsets % dilation == 0)


def prefix_mask(prefix_lens, num_queries, num_keys=None):
    """The mask of a prefix language model: all see the prefix, what follows it is causal.

    A prefix of length 0 or 1 leaves the causal mask, one as long as the sequence hides nothing. Queries and keys are
    aligned at their ends, as in `causal_mask`.

    Args:
        prefix_lens: integers (B,): how many of the first keys are the prefix of each example.
        num_queries: T.
        num_keys: S, at least T; None: T.

    Returns:
        Boolean tensor of shape (B, T, S), on the device of ``prefix_lens``: True where s < prefix or s <= t + S - T.

    Raises:
        TypeError: ``prefix_lens`` is not an integer tensor.
        ValueError: it does not have one dimension, a length is negative or above S (seen on a CPU alone), a size is
            negative, or there are more queries than keys.

    Source: Raffel et al. 2020 (T5), figure 3; Liu et al. 2018.
    """
    prefix = _below("prefix_lens", prefix_lens, num_queries if num_keys is None else num_keys)  # (B, 1, S)
    if prefix_lens.dim() != 1:
        raise ValueError(f"prefix_lens has shape {tuple(prefix_lens.shape)}, expected (B,): a length an example")
    return causal_mask(num_queries, num_keys, device=prefix_lens.device) | prefix  # (B, T, S)


def position_offsets(num_queries, num_keys=None, *, device=None):
    """The offset of each key, its position less that of the query: below 0 for earlier positions.

    Queries and keys are aligned at their ends: the queries are the last T of S positions.

    Args:
        num_queries: T.
        num_keys: S, at least T; None: T.
        device: where to make it.

    Returns:
        Integers of shape (T, S): s - (t + S - T).

    Raises:
        ValueError: a size is negative, or there are more queries than keys.

    Source: Shaw et al. 2018, section 3.2.
    """
    num_keys = num_queries if num_keys is None else num_keys
    if num_queries < 0:
        raise ValueError(f"num_queries is {num_queries}, expected 0 or more")
    if num_keys < num_queries:
        raise ValueError(
            f"there are {num_queries} queries but {num_keys} keys: the queries are the last positions among "
            "the keys, so there cannot be more of them"
        )
    queries = torch.arange(num_keys - num_queries, num_keys, device=device)
    return torch.arange(num_keys, device=device) - queries[:, None]  # (T, S)


def _below(name, lens, num_keys):
    """Checked lengths (B,) or (B, T) as a mask, True at the keys below: (B, 1, S) or (B, T, S)."""
    _check_range(name, lens, num_keys)
    return _first(lens, num_keys)


def _first(lens, num_keys):
    lens = lens[:, None] if lens.dim() == 1 else lens  # (B, 1 or T)
    return torch.arange(num_keys, device=lens.device) < lens[..., None]  # (B, 1 or T, S)


def _check_range(name, lens, num_keys):
    if not isinstance(lens, torch.Tensor):
        raise TypeError(f"{name} is a {type(lens).__name__}, expected an integer tensor: torch.tensor([...])")
    if lens.dtype == torch.bool:
        raise TypeError(f"{name} is boolean, expected integers: a boolean mask goes to the argument `mask`")
    if lens.is_floating_point() or lens.is_complex():
        raise TypeError(f"{name} has dtype {lens.dtype}, expected integers: cast it with .long()")
    if lens.dim() not in (1, 2):
        raise ValueError(f"{name} has shape {tuple(lens.shape)}, expected (B,) or (B, T)")
    if lens.numel() and lens.device.type == "cpu":  # elsewhere a look would wait for the device
        low, high = map(int, torch.aminmax(lens))
        if low < 0:
            raise ValueError(f"{name} holds {low}, expected lengths from 0 to {num_keys}")
        if high > num_keys:
            raise ValueError(
                f"{name} holds {high} but there are only {num_keys} keys: were the keys cut after "
                "the lengths were taken?"
            )


def check_lens(shape, valid_lens, *, device=None):
    """Checks ``valid_lens`` against scores of ``shape`` as `as_mask` does, for those who make the mask piece by piece.

    Raises:
        TypeError, ValueError: as `as_mask`.
    """
    if len(shape) < 3:
        raise ValueError(f"valid_lens needs a batch but the scores have shape {tuple(shape)}, expected (B, T, S)")
    if isinstance(valid_lens, torch.Tensor):
        _check_device("valid_lens", valid_lens, device)
    _check_range("valid_lens", valid_lens, shape[-1])
    batch, num_queries = shape[0], shape[-2]
    if len(valid_lens) != batch:
        raise ValueError(f"valid_lens has length {len(valid_lens)} but the batch is {batch}")
    if valid_lens.dim() == 2 and valid_lens.shape[1] != num_queries:
        raise ValueError(
            f"valid_lens has shape {tuple(valid_lens.shape)} but there are {num_queries} queries: expected "
            f"({batch},) or ({batch}, {num_queries})"
        )


def _mask_of_lens(shape, valid_lens, device):
    """(B, 1, S) or (B, T, S), with a head dimension where the scores have one."""
    check_lens(shape, valid_lens, device=device)
    mask = _first(valid_lens, shape[-1])  # (B, 1 or T, S)
    return mask if len(shape) == 3 else mask[:, None]  # (B, 1, T or 1, S) with heads


def _fit_mask(shape, mask, device):
    """A checked mask with as many dimensions as the scores."""
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        kind = f"of dtype {mask.dtype}" if isinstance(mask, torch.Tensor) else f"a {type(mask).__name__}"
        raise TypeError(
            f"mask is {kind}, expected a boolean tensor (True = may attend): mask.bool() if it holds ones "
            "and zeros, mask == 0 if it is added to the scores"
        )
    _check_device("mask", mask, device)
    given = tuple(mask.shape)
    if not 2 <= mask.dim() <= len(shape):
        forms = ["(T, S)", "(B, T, S)", "(B, H, T, S)"][: len(shape) - 1]
        raise ValueError(f"mask has shape {given}, expected {' or '.join(forms)}: the scores are {tuple(shape)}")
    if mask.dim() == 2:
        mask = mask.reshape([1] * (len(shape) - 2) + list(given))  # (1, T, S) or (1, 1, T, S)
    elif mask.dim() < len(shape):
        mask = mask[:, None]  # (B, 1, T, S)
    if any(size not in (1, wanted) for size, wanted in zip(mask.shape, shape, strict=True)):
        hint = ""
        if len(given) == 2 and given == (shape[0], shape[-1]):
            hint = " (a row an example, as for padding, is mask[:, None, :])"
        raise ValueError(f"mask has shape {given}, which does not broadcast to the scores' {tuple(shape)}{hint}")
    return mask


def _check_device(name, tensor, device):
    if device is not None and tensor.device != device:
        raise ValueError(f"{name} is on {tensor.device} but the queries are on {device}: move it with .to()")
