"""Find exercises and their parts by key."""

import difflib
import importlib
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent


def natural(key):
    """Sort key: numbers within a key count as numbers."""
    return [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", key)]


@cache
def keys() -> tuple[str, ...]:
    """Return the keys of all exercises, in order."""
    names = [p.stem for prefix in ("d2l", "udl", "own") for p in FOLDER.glob(f"{prefix}_*.py")]
    return tuple(sorted((n.replace("_", "-", 1).replace("_", ".") for n in names), key=natural))


def path(key) -> Path:
    """Return the file of the exercise with this key, without a part's letter."""
    return FOLDER / f"{key.replace('-', '_').replace('.', '_')}.py"


@cache
def load(key):
    """Return the exercise with this key, without a part's letter."""
    return importlib.import_module(f"d2lmini.exercises.{path(key).stem}").EXERCISE


def exercises(chapter=None):
    """Return all exercises, or those of one chapter (``"03"``)."""
    found = [load(key) for key in keys()]
    return [e for e in found if chapter in (None, e.chapter)]


def find(key):
    """Return (exercise, part) for the key of a part.

    Raises:
        KeyError: for an unknown key, with those that look like it.
    """
    base = str(key).rstrip("abcdefgh")
    if base in keys():
        exercise = load(base)
        for part in exercise.parts:
            if part.key == key:
                return exercise, part
        raise KeyError(f"{key!r} has parts: {', '.join(p.key for p in exercise.parts)}")
    near = difflib.get_close_matches(str(key), keys(), n=3)
    raise KeyError(f"there is no exercise {key!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
