"""Positions on a grid: a patch of a picture stands in a row and in a column.

A grid is (rows, columns), read row by row. Where a class token goes before the patches, it has no place on the grid.
"""

import torch
from torch.nn import functional as F

from ..position import sinusoidal
from ..rotation import RotationTable


def sinusoidal_2d(grid, num_hiddens, *, device=None):
    """Sines for the row in the first half of the features, for the column in the second.

    Args:
        grid: (rows, columns).
        num_hiddens: h; even.
        device: where to make it.

    Returns:
        float32 tensor (rows * columns, h).

    Raises:
        ValueError: h is odd.

    Source: Chen et al. 2021 (MoCo v3), section 3; `d2lmini.sinusoidal` for each half.
    """
    if num_hiddens % 2:
        raise ValueError(
            f"num_hiddens is {num_hiddens}, expected an even number: half for the row, half for the column"
        )
    row, column = (sinusoidal(n, num_hiddens // 2, device=device) for n in grid)
    table = torch.cat([row[:, None].expand(-1, grid[1], -1), column.expand(grid[0], -1, -1)], -1)
    return table.flatten(0, 1)  # (rows, columns, h) to (rows * columns, h)


class GridRotary(RotationTable):
    """Turns the pairs of the first half of a head's features by its row, those of the second half by its column.

    The product of a query and a key so turned depends on how many rows and columns lie between them, not on where they
    are. It goes into ``MultiHeadAttention(..., rotary=...)``; nothing is learned.

    Args:
        head_size: d; a multiple of 4.
        grid: (rows, columns).
        num_extra: tokens before the patches, which are not turned: 1 for a class token.
        base: the larger, the slower the slowest pair turns; grids are short, so that 100 is enough.

    Raises:
        ValueError: ``head_size`` is no multiple of 4.

    Source: Heo et al. 2024, "Rotary position embedding for vision transformer", axial frequencies.
    """

    def __init__(self, head_size, grid, num_extra=0, *, base=100.0):
        if head_size % 4:
            raise ValueError(f"a head has {head_size} features, expected a multiple of 4: pairs for row and for column")
        frequencies = base ** (-torch.arange(0, head_size // 2, 2).double() / (head_size // 2))  # (d / 4,)
        places = torch.cartesian_prod(*(torch.arange(n).double() for n in grid))  # (rows * columns, 2)
        angles = (places[:, :, None] * frequencies).flatten(1)  # (rows * columns, d / 2)
        super().__init__(F.pad(angles, (0, 0, num_extra, 0)))  # no angle for the extra tokens

    def forward(self, X, offset=0):
        """Heads (B, H, n, d), the first at position ``offset``, to the same shape.

        Raises:
            ValueError: there are positions past the grid.
        """
        end = offset + X.shape[-2]
        if end > len(self.cos):  # what is left of the table might broadcast
            raise ValueError(f"there are {end} positions, expected at most {len(self.cos)}: the grid, and before it")
        return self.turn(X, offset)


def resize_positions(positions, old_grid, new_grid):
    """Learned positions for another grid, by bicubic interpolation; what stands before the patches stays.

    Args:
        positions: (1, extra + old rows * columns, h); extra is 1 with a class token, 0 without.
        old_grid, new_grid: (rows, columns).

    Returns:
        Tensor (1, extra + new rows * columns, h).

    Raises:
        RuntimeError: there are fewer positions than the old grid has.

    Source: Dosovitskiy et al. 2021, section 3.2.
    """
    num_patches = old_grid[0] * old_grid[1]
    extra, patches = positions.split([positions.shape[1] - num_patches, num_patches], 1)
    picture = patches.unflatten(1, tuple(old_grid)).permute(0, 3, 1, 2)  # (1, h, rows, columns)
    picture = F.interpolate(picture, tuple(new_grid), mode="bicubic", align_corners=False)
    return torch.cat([extra, picture.flatten(2).transpose(1, 2)], 1)
