"""Grade a folder of strangers' notebooks, each in a sandbox of its own."""

import hashlib
import os
import signal
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from tqdm.auto import tqdm

from ..engine import registry
from ..engine.judge import fresh_seed
from . import hand_ins
from .answer import NOT_JUDGED, Rules, judge_notebook
from .answer_cells import answers, imports, misplaced, repeated, stated
from .journal import Journal, kept_seed
from .notebook_file import cells, read
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
        folder: searched for ``*.ipynb``, in subfolders too, also as a browser may save them (``.ipynb.txt``). What is
            passed over is said on the screen.
        csv_path: the table to write, with the columns ``COLUMNS``.
        seconds: of processor time for one answer; None: those of the exercise.
        memory: bytes for one answer (Linux only).
        seed: of the inputs, the same for all; None: that of the run that goes on, or a fresh one.
        jobs: how many notebooks are judged at once; None: as many as there are processors.
        gradebook: a second table to write, with one row for each notebook and a column for each part; None: none.
        gradescope: a folder for one JSON file a notebook, as Gradescope reads them; None: none are written.
        reports: a folder for one HTML file a notebook, to be sent to its student; None: none are written.
        problem_set: the notebook that was handed out, which may be in the folder: its parts have rows, and unknown
            keys; None: all that a notebook answers, and what is missing of the exercises in it.
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
    paths, others = hand_ins.find(folder)
    given_out = {os.path.realpath(path) for path in (problem_set, csv_path, gradebook) if path is not None}
    written = tuple(os.path.join(os.path.realpath(path), "") for path in (gradescope, reports) if path is not None)
    paths = [path for path in paths if os.path.realpath(path) not in given_out]
    others = [p for p in others if (real := os.path.realpath(p)) not in given_out and not real.startswith(written)]
    passed_over = f"passed over: {hand_ins.listed(others, folder)}" if others else ""
    if not paths:
        raise FileNotFoundError(f"{folder} holds no .ipynb file{passed_over and '; '}{passed_over}")
    if passed_over:
        print(passed_over)
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
        notebooks = {name: _read(path) for name, path in hand_ins.named(paths, folder).items()}
        judged = _grade(notebooks, rules, jobs or processors(), journal)
        rows = []
        for name, own in by_notebook(judged).items():
            rows += own if own[0]["verdict"] in ABSENT else _completed(own, asked or notebooks[name]["parts"])
        write_csv(csv_path, rows)
        if gradebook is not None:
            write_csv(gradebook, *by_student(rows))
    finally:
        journal.close()
    by_name = by_notebook(rows)
    for place, ending, content in ((gradescope, ".json", gradescope_results), (reports, ".html", page)):
        for name, file in hand_ins.outputs(by_name, ending).items() if place is not None else ():
            path = Path(place, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content(name, by_name[name]), encoding="utf-8")
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
    rows = _grade({path.name: _read(path)}, Rules(fresh_seed(), seconds, unsafe=True), 1)
    return [f"{r['verdict'].upper()} {r['exercise'] or path.name}: {r['message']}" for r in rows]


def _grade(notebooks, rules, jobs, journal=None):
    """Return the rows of all notebooks, which are given by name, as `_read` returns them."""
    rows = {name: [row(name, "", *fault)] for name, fault in notebooks.items() if not isinstance(fault, dict)}
    if journal:
        rows |= {name: kept for name in notebooks.keys() - rows if (kept := journal.find(name, notebooks[name]))}
    tasks = [name for name in notebooks if name not in rows]
    # judges in processes: torch's state is the process's own, and a check may use all of it
    by_ctrl_c = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_DFL)}  # each ends, and is silent
    with ProcessPoolExecutor(min(jobs, len(tasks)) or 1, get_context("spawn"), **by_ctrl_c) as pool:
        pending = {pool.submit(judge_notebook, notebooks[name], rules): name for name in tasks}
        for done in tqdm(as_completed(pending), total=len(tasks), desc="notebooks", disable=None):
            name = pending[done]
            try:
                verdicts, whole = done.result(), True
            except BrokenProcessPool:
                lost = NOT_JUDGED, "broken", "the judge's own process ended: the same command again goes on"
                verdicts, whole = dict.fromkeys(notebooks[name]["answers"], lost), False
            verdicts |= notebooks[name]["misplaced"]
            rows[name] = [row(name, key, *verdict) for key, verdict in verdicts.items()]
            if journal and whole:
                journal.add(name, notebooks[name], rows[name])
    return [r for name in notebooks for r in rows[name]]


def _read(path):
    """Return what `judge_notebook` takes, and more, or what is wrong with the file: (verdict, code, message)."""
    try:
        data = read(path)
        found = cells(data)
    except ValueError as error:
        return "unreadable", "unreadable", str(error)
    sources = [cell.source for cell in found if cell.kind == "code"]
    given = answers(sources)
    lost = {
        key: ("missing", "misplaced", f"its answer is in a {kind} cell, which is text: make it a code cell")
        for key, kind in misplaced(found).items()
        if key not in given
    }
    if not given and not lost:
        return "no answers", "empty", "no cell has a line `# exercise: KEY`"
    return {
        "answers": given,
        "sources": sources,
        "imports": imports(sources),
        "repeated": repeated(sources),
        "misplaced": lost,
        "parts": _parts(found, [*given, *lost]),
        "digest": hashlib.sha256(data).hexdigest(),
    }


def _asked(problem_set):
    """Return the keys of the parts that were handed out; none: that is not known."""
    if problem_set is None:
        return []
    if not Path(problem_set).exists():
        raise FileNotFoundError(f"there is no file {problem_set}")
    try:
        sources = [cell.source for cell in cells(read(Path(problem_set))) if cell.kind == "code"]
    except ValueError as error:
        raise ValueError(f"{problem_set}: {error}") from error
    if not (asked := list(answers(sources))):
        raise ValueError(f"{problem_set}: no cell has a line `# exercise: KEY`")
    return asked


def _parts(found, keys):
    """Return the keys of all parts of the exercises that a notebook states, or answers a part of."""
    treated, every = {*stated(found)}, registry.keys()
    for key in keys:
        with suppress(KeyError):
            treated.add(registry.find(key)[0].key)
    return [part.key for key in every if key in treated for part in registry.load(key).parts]


def _completed(rows, asked):
    """Return the rows of a notebook without parts that were not ``asked``, and one for each part that is missing."""
    given = set()  # parts: what else there is stays
    for key in (r["exercise"] for r in rows):
        with suppress(KeyError):
            given.add(registry.find(key)[1].key)
    kept = [r for r in rows if r["exercise"] in asked or r["exercise"] not in given]
    return kept + [
        row(rows[0]["notebook"], key, "missing", "missing", f"no cell has a line `# exercise: {key}`")
        for key in asked
        if key not in given
    ]
