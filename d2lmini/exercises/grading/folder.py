"""Grade a folder of notebooks: each in fresh processes, under limits of time and memory."""

import csv
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from ..engine.registry import exercises, find
from .answer_cells import answers, cells, imports

COLUMNS = ("notebook", "exercise", "verdict", "code", "message")
GIB = 2**30
STARTUP = 120.0  # seconds in which a process must have loaded torch
GRACE = 3.0  # seconds that an answer may overstep its limit before its process is killed


def grade(folder, csv_path, *, seconds=None, memory=4 * GIB) -> list[dict]:
    """Grade every notebook below ``folder`` and write one row for each answer.

    Only answer cells (known by their first line, ``# exercise: KEY``) and import statements are run; what an
    answer prints counts for nothing. An answer that ends its process costs itself alone: the others are
    graded.

    Args:
        folder: searched for ``*.ipynb``, in subfolders too.
        csv_path: the table to write, with the columns ``COLUMNS``.
        seconds: time limit of one answer; None: that of the exercise.
        memory: bytes that the answers of a notebook may allocate (Linux only).

    Returns:
        The rows, as dicts.

    Raises:
        FileNotFoundError: ``folder`` is not there, or holds no notebook.
    """
    folder, csv_path = Path(folder), Path(csv_path)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    paths = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if not paths:
        raise FileNotFoundError(f"{folder} holds no .ipynb file")
    rows = [
        row
        for path in paths
        for row in grade_notebook(path, str(path.relative_to(folder)), seconds=seconds, memory=memory)
    ]
    half = csv_path.with_name(csv_path.name + ".tmp")
    with open(half, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    os.replace(half, csv_path)
    return rows


def check_file(path, *, seconds=None) -> list[str]:
    """Check every answer of one notebook, in another process, and return one line for each.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    rows = grade_notebook(path, path.name, seconds=seconds)
    return [f"{r['verdict'].upper()} {r['exercise'] or path.name}: {r['message']}" for r in rows]


def grade_notebook(path, name, *, seconds=None, memory=4 * GIB) -> list[dict]:
    """Return the rows of one notebook."""

    def row(exercise, verdict, code, message):
        return dict(zip(COLUMNS, (name, exercise, verdict, code, message), strict=True))

    try:
        sources = cells(path)
    except (ValueError, OSError) as error:
        return [row("", "unreadable", "unreadable", str(error))]
    found = answers(sources)
    if not found:
        return [row("", "no answers", "empty", "no cell starts with `# exercise: KEY`")]
    order = {"imports": imports(sources), "seconds": seconds, "memory": memory}
    verdicts = {}
    while left := {key: source for key, source in found.items() if key not in verdicts}:
        reports, end, stopped = _run_worker(order | {"answers": left})
        running = next(iter(left))  # what ends before any answer starts is laid on the first
        for report in reports:
            if "status" in report:
                verdicts[report["key"]] = report["status"], report["code"], report["message"]
            running = report.get("started", running)
        if running not in verdicts:
            status = "timeout" if stopped else "crashed"
            verdicts[running] = status, status, f"the answer's process {end}"
    rows = [row(key, *verdicts[key]) for key in found]
    return rows + [row(key, "missing", "missing", "no answer cell") for key in _missing(found)]


def _missing(keys):
    """Return the parts of the chapters that a notebook treats for which it has no answer cell."""
    chapters = set()
    for key in keys:
        try:
            chapters.add(find(key)[0].chapter)
        except KeyError:
            continue
    wanted = [p.key for c in sorted(chapters) for e in exercises(c) for p in e.parts]
    return [key for key in wanted if key not in keys]


def _run_worker(order):
    """Run one worker. Returns (what it reported, how it ended, whether it had to be stopped)."""
    nonce = secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as scratch:
        environment = os.environ | {
            "D2LMINI_PROGRESS": str(Path(scratch) / "progress.json"),  # the teacher's own stays as it is
            "D2LMINI_STRICT": "0",
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "MPLBACKEND": "agg",
        }
        worker = subprocess.Popen(
            [sys.executable, "-m", "d2lmini.exercises.grading.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=scratch,
            env=environment,
            start_new_session=True,  # so that what it starts can be ended with it
        )
        try:
            with worker.stdin as pipe:
                pipe.write(json.dumps(order | {"nonce": nonce}).encode())
            reports, stopped = _listen(worker.stdout, nonce, order["seconds"])
            if not stopped:
                worker.wait(GRACE)
        except (OSError, subprocess.TimeoutExpired):
            reports, stopped = [], True
        finally:
            _end(worker)
    code = worker.returncode
    end = f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
    return reports, "had to be stopped: it did not heed the time limit" if stopped else end, stopped


def _listen(stream, nonce, seconds):
    """Read a worker's reports until it ends. Returns (reports, whether it was silent for too long)."""
    lines = queue.SimpleQueue()

    def read():
        for line in stream:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    reports, patience = [], STARTUP
    while True:
        try:
            line = lines.get(timeout=patience)
        except queue.Empty:
            return reports, True
        if line is None:
            return reports, False
        try:
            report = json.loads(line)
            if report.pop("nonce") != nonce:
                continue
        except (ValueError, AttributeError, LookupError, TypeError, RecursionError):
            continue  # an answer found the pipe, and does not know the nonce
        reports.append(report)
        # a cell and its check have the limit once each
        patience = 2 * (seconds or _seconds(report.get("started"))) + GRACE


def _seconds(key):
    try:
        return find(key)[1].seconds
    except KeyError:
        return GRACE


def _end(worker):
    try:
        os.killpg(worker.pid, signal.SIGKILL)  # the session it leads, children included
    except (AttributeError, ProcessLookupError, PermissionError):
        worker.kill()
    worker.wait()


def _plain(value):
    """Keep a spreadsheet from taking a learner's text for a formula."""
    return "'" + value if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
