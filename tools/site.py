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
def chapters():
    """(name, title) of each chapter, in the order of the book. Returns: tuple of pairs."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    names = [entry["file"] for part in parts for entry in part["chapters"] if entry["file"].startswith("chapters/")]
    first = {name: nbformat.read(ROOT / f"{name}.ipynb", as_version=4).cells[0].source for name in names}
    return tuple((name.removeprefix("chapters/"), re.search(r"^# (.+)$", first[name], re.M)[1]) for name in names)


def colab(notebook):
    """Where Colab opens a notebook of the repository. Returns: str."""
    place = repository()["url"].removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{place}/blob/{repository()['branch']}/{notebook}"


def archive():
    """What pip installs outside a checkout: the tag of this version, which never changes. Returns: str."""
    return f"{repository()['url']}/archive/refs/tags/v{VERSION}.zip"
