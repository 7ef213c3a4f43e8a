"""What stands in the tests for a notebook, for its front end, and for the processes in which it is graded."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.grading import folder


def notebook(*sources, **more):
    """The text of a notebook's file, with these code cells."""
    cells = [{"cell_type": "code", "source": source, "outputs": [], "metadata": {}} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more})


def in_notebook(monkeypatch, keep=lambda data: next(iter(data.values()))):
    """Let a kernel run from now on. Returns: list of what is shown in it; ``keep``: of all forms the best."""
    shown = []
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    display = SimpleNamespace(display=lambda data, raw: shown.append(keep(data)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


class Threads(ThreadPoolExecutor):
    """In place of a pool of processes."""

    def __init__(self, jobs, *context, **options):
        super().__init__(1)


def no_answer_runs(monkeypatch, judge):
    """Let ``judge(notebook, rules)`` say what becomes of a notebook when a folder is graded."""
    monkeypatch.setattr(folder, "ProcessPoolExecutor", Threads)
    monkeypatch.setattr(folder, "judge_notebook", judge)


def code_of(call, *args):
    """The code with which ``call(*args)`` rejects an answer."""
    with pytest.raises(Rejected) as caught:
        call(*args)
    return caught.value.code


def printed(program, **options):
    """What a program prints, run in a process of its own that ends well."""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout
