"""The page of the API: every public module and name of the package is on it, and nothing that is gone."""

import importlib
import pkgutil
import re

import pytest
from conftest import ROOT

import d2lmini

ON_PAGE = re.findall(r"^\.\. automodule:: (\S+)$", (ROOT / "pages" / "api.md").read_text(encoding="utf-8"), re.M)
NOT_ON_PAGE = {
    "d2lmini.__main__": "the command line",
    "d2lmini.selfcheck": "the command line",
    "d2lmini.renamed": "old names, until 1.0",
    "d2lmini.buffers": "what tables and scales share",
    "d2lmini.layers": "what adapters and weights in few bits share",
    "d2lmini.figures.base": "what figures share",
    "d2lmini.figures.playground": "figures has its class",
    "d2lmini.figures.real_model": "figures has its class",
    "d2lmini.figures.translator": "figures has its class",
    "d2lmini.data.batching": "what the data modules share",
    "d2lmini.data.catalogue": "the entries of registry",
    "d2lmini.data.grammar_phrases": "the inside of grammar",
    "d2lmini.data.grammar_words": "the inside of grammar",
    "d2lmini.data.playground_tasks": "the inside of playground",
    "d2lmini.data.store": "the inside of registry",
    "d2lmini.figures.live": "the runtime of live figures, which are on the page",
    "d2lmini.models.weights.files": "the inside of trained",
    "d2lmini.models.weights.model_pieces": "the inside of smollm2, for the page",
    "d2lmini.models.weights.rounding": "the inside of trained",
    "d2lmini.models.weights.tokenizers": "the inside of trained",
    "d2lmini.exercises": "each file is an exercise; the package itself is on the page",
    "d2lmini.experiments": "each file is an experiment; what runs them is on the page",
}
MODULES = [found.name for found in pkgutil.walk_packages(d2lmini.__path__, "d2lmini.")]


def has_place(name, places):
    """Whether a module or a package above it is among the places."""
    parts = name.split(".")
    return any(".".join(parts[:n]) in places for n in range(2, len(parts) + 1))


@pytest.mark.parametrize("name", ON_PAGE)
def test_nothing_on_the_page_is_gone(name):
    assert name in MODULES and ON_PAGE.count(name) == 1


def test_every_module_is_on_the_page_or_said_not_to_be():
    public = [name for name in MODULES if not name.split(".")[-1].startswith("_") or name in NOT_ON_PAGE]
    packages = {name for name in public if any(other.startswith(name + ".") for other in MODULES)}
    assert [n for n in public if n not in packages and not has_place(n, {*ON_PAGE, *NOT_ON_PAGE})] == []
    assert [n for n in NOT_ON_PAGE if n not in MODULES] == []


@pytest.mark.parametrize("home", ["d2lmini", *ON_PAGE])
def test_every_public_name_is_on_the_page(home):
    """Sphinx writes what a module defines, or what its __all__ names, if that has a docstring."""
    package = importlib.import_module(home)
    for name in getattr(package, "__all__", ()):
        value = getattr(package, name)
        defined = d2lmini._HOME.get(name) if home == "d2lmini" else value.__module__.removeprefix("d2lmini.")
        assert home in ON_PAGE or has_place(f"d2lmini.{defined}", ON_PAGE), f"{name} of {home}"
        assert not callable(value) or value.__doc__, f"{name} says nothing about itself"


def test_a_package_inside_of_a_package_has_its_own_line():
    """A package on the page stands for its __all__ alone."""
    packages = [found.name for found in pkgutil.walk_packages(d2lmini.__path__, "d2lmini.") if found.ispkg]
    inside = [name for name in packages if has_place(name, ON_PAGE) and not has_place(name, NOT_ON_PAGE)]
    assert [name for name in inside if name not in ON_PAGE] == []
