"""DaViT against loops over windows and over groups of channels, and which patch hears of which."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from d2lmini.models.davit import (
    ChannelAttention,
    ChannelBlock,
    DaViT,
    DaViTBlock,
    DaViTConfig,
    LocalPosition,
    SpatialBlock,
)

SMALL = DaViTConfig(img_size=16, num_hiddens=8, num_heads=(2, 4), window_size=4)


def channels_by_loop(layer, X):
    """`ChannelAttention` picture by picture, channel by channel."""
    output, size = [], X.shape[-1] // layer.num_groups
    for picture in X:
        queries, keys, values = (linear(picture) for linear in (layer.W_q, layer.W_k, layer.W_v))  # (T, h)
        mixed = []
        for i in range(X.shape[-1]):
            group = range(i - i % size, i - i % size + size)
            scores = torch.stack([queries[:, i] @ keys[:, j] for j in group]) / math.sqrt(size)
            weights = torch.softmax(scores, 0)
            mixed.append(sum(w * values[:, j] for w, j in zip(weights, group, strict=True)))
        output.append(layer.W_o(torch.stack(mixed, -1)))
    return torch.stack(output)


@pytest.mark.parametrize(("h", "groups"), [(6, 1), (6, 2), (6, 6), (8, 2)])
def test_channel_attention_is_the_loop(h, groups):
    torch.manual_seed(0)
    layer = ChannelAttention(h, groups).double()
    X = torch.randn(2, 5, h, dtype=torch.float64, requires_grad=True)
    direction = torch.randn(2, 5, h, dtype=torch.float64)
    got, want = layer(X), channels_by_loop(layer, X)
    torch.testing.assert_close(got, want)
    inputs = [X, *layer.parameters()]
    for ours, theirs in zip(
        *(torch.autograd.grad((y * direction).sum(), inputs, allow_unused=True) for y in (got, want)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_channel_attention_does_not_know_the_order_of_patches():
    layer, X, order = ChannelAttention(6, 2).double(), torch.randn(2, 5, 6).double(), torch.randperm(5)
    torch.testing.assert_close(layer(X[:, order]), layer(X)[:, order])


def test_its_weights_do_not_grow_with_the_picture():
    layer = ChannelAttention(12, 3)
    for num_patches in (4, 64):
        layer(torch.randn(2, num_patches, 12))
        assert layer.attention.attention_weights.shape == (2 * 3, 4, 4)


def block_by_loop(spatial, X):
    """What `SpatialBlock` adds: attention window by window."""
    output, M = torch.empty_like(X), spatial.window_size
    for row in range(0, X.shape[1], M):
        for column in range(0, X.shape[2], M):
            window = X[:, row : row + M, column : column + M].flatten(1, 2)
            attended = spatial.attention(window, window, window)
            output[:, row : row + M, column : column + M] = attended.unflatten(1, (M, M))
    return output


def test_the_spatial_half_attends_in_windows():
    torch.manual_seed(0)
    spatial, X = SpatialBlock(6, 2, 2, 12).double(), torch.randn(2, 4, 6, 6).double()
    torch.testing.assert_close(spatial.attend(X), block_by_loop(spatial, X))


@pytest.mark.parametrize("kind", [SpatialBlock, ChannelBlock])
def test_a_half_is_position_attention_position_network(kind):
    torch.manual_seed(0)
    sizes = (6, 2, 2, 12) if kind is SpatialBlock else (6, 2, 12)
    half, X = kind(*sizes).double().eval(), torch.randn(2, 4, 6, 6).double()
    Y = half.position1(X)
    normed = half.ln1(Y)
    if kind is SpatialBlock:
        Y = Y + block_by_loop(half, normed)
    else:
        Y = Y + channels_by_loop(half.attention, normed.flatten(1, 2)).view_as(X)
    Y = half.position2(Y)
    torch.testing.assert_close(half(X), Y + half.mlp(half.ln2(Y)))


def without_convolutions(module):
    for part in module.modules():
        if isinstance(part, LocalPosition):
            nn.init.zeros_(part.conv.weight)
            nn.init.zeros_(part.conv.bias)
    return module.double().eval()


def heard(module, place):
    """Which patches of 8 x 8 change when the one at ``place`` does."""
    torch.manual_seed(0)
    X = torch.randn(1, 8, 8, 6, dtype=torch.float64)
    changed = X.clone()
    changed[0][place] += torch.randn(6)  # the same for all would be lost in the norm
    return (module(changed) - module(X)).abs().amax(-1)[0] > 0


def test_a_window_hears_itself_and_channels_hear_the_whole_picture():
    spatial = heard(without_convolutions(SpatialBlock(6, 2, 4, 12)), (1, 6))
    assert spatial[:4, 4:].all() and spatial.sum() == 16
    assert heard(without_convolutions(ChannelBlock(6, 2, 12)), (1, 6)).all()
    assert heard(DaViTBlock(6, 2, 4, 12).double().eval(), (1, 6)).all()


def test_local_position_is_a_convolution_of_each_channel():
    layer = LocalPosition(3).double()
    X = torch.randn(1, 4, 5, 3, dtype=torch.float64)
    padded = nn.functional.pad(X, (0, 0, 1, 1, 1, 1))
    want = (padded[0, 1:4, 2:5] * layer.conv.weight[:, 0].permute(1, 2, 0)).sum((0, 1)) + layer.conv.bias
    torch.testing.assert_close(layer(X)[0, 1, 2], X[0, 1, 2] + want)


def test_shapes_weights_and_parameters():
    model = DaViT(SMALL).eval()
    X = torch.rand(3, 1, 16, 16)
    assert [tuple(x.shape) for x in model.features(X)] == [(3, 8, 8, 8), (3, 4, 4, 16)]
    assert model(X).shape == (3, 10)
    torch.testing.assert_close(model(X), model.head(model.norm(model.features(X)[-1].mean((1, 2)))))  # as published
    spatial, channel = model.attention_weights
    assert [tuple(w.shape) for w in spatial] == [(24, 16, 16), (12, 16, 16)]
    assert [tuple(w.shape) for w in channel] == [(6, 4, 4), (12, 4, 4)]
    h, half = 48, lambda h: 12 * h * h + 13 * h + 20 * h
    want = 7 * h + 2 * half(h) + 8 * h + 8 * h * h + 2 * half(2 * h) + 4 * h + (2 * h + 1) * 10
    assert DaViT().num_parameters == want < 3_000_000


def test_gradients_reach_everything():
    model = DaViT(replace(SMALL, drop_path=0.1, dropout=0.1))
    model.loss(model(torch.rand(4, 1, 16, 16)), torch.arange(4)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ChannelAttention(6, 4), ValueError, "num_hiddens is 6, expected a multiple of num_groups, 4"),
        (lambda: ChannelAttention(6, 2)(torch.zeros(2, 4, 4, 6)), ValueError, r"expected \(N, T, 6\)"),
        (lambda: DaViT(replace(SMALL, window_size=3)), ValueError, "stage 1 has 8 x 8 patches, which windows of 3"),
        (lambda: DaViT(replace(SMALL, num_heads=(2, 3))), ValueError, "multiple of num_heads, 3"),
        (lambda: DaViT(SMALL)(torch.zeros(1, 2, 16, 16)), ValueError, "have 2 channels, expected 1"),
        (lambda: DaViT(SMALL)(torch.zeros(1, 1, 16, 16, dtype=torch.uint8)), TypeError, "uint8, expected floats"),
        (lambda: DaViT(SMALL)(torch.zeros(1, 1, 18, 18)), ValueError, "9 x 9 patches, which windows of 4"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
