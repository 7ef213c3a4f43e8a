"""Windows against a loop that rolls nothing, and which patch hears of which."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from d2lmini import capture_attention
from d2lmini.vision.windows import WindowAttention, shifted_window_mask, window_partition, window_reverse


def pieces(size, window, shift):
    """The ranges into which the borders of windows cut one side of the picture."""
    borders = [0, *range(shift or window, size, window), size]
    return [range(*pair) for pair in pairwise(borders)]


def by_loop(layer, X):
    """`WindowAttention` window by window, head by head, from its parameters."""
    M, attention, H = layer.window_size, layer.attention, layer.attention.num_heads
    output = []
    for picture in X:
        result = {}
        for rows in pieces(X.shape[1], M, layer.shift):
            for columns in pieces(X.shape[2], M, layer.shift):
                places = [(row, column) for row in rows for column in columns]
                x = torch.stack([picture[place] for place in places])  # (patches, h)
                q, k, v = (linear(x).chunk(H, -1) for linear in (attention.W_q, attention.W_k, attention.W_v))
                heads = []
                for head in range(H):
                    scores = q[head] @ k[head].T / math.sqrt(q[head].shape[-1])
                    bias = [
                        [layer.bias_table[(r - r2 + M - 1) * (2 * M - 1) + c - c2 + M - 1, head] for r2, c2 in places]
                        for r, c in places
                    ]
                    bias = torch.stack([torch.stack(row) for row in bias])
                    heads.append(torch.softmax(scores + bias, -1) @ v[head])
                result.update(zip(places, attention.W_o(torch.cat(heads, -1)), strict=True))
        output.append(torch.stack([result[place] for place in sorted(result)]).view_as(picture))
    return torch.stack(output)


def layer_of(window, shift, h=6, heads=2):
    torch.manual_seed(0)
    layer = WindowAttention(h, heads, window, shift).double()
    nn.init.normal_(layer.bias_table)  # as large as the scores, so that a wrong offset is seen
    return layer


@pytest.mark.parametrize(("grid", "window", "shift"), [((6, 9), 3, 0), ((6, 9), 3, 1), ((6, 9), 3, 2), ((8, 12), 4, 2)])
def test_values_and_gradients_of_the_loop(grid, window, shift):
    layer = layer_of(window, shift)
    X = torch.randn(2, *grid, 6, dtype=torch.float64, requires_grad=True)
    direction = torch.randn(2, *grid, 6, dtype=torch.float64)
    inputs = [X, *layer.parameters()]
    got, want = layer(X), by_loop(layer, X)
    torch.testing.assert_close(got, want)
    for ours, theirs in zip(
        *(torch.autograd.grad((y * direction).sum(), inputs, allow_unused=True) for y in (got, want)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_one_window_is_plain_attention_whatever_the_shift():
    X = torch.randn(2, 4, 4, 6, dtype=torch.float64)
    torch.testing.assert_close(layer_of(4, 2)(X), by_loop(layer_of(4, 0), X))
    whole = layer_of(4, 0)
    nn.init.zeros_(whole.bias_table)
    flat = X.flatten(1, 2)
    torch.testing.assert_close(whole(X).flatten(1, 2), whole.attention(flat, flat, flat))


@pytest.mark.parametrize("grid", [(4, 8), (8, 4)])
def test_a_window_that_fills_one_side_is_not_shifted(grid):
    X = torch.randn(1, *grid, 6, dtype=torch.float64)
    torch.testing.assert_close(layer_of(4, 2)(X), by_loop(layer_of(4, 0), X))


def heard(module, grid, place, h=6):
    """Which patches change when the patch at ``place`` does, as a set of (row, column)."""
    X = torch.randn(1, *grid, h, dtype=torch.float64)
    changed = X.clone()
    changed[0][place] += 1
    moved = (module(changed) - module(X)).abs().amax(-1)[0] > 0
    return {tuple(place) for place in moved.nonzero().tolist()}


def block(rows, columns):
    return {(row, column) for row in rows for column in columns}


def test_information_crosses_borders_only_after_the_shift():
    grid, plain, shifted = (8, 8), layer_of(4, 0), layer_of(4, 2)
    assert heard(plain, grid, (3, 3)) == block(range(4), range(4))
    assert heard(shifted, grid, (3, 3)) == block(range(2, 6), range(2, 6))
    two_plain, both = nn.Sequential(plain, plain), nn.Sequential(plain, shifted)
    assert heard(two_plain, grid, (3, 3)) == block(range(4), range(4))
    assert heard(both, grid, (3, 3)) == block(range(6), range(6))  # from the window to all that the shifted ones touch


@pytest.mark.parametrize(
    ("place", "rows", "columns"),
    [((0, 0), range(2), range(2)), ((7, 7), range(6, 8), range(6, 8)), ((0, 4), range(2), range(2, 6))],
)
def test_nothing_goes_round_the_edge(place, rows, columns):
    assert heard(layer_of(4, 2), (8, 8), place) == block(rows, columns)


def test_masked_weights_are_zero_and_rows_sum_to_one():
    layer = layer_of(4, 2)
    with capture_attention(layer) as record:
        layer(torch.randn(3, 8, 8, 6, dtype=torch.float64))
    weights = record["attention.attention"][0]  # (N * windows, H, P, P)
    blocked = ~shifted_window_mask((8, 8), 4, 2).repeat(3, 1, 1)[:, None].expand_as(weights)
    assert weights.shape == (12, 2, 16, 16) and not weights[blocked].any() and weights[~blocked].min() > 0
    torch.testing.assert_close(weights.sum(-1), torch.ones(12, 2, 16, dtype=torch.float64))


def test_windows_by_name():
    X = torch.arange(2 * 4 * 6).view(2, 4, 6, 1)
    windows = window_partition(X, 2)
    assert windows.shape == (12, 4, 1)
    assert windows[1].flatten().tolist() == [2, 3, 8, 9] and windows[3].flatten().tolist() == [12, 13, 18, 19]
    torch.testing.assert_close(window_reverse(windows, 2, (4, 6)), X)


def test_mask_by_hand():
    mask = shifted_window_mask((4, 2), 2, 1)
    # two windows above each other; the right column of both came round, the lower row of the second too
    assert mask[0].int().tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert torch.equal(mask[1], torch.eye(4, dtype=torch.bool))
    assert shifted_window_mask((4, 4), 2, 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WindowAttention(6, 2, 4, 4), "shift is 4, expected 0 to 3 for windows of 4"),
        (lambda: shifted_window_mask((4, 4), 2, -1), "shift is -1"),
        (lambda: window_partition(torch.zeros(2, 16, 6), 4), r"\(2, 16, 6\), expected \(N, rows, columns, h\)"),
        (lambda: window_partition(torch.zeros(2, 4, 4, 6), 0), "windows of 0 do not divide"),
        (lambda: WindowAttention(6, 2, 4)(torch.zeros(2, 16, 6)), r"\(2, 16, 6\), expected \(N, rows, columns, h\)"),
        (
            lambda: WindowAttention(6, 2, 4, 2)(torch.zeros(2, 8, 6, 6)),
            "8 x 6 patches, which windows of 4 do not divide",
        ),
    ],
)
def test_parts_refuse_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_windows_of_another_grid():
    with pytest.raises(RuntimeError, match=r"\[-1, 2, 2\] don't multiply up to the size of dim 0 \(3\)"):
        window_reverse(torch.zeros(3, 4, 6), 2, (4, 4))
    with pytest.raises(RuntimeError, match=r"\[3, 3\] don't multiply up to the size of dim 1 \(4\)"):
        window_reverse(torch.zeros(4, 4, 6), 3, (6, 6))
