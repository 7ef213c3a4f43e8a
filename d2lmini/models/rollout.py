"""Attention rollout: through all layers, from how far does what a token carries come?"""

import torch


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
            if num_heads is None or len(block) % num_heads:
                raise ValueError(
                    f"weights have shape {tuple(block.shape)} and num_heads is {num_heads}: expected (N, H, T, T), or "
                    "(N * H, T, T) and H"
                )
            block = block.unflatten(0, (-1, num_heads))
        if block.dim() != 4 or block.shape[2] != block.shape[3]:
            raise ValueError(f"weights have shape {tuple(block.shape)}, expected (N, H, T, T) or (N * H, T, T)")
        own = torch.eye(block.shape[-1], dtype=block.dtype, device=block.device)
        mixed = (block.mean(1) + own) / 2  # (N, T, T)
        total = mixed if total is None else mixed @ total
    return total
