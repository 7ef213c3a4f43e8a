"""Positions on a grid: rows and columns, what turning keeps, and other grids."""

import pytest
import torch
from torch.nn import functional as F

from d2lmini.position import sinusoidal
from d2lmini.rotation import rotary
from d2lmini.vision.grid_position import GridRotary, resize_positions, sinusoidal_2d


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_sinusoidal_2d_is_row_then_column():
    table = sinusoidal_2d((3, 4), 10).unflatten(0, (3, 4))
    for row in range(3):
        for column in range(4):
            assert torch.equal(table[row, column, :5], sinusoidal(3, 5)[row])
            assert torch.equal(table[row, column, 5:], sinusoidal(4, 5)[column])


def test_rotary_turns_the_halves_by_row_and_by_column():
    X = torch.randn(2, 3, 1 + 12, 8)
    turned = GridRotary(8, (3, 4), num_extra=1)(X)
    assert torch.equal(turned[:, :, 0], X[:, :, 0])
    grid, expected = X[:, :, 1:].unflatten(2, (3, 4)), turned[:, :, 1:].unflatten(2, (3, 4))
    by_row = rotary(grid[..., :4].transpose(2, 3), base=100.0).transpose(2, 3)
    by_column = rotary(grid[..., 4:], base=100.0)
    torch.testing.assert_close(expected, torch.cat([by_row, by_column], -1))


def test_rotary_scores_depend_on_the_difference_alone():
    turn = GridRotary(8, (5, 6))
    q, k = torch.randn(8), torch.randn(8)
    places = turn(torch.stack([q, k])[:, None, None].expand(2, 1, 30, 8))[:, 0].unflatten(1, (5, 6))

    def score(a, b):
        return places[0][a] @ places[1][b]

    torch.testing.assert_close(score((0, 1), (2, 0)), score((2, 4), (4, 3)))
    assert (score((0, 1), (2, 0)) - score((0, 1), (1, 0))).abs() > 1e-3


def test_resized_positions_are_torchs_bicubic_pictures():
    positions = torch.randn(1, 13, 6)
    resized = resize_positions(positions, (3, 4), (5, 7))
    assert resized.shape == (1, 36, 6) and torch.equal(resized[:, 0], positions[:, 0])
    for feature in range(6):
        picture = positions[0, 1:, feature].view(1, 1, 3, 4)
        expected = F.interpolate(picture, (5, 7), mode="bicubic", align_corners=False)
        torch.testing.assert_close(resized[0, 1:, feature], expected.flatten())
    torch.testing.assert_close(resize_positions(positions, (3, 4), (3, 4)), positions)
    assert resize_positions(positions[:, 1:], (3, 4), (2, 2)).shape == (1, 4, 6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sinusoidal_2d((3, 4), 15), ValueError, "num_hiddens is 15, expected an even number"),
        (lambda: GridRotary(6, (3, 4)), ValueError, "a head has 6 features, expected a multiple of 4"),
        (
            lambda: GridRotary(8, (3, 4))(torch.rand(1, 2, 13, 8)),
            ValueError,
            "there are 13 positions, expected at most 12",
        ),
        (lambda: GridRotary(8, (3, 4))(torch.rand(1, 2, 2, 8), 11), ValueError, "there are 13 positions"),
        (lambda: resize_positions(torch.rand(1, 9, 6), (3, 4), (5, 7)), RuntimeError, "non-negative"),
    ],
)
def test_what_does_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()
