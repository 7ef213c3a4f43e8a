"""Fashion-MNIST as a data module."""

import matplotlib
import pytest
import torch
from torch.nn import functional as F

matplotlib.use("Agg")
from d2lmini.data.augmentation import Augmentation
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


def test_the_part_that_ships_needs_no_home_folder(monkeypatch, tmp_path):
    def unknown(uid):
        raise KeyError(uid)

    pwd = pytest.importorskip("pwd")  # Windows has none
    for name in ("HOME", "XDG_CACHE_HOME", "D2LMINI_CACHE", "D2LMINI_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    assert len(FashionMNIST(num_train=100, num_val=50).train) == 100 and list(tmp_path.iterdir()) == []
