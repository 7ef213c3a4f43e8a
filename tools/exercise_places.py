"""The section of its chapter where an exercise can first be done, from exercise_places.yml."""

from functools import cache

import yaml

from d2lmini.exercises.engine import registry
from tools import coverage
from tools._generated import ROOT

TABLE = ROOT / "tools" / "exercise_places.yml"


@cache
def places():
    """Where each exercise of the book belongs. Returns: dict from keys to `coverage.Section`.

    Raises:
        ValueError: an exercise has no line in the table, or its chapter no such heading.
    """
    table, found = yaml.safe_load(TABLE.read_text(encoding="utf-8")), {}
    if lone := table.keys() ^ set(registry.ours()):
        raise ValueError(f"{TABLE.name}: {', '.join(sorted(lone))}: here or there alone")
    for key, title in table.items():
        path = f"chapters/{registry.NOTEBOOKS[registry.chapter_of(key)]}.ipynb"
        there = {section.title: section for section in coverage.sections(path).values()}
        if title not in there:
            raise ValueError(f"{TABLE.name}: {key}: {path} has no heading {title!r}, only {', '.join(there)}")
        found[key] = there[title]
    return found
