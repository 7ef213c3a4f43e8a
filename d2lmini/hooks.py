"""Looking inside a model: recording its attention weights, switching heads off, and what tokens are made of."""

from contextlib import contextmanager
from functools import partial

import torch

from .attention import Attention
from .modes import evaluating
from .multi_head import MultiHeadAttention, with_head_mask


@contextmanager
def capture_attention(module):
    """Records the weights of every attention module inside ``module``, call by call, while it is open.

    For example::

        with capture_attention(model) as weights:
            model(X)
        weights["decoder.attention"][0]  # (B, T, S), or (B, H, T, S) with heads: first call of that module

    Args:
        module: any module; an attention module itself goes by the name "".

    Yields:
        Dict from the name of each attention module to the list of its weights, detached, before dropout.

    Raises:
        ValueError: ``module`` holds no attention module.
    """
    sources = {name: m for name, m in module.named_modules() if isinstance(m, Attention)}
    if not sources:
        raise ValueError(f"{type(module).__name__} holds no attention module to capture")
    record = {name: [] for name in sources}

    def append(name, source, inputs, output):
        record[name].append(source.last_weights())

    hooks = [source.register_forward_hook(partial(append, name)) for name, source in sources.items()]
    try:
        yield record
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def attention_patterns(module, *inputs, **options):
    """Who may attend to whom in a model, as a call of it shows: where a weight of any head is not zero.

    It is in evaluation mode meanwhile. A key that is hidden weighs exactly 0; one that is not may, too, where its
    score is some hundred (float16: 17) below the highest, as no model before training has it.

    Args:
        module: any module with attention inside.
        inputs, options: what it is called with.

    Returns:
        Dict from the name of each attention module called to booleans (B, T, S), True where query t may attend to key
        s; of its first call.

    Raises:
        ValueError: ``module`` holds no attention module.
    """
    with evaluating(module), capture_attention(module) as record:
        module(*inputs, **options)
    seen = {name: weights[0] != 0 for name, weights in record.items() if weights}
    return {name: pattern.any(1) if pattern.dim() == 4 else pattern for name, pattern in seen.items()}


@contextmanager
def head_masks(module, masks):
    """Inside a model, multiplies the outputs of heads by factors while it is open, as ``head_mask`` does for one call.

    Also where keys come from a cache.

    Args:
        module: any module.
        masks: dict from names of `MultiHeadAttention` modules in it to factors, (H,) or (B, H).

    Raises:
        ValueError: a name is not that of a `MultiHeadAttention`.

    Source: Michel et al. 2019, "Are sixteen heads really better than one?", for heads switched off and gradients.
    """
    named = {name: m for name, m in module.named_modules() if isinstance(m, MultiHeadAttention)}
    for name in masks:
        if name not in named:
            raise ValueError(f"there is no multi-head attention {name!r}, expected one of {', '.join(named) or 'none'}")

    def scale(head_mask, heads, args, output):
        return with_head_mask(output, head_mask)

    hooks = [named[name].attention.register_forward_hook(partial(scale, mask)) for name, mask in masks.items()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def attention_rollout(weights, num_heads=None):
    """Follows attention from the last block down to the input, residual connections included.

    A block passes half of each token on by its residual connection and mixes the rest by the mean of its heads,
    A = (I + mean over heads) / 2; the rollout is the product of these matrices, the last block's on the left. It
    leaves out values and feed-forward networks: it shows where information may have come from, and proves nothing.

    Args:
        weights: of each block in turn, (N, H, T, T); or (N * H, T, T) as ``attention_weights`` has.
        num_heads: H, needed for the second form.

    Returns:
        Tensor (N, T, T) whose rows sum to 1. Row 0, without its first entry, is what the class token has of each patch.

    Raises:
        ValueError: there are no weights, shapes do not fit, or ``num_heads`` is missing.

    Source: Abnar and Zuidema 2020, equation 1.
    """
    if len(weights) == 0:
        raise ValueError("there are no weights: expected a tensor for each block")
    total = None
    for block in weights:
        if block.dim() == 3:
            if num_heads is None or num_heads < 1 or len(block) % num_heads:
                raise ValueError(
                    f"weights have shape {tuple(block.shape)} and num_heads is {num_heads}: expected (N, H, T, T), or "
                    "(N * H, T, T) and H"
                )
            block = block.unflatten(0, (-1, num_heads))
        if block.dim() != 4 or block.shape[2] != block.shape[3]:
            raise ValueError(f"weights have shape {tuple(block.shape)}, expected (N, H, T, T) or (N * H, T, T)")
        own = torch.eye(block.shape[-1], dtype=block.dtype, device=block.device)
        mixed = (block.mean(1) + own) / 2  # (N, T, T)
        if total is not None and mixed.shape != total.shape:
            raise ValueError(f"blocks have weights {tuple(total.shape)} and {tuple(mixed.shape)}, expected one shape")
        total = mixed if total is None else mixed @ total
    return total
