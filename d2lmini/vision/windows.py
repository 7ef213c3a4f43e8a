"""Windows on a grid of patches: cutting it, shifting the cuts, attention inside of them.

Maps of patches are (N, rows, columns, h). M is the number of patches along a side of a window, P = M * M those in it.
The cost of attention is then linear in the number of patches, where it is quadratic if all attend to all.
"""

import torch
from torch import nn

from ..multi_head import MultiHeadAttention


def window_partition(X, window_size):
    """Cuts maps into windows.

    Args:
        X: (N, rows, columns, h).
        window_size: M.

    Returns:
        (N * windows, P, h); the windows of an example follow each other, row by row, and so do the patches in each.

    Raises:
        ValueError: X has another number of dimensions, or windows of M do not divide the grid.

    Source: Liu et al. 2021, section 3.2.
    """
    if X.dim() != 4:
        raise ValueError(f"the maps have shape {tuple(X.shape)}, expected (N, rows, columns, h)")
    check_windows(X.shape[1:3], window_size)
    M = window_size
    X = X.unflatten(2, (-1, M)).unflatten(1, (-1, M))  # (N, rows / M, M, columns / M, M, h)
    return X.transpose(2, 3).flatten(3, 4).flatten(0, 2)  # (N * windows, P, h)


def window_reverse(windows, window_size, grid):
    """The way back from `window_partition`.

    Args:
        windows: (N * windows, P, h).
        window_size: M.
        grid: (rows, columns).

    Returns:
        (N, rows, columns, h).

    Raises:
        RuntimeError: the sizes do not fit together.

    Source: Liu et al. 2021, section 3.2.
    """
    M, (rows, columns) = window_size, grid
    X = windows.unflatten(1, (M, M)).unflatten(0, (-1, rows // M, columns // M))  # (N, rows / M, columns / M, M, M, h)
    return X.transpose(2, 3).flatten(3, 4).flatten(1, 2)  # (N, rows, columns, h)


def shifted_window_mask(grid, window_size, shift, device=None):
    """Which patches of a window are neighbours in the picture, once the map was rolled by ``shift``.

    Rolling brings the first rows and columns to the end, into windows with the last ones. A patch that came round an
    edge and one that did not lie on opposite sides of the picture, and may not attend to each other.

    Args:
        grid: (rows, columns); M divides both.
        window_size: M.
        shift: patches by which the map was rolled up and to the left, from 0 to M - 1.
        device: of the result.

    Returns:
        boolean (windows, P, P), True = may attend.

    Raises:
        ValueError: the shift is outside of 0 to M - 1.

    Source: Liu et al. 2021, section 3.2, figure 4.
    """
    _check_shift(shift, window_size)
    # for each side of the grid (n / M, M): did this row, or column, come round an edge?
    down, right = ((torch.arange(n, device=device) >= n - shift).view(-1, window_size).long() for n in grid)
    came = 2 * down[:, None, :, None] + right[:, None]  # (rows / M, columns / M, M, M): which edges, in one number
    came = came.flatten(2).flatten(0, 1)  # (windows, P)
    return came[:, :, None] == came[:, None]


class WindowAttention(nn.Module):
    """Multi-head attention inside of windows, with a learned bias for each head and each offset of two patches.

    With a shift the borders of the windows move by so many patches down and to the right. The windows that the edges of
    the picture cut are smaller; they are computed all the same in windows of full size, by rolling and masking.

    Args:
        num_hiddens: h.
        num_heads: H.
        window_size: M.
        shift: from 0 to M - 1. None is done where a window is as long as a side of the grid, as in the authors' code.
        dropout: probability of dropping an attention weight in training.
        use_bias: whether the projections have a bias.

    Raises:
        ValueError: the shift is outside of 0 to M - 1, or H does not divide h.

    Source: Liu et al. 2021, section 3.2, equation 4.
    """

    def __init__(self, num_hiddens, num_heads, window_size, shift=0, dropout=0.0, use_bias=True):
        super().__init__()
        _check_shift(shift, window_size)
        self.window_size, self.shift = window_size, shift
        self.attention = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias)
        self.bias_table = nn.Parameter(torch.empty((2 * window_size - 1) ** 2, num_heads))
        nn.init.trunc_normal_(self.bias_table, std=0.02)
        self.register_buffer("offsets", _offsets(window_size), persistent=False)  # (P, P)

    def position_bias(self):
        """What is added to the scores of two patches of a window, (1, H, P, P)."""
        return self.bias_table[self.offsets].permute(2, 0, 1)[None]

    def forward(self, X):
        """Maps (N, rows, columns, h) to the same shape; raises as `window_partition` does."""
        grid, M = X.shape[1:3], self.window_size
        shift = 0 if M in grid else self.shift
        if shift:
            X = X.roll((-shift, -shift), dims=(1, 2))
        windows = window_partition(X, M)  # (N * windows, P, h)
        mask = shifted_window_mask(grid, M, shift, X.device).repeat(len(X), 1, 1) if shift else None
        windows = self.attention(windows, windows, windows, mask=mask, score_bias=self.position_bias())
        X = window_reverse(windows, M, grid)
        return X.roll((shift, shift), dims=(1, 2)) if shift else X


def check_windows(grid, window_size, where=""):
    """Raises ValueError where windows do not divide a grid (rows, columns); ``where`` says which grid it is."""
    rows, columns = grid
    if window_size < 1 or rows % window_size or columns % window_size:
        raise ValueError(
            f"the grid{where} has {rows} x {columns} patches, which windows of {window_size} do not divide"
        )


def _check_shift(shift, window_size):
    if not 0 <= shift < window_size:
        raise ValueError(f"the shift is {shift}, expected 0 to {window_size - 1} for windows of {window_size}")


def _offsets(M):
    """For each pair of patches of a window, the number of its offset: a row of the table of biases, (P, P)."""
    place = torch.arange(M)
    apart = place[:, None] - place + M - 1  # (M, M), from 0 to 2M - 2
    rows, columns = apart[:, None, :, None], apart[None, :, None, :]  # (M, 1, M, 1) and (1, M, 1, M)
    return ((2 * M - 1) * rows + columns).flatten(2).flatten(0, 1)
