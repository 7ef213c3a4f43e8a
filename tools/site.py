"""The public address, read from `_config.yml`, and the links made from it."""

from functools import cache

import yaml

import d2lmini
from tools._generated import ROOT

VERSION = d2lmini.__version__


@cache
def repository():
    """Returns: dict with the keys url and branch."""
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]


def colab(notebook):
    """Where Colab opens a notebook of the repository. Returns: str."""
    place = repository()["url"].removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{place}/blob/{repository()['branch']}/{notebook}"


def archive():
    """What pip installs outside a checkout: the tag of this version, which never changes. Returns: str."""
    return f"{repository()['url']}/archive/refs/tags/v{VERSION}.zip"
