"""Experiments, one module each; `d2lmini.lab` says what an experiment is, runs it and records it."""

import pkgutil
from importlib import import_module


def names():
    """Names of the experiments, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def find(name):
    """The module of an experiment.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in names():
        raise ValueError(f"there is no experiment {name!r}, only {', '.join(names())}")
    return import_module(f"{__name__}.{name}")
