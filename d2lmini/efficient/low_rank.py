"""Attention to fewer keys: before the queries come, the S keys and values are mixed into R slots.

The weights are then (T, R) in place of (T, S). Only keys can be hidden, from all queries alike: see
`d2lmini.masks.key_mask`. A hidden key and its value are zero when they are mixed.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..inputs import check_inputs
from ..kernels import attend
from ..masks import key_mask


class LinformerAttention(nn.Module):
    """Slots are learned weighted sums over the positions of keys and values: K' = P_k K, V' = P_v V, both (R, ...).

    A slot mixes all positions, later ones too, so that there is no causal form. The parameters are for positions: no
    sequence may be longer than ``num_keys``, and a shorter one is taken as one padded with zeros.

    Args:
        num_keys: the largest S.
        num_slots: R.
        shared: whether keys and values are mixed by the same matrix. Heads always share.

    Raises:
        ValueError: a size is below 1.

    Source: Wang et al. 2020 (Linformer), section 4.
    """

    def __init__(self, num_keys, num_slots, *, shared=False):
        super().__init__()
        if num_keys < 1 or num_slots < 1:
            raise ValueError(f"num_keys is {num_keys} and num_slots {num_slots}, expected at least 1")
        # with entries of variance 1 / R dot products are kept on average, as the paper's theorem has it
        self.P_k = nn.Parameter(torch.randn(num_slots, num_keys) / math.sqrt(num_slots))
        self.P_v = self.P_k if shared else nn.Parameter(torch.randn(num_slots, num_keys) / math.sqrt(num_slots))

    def forward(self, queries, keys, values, valid_lens=None, *, mask=None):
        """Attends to the slots.

        Args:
            queries: (B, T, D) or (B, H, T, D).
            keys: (B, S, D) or (B, H, S, D), S at most ``num_keys``.
            values: (B, S, E) or (B, H, S, E).
            valid_lens: None, or integers (B,).
            mask: None, or a boolean mask of the keys, as for `d2lmini.linear_attention`.

        Returns:
            (B, T, E) or (B, H, T, E); zeros where there is no key.

        Raises:
            TypeError, ValueError: as `d2lmini.linear_attention`; ValueError too where S is above ``num_keys``.
        """
        _, keys, values, seen = _hidden_are_zero(queries, keys, values, valid_lens, mask)
        S, most = keys.shape[-2], self.P_k.shape[1]
        if most < S:
            raise ValueError(f"there are {S} keys, expected at most {most}: the projection has a weight for each")
        slots = None if seen is None else seen.any(-1, keepdim=True).unsqueeze(-2)  # (..., 1, 1): all slots, or none
        if S == 0:
            slots = torch.zeros(*keys.shape[:-2], 1, 1, dtype=torch.bool, device=keys.device)
        return attend(queries, self.P_k[:, :S] @ keys, self.P_v[:, :S] @ values, _fit(slots, queries, len(self.P_k)))


class MemoryCompressedAttention(nn.Module):
    """Slots are strided convolutions over keys and values, so that a slot sums up ``kernel_size`` neighbours.

    There are ceil(S / stride) slots; zeros fill the last. A causal query attends to the slots whose last position is
    not later than its own. The first queries may have none, and get zeros: their residual stream stays as it is.

    Args:
        key_size: D, of keys.
        value_size: E, of values.
        stride: positions from one slot to the next.
        kernel_size: positions in a slot; None: ``stride``, so that slots do not overlap.
        bias: whether the convolutions add a bias.

    Raises:
        ValueError: ``stride`` is below 1, or ``kernel_size`` below ``stride``: positions would be left out.

    Source: Liu et al. 2018, section 4.2 (there both are 3).
    """

    def __init__(self, key_size, value_size, stride=3, kernel_size=None, *, bias=False):
        super().__init__()
        kernel_size = stride if kernel_size is None else kernel_size
        if not 1 <= stride <= kernel_size:
            raise ValueError(f"stride is {stride} and kernel_size {kernel_size}, expected 1 <= stride <= kernel_size")
        self.stride, self.kernel_size = stride, kernel_size
        self.compress_k = nn.Conv1d(key_size, key_size, kernel_size, stride, bias=bias)
        self.compress_v = nn.Conv1d(value_size, value_size, kernel_size, stride, bias=bias)

    def forward(self, queries, keys, values, valid_lens=None, *, mask=None, causal=False):
        """Attends to the slots.

        Args:
            queries, keys, values, valid_lens, mask: as for `LinformerAttention`, S of any length. A slot is hidden
                where all of its keys are.
            causal: whether slots that hold a later position are hidden; the queries are the last T of S positions.

        Returns:
            (B, T, E) or (B, H, T, E).

        Raises:
            TypeError, ValueError: as `d2lmini.linear_attention`.
        """
        shape, keys, values, seen = _hidden_are_zero(queries, keys, values, valid_lens, mask)
        T, S = shape[-2:]
        if causal and T > S:
            raise ValueError(f"there are {T} queries but {S} keys: the queries are the last positions among the keys")
        slots = None
        if seen is not None:
            slots = self._windows(seen).any(-1).unsqueeze(-2)  # (..., 1, R)
        if causal:
            last = torch.arange(-(-S // self.stride), device=keys.device) * self.stride + self.kernel_size - 1  # (R,)
            past = last <= torch.arange(S - T, S, device=keys.device)[:, None]  # (T, R)
            slots = past[(None,) * (len(shape) - 2)] if slots is None else slots & past
        keys, values = self._compress(self.compress_k, keys), self._compress(self.compress_v, values)
        return attend(queries, keys, values, _fit(slots, queries, keys.shape[-2]))

    def _compress(self, convolution, x):
        """(..., S, D) to (..., R, D)."""
        columns = F.pad(x.flatten(0, -3).mT, (0, self._missing(x.shape[-2])))  # (B * H, D, S and what is missing)
        if columns.shape[-1] == 0:
            return x
        return convolution(columns).mT.unflatten(0, x.shape[:-2])

    def _windows(self, seen):
        """(..., S) to (..., R, kernel_size)."""
        padded = F.pad(seen, (0, self._missing(seen.shape[-1])))
        return padded.unfold(-1, self.kernel_size, self.stride) if padded.shape[-1] else padded.unsqueeze(-1)

    def _missing(self, S):
        """How many positions the last slot lacks."""
        slots = -(-S // self.stride)
        return max(0, (slots - 1) * self.stride + self.kernel_size - S) if slots else 0


def _hidden_are_zero(queries, keys, values, valid_lens, mask):
    """Checked: shape of the scores, keys and values with zeros where they are hidden, and which are seen (..., S)."""
    shape = check_inputs(queries, keys, values)
    seen = key_mask(shape, valid_lens, mask, device=queries.device)
    if seen is None:
        return shape, keys, values, None
    hidden = ~seen.unsqueeze(-1)  # (..., S, 1)
    return shape, keys.masked_fill(hidden, 0), values.masked_fill(hidden, 0), seen.expand(*seen.shape[:-1], shape[-1])


def _fit(slots, queries, num_slots):
    """The mask of slots as large as the scores."""
    return None if slots is None else slots.expand(*queries.shape[:-1], num_slots)
