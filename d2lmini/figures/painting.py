"""What figures with a picture that a reader paints share: the grid, and the pictures to begin with."""

import torch

from ..data.images import FASHION_MNIST_LABELS, fashion_mnist


def garments(kinds):
    """A test image of each kind, from the part of Fashion-MNIST that ships with the package.

    Args:
        kinds: names among `FASHION_MNIST_LABELS`.

    Returns:
        dict from each name to its first image, (28, 28), uint8.

    Raises:
        ValueError: there is no such kind.
    """
    images, labels = fashion_mnist("test", "shipped")
    odd = [kind for kind in kinds if kind not in FASHION_MNIST_LABELS]
    if odd:
        raise ValueError(f"there is no garment {odd[0]!r}, only {', '.join(FASHION_MNIST_LABELS)}")
    return {kind: images[labels == FASHION_MNIST_LABELS.index(kind)][0] for kind in kinds}


def checked_pictures(pictures, size, values):
    """Pictures as integer tensors.

    Args:
        pictures: dict from the title of a picture to integers (height, width).
        size: (height, width) that they must have.
        values: how many values a pixel may have, from 0 on.

    Raises:
        ValueError: there is none, or one of them does not fit.
    """
    if not pictures:
        raise ValueError("there is nothing to show: expected at least one picture")
    found = {str(title): torch.as_tensor(picture).detach().cpu() for title, picture in pictures.items()}
    for title, picture in found.items():
        if picture.is_floating_point() or tuple(picture.shape) != tuple(size):
            raise ValueError(
                f"picture {title!r} is {picture.dtype} of shape {tuple(picture.shape)}, expected integers of shape "
                f"{tuple(size)}"
            )
        low, high = int(picture.min()), int(picture.max())
        if low < 0 or high >= values:
            raise ValueError(f"picture {title!r} has values {low} to {high}, expected 0 to {values - 1}")
    return found
