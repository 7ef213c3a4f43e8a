"""Augmentation: crops, flips, rectangles and mixtures, from one seed."""

import pytest
import torch
from torch.nn import functional as F

from d2lmini.data.augmentation import Augmentation, mixup, random_erasing, random_flip, random_shift


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(1)


IMAGES = torch.rand(300, 2, 6, 7, generator=torch.Generator().manual_seed(0)) + 0.1


def test_shifts_are_crops_of_the_padded_image(generator):
    shifted = random_shift(IMAGES, 2, generator=generator)
    assert shifted.shape == IMAGES.shape
    padded, seen = F.pad(IMAGES, [2] * 4), set()
    for image, wide in zip(shifted, padded, strict=True):
        seen |= {(r, c) for r in range(5) for c in range(5) if torch.equal(image, wide[:, r : r + 6, c : c + 7])}
    assert len(seen) == 25
    assert torch.equal(random_shift(IMAGES, 0), IMAGES)


def test_flips_mirror_left_and_right(generator):
    flipped = random_flip(IMAGES, 0.3, generator=generator)
    which = (flipped != IMAGES).flatten(1).any(1)
    assert torch.equal(flipped[which], IMAGES[which].flip(3)) and 60 < which.sum() < 120


def test_erased_is_one_rectangle_of_the_asked_size(generator):
    images = torch.full((400, 1, 20, 30), 2.0)
    erased = random_erasing(images, 0.5, area=(0.1, 0.2), generator=generator) != images
    which = erased.flatten(1).any(1)
    assert 150 < which.sum() < 250
    for mask in erased[which, 0]:
        rows, columns = mask.any(1), mask.any(0)
        assert torch.equal(mask, rows[:, None] & columns)  # a rectangle ...
        assert rows.int().diff().abs().sum() <= 2 and columns.int().diff().abs().sum() <= 2  # in one piece
        assert 0.08 < mask.double().mean() < 0.23
    reached = erased.any(0)[0]
    assert reached.any(0).all() and reached.any(1).all()


def test_a_rectangle_stays_inside_of_a_small_image(generator):
    images = torch.full((200, 1, 3, 40), 2.0)
    erased = random_erasing(images, 1.0, area=(0.5, 0.9), ratio=(3.0, 9.0), generator=generator)
    assert ((erased != images).flatten(1).sum(1) > 0).all()


def test_mixup_averages_images_and_labels_alike(generator):
    labels = torch.arange(300) % 10
    images = F.one_hot(labels, 10).float().reshape(300, 1, 2, 5)
    mixed, targets = mixup(images, labels, 10, 0.5, generator=generator)
    torch.testing.assert_close(mixed.flatten(1), targets)  # an image that is its label says that they go together
    torch.testing.assert_close(targets.sum(1), torch.ones(300))
    assert (targets.max(1).values < 0.99).sum() > 100
    assert abs(targets.gather(1, labels[:, None]).mean() - 0.55) < 0.1  # one half is the image's, a tenth by chance


def test_one_seed_gives_one_batch():
    augment = Augmentation(2, 0.5, 0.5, 0.2)
    labels = torch.arange(300) % 10
    first, again, other = (augment(IMAGES, labels, generator=torch.Generator().manual_seed(s)) for s in (3, 3, 4))
    assert all(map(torch.equal, first, again)) and not torch.equal(first[0], other[0])
    assert first[0].dtype == IMAGES.dtype
    kept = Augmentation(0, 0, 0, 0)(IMAGES, labels)
    assert kept[0] is IMAGES and kept[1] is labels


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_shift(IMAGES, -1), "pixels is -1"),
        (lambda: random_flip(IMAGES, 1.5), "the probability is 1.5"),
        (lambda: mixup(IMAGES, torch.zeros(300).long(), 10, 0.0), "alpha is 0.0"),
    ],
)
def test_settings_out_of_range(call, message):
    with pytest.raises(ValueError, match=message):
        call()
