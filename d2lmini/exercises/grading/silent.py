"""What a notebook has and a graded answer has not: whatever only shows something is there, and does nothing.

A line that works in the notebook and does not matter for the answer must not make it wrong.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

import d2lmini

READERS = ("check", "hint", "progress", "progress_report", "reset", "review")
FRONT_ENDS = ("IPython", "google.colab", "ipywidgets", "matplotlib_inline")  # packages that come with a notebook


class Silent:
    """Can be called, asked for anything and gone through, and nothing comes of it."""

    kernel = None  # what `d2lmini.shell` asks for: this is no notebook

    def __call__(self, *args, **kwargs):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    __getitem__ = __enter__ = __call__

    def __exit__(self, *_):
        return None

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __repr__(self):
        return ""


SILENT = Silent()


class _NotInstalled(MetaPathFinder, Loader):
    """Finds packages of front ends where there are none: everything in them is silent."""

    def find_spec(self, name, path=None, target=None):
        related = (f"{one}.".startswith(f"{other}.") for f in FRONT_ENDS for one, other in ((f, name), (name, f)))
        return ModuleSpec(name, self, is_package=True) if any(related) else None

    def exec_module(self, module):
        module.__getattr__ = lambda name: getattr(SILENT, name)


def nothing(*args, **kwargs):
    """In place of `check` and the others: who calls them in an answer learns nothing new."""


def silence():
    """Let nothing that an answer calls in this process show or record anything."""
    exercises = importlib.import_module("d2lmini.exercises")  # in a sandbox an empty one
    for module in (d2lmini, exercises):
        for name in READERS:
            setattr(module, name, nothing)
    sys.meta_path.append(_NotInstalled())


def silence_shell():
    """Let whoever imports IPython find a shell in it. It is imported by this, which takes its time."""
    importlib.import_module("IPython").get_ipython = SILENT
