"""Fashion-MNIST as a data module, and augmentation of its batches."""

import matplotlib
import pytest
import torch
from torch.nn import functional as F

matplotlib.use("Agg")
from d2lmini.data.augmentation import Augmentation, mixup, random_erasing, random_flip, random_shift
from d2lmini.data.fashion_mnist import FashionMNIST, stratified_order
from d2lmini.data.images import fashion_mnist
from d2lmini.plotting import plt


def shipped(**options):
    return FashionMNIST(**{"batch_size": 250, "subset": "shipped", **options})


def all_of(loader):
    return [torch.cat(part) for part in zip(*loader, strict=True)]


# ---- the data module


def test_batches_hold_every_image_as_floats():
    data = shipped()
    images, labels = fashion_mnist("train", "shipped")
    assert len(data.train) == 2000 and len(data.val) == 1000
    assert torch.equal(data.train.images, images) and torch.equal(data.train.labels, labels)
    loader = data.train_dataloader()
    assert len(loader) == 8
    X, y = all_of(loader)
    assert X.shape == (2000, 1, 28, 28) and X.dtype == torch.float32 and y.dtype == torch.int64
    assert not torch.equal(y, labels) and torch.equal(y.bincount(), labels.bincount())
    X, y = all_of(data.val_dataloader())
    expected, labels = fashion_mnist("test", "shipped")
    assert torch.equal(y, labels) and torch.equal((X[:, 0] * 255).round(), expected.float())
    X, y = data.val[3]
    assert X.shape == (1, 28, 28) and y == labels[3]


def test_images_are_resized_as_wholes():
    (X, _), (small, _) = shipped(resize=(14, 14)).val[5], shipped().val[5]
    torch.testing.assert_close(X, F.avg_pool2d(small, 2), atol=0.2, rtol=0)
    X, _ = next(iter(shipped(batch_size=4, resize=(96, 64)).val_dataloader()))
    assert X.shape == (4, 1, 96, 64) and X.min() >= 0 and X.max() <= 1
    assert abs(X[0].mean() - shipped().val[0][0].mean()) < 0.01


def test_a_part_is_stratified_seeded_and_nested():
    def chosen(**options):
        return {image.numpy().tobytes() for image in shipped(**options).train.images}

    assert shipped(num_train=50).train.labels.bincount().tolist() == [5] * 10
    assert sorted(shipped(num_train=25).train.labels.bincount().tolist()) == [2] * 5 + [3] * 5
    assert chosen(num_train=50) < chosen(num_train=200) and chosen(num_train=50) == chosen(num_train=50)
    assert chosen(num_train=50) != chosen(num_train=50, seed=1)


def test_classes_of_unequal_size_take_turns():
    labels = torch.tensor([0] * 7 + [1] * 2 + [2] * 4)
    order = stratified_order(labels, seed=3)
    assert order.sort().values.tolist() == list(range(13))
    assert [sorted(labels[order[i : i + 3]].tolist()) for i in (0, 3)] == [[0, 1, 2]] * 2
    assert sorted(labels[order[6:10]].tolist()) == [0, 0, 2, 2] and labels[order[10:]].tolist() == [0] * 3


def test_held_out_images_are_apart_from_the_training_images():
    data = shipped(num_val=500, num_train=1500)
    assert len(data.train) == 1500 and data.val.labels.bincount().tolist() == [50] * 10
    both = torch.cat([data.train.images, data.val.images]).flatten(1)
    whole = fashion_mnist("train", "shipped")[0].flatten(1)
    assert sorted(map(bytes, both.numpy())) == sorted(map(bytes, whole.numpy()))
    assert data.val.augment is None and len(shipped(num_val=500).train) == 1500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_train": 2001}, "num_train is 2001 and num_val 0, expected at least 1 .* at most 2000 in all"),
        ({"num_train": 1600, "num_val": 500}, "num_train is 1600 and num_val 500"),
        ({"num_train": 0}, "num_train is 0"),
        ({"num_val": 2000}, "num_train is 0 and num_val 2000"),
        ({"resize": (28,)}, r"resize is \(28,\), expected \(height, width\)"),
    ],
)
def test_parts_that_there_are_not(options, message):
    with pytest.raises(ValueError, match=message):
        shipped(**options)


def test_visualize_shows_names():
    data = shipped(batch_size=6)
    batch = next(iter(data.val_dataloader()))
    axes = data.visualize(batch, 2, 4)
    assert [ax.get_title() for ax in axes[:6]] == data.text_labels(batch[1]) and axes[0].images
    assert not axes[6].images and data.text_labels([9, 0]) == ["ankle boot", "t-shirt"]
    assert data.visualize(batch, 1, 2, labels=["a", "b"])[1].get_title() == "b"
    plt.close("all")


def test_training_batches_alone_are_augmented_and_follow_the_seed():
    data = shipped(augment=Augmentation(shift=1, mixup=0.4), batch_size=20, num_train=40)
    batches = []
    for _ in range(2):
        torch.manual_seed(5)
        batches.append(all_of(data.train_dataloader()))
    assert all(torch.equal(a, b) for a, b in zip(*batches, strict=True))
    assert batches[0][1].shape == (40, 10)
    assert data.val[0][1].dim() == 0


# ---- augmentation


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
