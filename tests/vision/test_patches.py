"""Patches: cut and put together, and the convolution that embeds them."""

import pytest
import torch
from torch.nn import functional as F

from d2lmini.vision.patches import PatchEmbedding, patch_grid, patchify, unpatchify


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


IMAGES = torch.rand(2, 3, 8, 18)
SIZES = ((2, 2), (4, 3), (8, 18), (1, 1))


@pytest.mark.parametrize("size", SIZES)
def test_patchify_is_what_a_loop_cuts(size):
    p, q = size
    rows, columns = patch_grid(IMAGES.shape[2:], size)
    patches = patchify(IMAGES, size)
    assert patches.shape == (2, rows * columns, 3 * p * q)
    for r in range(rows):
        for c in range(columns):
            cut = IMAGES[:, :, r * p : (r + 1) * p, c * q : (c + 1) * q]
            assert torch.equal(patches[:, r * columns + c], cut.flatten(1))


@pytest.mark.parametrize("size", SIZES)
def test_patchify_is_unfold_and_unpatchify_its_inverse(size):
    patches = patchify(IMAGES, size)
    assert torch.equal(patches, F.unfold(IMAGES, size, stride=size).mT)
    assert torch.equal(unpatchify(patches, size, patch_grid(IMAGES.shape[2:], size), 3), IMAGES)


def test_bytes_are_cut_too():
    images = (IMAGES * 255).to(torch.uint8)
    assert torch.equal(unpatchify(patchify(images, 2), 2, (4, 9), 3), images)


@pytest.mark.parametrize("size", SIZES)
def test_the_convolution_is_patchify_and_a_linear_layer(size):
    embedding = PatchEmbedding((8, 18), size, 5, num_channels=3)
    rows, columns = embedding.grid
    assert embedding.num_patches == rows * columns
    linear = torch.nn.Linear(3 * size[0] * size[1], 5)
    with torch.no_grad():
        linear.weight.copy_(embedding.conv.weight.flatten(1))
        linear.bias.copy_(embedding.conv.bias)
    expected = linear(patchify(IMAGES, size))
    torch.testing.assert_close(embedding(IMAGES), expected)
    torch.testing.assert_close(embedding.by_patches(IMAGES), expected)


def test_channels_are_taken_from_the_first_call():
    embedding = PatchEmbedding(8, 4, 5)
    assert embedding(torch.rand(2, 3, 8, 8)).shape == (2, 4, 5)
    assert embedding.conv.weight.shape == (5, 3, 4, 4)
    assert embedding(torch.rand(1, 3, 12, 16)).shape == (1, 12, 5)  # another size that the patches divide


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PatchEmbedding(30, 4), ValueError, "30 x 30 pixels, which patches of 4 do not divide"),
        (lambda: PatchEmbedding(28, (4, 3)), ValueError, "28 x 28 pixels, which patches of 4 x 3 do not"),
        (lambda: PatchEmbedding(28, 0), ValueError, "the size is 0, expected a positive integer"),
        (lambda: PatchEmbedding((28, 28, 3), 4), ValueError, r"the size is \(28, 28, 3\)"),
        (lambda: patchify(torch.rand(3, 8, 8), 4), ValueError, r"shape \(3, 8, 8\), expected \(N, channels"),
        (lambda: patchify(torch.rand(1, 3, 8, 10), 4), ValueError, "8 x 10 pixels, which patches of 4"),
        (lambda: unpatchify(torch.rand(1, 4, 12), 2, (2, 3), 3), RuntimeError, r"\[2, 3\] don't multiply up .* \(4\)"),
        (
            lambda: unpatchify(torch.rand(2, 6, 9), 2, (2, 3), 3),
            RuntimeError,
            r"\[3, 2, 2\] don't multiply up .* \(9\)",
        ),
    ],
)
def test_sizes_that_do_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.zeros(1, 3, 8, 8, dtype=torch.uint8), TypeError, r"uint8, expected floats: `images.float\(\) / 255`"),
        (torch.zeros(3, 8, 8), ValueError, r"shape \(3, 8, 8\), expected \(N, channels, height, width\)"),
        (torch.zeros(1, 1, 8, 8), ValueError, "have 1 channels, expected 3$"),
        (torch.zeros(1, 8, 8, 3), ValueError, "have 8 channels, expected 3, or are the channels the last"),
        (torch.zeros(1, 3, 8, 9), ValueError, "8 x 9 pixels, which patches of 4 do not divide"),
    ],
)
def test_images_that_do_not_fit(images, error, message):
    with pytest.raises(error, match=message):
        PatchEmbedding(8, 4, 5, num_channels=3)(images)
