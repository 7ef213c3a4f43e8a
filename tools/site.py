"""The chapters, read from `_toc.yml`, and the public address, read from `_config.yml`, with the links made from it."""

import re
from functools import cache
from pathlib import Path

import nbformat
import yaml

import d2lmini
from tools._generated import ROOT

VERSION = d2lmini.__version__


def _config():
    """`_config.yml`; the address in it may have been copied with what a browser or git puts behind it."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    config["repository"]["url"] = config["repository"]["url"].rstrip("/").removesuffix(".git")
    return config


@cache
def repository():
    """Returns: dict with the keys url and branch."""
    return _config()["repository"]


@cache
def pages():
    """(caption of its part, how many pages it is below, name) of each page, in order. Returns: tuple of triples."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))

    def walk(caption, entries, level=0):
        for entry in entries:
            yield caption, level, entry["file"]
            yield from walk(caption, entry.get("sections", []), level + 1)

    parts = toc.get("parts", [toc])  # chapters built alone are in no part
    return tuple(page for part in parts for page in walk(part.get("caption", "Chapters"), part["chapters"]))


@cache
def parts():
    """(caption, names of the files of its chapters) of each part of the book that has chapters. Returns: tuple."""
    found = {}
    for caption, _, name in pages():
        if name.startswith("chapters/"):
            found.setdefault(caption, []).append(name.removeprefix("chapters/"))
    return tuple((caption, tuple(names)) for caption, names in found.items())


@cache
def chapters():
    """(name, title) of each chapter, in the order of the book. Returns: tuple of pairs."""
    names = [name for _, names in parts() for name in names]
    first = {n: nbformat.read(ROOT / "chapters" / f"{n}.ipynb", as_version=4).cells[0].source for n in names}
    return tuple((name, re.search(r"^# (.+)$", first[name], re.M)[1]) for name in names)


def built(folder=ROOT / "_build" / "html"):
    """The folder of a built book. Returns: `Path`.

    Raises:
        FileNotFoundError: there is none.
    """
    if not (Path(folder) / "index.html").is_file():
        raise FileNotFoundError(f"there is no built book in {folder}: `make book` makes it")
    return Path(folder)


def served(name):
    """The name of a built page, of that of its file: both without an ending. Returns: str."""
    return name.removeprefix("pages/")


def lead_to(book, made, words):
    """Once something is made beside a built book, its page For lecturers has a link to it, and only then."""
    page, link = book / "lecturers.html", f'<p><a href="{made}">{words}</a></p>'
    if page.is_file() and link not in (text := page.read_text(encoding="utf-8")):
        text = re.sub(
            r'(<section id="slides-and-paper">\s*<h2>.*?</h2>)', rf"\1\n{link}", text, count=1, flags=re.DOTALL
        )
        page.write_text(text, encoding="utf-8")


def colab(notebook):
    """Where Colab opens a notebook of the repository. Returns: str."""
    place = repository()["url"].removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{place}/blob/{repository()['branch']}/{notebook}"


def archive():
    """What pip installs outside a checkout: the tag of this version, which never changes. Returns: str."""
    return f"{repository()['url']}/archive/refs/tags/v{VERSION}.zip"


def address():
    """Where the book is read: the `baseurl` of `_config.yml`, or GitHub Pages of the repository. Returns: str, "" for
    a repository elsewhere."""
    config = _config()
    found = re.fullmatch(r"https://github\.com/([^/]+)/([^/]+)", config["repository"]["url"])
    return config["html"].get("baseurl") or (f"https://{found[1].lower()}.github.io/{found[2]}/" if found else "")


def section(notebook, title):
    """Where a section of a notebook is read: in the published book, or else in the repository. Returns: str."""
    if page := address():
        from docutils.nodes import make_id  # of the book, which the package alone is tested without

        return f"{page}{notebook.removesuffix('.ipynb')}.html#{make_id(title)}"
    return f"{repository()['url']}/blob/{repository()['branch']}/{notebook}"
