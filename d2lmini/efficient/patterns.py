"""Which pairs of positions meet: patterns of sparse attention, what they cost, and how many layers they need.

A pattern is a boolean mask (T, T), True = may attend, a row a query: what UDL calls an interaction matrix. Causal and
local patterns are in `d2lmini.masks`: `causal_mask`, and `sliding_window_mask` with its ``dilation``. Patterns join by
``|``, and ``pattern & causal_mask(T)`` is the causal version. (``causal=True`` gives it at once; of `random_mask` it
draws earlier keys alone.) With a cache of earlier keys the queries are the last positions: take the last rows.

A mask alone saves no time. A kernel must leave out what is False, as `d2lmini.tiled_attention` does with whole tiles.
"""

import torch

from ..masks import causal_mask, position_offsets, sliding_window_mask


def full_mask(num_tokens, *, device=None):
    """All to all: T * T pairs.

    Args:
        num_tokens: T.
        device: where to make the mask.

    Returns:
        Boolean tensor of shape (T, T), all True.

    Raises:
        ValueError: T is negative.

    Source: UDL figure 12.15a.
    """
    return torch.ones(_checked(num_tokens), num_tokens, dtype=torch.bool, device=device)


def block_local_mask(num_tokens, block_size, *, causal=False, device=None):
    """Blocks that do not overlap, attention inside of each: about T * block_size pairs.

    Alone it never leaves its block, however many layers there are; in turns with another pattern it does.

    Args:
        num_tokens: T; the last block is shorter where ``block_size`` does not divide it.
        block_size: positions in a block, at least 1.
        causal: whether later positions are hidden.
        device: where to make the mask.

    Returns:
        Boolean tensor of shape (T, T).

    Raises:
        ValueError: T is negative, or ``block_size`` is below 1.

    Source: Liu et al. 2018, section 4.2.
    """
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}, expected at least 1")
    blocks = torch.arange(_checked(num_tokens), device=device) // block_size  # (T,)
    return _as_causal(blocks[:, None] == blocks, causal)


def strided_mask(num_tokens, stride, *, causal=False, device=None):
    """Every ``stride``-th position, counted from the query: about T * T / stride pairs.

    With a window of ``stride`` positions everything meets in two layers, and where the stride is near the square root
    of T there are of the order of T ** 1.5 pairs.

    Args:
        num_tokens: T.
        stride: positions from one that is seen to the next, at least 1.
        causal: whether later positions are hidden.
        device: where to make the mask.

    Returns:
        Boolean tensor of shape (T, T): True where t - s is a multiple of ``stride``.

    Raises:
        ValueError: T is negative, or ``stride`` is below 1.

    Source: Child et al. 2019, section 4.
    """
    if stride < 1:
        raise ValueError(f"stride is {stride}, expected at least 1")
    return _as_causal(position_offsets(_checked(num_tokens), device=device) % stride == 0, causal)


def global_mask(num_tokens, tokens, *, rows=True, columns=True, causal=False, device=None):
    """A few tokens that attend to all (their rows) and to which all attend (their columns).

    Args:
        num_tokens: T.
        tokens: how many of the first are global, or a list of their positions.
        rows: whether they attend to all.
        columns: whether all attend to them.
        causal: whether later positions are hidden.
        device: where to make the mask.

    Returns:
        Boolean tensor of shape (T, T).

    Raises:
        ValueError: T is negative, or there is no such position.

    Source: UDL figures 12.15g (rows alone) and 12.15h; Beltagy et al. 2020, section 3.1.
    """
    number = isinstance(tokens, int)
    positions = list(range(tokens)) if number else [int(position) for position in tokens]
    if (number and tokens < 0) or not all(0 <= position < num_tokens for position in positions):
        raise ValueError(f"tokens are {tokens}, expected a number from 0 to {num_tokens}, or positions below it")
    mask = torch.zeros(_checked(num_tokens), num_tokens, dtype=torch.bool, device=device)
    if rows:
        mask[positions] = True
    if columns:
        mask[:, positions] = True
    return _as_causal(mask, causal)


def random_mask(num_tokens, num_random, *, causal=False, generator=None, device=None):
    """A few keys for each query, drawn at random, all different.

    Args:
        num_tokens: T.
        num_random: keys for each query; all, where there are fewer.
        causal: whether they are drawn from the query's own and earlier positions.
        generator: ``torch.Generator`` of ``device``, or None. Draw once and keep the mask.
        device: where to make the mask.

    Returns:
        Boolean tensor of shape (T, T).

    Raises:
        ValueError: T or ``num_random`` is negative.

    Source: Zaheer et al. 2020, section 2.
    """
    if num_random < 0:
        raise ValueError(f"num_random is {num_random}, expected 0 or more")
    allowed = causal_mask(num_tokens, device=device) if causal else full_mask(num_tokens, device=device)
    lots = torch.rand(num_tokens, num_tokens, generator=generator, device=device).masked_fill(~allowed, -1.0)
    drawn = lots.topk(min(num_random, num_tokens), dim=-1).indices  # (T, num_random)
    return torch.zeros_like(allowed).scatter(-1, drawn, True) & allowed


def bigbird_mask(num_tokens, window, num_global, num_random, *, causal=False, generator=None, device=None):
    """A window, global tokens and random keys: of the order of T pairs, and everything meets in two layers.

    The first brings everything to a global token, and the second from there to all. In a causal version a global token,
    being early, knows nothing of what follows it, which only the window and the random keys bring on. The paper counts
    in blocks of positions, which suits the hardware; here a block is one.

    Args:
        num_tokens: T.
        window: as for `d2lmini.sliding_window_mask`: itself and ``window - 1`` on each side.
        num_global: how many of the first tokens are global.
        num_random: random keys for each query.
        causal: whether later positions are hidden. The paper's is an encoder.
        generator, device: as for `random_mask`.

    Returns:
        Boolean tensor of shape (T, T).

    Raises:
        ValueError: as the parts.

    Source: Zaheer et al. 2020, section 2.
    """
    near = sliding_window_mask(num_tokens, window, causal=causal, device=device)
    global_pairs = global_mask(num_tokens, num_global, causal=causal, device=device)
    return near | global_pairs | random_mask(num_tokens, num_random, causal=causal, generator=generator, device=device)


def interaction_matrices(num_tokens, *, window=2, num_global=2, every=4, num_random=2, generator=None, device=None):
    """The eight patterns of UDL's figure, in its order, and BigBird's.

    Args:
        num_tokens: T, at least ``num_global``.
        window: of the local ones, as for `d2lmini.sliding_window_mask`.
        num_global: global tokens, in the last two.
        every: of the chosen tokens, how many positions apart they are.
        num_random: random keys for each query, in BigBird's.
        generator, device: as for `random_mask`.

    Returns:
        dict from a name to a boolean tensor (T, T). "decoder" in a name says that later positions are hidden.

    Raises:
        ValueError: as the parts.

    Source: UDL figure 12.15; Zaheer et al. 2020, figure 1.
    """
    T, on = num_tokens, {"device": device}
    near = sliding_window_mask(T, window, causal=False, **on)
    near_before = sliding_window_mask(T, window, **on)
    chosen = global_mask(T, range(0, T, every), columns=False, causal=True, **on)
    return {
        "encoder": full_mask(T, **on),
        "decoder": causal_mask(T, **on),
        "local, encoder": near,
        "local, decoder": near_before,
        "dilation 2, decoder": sliding_window_mask(T, window, dilation=2, **on),
        "dilation 3, decoder": sliding_window_mask(T, window, dilation=3, **on),
        "chosen tokens, decoder": near_before | chosen,
        "global tokens, encoder": near | global_mask(T, num_global, **on),
        "BigBird, encoder": bigbird_mask(T, window, num_global, num_random, generator=generator, **on),
    }


def count_pairs(mask):
    """How many pairs of a query and a key a pattern has: the scores that attention must compute.

    Args:
        mask: boolean tensor (T, S).

    Returns:
        int.

    Raises:
        TypeError: ``mask`` is not boolean.
    """
    if mask.dtype != torch.bool:
        raise TypeError(f"mask has dtype {mask.dtype}, expected a boolean one (True = may attend)")
    return int(mask.sum())


def layers_per_pair(masks):
    """After how many layers the output of a position depends on the input of another, pair by pair.

    Layers have residual connections, so that each position keeps what it has. What reaches t in a layer is what had
    reached one of the positions to which t attends: after n layers that is the boolean power n of the mask.

    Args:
        masks: a pattern (T, T), or several that the layers use in turn, the first layer the first.

    Returns:
        Integers (T, T), for [t, s]: 0 where t = s, and -1 where no number of layers is enough.

    Raises:
        TypeError: a mask is not boolean.
        ValueError: there is none, it is not square, or they differ in size.
    """
    masks = [masks] if isinstance(masks, torch.Tensor) else list(masks)
    shapes = {tuple(mask.shape) for mask in masks}
    if len(shapes) != 1 or len(shape := shapes.pop()) != 2 or shape[0] != shape[1]:
        raise ValueError(f"masks have shapes {[tuple(m.shape) for m in masks]}, expected (T, T), the same for all")
    if any(mask.dtype != torch.bool for mask in masks):
        raise TypeError(f"masks have dtypes {[mask.dtype for mask in masks]}, expected boolean ones")
    reached = torch.eye(shape[0], dtype=torch.bool, device=masks[0].device)
    layers = torch.where(reached, 0, -1)
    n = idle = 0
    while idle < len(masks) and not reached.all():  # a whole turn that brings nothing is the end
        now = reached | (masks[n % len(masks)].float() @ reached.float() > 0)  # torch multiplies no booleans
        n += 1
        layers[now & ~reached] = n
        idle = 0 if (now & ~reached).any() else idle + 1
        reached = now
    return layers


def layers_to_reach(masks, wanted=None):
    """How many layers it takes until every output depends on every input; of causal patterns, on every earlier one.

    Args:
        masks: as for `layers_per_pair`.
        wanted: None, or a boolean tensor (T, T): the pairs that count.

    Returns:
        int, or None where no number of layers is enough.

    Raises:
        TypeError, ValueError: as `layers_per_pair`, or ``wanted`` is not a boolean (T, T).
    """
    masks = [masks] if isinstance(masks, torch.Tensor) else list(masks)
    layers = layers_per_pair(masks)
    if wanted is None:
        is_causal = not any(mask.triu(1).any() for mask in masks)
        wanted = _as_causal(torch.ones_like(layers, dtype=torch.bool), is_causal)
    elif wanted.dtype != torch.bool or wanted.shape != layers.shape:
        raise ValueError(f"wanted is {wanted.dtype} {tuple(wanted.shape)}, expected boolean {tuple(layers.shape)}")
    needed = layers[wanted]
    return None if (needed < 0).any() else int(needed.max()) if needed.numel() else 0


def _as_causal(mask, causal):
    return mask.tril() if causal else mask


def _checked(num_tokens):
    if num_tokens < 0:
        raise ValueError(f"num_tokens is {num_tokens}, expected 0 or more")
    return num_tokens
