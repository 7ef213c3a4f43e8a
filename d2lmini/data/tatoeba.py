"""English-French pairs of Tatoeba: the file that D2L uses, and splits of it in which no sentence comes back."""

import hashlib
import re
import unicodedata
import zipfile
from collections import defaultdict

from . import registry
from .store import DataError

SHARE = 0.02  # of the groups, for validation and as much again for testing
_WORDS = re.compile(r"\w+").findall


def tatoeba_text(download=True):
    """The whole file, as D2L reads it.

    Args:
        download: whether to fetch it where it is not on this machine.

    Returns:
        str of lines: English, a tab, French.

    Raises:
        DataError: it is missing or damaged.
    """
    path = registry.path("tatoeba_enfr", "fra-eng.zip", download)
    with zipfile.ZipFile(path) as archive:
        # the name that the registry verified, in whatever folder
        member = next(name for name in archive.namelist() if name.rsplit("/", 1)[-1] == "fra.txt")
        return archive.read(member).decode("utf-8")


def parse_pairs(text, name="the text"):
    """The pairs of a text of lines "source, tab, target".

    Args:
        text: str. A last empty line is no pair.
        name: what to call it in an error.

    Returns:
        list of (str, str), each side by `clean`.

    Raises:
        DataError: a line has no tab, or more than one, or an empty side.
    """
    pairs = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        parts = [clean(part) for part in line.split("\t")]
        if len(parts) != 2 or not all(parts):
            raise DataError(
                f"line {number} of {name} is {line[:60]!r}, expected two sentences with a tab between them: newer "
                "files of manythings.org have a third column"
            )
        pairs.append((parts[0], parts[1]))
    return pairs


def clean(text):
    """A sentence with single plain spaces, without soft hyphens and spaces of no width; all else as it was."""
    return " ".join(text.replace("\u200b", "").replace("\xad", "").split())


def sentence_key(text):
    """What two sentences have in common that differ in case, punctuation and spaces alone."""
    return " ".join(_WORDS(unicodedata.normalize("NFKC", text).lower()))


def group_by_sentence(pairs):
    """Which pairs belong together: those that share a side (by `sentence_key`), directly or over other pairs.

    Many English sentences have several French ones and the other way round.

    Args:
        pairs: list of (source, target).

    Returns:
        list of groups, each (place, indices): a number from 0 to below 1 that depends on the sentences of the group
        alone, by SHA-256, so that it does not change when pairs elsewhere do; and the indices of its pairs, ascending.
    """
    parent = {}

    def root(node):
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    nodes = [(("source", sentence_key(source)), ("target", sentence_key(target))) for source, target in pairs]
    for source, target in nodes:
        parent[root(source)] = root(target)
    members = defaultdict(list)
    for index, (source, _) in enumerate(nodes):
        members[root(source)].append(index)
    return [(hash_place(min(nodes[index][0][1] for index in indices)), indices) for indices in members.values()]


def hash_place(text):
    """A number from 0 to below 1 that depends on a text alone, by SHA-256."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def split_by_sentence(pairs):
    """Splits pairs so that no sentence of one split is in another, on neither side: a group goes as one.

    Args:
        pairs: list of (source, target).

    Returns:
        dict from ``"train"``, ``"val"`` and ``"test"`` to lists of pairs, in the order they came.
    """
    splits = {"train": [], "val": [], "test": []}
    for place, indices in group_by_sentence(pairs):
        splits["test" if place < SHARE else "val" if place < 2 * SHARE else "train"] += indices
    return {split: [pairs[index] for index in sorted(indices)] for split, indices in splits.items()}
