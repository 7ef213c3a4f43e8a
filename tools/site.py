"""The chapters, read from `_toc.yml`, and the public address, read from `_config.yml`, with the links made from it."""

import re
from functools import cache

import nbformat
import yaml

import d2lmini
from tools._generated import ROOT

VERSION = d2lmini.__version__


@cache
def repository():
    """Returns: dict with the keys url and branch."""
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]


@cache
def parts():
    """(caption, names of the files of its chapters) of each part of the book that has chapters. Returns: tuple."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found = []
    for part in toc.get("parts", [toc]):  # chapters built alone are in no part
        files = [entry["file"] for entry in part["chapters"]]
        names = tuple(name.removeprefix("chapters/") for name in files if name.startswith("chapters/"))
        if names:
            found.append((part.get("caption", "Chapters"), names))
    return tuple(found)


@cache
def chapters():
    """(name, title) of each chapter, in the order of the book. Returns: tuple of pairs."""
    names = [name for _, names in parts() for name in names]
    first = {n: nbformat.read(ROOT / "chapters" / f"{n}.ipynb", as_version=4).cells[0].source for n in names}
    return tuple((name, re.search(r"^# (.+)$", first[name], re.M)[1]) for name in names)


def colab(notebook):
    """Where Colab opens a notebook of the repository. Returns: str."""
    place = repository()["url"].removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{place}/blob/{repository()['branch']}/{notebook}"


def archive():
    """What pip installs outside a checkout: the tag of this version, which never changes. Returns: str."""
    return f"{repository()['url']}/archive/refs/tags/v{VERSION}.zip"
