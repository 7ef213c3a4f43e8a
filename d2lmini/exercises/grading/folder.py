"""Grade a folder of strangers' notebooks, each answer in a sandbox of its own."""

import csv
import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from tqdm.auto import tqdm

from ..engine.judge import PASSED, RECORDED, fresh_seed
from ..engine.model import Discussion
from ..engine.registry import exercises, find
from .answer import Rules, judge_cell
from .answer_cells import answers, cells, imports
from .sandbox import require

COLUMNS = ("notebook", "exercise", "verdict", "code", "message")
ABSENT = ("unreadable", "no answers")  # verdicts on a whole notebook


def grade(
    folder, csv_path, *, seconds=None, memory=Rules.memory, seed=None, jobs=None, gradescope=None, unsafe=False
) -> list[dict]:
    """Grade every notebook below ``folder`` and write one row for each answer.

    Only answer cells (known by their first line, ``# exercise: KEY``) and import statements are run: each answer in a
    fresh process in a bubblewrap sandbox. Inputs go in and results come out; what they are compared with, and the
    verdict, are never there.

    Args:
        folder: searched for ``*.ipynb``, in subfolders too.
        csv_path: the table to write, with the columns ``COLUMNS``.
        seconds: of processor time for one answer; None: those of the exercise.
        memory: bytes for one answer (Linux only).
        seed: of the inputs, the same for all; None: a fresh one.
        jobs: how many answers are judged at once; None: as many as there are processors.
        gradescope: a folder for one JSON file a notebook, as Gradescope reads them; None: none are written.
        unsafe: run answers without a sandbox. Each can then do whatever you can.

    Returns:
        The rows, as dicts.

    Raises:
        FileNotFoundError: ``folder`` is not there, or holds no notebook.
        NoSandbox: there is no sandbox on this system.
    """
    folder, csv_path = Path(folder), Path(csv_path)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    paths = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if not paths:
        raise FileNotFoundError(f"{folder} holds no .ipynb file")
    require(unsafe)
    rules = Rules(fresh_seed() if seed is None else seed, seconds, memory, unsafe)
    rows = _grade({str(path.relative_to(folder)): path for path in paths}, rules, jobs or os.cpu_count())
    _write(csv_path, rows)
    if gradescope is not None:
        for name in dict.fromkeys(row["notebook"] for row in rows):
            path = Path(gradescope) / Path(name).with_suffix(".json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(gradescope_results([r for r in rows if r["notebook"] == name]), indent=1))
    return rows


def check_file(path, *, seconds=None) -> list[str]:
    """Check every answer of a notebook of your own, and return one line for each.

    Each answer runs in another process, but in no sandbox: for notebooks of others there is `grade`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    rules = Rules(fresh_seed(), seconds, unsafe=True)
    rows = _grade({path.name: path}, rules, 1)
    return [f"{r['verdict'].upper()} {r['exercise'] or path.name}: {r['message']}" for r in rows]


def totals(rows) -> str:
    """Return one line a notebook: how many of its answers are verified, and what is left to read."""
    lines = []
    for name in dict.fromkeys(row["notebook"] for row in rows):
        own = [row for row in rows if row["notebook"] == name]
        if own[0]["verdict"] in ABSENT:
            lines.append(f"{name:<40} {own[0]['verdict']}: {own[0]['message']}")
            continue
        texts = [row for row in own if _is_text(row["exercise"])]
        passed = sum(row["verdict"] == PASSED for row in own)
        written = sum(row["verdict"] == RECORDED for row in texts)
        lines.append(
            f"{name:<40} {passed:>3} of {len(own) - len(texts)} verified"
            + (f", {written} of {len(texts)} texts to be read" if texts else "")
        )
    return "\n".join(lines)


def gradescope_results(rows) -> dict:
    """Return the results of one notebook in the form of Gradescope's ``results.json``."""
    tests = []
    for row in rows:
        most = 0.0 if _is_text(row["exercise"]) else 1.0
        tests.append(
            {
                "name": row["exercise"] or row["notebook"],
                "score": most if row["verdict"] == PASSED else 0.0,
                "max_score": most,
                "status": "passed" if row["verdict"] in (PASSED, RECORDED) else "failed",
                "output": f"{row['verdict'].upper()}: {row['message']}",
            }
        )
    return {"tests": tests}


def _is_text(key):
    try:
        return isinstance(find(key)[1], Discussion)
    except KeyError:
        return False


def _grade(paths, rules, jobs):
    """Return the rows of all notebooks; ``paths`` by the names that they have in the table."""
    read = {name: _read(path) for name, path in paths.items()}
    tasks = [
        (name, key) for name, notebook in read.items() if isinstance(notebook, dict) for key in notebook["answers"]
    ]
    verdicts = {}
    # judges in processes: torch's state is the process's own, and a check may use all of it
    with ProcessPoolExecutor(min(jobs, len(tasks)) or 1, get_context("spawn")) as pool:
        pending = {}
        for name, key in tasks:
            notebook = read[name]
            order = key, notebook["answers"][key], notebook["sources"], notebook["imports"], rules
            pending[pool.submit(judge_cell, *order)] = name, key
        for done in tqdm(as_completed(pending), total=len(tasks), desc="answers", disable=None):
            try:
                verdicts[pending[done]] = done.result()
            except BrokenProcessPool:
                verdicts[pending[done]] = "not judged", "broken", "the judge's own process ended: run it again"
            except Exception as error:  # a fault of ours, which must not cost the verdicts on all others
                message = f"the judge itself fails, please report it ({type(error).__name__}: {error})"
                verdicts[pending[done]] = "not judged", "broken", message
    rows = []
    for name, notebook in read.items():
        if not isinstance(notebook, dict):
            rows.append(_row(name, "", *notebook))
            continue
        rows += (_row(name, key, *verdicts[name, key]) for key in notebook["answers"])
        rows += (_row(name, key, "missing", "missing", "no answer cell") for key in _missing(notebook["answers"]))
    return rows


def _row(*values):
    """Return a row of the table; what no screen and no file of text can take is replaced."""
    plain = ("".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in v) for v in values)
    return dict(zip(COLUMNS, plain, strict=True))


def _read(path):
    """Return the answers, the import statements and the sources of a notebook, or what is wrong with it."""
    try:
        sources = cells(path)
    except (ValueError, OSError) as error:
        return "unreadable", "unreadable", str(error)
    if not (by_key := answers(sources)):
        return "no answers", "empty", "no cell starts with `# exercise: KEY`"
    return {"answers": by_key, "sources": sources, "imports": imports(sources)}


def _missing(keys):
    """Return the parts of the chapters that a notebook treats for which it has no answer cell."""
    chapters, given = set(), set()
    for key in keys:
        try:
            exercise, part = find(key)
        except KeyError:
            continue
        chapters.add(exercise.chapter)
        given.add(part.key)
    wanted = [p.key for c in sorted(chapters) for e in exercises(c) for p in e.parts]
    return [key for key in wanted if key not in given]


def _write(csv_path, rows):
    half = csv_path.with_name(csv_path.name + ".tmp")
    with open(half, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    os.replace(half, csv_path)


def _plain(value):
    """Keep a spreadsheet from taking a learner's text for a formula."""
    return "'" + value if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
