"""Rotary positions: queries and keys are turned by their position, so that their products tell the distance.

`rotary` is the formula, `RotaryEmbedding` has its angles made beforehand, `StretchedRotary` goes past the trained
length; each is for ``rotary`` of `d2lmini.MultiHeadAttention`. All count in float32 or better whatever the dtype.
"""

import torch
from torch import nn

from .buffers import ExactBuffers
from .utils import widest_float

ROTATIONS = "as trained", "interpolated", "base changed"


def rotary(X, offset=0, *, base=10000.0):
    """Turns each pair of neighbouring features (2j, 2j+1) by the angle i base^(-2j/d), i being the position.

    The product of a query and a key, both so turned, depends on their positions only through the difference.

    Args:
        X: (..., n, d), queries or keys of a head at n positions; d even.
        offset: position of the first row.
        base: the larger, the slower the slowest pair turns.

    Returns:
        Tensor of the shape and dtype of ``X``.

    Raises:
        ValueError: d is odd, or ``offset`` is negative.

    Source: Su et al. 2021 (RoFormer), equation 34.
    """
    if X.shape[-1] % 2:
        raise ValueError(f"X has {X.shape[-1]} features, expected an even number: they are turned in pairs")
    if offset < 0:
        raise ValueError(f"offset is {offset}, expected 0 or more")
    angles = position_angles(X.shape[-2], offset, X.shape[-1], base, X.device)  # (n, d / 2)
    return turn_pairs(X, angles.cos(), angles.sin())


class RotationTable(ExactBuffers):
    """Turns pairs of features by angles made beforehand; the table stays exact where a model changes its dtype.

    Args:
        angles: (n, d / 2), float64, on the CPU.
    """

    exact = "cos", "sin"

    def __init__(self, angles):
        super().__init__()
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def turn(self, X, offset):
        """X (..., n, d), its first row at position ``offset`` of the table, to the same shape."""
        end = offset + X.shape[-2]
        return turn_pairs(X, self.cos[offset:end], self.sin[offset:end])


class RotaryEmbedding(RotationTable):
    """`rotary` with the angles of the first positions made beforehand; others work too. Nothing is learned.

    Args:
        head_size: d, features of a head; even.
        max_len: positions made beforehand.
        base: as in `rotary`.

    Raises:
        ValueError: ``head_size`` is odd.
    """

    def __init__(self, head_size, max_len=1000, *, base=10000.0):
        if head_size % 2:
            raise ValueError(f"head_size is {head_size}, expected an even number: features are turned in pairs")
        super().__init__(position_angles(max_len, 0, head_size, base, None))
        self.base = base

    def forward(self, X, offset=0):
        """As `rotary`: X (..., n, d) to (..., n, d); raises ValueError where X does not have d features."""
        if X.shape[-1] != 2 * self.cos.shape[1]:
            raise ValueError(f"X has {X.shape[-1]} features, expected {2 * self.cos.shape[1]} (head_size)")
        if offset < 0 or offset + X.shape[-2] > len(self.cos):
            return rotary(X, offset, base=self.base)
        return self.turn(X, offset)


class StretchedRotary(nn.Module):
    """Rotary positions for sequences that are longer than those of the training by a factor.

    Args:
        factor: s, from 1. 1: as trained.
        way: one of `ROTATIONS`. "interpolated": each position is divided by s, and with it every angle, so that none
            is larger than it was in training. "base changed": the base is multiplied by s^(d / (d - 2)), so that the
            slowest pair turns s times as slowly and the fastest as before. "as trained": neither.
        base: of the training.

    Raises:
        ValueError: the way is none of these, or the factor is below 1.

    Source: Chen et al. 2023, section 2.3; Peng et al. 2024, section 3.1, for the base.
    """

    def __init__(self, factor=1.0, way="as trained", *, base=10000.0):
        super().__init__()
        if way not in ROTATIONS or factor < 1:
            raise ValueError(f"way is {way!r} and factor {factor}, expected one of {ROTATIONS} and at least 1")
        self.factor, self.way, self.base = factor, way, base

    def angles(self, num, offset, head_size, device=None):
        """Angles of positions from ``offset`` on, (num, d / 2)."""
        if self.way == "base changed":
            # of two features there is one pair, which turns by 1 whatever the base
            base = self.base * self.factor ** (head_size / max(1, head_size - 2))
            return position_angles(num, offset, head_size, base, device)
        angles = position_angles(num, offset, head_size, self.base, device)
        return angles / self.factor if self.way == "interpolated" else angles

    def forward(self, X, offset=0):
        """Turned heads, as `d2lmini.rotary`: (..., n, d) to (..., n, d)."""
        angles = self.angles(X.shape[-2], offset, X.shape[-1], X.device)
        return turn_pairs(X, angles.cos(), angles.sin())


def position_angles(num, offset, num_hiddens, base, device):
    """Position times frequency, i * base^(-2j/d), for each pair of features: what sines and rotations are made of.

    Args:
        num: how many positions.
        offset: that of the first.
        num_hiddens: d.
        base: the larger, the lower the lowest frequency.
        device: where to make it; None: the CPU.

    Returns:
        Tensor (num, ceil(d / 2)), float64 (on MPS, which has none, float32).
    """
    device = torch.device("cpu") if device is None else device
    dtype = widest_float(device)  # float32 would be off by 6e-5 at position 1,000
    frequencies = base ** (-torch.arange(0, num_hiddens, 2, dtype=dtype, device=device) / num_hiddens)
    return torch.arange(offset, offset + num, dtype=dtype, device=device)[:, None] * frequencies


def turn_pairs(X, cos, sin):
    """Turns each pair of neighbouring features of X (..., n, d) by an angle, given its cosine and sine (n, d / 2)."""
    wide = X.to(torch.promote_types(X.dtype, torch.float32))
    cos, sin = cos.to(wide.dtype), sin.to(wide.dtype)
    even, odd = wide[..., 0::2], wide[..., 1::2]  # (..., n, d / 2)
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1)  # (..., n, d / 2, 2)
    return turned.flatten(-2).to(X.dtype)
