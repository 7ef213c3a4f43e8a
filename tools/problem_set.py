"""Choose a problem set: what each exercise needs, and one notebook of those chosen, to hand out.

    python -m tools.problem_set --list --had 1-3 7 --kind choice     # what fits
    python -m tools.problem_set d2l-11.3.1 own-04.1 --out set1.ipynb

What is said of an exercise is read from its files, from tools/course.yml and from tools/exercise_places.yml.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import nbformat

from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.document import take_apart
from d2lmini.exercises.engine.model import Choice, Code, Coded, Count, Discussion, Experiment, Identity
from tools import course, exercise_cells, exercise_places
from tools._generated import ROOT

NO_CODE = "no-code"  # a kind of exercise: every part is a choice or a discussion
KINDS = (NO_CODE, *(part.kind for part in (Code, Identity, Count, Experiment, Choice, Discussion)))
SOURCES = {"d2l": "D2L", "udl": "UDL", "own": "own"}


@dataclass(frozen=True)
class Entry:
    """What a lecturer wants to know of an exercise.

    Args:
        exercise: of the registry.
        source: one of the values of `SOURCES`.
        chapters: its own, and all that this builds on, in order.
        kinds: of `KINDS`, that of each part.
        packages: what its files import that does not come with the package.
    """

    exercise: object
    source: str
    chapters: tuple
    kinds: tuple
    packages: tuple

    @property
    def key(self):
        return self.exercise.key

    @property
    def words(self):
        """The kinds for which it is found. Returns: tuple."""
        coded = any(isinstance(part, Coded) for part in self.exercise.parts)
        return (*dict.fromkeys(self.kinds), *[NO_CODE] * (not coded))

    @property
    def graded(self):
        """Whether the command judges every part: a discussion it only records."""
        return Discussion.kind not in self.kinds

    @property
    def seconds(self):
        """The limits of its checks together. Returns: int, seconds of processor time."""
        return round(sum(part.seconds for part in self.exercise.parts if isinstance(part, Coded)))

    def fits(self, had=(), kind=None, source=None, graded=False):
        """Whether a course that had these chapters can do it (none: any course), and it is what is looked for."""
        return (
            (not had or {*self.chapters} <= {*had})
            and kind in (None, *self.words)
            and source in (None, self.source)
            and (self.graded or not graded)
        )


@cache
def entries():
    """Every exercise of the book, chapter by chapter. Returns: tuple of `Entry`."""
    return tuple(entry(exercise) for chapter in course.NAMES for exercise in registry.exercises(chapter))


def entry(exercise):
    """Returns: `Entry`."""
    also = course.table()["chapters"][exercise.chapter].get("also", {"section": None})
    place = exercise_places.places().get(exercise.key)
    more = also["needs"] if place and place.title == also["section"] else []
    before = {exercise.chapter, *builds_on(exercise.chapter), *chain(more, *map(builds_on, more))}
    return Entry(
        exercise,
        SOURCES[exercise.key.partition("-")[0]],
        tuple(number for number in course.NAMES if number in before),
        tuple(part.kind for part in exercise.parts),
        packages(take_apart(registry.path(exercise.key)).code),
    )


@cache
def builds_on(chapter):
    """All chapters to be read before one. Returns: list of numbers, in order."""
    needs = course.needed(chapter)
    found = {*needs, *chain(*map(builds_on, needs))}
    return [number for number in course.NAMES if number in found]


def packages(source):
    """What a source imports that is neither Python's own, nor ours, nor installed with it. Returns: tuple of str."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    with_ours = re.findall(r'"([\w-]+)', re.search(r"^dependencies = \[(.*?)^\]", text, re.M | re.S)[1])
    nodes = list(ast.walk(ast.parse(source)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return tuple(sorted({n.partition(".")[0] for n in names} - sys.stdlib_module_names - {"d2lmini", *with_ours}))


def lacking(had):
    """What chapters of a course build on that it has not had. Returns: dict from number to list of numbers."""
    found = {chapter: [n for n in builds_on(chapter) if n not in had] for chapter in had}
    return {chapter: missing for chapter, missing in found.items() if missing}


def numbers(text):
    """The chapters of ``"1-3,7"``. Returns: list of str, two digits each.

    Raises:
        ValueError: there is no such chapter, or the text is not of that form.
    """
    found = []
    for piece in text.split(","):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", piece.strip())
        run = range(int(ends[1]), int(ends[2] or ends[1]) + 1) if ends else ()
        found += [f"{number:02}" for number in run]
        if not run or not {*found} <= {*course.NAMES}:
            raise ValueError(f"no chapters: {piece!r}, expected some of {', '.join(course.NAMES)}, as in 1-3,7")
    return found


def chosen(keys):
    """The exercises of these keys, each once, in this order. Returns: list of exercises.

    Raises:
        registry.UnknownKey: for an unknown key, with those that look like it, and for that of a part.
    """
    found = {}
    for key in keys:
        try:
            exercise, part = registry.find(key)
        except registry.SeveralParts as several:
            exercise = several.exercise
        else:
            if part.key != exercise.key:
                raise registry.UnknownKey(f"{part.key} is one part: a set has whole exercises, here {exercise.key}")
        found[exercise.key] = exercise
    return list(found.values())


def counted(kinds):
    """Returns: str, as "2 code, 1 choice"."""
    return ", ".join(f"{number} {kind}" for kind, number in Counter(kinds).items())


def ranges(chapters):
    """Chapters in short. Returns: str, as "01-07, 12"."""
    runs = []
    for number in map(int, chapters):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first:02}" if first == last else f"{first:02}-{last:02}" for first, last in runs)


def summary(found):
    """A line on some exercises together. Returns: str."""
    kinds = [kind for one in found for kind in one.kinds]
    parts = f"{len(kinds)} part{'s' * (len(kinds) != 1)} ({counted(kinds)})" if kinds else "no parts"
    many = f"{len(found)} exercise{'s' * (len(found) != 1)}"
    return f"{many} with {parts}; the limits of the checks add up to {sum(one.seconds for one in found)} s"


def _row(one):
    row = f"{one.key:<12} {one.exercise.title}\n{'':<12} chapters {ranges(one.chapters)}; {counted(one.kinds)}"
    limit = f"; limit {one.seconds} s" if one.seconds else ""
    also = f"; needs {', '.join(one.packages)}" if one.packages else ""
    return row + limit + also


def _list(options):
    found = [one for one in entries() if one.fits(options.had, options.kind, options.source, graded=options.graded)]
    for chapter, missing in lacking(options.had).items():
        print(f"chapter {chapter} builds on {ranges(missing)}, not among --had: none of its exercises is listed")
    print("\n".join([*map(_row, found), summary(found)]))


def _write(keys, path):
    exercises = chosen(keys)
    text = nbformat.writes(exercise_cells.problem_set(exercises))
    with path.open("x", encoding="utf-8") as file:  # students' answers may be in what is there
        file.write(text + "\n")
    print(f"written: {path}, {summary([entry(exercise) for exercise in exercises])}")
    print(f"grade with: python -m d2lmini grade FOLDER --csv out.csv --set {path}")


def main(argv=None):
    """The command line. Exits with a message where a key is unknown or the notebook cannot be written."""
    parser = argparse.ArgumentParser(prog="python -m tools.problem_set", description="choose a problem set")
    parser.add_argument("keys", nargs="*", metavar="KEY", help="of an exercise, as d2l-11.3.1")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the notebook to write, with these exercises in order")
    parser.add_argument("--list", action="store_true", help="print the exercises that fit the options below")
    parser.add_argument("--had", nargs="+", default=[], metavar="N", help="chapters that the course has had: 1-3 7")
    parser.add_argument("--kind", choices=KINDS, help="of one of its parts; no-code: choices and discussions alone")
    parser.add_argument("--source", choices=SOURCES.values(), help="where it comes from")
    parser.add_argument("--graded", action="store_true", help="only where no part is a discussion, which you must read")
    options = parser.parse_args(argv)
    if options.list == bool(options.keys) or bool(options.keys) != bool(options.out):
        parser.error("expected keys with --out FILE, or --list")
    try:
        options.had = [number for text in options.had for number in numbers(text)]
        if options.list:
            _list(options)
        else:
            _write(options.keys, options.out)
    except FileExistsError:
        sys.exit(f"error: {options.out} is there already, and is left as it is")
    except (registry.UnknownKey, ValueError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
