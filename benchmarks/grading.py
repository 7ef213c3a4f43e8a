"""How long a class takes to grade, and whether every verdict is the one it should be.

    python -m benchmarks.grading

Each notebook of the class answers every part of a chapter with the model solution, one of the wrong answers that the
exercise knows, or nothing at all, in turns. The class is graded on the machine as it is, and beside as many endless
loops as it has processors.
"""

import collections
import contextlib
import inspect
import itertools
import json
import multiprocessing
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks._common import main
from d2lmini.exercises.engine import registry, source
from d2lmini.exercises.engine.model import Choice, Coded, Experiment
from d2lmini.exercises.grading.folder import grade, processors

RIGHT, WRONG, EMPTY = "passed", "wrong", "not attempted"


@dataclass(frozen=True)
class Sizes:
    """Chapters, notebooks a chapter, and the seed of the inputs."""

    chapters: tuple = ("01",)
    notebooks: int = 30
    seed: int = 1
    experiments: bool = True


QUICK = Sizes(chapters=("03",), notebooks=3, experiments=False)


def answers(part):
    """Yield (source of an answer, verdict that it must get), again and again."""
    if isinstance(part, Choice):
        found = [(f'answer = "{x}"', RIGHT if option.right else WRONG) for x, option in part.lettered.items()]
    elif not isinstance(part, Coded):
        found = [('answer = "A text."', "recorded")]
    else:
        found = [(source.solution(part), RIGHT)]
        for mutant in part.mutants:
            if not callable(mutant.change):
                found += [(source.mutated(part, mutant), WRONG), (source.solution(part), RIGHT)]
        found.append((source.stub(part), EMPTY))
    return itertools.cycle(found)


def notebook(cells):
    """Returns: the text of a notebook with these code cells."""
    found = [{"cell_type": "code", "source": cell, "outputs": [], "metadata": {}} for cell in cells]
    return json.dumps({"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def one_class(chapter, sizes):
    """Grade the class of one chapter. Returns: dict of counts and seconds."""
    parts = [part for exercise in registry.exercises(chapter) for part in exercise.parts]
    parts = [part for part in parts if sizes.experiments or not isinstance(part, Experiment)]
    turns, wanted = {part.key: answers(part) for part in parts}, {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(sizes.notebooks):
            name, cells = f"{number:02}.ipynb", [inspect.cleandoc(source.PRELUDE)]
            for part in parts:
                text, wanted[name, part.key] = next(turns[part.key])
                cells.append(f"# exercise: {part.key}\n{text}")
            Path(folder, name).write_text(notebook(cells), encoding="utf-8")
        start = time.perf_counter()
        rows = grade(folder, Path(folder) / "out.csv", seed=sizes.seed)
        seconds = time.perf_counter() - start
    got = {(row["notebook"], row["exercise"]): row["verdict"] for row in rows if row["verdict"] != "missing"}
    others = [f"{key}: {verdict}, not {wanted[name, key]}" for (name, key), verdict in got.items()]
    others = [text for text, place in zip(others, got, strict=True) if got[place] != wanted[place]]
    return {
        "notebooks": sizes.notebooks,
        "answers": len(wanted),
        "seconds": round(seconds, 1),
        "verdicts": dict(sorted(collections.Counter(got.values()).items())),
        "other_than_wanted": sorted(others),
    }


def _loop():
    while True:
        pass


@contextlib.contextmanager
def busy_machine():
    """Within, every processor has something else to do."""
    context = multiprocessing.get_context("spawn")
    loops = [context.Process(target=_loop, daemon=True) for _ in range(processors())]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.join()


def measure(sizes):
    """Returns: what goes into the record."""
    quiet = {chapter: one_class(chapter, sizes) for chapter in sizes.chapters}
    with busy_machine():
        loaded = {chapter: one_class(chapter, sizes) for chapter in sizes.chapters}
    return {"jobs": processors(), "classes": quiet, "loaded": loaded}


if __name__ == "__main__":
    main("grading", measure, Sizes(), QUICK, gpu=False)
