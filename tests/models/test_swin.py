"""Swin against a loop over windows that rolls nothing, and which patch hears of which."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from d2lmini import capture_attention
from d2lmini.models.swin import PatchMerging, Swin, SwinBlock
from d2lmini.vision.windows import WindowAttention, shifted_window_mask, window_partition, window_reverse

SMALL = {"img_size": 16, "num_hiddens": 8, "num_heads": (2, 4), "num_blks": (2, 2), "window_size": 4}


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


@pytest.mark.parametrize(("grid", "window", "shift"), [((6, 9), 3, 0), ((6, 9), 3, 1), ((6, 9), 3, 2), ((4, 8), 4, 2)])
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


def test_a_window_that_fills_one_side_alone_is_shifted():
    layer = layer_of(4, 2)
    X = torch.randn(1, 4, 8, 6, dtype=torch.float64)
    torch.testing.assert_close(layer(X), by_loop(layer, X))


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


def test_the_whole_block_keeps_to_its_window():
    torch.manual_seed(0)
    swin_block = SwinBlock(6, 2, 4, 12, shift=2).double().eval()
    assert heard(swin_block, (8, 8), (0, 7)) == block(range(2), range(6, 8))


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


def test_merging_takes_each_patch_once():
    merging = PatchMerging(3)
    merging.ln = nn.Identity()
    with torch.no_grad():
        merging.dense.weight.copy_(torch.cat([torch.ones(1, 12), torch.zeros(5, 12)]))
    X = torch.rand(2, 4, 6, 3)
    Y = merging(X)
    assert Y.shape == (2, 2, 3, 6)
    torch.testing.assert_close(Y[1, 1, 2, 0], X[1, 2:4, 4:6].sum())


def test_shapes_of_the_stages_and_weights():
    model = Swin(**SMALL).eval()
    X = torch.rand(3, 1, 16, 16)
    assert [tuple(x.shape) for x in model.features(X)] == [(3, 8, 8, 8), (3, 4, 4, 16)]
    assert model(X).shape == (3, 10)
    assert [tuple(w.shape) for w in model.attention_weights] == [(24, 16, 16)] * 2 + [(12, 16, 16)] * 2
    assert model(torch.rand(2, 1, 32, 16)).shape == (2, 10)  # what patches, windows and merging divide


def test_shifts_alternate_and_deeper_blocks_drop_more():
    model = Swin(**SMALL, drop_path=0.3)
    blocks = [m for m in model.modules() if isinstance(m, SwinBlock)]
    assert [b.attention.shift for b in blocks] == [0, 2, 0, 2]
    assert [b.drop_path.rate for b in blocks] == pytest.approx([0, 0.1, 0.2, 0.3])


def test_the_default_is_small_and_its_parameters_are_counted():
    model = Swin()
    h = 48
    of_block = lambda h, H: 12 * h * h + 9 * h + 4 * h + 13 * 13 * H  # noqa: E731
    want = (
        4 * h + h + 2 * h + 2 * of_block(h, 3) + 8 * h + 8 * h * h + 2 * of_block(2 * h, 6) + 4 * h + (2 * h + 1) * 10
    )
    assert model.num_parameters == want < 3_000_000
    assert set(dict(model.state_dict())) == {name for name, _ in model.named_parameters()}


def test_a_picture_does_not_depend_on_its_batch_and_training_mode_returns():
    model = Swin(**SMALL, blk_dropout=0.1, drop_path=0.2).eval()
    X = torch.rand(4, 1, 16, 16)
    torch.testing.assert_close(model(X)[2:3], model(X[2:3]))
    model.train()
    assert not torch.equal(model(X), model(X))


def test_it_learns():
    torch.manual_seed(0)
    model = Swin(**SMALL, num_classes=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    X, labels = torch.rand(8, 1, 16, 16), torch.arange(8) % 2
    X[:, :, 6:, 6:] *= 1 + 4 * labels[:, None, None, None]
    for _ in range(30):
        optimizer.zero_grad()
        model.loss(model(X), labels).backward()
        optimizer.step()
    assert model.accuracy(model(X), labels) == 1
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"img_size": 15}, "15 x 15 pixels, which patches of 2 do not divide"),
        ({"window_size": 3}, "stage 1 has 8 x 8 patches, which windows of 3 do not divide"),
        ({"window_size": 8}, "stage 2 has 4 x 4 patches, which windows of 8 do not divide"),
        ({"img_size": 20, "window_size": 5, "num_blks": (1, 1, 1), "num_heads": (1, 1, 1)}, "merge a grid of 5 x 5"),
        ({"num_heads": (2, 3)}, "multiple of num_heads, 3"),
        ({"num_heads": (2,)}, "2 stages but num_heads has 1"),
    ],
)
def test_sizes_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        Swin(**{**SMALL, **options})


def test_pictures_that_do_not_fit():
    model = Swin(**SMALL)
    with pytest.raises(TypeError, match="uint8, expected floats"):
        model(torch.zeros(2, 1, 16, 16, dtype=torch.uint8))
    with pytest.raises(ValueError, match="have 3 channels, expected 1"):
        model(torch.zeros(2, 3, 16, 16))
    with pytest.raises(ValueError, match="has 9 x 9 patches, which windows of 4 do not divide"):
        model(torch.zeros(2, 1, 18, 18))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WindowAttention(6, 2, 4, 4), "shift is 4, expected 0 to 3 for windows of 4"),
        (lambda: shifted_window_mask((4, 4), 2, -1), "shift is -1"),
        (lambda: window_partition(torch.zeros(2, 16, 6), 4), r"\(2, 16, 6\), expected \(N, rows, columns, h\)"),
        (lambda: window_partition(torch.zeros(2, 4, 4, 6), 0), "windows of 0 do not divide"),
        (lambda: window_reverse(torch.zeros(3, 4, 6), 2, (4, 4)), r"\(3, 4, 6\), expected \(N \* 4, 4, h\)"),
        (lambda: PatchMerging(3)(torch.zeros(1, 3, 4, 3)), "3 x 4 patches, which cannot be merged"),
    ],
)
def test_parts_refuse_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()
