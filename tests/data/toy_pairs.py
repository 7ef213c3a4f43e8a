"""Pairs of sentences for the tests, laid where the registry expects a data set; and which real sets are here."""

import dataclasses
import hashlib
import random
import zipfile

import pytest

from d2lmini.data import registry, store
from d2lmini.data.store import DataFile
from d2lmini.data.tatoeba import sentence_key

REAL = [name for name in registry.SETS if any((f / name).is_dir() for f in store.data_folders())]


def needs(name):
    return pytest.mark.skipif(name not in REAL, reason=f"REAL {name.upper()} NOT TESTED: it is not in D2LMINI_DATA")


def chain_of_pairs(number=3_000):
    """Pairs of which many share a side, some only but for case and punctuation."""
    draw = random.Random(1)
    texts = [f"word{i} {i % 7}" for i in range(number)]
    pairs = [(text, f"mot {text}") for text in texts]
    pairs += [(draw.choice(texts).upper() + "!", f"autre {i}") for i in range(number // 3)]
    pairs += [(f"other {i}", "Mot " + draw.choice(texts)) for i in range(number // 3)]
    draw.shuffle(pairs)
    return pairs


def shared(splits):
    """Sentences that are in two splits, by key and side."""
    found = set()
    for side in (0, 1):
        keys = [{sentence_key(pair[side]) for pair in pairs} for pairs in splits.values()]
        found |= {key for i, one in enumerate(keys) for other in keys[:i] for key in one & other}
    return found


def register(monkeypatch, name, path, content, unpacked):
    """Make the registry expect what lies at ``path``."""
    old = registry.get(name)
    file = DataFile(path.name, hashlib.sha256(unpacked).hexdigest(), len(unpacked), (), content)
    files = tuple(file if known.name == path.name else known for known in old.files)
    monkeypatch.setitem(registry.SETS, name, dataclasses.replace(old, files=files))


def put_tatoeba(folder, monkeypatch, text):
    path = folder / "fra-eng.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__MACOSX/._fra.txt", b"junk")
        archive.writestr("fra-eng/fra.txt", text.encode())
    register(monkeypatch, "tatoeba_enfr", path, "zip:fra.txt", text.encode())
