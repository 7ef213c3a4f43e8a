"""Pictures as sequences: cut into patches, put together again, embedded.

Images are (N, c, height, width) floats; patches go row by row, from the top left to the bottom right. A patch is a row
of c * p * p numbers, channel by channel, which is the order of a convolution's weights.
"""

from torch import nn
from torch.nn import functional as F


def as_pair(size):
    """(height, width) from an integer or a pair.

    Raises:
        ValueError: it is neither, or a size is below 1.
    """
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2 or min(pair) < 1:
        raise ValueError(f"the size is {size}, expected a positive integer or a pair of them (height, width)")
    return pair


def patch_grid(img_size, patch_size):
    """How many rows and columns of patches an image has.

    Args:
        img_size, patch_size: in pixels, an integer or (height, width).

    Returns:
        (rows, columns).

    Raises:
        ValueError: the patches do not divide the image.
    """
    (height, width), (p, q) = as_pair(img_size), as_pair(patch_size)
    if height % p or width % q:
        patches = p if p == q else f"{p} x {q}"
        raise ValueError(
            f"the image has {height} x {width} pixels, which patches of {patches} do not divide: resize it or choose "
            "another patch size"
        )
    return height // p, width // q


def check_images(images, num_channels=None):
    """Raises unless these are images that a network can take.

    Args:
        images: what should be a float tensor (N, c, height, width).
        num_channels: c, where it is known.

    Raises:
        TypeError: they are not of a floating-point type.
        ValueError: they have another number of dimensions or channels.
    """
    if not images.is_floating_point():
        raise TypeError(f"the images are {images.dtype}, expected floats: `images.float() / 255` makes them of bytes")
    if images.dim() != 4:
        raise ValueError(f"the images have shape {tuple(images.shape)}, expected (N, channels, height, width)")
    if num_channels and images.shape[1] != num_channels:
        last = ", or are the channels the last dimension?" if images.shape[3] == num_channels else ""
        raise ValueError(f"the images have {images.shape[1]} channels, expected {num_channels}{last}")


def patchify(images, patch_size):
    """Cuts images into patches that do not overlap.

    Args:
        images: (N, c, height, width), of any type.
        patch_size: p, an integer or (height, width).

    Returns:
        Tensor (N, rows * columns, c * p * p).

    Raises:
        ValueError: there are not four dimensions, or the patches do not divide the image.

    Source: D2L section 11.8.2; Dosovitskiy et al. 2021, section 3.1.
    """
    if images.dim() != 4:
        raise ValueError(f"the images have shape {tuple(images.shape)}, expected (N, channels, height, width)")
    rows, columns = patch_grid(images.shape[2:], patch_size)
    X = images.unflatten(3, (columns, -1)).unflatten(2, (rows, -1))  # (N, c, rows, p, columns, p)
    return X.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # (N, rows * columns, c * p * p)


def unpatchify(patches, patch_size, grid, num_channels):
    """The way back from `patchify`.

    Args:
        patches: (N, rows * columns, c * p * p).
        patch_size: p, an integer or (height, width).
        grid: (rows, columns).
        num_channels: c.

    Returns:
        Tensor (N, c, rows * p, columns * p).

    Raises:
        RuntimeError: the sizes do not fit together.
    """
    # (N, rows, columns, c, p, p)
    X = patches.unflatten(1, tuple(grid)).unflatten(-1, (num_channels, *as_pair(patch_size)))
    return X.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)  # (N, c, rows * p, columns * p)


class PatchEmbedding(nn.Module):
    """Each patch to a vector of h = ``num_hiddens`` features, by one linear layer that all patches share.

    The layer is written as a convolution whose stride is its kernel's size: the same numbers as `patchify`, then a
    linear layer with ``weight.flatten(1)``. ``num_patches`` and ``grid`` (rows, columns) are those of ``img_size``;
    images of other sizes work where the patches divide them.

    Args:
        img_size, patch_size: in pixels, an integer or (height, width).
        num_hiddens: h.
        num_channels: c of the images; None: taken from the first call.

    Raises:
        ValueError: the patches do not divide the image.

    Source: D2L section 11.8.2; Dosovitskiy et al. 2021, equation 1.
    """

    def __init__(self, img_size=96, patch_size=16, num_hiddens=512, *, num_channels=None):
        super().__init__()
        self.patch_size = as_pair(patch_size)
        self.grid = patch_grid(img_size, patch_size)
        self.num_patches = self.grid[0] * self.grid[1]
        size = {"kernel_size": self.patch_size, "stride": self.patch_size}
        if num_channels is None:
            self.conv = nn.LazyConv2d(num_hiddens, **size)
        else:
            self.conv = nn.Conv2d(num_channels, num_hiddens, **size)

    def forward(self, X):
        """Images (N, c, height, width) to (N, rows * columns, h).

        Raises:
            TypeError: the images are not floats.
            ValueError: they have other channels, or the patches do not divide them.
        """
        return self.maps(X).flatten(1, 2)

    def maps(self, X):
        """The same with rows and columns apart, (N, rows, columns, h)."""
        check_images(X, None if nn.parameter.is_lazy(self.conv.weight) else self.conv.in_channels)
        patch_grid(X.shape[2:], self.patch_size)  # a convolution would leave out the pixels that remain
        return self.conv(X).permute(0, 2, 3, 1)  # (N, h, rows, columns) to (N, rows, columns, h)

    def by_patches(self, X):
        """The same as calling it, written as `patchify` and a linear layer."""
        return F.linear(patchify(X, self.patch_size), self.conv.weight.flatten(1), self.conv.bias)
