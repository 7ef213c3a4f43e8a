"""Fashion-MNIST, the part that ships and the whole; files in the form idx."""

import dataclasses
import gzip
import hashlib
import re

import pytest
import torch

from d2lmini.data import images, registry, store
from d2lmini.data.store import DataError
from tools import make_fashion_subset


@pytest.mark.parametrize(("split", "each"), make_fashion_subset.PER_CLASS.items())
def test_shipped_part(split, each):
    pictures, labels = images.fashion_mnist(split, "shipped")
    assert pictures.dtype == torch.uint8 and pictures.shape == (10 * each, 28, 28)
    assert labels.dtype == torch.int64 and labels.bincount(minlength=10).tolist() == [each] * 10
    assert labels[:100].unique().numel() == 10, "classes are mixed, so that a prefix is a fair part"
    assert pictures.float().mean() > 50 and images.FASHION_MNIST_LABELS[9] == "ankle boot"


def test_shipped_files_are_intact_and_small():
    sums = dict(reversed(line.split()) for line in (images.SHIPPED / "SHA256SUMS").read_text().splitlines())
    assert sums == {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in images.SHIPPED.glob("*.gz")}
    assert len(sums) == 4 and sum(p.stat().st_size for p in images.SHIPPED.iterdir()) < 1.6e6
    assert "Zalando SE" in (images.SHIPPED / "LICENSE").read_text()


def full_is_here():
    dataset = registry.get("fashion_mnist")
    return all(store.find(dataset, file.name) for file in dataset.files)


@pytest.mark.slow
def test_the_whole_and_its_part():
    if not full_is_here():
        pytest.skip("FULL FASHION-MNIST NOT TESTED: it is not here (Debian: dataset-fashion-mnist)")
    made = make_fashion_subset.contents()
    for name, content in made.items():
        assert gzip.decompress((images.SHIPPED / name).read_bytes()) == content
    for split, number in (("train", 60_000), ("test", 10_000)):
        pictures, labels = images.fashion_mnist(split)  # "auto" takes the whole
        assert pictures.shape == (number, 28, 28) and labels.bincount().tolist() == [number // 10] * 10
        known = {picture.numpy().tobytes(): label for picture, label in zip(pictures, labels, strict=True)}
        for picture, label in zip(*images.fashion_mnist(split, "shipped"), strict=True):
            assert known[picture.numpy().tobytes()] == label, "the part comes from its own split"


@pytest.fixture
def fashion(folders, monkeypatch):
    """The set without its system folder: what a machine sees that has nothing."""
    dataset = dataclasses.replace(registry.get("fashion_mnist"), system_folders=())
    monkeypatch.setitem(registry.SETS, "fashion_mnist", dataset)
    return folders


def test_auto_falls_back_but_never_on_a_damaged_file(fashion):
    assert len(images.fashion_mnist("test")[0]) == 1_000
    with pytest.raises(DataError, match="not on this machine"):
        images.fashion_mnist("test", "full", download=False)
    (fashion / "one" / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"other"))
    with pytest.raises(DataError, match="one/t10k-images"):
        images.fashion_mnist("test")


def test_wrong_words():
    with pytest.raises(ValueError, match="split is 'valid', expected 'train' or 'test'"):
        images.fashion_mnist("valid")
    with pytest.raises(ValueError, match="subset is 'all', expected 'auto', 'full' or 'shipped'"):
        images.fashion_mnist(subset="all")


def test_read_idx(tmp_path):
    path = tmp_path / "a.gz"
    array = torch.arange(24, dtype=torch.uint8).view(2, 3, 4)
    good = make_fashion_subset.idx(array)
    path.write_bytes(gzip.compress(good))
    assert torch.equal(images.read_idx(path), array)
    packed = gzip.compress(good)
    for content, message in [
        (packed[:-9], "cut off or not a gzip file"),
        (good, "cut off or not a gzip file"),
        (gzip.compress(b"\x00\x00\x0d" + good[3:]), "no idx file of bytes: it starts with 00000d03"),
        (gzip.compress(b""), "no idx file of bytes"),
        (gzip.compress(good[:-1]), r"unpacks to 39 bytes, shape \(2, 3, 4\) in its header to 40"),
        (gzip.compress(good + b"x"), "unpacks to 41 bytes"),
        (gzip.compress(good[:7]), "unpacks to 7 bytes"),
    ]:
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            images.read_idx(path)
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        images.read_idx(tmp_path)
    with pytest.raises(DataError, match=r"a\.gz does not exist"):
        images.read_idx(tmp_path / "none" / "a.gz")


def test_labels_that_do_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "SHIPPED", tmp_path)
    names = images.fashion_mnist_files("test")
    blank = torch.zeros(3, 28, 28)
    for pictures, labels in [(blank, [0, 1]), (blank, [0, 1, 10]), (blank[:, :9], [0, 0, 0])]:
        for name, array in zip(names, (pictures, torch.tensor(labels)), strict=True):
            (tmp_path / name).write_bytes(gzip.compress(make_fashion_subset.idx(array)))
        with pytest.raises(DataError, match=r"expected \(N, 28, 28\) and \(N,\) with labels below 10"):
            images.fashion_mnist("test", "shipped")


def test_checksums():
    shipped = images.fashion_mnist_checksums("shipped")
    assert len(shipped) == 4 and all(re.fullmatch("[0-9a-f]{64}", value) for value in shipped.values())
    name = "train-images-idx3-ubyte.gz"
    assert images.fashion_mnist_checksums("full")[f"fashion_mnist/{name}"].startswith("c59f468a")
    assert (
        shipped[f"fashion_mnist_shipped/{name}"]
        == hashlib.sha256(gzip.decompress((images.SHIPPED / name).read_bytes())).hexdigest()
    )
