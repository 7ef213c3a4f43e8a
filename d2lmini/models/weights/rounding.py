"""Weights in fewer bits: int8 with a scale a row, or float16."""

import torch

KINDS = "int8", "float16"
_SCALE = ".scale"


def rounded(tensors, kind):
    """Tensors as a file keeps them. Matrices are rounded; what has fewer than two dimensions stays float32.

    Args:
        tensors: dict from names to float tensors.
        kind: "int8": each row of the first dimension becomes integers of -127 to 127 times a scale of its own, its
            largest entry over 127, which is kept as ``<name>.scale``, float32 (rows,). "float16": half precision.

    Returns:
        dict of contiguous tensors on the CPU.

    Raises:
        ValueError: there is no such kind, a number is not finite, or float16 cannot hold it.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, expected {' or '.join(map(repr, KINDS))}")
    kept = {}
    for name, tensor in tensors.items():
        tensor = tensor.detach().to("cpu", torch.float32).contiguous()
        if not tensor.isfinite().all():
            raise ValueError(f"{name} has numbers that are not finite")
        if tensor.dim() < 2:
            kept[name] = tensor.clone()
        elif kind == "float16":
            kept[name] = tensor.half()
            if not kept[name].isfinite().all():
                raise ValueError(f"{name} reaches {tensor.abs().max():.3g}, more than float16 holds")
        else:
            rows = tensor.flatten(1)
            scale = rows.abs().amax(1) / 127
            scale[scale == 0] = 1.0  # a row of zeros
            kept[name] = (rows / scale[:, None]).round().clamp(-127, 127).to(torch.int8).view(tensor.shape)
            kept[name + _SCALE] = scale
    return kept


def restored(kept):
    """What `rounded` gave as float32 tensors under their own names."""
    tensors = {}
    for name, tensor in kept.items():
        if tensor.dtype == torch.int8:
            scale = kept[name + _SCALE].view(-1, *[1] * (tensor.dim() - 1))
            tensors[name] = tensor.float() * scale
        elif kept.get(name.removesuffix(_SCALE), tensor).dtype != torch.int8:
            tensors[name] = tensor.float()
    return tensors
