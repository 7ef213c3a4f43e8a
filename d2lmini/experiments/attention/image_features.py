"""Images as vectors that are not learned: pixels, and histograms of oriented gradients."""

import math

import torch
from torch.nn import functional as F


def pixels(images):
    """Images (N, 28, 28), uint8, as vectors (N, 784) of numbers from 0 to 1."""
    return images.flatten(1).float() / 255


def oriented_gradients(images, bins=9, cell=4):
    """Describe an image by how much edge there is in each direction, in each of 7 x 7 places.

    Args:
        images: (N, 28, 28), uint8.
        bins: number of directions around the circle; an edge between two of them counts to both, in part.
        cell: distance of the places in pixels. An edge counts most at the nearest place.

    Returns:
        (N, bins * (28 // cell) ** 2), each place divided by the strength of the edges around it.

    Source: after Dalal, Triggs 2005, "Histograms of oriented gradients for human detection".
    """
    return torch.cat([_oriented_gradients(part, bins, cell) for part in images.split(5_000)])


def _oriented_gradients(images, bins, cell):
    x = (images[:, None].float() / 255).sqrt()  # (N, 1, 28, 28); the root lifts faint edges
    x = F.pad(x, (1, 1, 1, 1), mode="replicate")
    right = x[..., 1:-1, 2:] - x[..., 1:-1, :-2]  # (N, 1, 28, 28)
    down = x[..., 2:, 1:-1] - x[..., :-2, 1:-1]
    direction = torch.atan2(down, right) / (2 * math.pi) * bins  # in bins
    below = direction.floor()
    strength = (right**2 + down**2).sqrt()
    votes = x.new_zeros(len(x), bins, *images.shape[1:])
    votes.scatter_add_(1, below.long() % bins, strength * (1 - direction + below))
    votes.scatter_add_(1, (below.long() + 1) % bins, strength * (direction - below))
    tent = 1 - (torch.arange(2 * cell, device=x.device) + 0.5 - cell).abs() / cell  # (2 cell,)
    kernel = (tent[:, None] * tent).expand(bins, 1, -1, -1)
    votes = F.conv2d(votes, kernel, stride=cell, padding=cell // 2, groups=bins)  # (N, bins, 7, 7)
    energy = F.avg_pool2d((votes**2).sum(1, keepdim=True), 3, stride=1, padding=1)
    return (votes / (energy + 0.1).sqrt()).flatten(1)
