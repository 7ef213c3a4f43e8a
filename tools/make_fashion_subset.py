"""Make the part of Fashion-MNIST that ships with the package: `python -m tools.make_fashion_subset`.

Of each class it keeps the 200 training and the 100 test images whose pixels have the smallest SHA-256, in the
order of that hash. So the choice is as good as random, yet depends on no generator; training images come from
the official training split and test images from the official test split.
"""

import argparse
import gzip
import hashlib
import sys

import torch

from d2lmini.data import images

PER_CLASS = {"train": 200, "test": 100}
LICENCE = """\
Part of Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747), as chosen by
tools/make_fashion_subset.py.

The MIT License (MIT)

Copyright (c) 2017 Zalando SE, https://tech.zalando.com

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES
OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def choose(pictures, labels, per_class):
    """Indices of the chosen images, in order."""
    key = [hashlib.sha256(picture.tobytes()).digest() for picture in pictures.numpy()]
    order = sorted(range(len(key)), key=lambda i: (key[i], i))
    taken = [0] * len(images.FASHION_MNIST_LABELS)
    chosen = []
    for i in order:
        label = labels[i].item()
        if taken[label] < per_class:
            taken[label] += 1
            chosen.append(i)
    return torch.tensor(chosen)


def idx(array):
    """The bytes of an idx file, not yet packed."""
    header = bytes((0, 0, 8, array.dim())) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.to(torch.uint8).numpy().tobytes()


def contents():
    """dict from file name to the bytes that it should unpack to."""
    made = {}
    for split, per_class in PER_CLASS.items():
        pictures, labels = images.fashion_mnist(split, subset="full")
        chosen = choose(pictures, labels, per_class)
        of_images, of_labels = images.fashion_mnist_files(split)
        made |= {of_images: idx(pictures[chosen]), of_labels: idx(labels[chosen])}
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare what is there")
    check = parser.parse_args().check
    images.SHIPPED.mkdir(parents=True, exist_ok=True)
    made = contents()
    if not check:
        for name, content in made.items():
            # no time and no name in the header: the same bytes on every run
            (images.SHIPPED / name).write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
        packed = {name: (images.SHIPPED / name).read_bytes() for name in sorted(made)}
        sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in packed.items()]
        (images.SHIPPED / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
        (images.SHIPPED / "LICENSE").write_text(LICENCE, encoding="utf-8")
    # unpacked, because what zlib makes of it differs between its versions
    paths = {name: images.SHIPPED / name for name in made}
    stale = [n for n, p in paths.items() if not p.exists() or gzip.decompress(p.read_bytes()) != made[n]]
    if stale:
        sys.exit(f"out of step: {', '.join(stale)}; mend with: python -m tools.make_fashion_subset")


if __name__ == "__main__":
    main()
