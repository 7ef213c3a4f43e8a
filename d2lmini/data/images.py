"""Fashion-MNIST, the whole of it or the part that ships with the package, from files in the idx format."""

import gzip
import hashlib
import math
import zlib
from pathlib import Path

import torch

from . import registry, store
from .store import DataError

FASHION_MNIST_LABELS = (
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
SHIPPED = Path(__file__).parent / "assets" / "fashion_mnist"
_PREFIX = {"train": "train", "test": "t10k"}


def fashion_mnist(split="train", subset="auto", download=True):
    """Read Fashion-MNIST.

    Args:
        split: ``"train"`` or ``"test"``, the official ones; both subsets keep them apart.
        subset: ``"full"`` (60,000 and 10,000 images), ``"shipped"`` (2,000 and 1,000, equally many
            of each class, in the package) or ``"auto"``: all where it is on this machine, else shipped.
        download: whether ``"full"`` may fetch what is not on this machine; ``"auto"`` never does.

    Returns:
        images (N, 28, 28), uint8, 0 the background; labels (N,), int64, indices of `FASHION_MNIST_LABELS`.

    Raises:
        ValueError: no such split or subset.
        DataError: a file is missing, damaged, or not an idx file of 28 x 28 images with labels below 10.

    Source: Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747.
    """
    if split not in _PREFIX:
        raise ValueError(f"split is {split!r}, expected 'train' or 'test'")
    if subset not in ("auto", "full", "shipped"):
        raise ValueError(f"subset is {subset!r}, expected 'auto', 'full' or 'shipped'")
    names = fashion_mnist_files(split)
    if subset == "auto":
        dataset = registry.get("fashion_mnist")
        subset = "full" if all(store.find(dataset, name) for name in names) else "shipped"
    if subset == "full":
        paths = [registry.path("fashion_mnist", name, download) for name in names]
    else:
        paths = [SHIPPED / name for name in names]
    images, labels = (read_idx(path) for path in paths)
    classes = len(FASHION_MNIST_LABELS)
    if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1] or (labels >= classes).any():
        raise DataError(
            f"{paths[0]} holds an array of shape {tuple(images.shape)} and {paths[1].name} one of shape "
            f"{tuple(labels.shape)}, expected (N, 28, 28) and (N,) with labels below {classes}"
        )
    return images, labels.long()


def fashion_mnist_files(split):
    """Names of the files with the images and the labels of a split."""
    return [f"{_PREFIX[split]}-{kind}.gz" for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]


def fashion_mnist_checksums(subset):
    """SHA-256 of the unpacked files of a subset, as a dict from "set/file", to write beside a result."""
    names = [name for split in _PREFIX for name in fashion_mnist_files(split)]
    if subset == "full":
        return registry.checksums("fashion_mnist", names)
    content = {name: gzip.decompress((SHIPPED / name).read_bytes()) for name in names}
    return {f"fashion_mnist_shipped/{name}": hashlib.sha256(content[name]).hexdigest() for name in names}


def read_idx(path):
    """Read a gzipped idx file of bytes: two zeros, an 8, the number of dimensions, their sizes, the data.

    Args:
        path: of the file.

    Returns:
        uint8 tensor of the shape that the file states.

    Raises:
        DataError: there is no such file, it cannot be read or unpacked, has another format, or the wrong length.
    """
    try:
        data = gzip.decompress(Path(path).read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is cut off or not a gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from error
    if len(data) < 4 or data[:3] != b"\x00\x00\x08":
        raise DataError(f"{path} is no idx file of bytes: it starts with {data[:4].hex()}, expected 000008..")
    start = 4 + 4 * data[3]
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, start, 4))
    expected = start + math.prod(shape)
    if len(data) != expected:
        raise DataError(f"{path} unpacks to {len(data):,} bytes, shape {shape} in its header to {expected:,}")
    if not math.prod(shape):  # frombuffer takes no empty one
        return torch.empty(shape, dtype=torch.uint8)
    return torch.frombuffer(bytearray(data[start:]), dtype=torch.uint8).view(shape)
