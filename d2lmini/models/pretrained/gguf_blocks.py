"""The blocks of a GGUF file by hand: 32 weights of a row, in 8 or 4 bits, with a scale of their own.

    Q8_0    34 bytes: scale d (float16), 32 integers q of 8 bits; a weight is d q
    Q4_1    20 bytes: scale d, minimum m (float16), 32 numbers q of 4 bits from 0 to 15; a weight is d q + m

In Q4_1 the low halves of the 16 bytes are the weights 0 to 15, the high halves 16 to 31.
"""

import numpy as np
import torch

BLOCK = 32  # weights


def dequantize_q8_0(data, shape):
    """The weights of blocks of Q8_0.

    Args:
        data: bytes, or uint8 of numpy: 34 a block.
        shape: of the weights, rows last in memory; the last size is a multiple of 32.

    Returns:
        float32 tensor of that shape.

    Raises:
        ValueError: there are more or fewer bytes than the shape has blocks, or a row is no whole number of blocks.
    """
    blocks = _blocks(data, shape, 34, "Q8_0")
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)  # (n, 1)
    return torch.from_numpy(scales * blocks[:, 2:].view(np.int8)).reshape(shape)


def dequantize_q4_1(data, shape):
    """The weights of blocks of Q4_1; the arguments, what is returned and raised are those of `dequantize_q8_0`.

    Args:
        data: as there, 20 bytes a block.
        shape: as there.
    """
    blocks = _blocks(data, shape, 20, "Q4_1")
    scales, minima = blocks[:, :4].copy().view(np.float16).astype(np.float32).T[:, :, None]  # (n, 1) each
    levels = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1)  # (n, 32)
    return torch.from_numpy(scales * levels + minima).reshape(shape)


def _blocks(data, shape, num_bytes, kind):
    """The bytes as (blocks, bytes of one)."""
    if not shape or shape[-1] % BLOCK:
        raise ValueError(f"rows of shape {tuple(shape)} are no whole number of {kind} blocks of {BLOCK} weights")
    data = np.frombuffer(data, np.uint8) if isinstance(data, (bytes, bytearray, memoryview)) else data.reshape(-1)
    expected = int(np.prod(shape)) // BLOCK * num_bytes
    if data.size != expected:
        raise ValueError(f"there are {data.size:,} bytes of {kind}, expected {expected:,} for shape {tuple(shape)}")
    return data.reshape(-1, num_bytes)
