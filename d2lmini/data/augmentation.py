"""Augmentation of batches: images that a label survives, made of those that there are.

Every function takes float images (N, c, height, width) in [0, 1], whose background is 0, and returns new ones on the
same device. Random numbers are drawn on the CPU, from ``generator`` or from torch's global ones: a seed gives the same
pictures on every device.
"""

import math
from dataclasses import dataclass

import numpy
import torch
from torch.nn import functional as F


def random_shift(images, pixels=2, *, generator=None):
    """Moves each image by up to so many pixels in both directions; background comes in at the border.

    The same as a random crop out of the padded image.
    """
    if pixels < 0:
        raise ValueError(f"pixels is {pixels}, expected 0 or more")
    num, _, height, width = images.shape
    top, left = torch.randint(2 * pixels + 1, (2, num, 1), generator=generator)
    rows = (top + torch.arange(height)).to(images.device)  # (N, height)
    columns = (left + torch.arange(width)).to(images.device)  # (N, width)
    padded = F.pad(images, [pixels] * 4).permute(0, 2, 3, 1)  # (N, height + 2 pixels, width + 2 pixels, c)
    which = torch.arange(num, device=images.device)[:, None, None]
    return padded[which, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)


def random_flip(images, probability=0.5, *, generator=None):
    """Mirrors each image, left for right, with a probability."""
    flipped = _chosen(images, probability, generator)
    return torch.where(flipped, images.flip(3), images)


def random_erasing(images, probability=0.25, *, area=(0.02, 0.33), ratio=(0.3, 3.3), generator=None):
    """Sets a rectangle of each image to noise, evenly drawn from [0, 1], with a probability.

    Args:
        images: (N, c, height, width).
        probability: of having a rectangle.
        area: smallest and largest share of the image.
        ratio: smallest and largest height of the rectangle over its width, drawn evenly in the logarithm.
        generator: as above.

    Source: Zhong et al. 2020, "Random erasing data augmentation".
    """
    num, _, height, width = images.shape
    size = _uniform((num,), *area, generator) * height * width
    shape = _uniform((num,), *map(math.log, ratio), generator).exp()
    # a rectangle has at least a pixel, and at most the image
    tall = (size * shape).sqrt().round().clamp(1, height)
    wide = (size / shape).sqrt().round().clamp(1, width)
    top = (torch.rand(num, generator=generator) * (height - tall + 1)).floor()
    left = (torch.rand(num, generator=generator) * (width - wide + 1)).floor()
    inside_rows = _between(torch.arange(height), top, tall)[:, None, :, None]
    inside_columns = _between(torch.arange(width), left, wide)[:, None, None, :]
    erased = (inside_rows & inside_columns).to(images.device) & _chosen(images, probability, generator)
    noise = torch.rand(images.shape, generator=generator).to(images)
    return torch.where(erased, noise, images)


def mixup(images, labels, num_classes, alpha=0.2, *, generator=None):
    """Averages each image with one of the batch, and their labels with the same weights.

    Args:
        images: (N, c, height, width).
        labels: integers (N,).
        num_classes: C.
        alpha: weights are drawn from Beta(alpha, alpha): the smaller, the less is mixed.
        generator: as above.

    Returns:
        images, and labels as shares (N, C), which cross-entropy takes as they are.

    Raises:
        ValueError: ``alpha`` is not above 0.

    Source: Zhang et al. 2018, "mixup: beyond empirical risk minimization".
    """
    if alpha <= 0:
        raise ValueError(f"alpha is {alpha}, expected a number above 0")
    num = len(images)
    # torch draws Beta from its global numbers alone, so numpy does it, seeded by the generator
    seed = int(torch.randint(2**62, (), generator=generator))
    share = torch.from_numpy(numpy.random.default_rng(seed).beta(alpha, alpha, num)).to(images)
    other = torch.randperm(num, generator=generator).to(images.device)
    targets = F.one_hot(labels, num_classes).to(images.dtype)
    weight = share[:, None, None, None]
    mixed = weight * images + (1 - weight) * images[other]
    return mixed, share[:, None] * targets + (1 - share[:, None]) * targets[other]


@dataclass(frozen=True)
class Augmentation:
    """What is done to training batches, in this order; a callable for ``FashionMNIST(augment=...)``.

    Args:
        shift: pixels, 0: none.
        flip: probability.
        erase: probability.
        mixup: alpha, 0: none; with it the labels become shares (N, C).
        num_classes: C, which mixup needs.
    """

    shift: int = 2
    flip: float = 0.5
    erase: float = 0.0
    mixup: float = 0.0
    num_classes: int = 10

    def __call__(self, images, labels, *, generator=None):
        """Images (N, c, height, width) and labels (N,) to images and labels."""
        if self.shift:
            images = random_shift(images, self.shift, generator=generator)
        if self.flip:
            images = random_flip(images, self.flip, generator=generator)
        if self.erase:
            images = random_erasing(images, self.erase, generator=generator)
        if self.mixup:
            images, labels = mixup(images, labels, self.num_classes, self.mixup, generator=generator)
        return images, labels


def _chosen(images, probability, generator):
    """Which of the images: booleans (N, 1, 1, 1)."""
    if not 0 <= probability <= 1:
        raise ValueError(f"the probability is {probability}, expected a number from 0 to 1")
    return (torch.rand(len(images), 1, 1, 1, generator=generator) < probability).to(images.device)


def _uniform(shape, low, high, generator):
    return low + (high - low) * torch.rand(shape, generator=generator)


def _between(places, start, length):
    """Places (n,), starts and lengths (N,) to booleans (N, n)."""
    return (places >= start[:, None]) & (places < (start + length)[:, None])
