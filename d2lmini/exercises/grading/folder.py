"""Grade a folder of strangers' notebooks, each in a sandbox of its own."""

import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from tqdm.auto import tqdm

from ..engine.judge import fresh_seed
from ..engine.registry import exercises, find
from .answer import NOT_JUDGED, Rules, judge_notebook
from .answer_cells import answers, cells, imports, repeated
from .journal import Journal, kept_seed
from .sandbox import require
from .table import ABSENT, by_notebook, by_student, gradescope_results, page, row, write_csv


def grade(
    folder,
    csv_path,
    *,
    seconds=None,
    memory=Rules.memory,
    seed=None,
    jobs=None,
    gradebook=None,
    gradescope=None,
    reports=None,
    problem_set=None,
    unsafe=False,
) -> list[dict]:
    """Grade every notebook below ``folder`` and write one row for each answer.

    Only answer cells (known by a line ``# exercise: KEY``) and import statements are run: each answer in a
    fresh process, each notebook in a bubblewrap sandbox of its own. Inputs go in and results come out; what they are
    compared with, and the verdict, are never there. The verdicts on a notebook are kept as they come: if the command
    is killed, the same command goes on.

    Args:
        folder: searched for ``*.ipynb``, in subfolders too.
        csv_path: the table to write, with the columns ``COLUMNS``.
        seconds: of processor time for one answer; None: those of the exercise.
        memory: bytes for one answer (Linux only).
        seed: of the inputs, the same for all; None: that of the run that goes on, or a fresh one.
        jobs: how many notebooks are judged at once; None: as many as there are processors.
        gradebook: a second table to write, with one row for each notebook and a column for each part; None: none.
        gradescope: a folder for one JSON file a notebook, as Gradescope reads them; None: none are written.
        reports: a folder for one HTML file a notebook, to be sent to its student; None: none are written.
        problem_set: the notebook that was handed out, which may be in the folder: its parts have rows, and unknown
            keys; None: all that a notebook answers, and all that are missing of the chapters that it treats.
        unsafe: run answers without a sandbox. Each can then do whatever you can.

    Returns:
        The rows, as dicts.

    Raises:
        FileNotFoundError: ``folder`` is not there, or holds no notebook.
        OSError: nothing can be written where the results are to go; of ``csv_path`` told before anything is judged.
        ValueError: ``problem_set`` is no notebook with answer cells, or both tables have one name.
        NoSandbox: there is no sandbox on this system.
    """
    folder, csv_path = Path(folder), Path(csv_path)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    paths = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if problem_set is not None:
        paths = [p for p in paths if p.resolve() != Path(problem_set).resolve()]
    if not paths:
        raise FileNotFoundError(f"{folder} holds no .ipynb file")
    asked = _asked(problem_set)
    require(unsafe)
    tables = [csv_path] if gradebook is None else [csv_path, Path(gradebook)]
    for table in tables:
        if table.is_dir():
            raise IsADirectoryError(f"{table} is a folder, expected the name of a table")
        if not table.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {table.parent} to write {table.name} into")
    if len({table.resolve() for table in tables}) < len(tables):
        raise ValueError(f"both tables would be written into {csv_path}")
    for place in (gradescope, reports):
        if place is not None:
            Path(place).mkdir(parents=True, exist_ok=True)
    if seed is None:
        seed = fresh_seed() if (kept := kept_seed(csv_path)) is None else kept
    rules = Rules(seed, seconds, memory, unsafe)
    journal = Journal(csv_path, rules)
    try:
        named = {str(path.relative_to(folder)): path for path in paths}
        judged = _grade(named, rules, jobs or processors(), journal)
        rows = [r for own in by_notebook(judged).values() for r in _completed(own, asked)]
        write_csv(csv_path, rows)
        if gradebook is not None:
            write_csv(gradebook, *by_student(rows))
    finally:
        journal.close()
    for name, own in by_notebook(rows).items():
        if gradescope is not None:
            _write(Path(gradescope, name).with_suffix(".json"), json.dumps(gradescope_results(own), indent=1))
        if reports is not None:
            _write(Path(reports, name).with_suffix(".html"), page(name, own))
    if not any(r["verdict"] == NOT_JUDGED and r["code"] == "broken" for r in rows):
        journal.done()
    return rows


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_file(path, *, seconds=None) -> list[str]:
    """Check every answer of a notebook of your own, and return a text for each.

    Each answer runs in another process, but in no sandbox: for notebooks of others there is `grade`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    rows = _grade({path.name: path}, Rules(fresh_seed(), seconds, unsafe=True), 1)
    return [f"{r['verdict'].upper()} {r['exercise'] or path.name}: {r['message']}" for r in rows]


def _grade(paths, rules, jobs, journal=None):
    """Return the rows of all notebooks; ``paths`` by the names that they have in the table."""
    rows = {name: kept for name, path in paths.items() if journal and (kept := journal.find(name, path))}
    read = {name: _read(path) for name, path in paths.items() if name not in rows}
    rows |= {name: [row(name, "", *fault)] for name, fault in read.items() if not isinstance(fault, dict)}
    tasks = [name for name in read if name not in rows]
    # judges in processes: torch's state is the process's own, and a check may use all of it
    with ProcessPoolExecutor(min(jobs, len(tasks)) or 1, get_context("spawn")) as pool:
        pending = {pool.submit(judge_notebook, read[name], rules): name for name in tasks}
        for done in tqdm(as_completed(pending), total=len(tasks), desc="notebooks", disable=None):
            name = pending[done]
            try:
                verdicts, whole = done.result(), True
            except BrokenProcessPool:
                lost = NOT_JUDGED, "broken", "the judge's own process ended: the same command again goes on"
                verdicts, whole = dict.fromkeys(read[name]["answers"], lost), False
            rows[name] = [row(name, key, *verdicts[key]) for key in read[name]["answers"]]
            if journal and whole:
                journal.add(name, paths[name], rows[name])
    return [r for name in paths for r in rows[name]]


def _read(path):
    """Return what `judge_notebook` takes, or what is wrong with the file: (verdict, code, message)."""
    try:
        sources = cells(path)
    except (ValueError, OSError) as error:
        return "unreadable", "unreadable", str(error)
    if not (by_key := answers(sources)):
        return "no answers", "empty", "no cell has a line `# exercise: KEY`"
    return {"answers": by_key, "sources": sources, "imports": imports(sources), "repeated": repeated(sources)}


def _asked(problem_set):
    """Return the keys of the parts that were handed out; none: that is not known."""
    if problem_set is None:
        return []
    if not (asked := list(answers(cells(problem_set)))):
        raise ValueError(f"{problem_set}: no cell has a line `# exercise: KEY`")
    return asked


def _completed(rows, asked):
    """Return the rows of a notebook without parts that were not ``asked``, and one for each part that is missing."""
    if rows[0]["verdict"] in ABSENT:
        return rows
    given = {}  # parts, with their chapters
    for key in (r["exercise"] for r in rows):
        with suppress(KeyError):
            given[key] = find(key)[0].chapter
    wanted = asked or [p.key for c in sorted({*given.values()}) for e in exercises(c) for p in e.parts]
    kept = [r for r in rows if not asked or r["exercise"] in asked or r["exercise"] not in given]
    missing = [key for key in wanted if key not in given]
    return kept + [
        row(rows[0]["notebook"], key, "missing", "missing", f"no cell has a line `# exercise: {key}`")
        for key in missing
    ]


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
