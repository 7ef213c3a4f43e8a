"""The answer's end: a cell is run as its notebook would, and every order gets a reply."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from stand_ins import code_of

from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.engine.host import Host
from d2lmini.exercises.grading import wire
from d2lmini.exercises.grading.endpoint import Endpoint, run_cell


def reply_to(*order):
    return wire.decode(*wire.halves(Endpoint().handle(pickle.dumps(order))))


def test_a_cell_may_call_what_readers_call_and_learns_nothing():
    for call in ("check('a', 1)", "hint('a')", "review('a', 'agrees')", "reset('a')", "progress()"):
        assert run_cell("a", f"answer = {call}", [], "answer") is None


def test_a_cell_has_the_prelude_and_the_imports_and_nothing_else():
    source = "check('x', 1)\ndef f():\n    return math.pi + statistics.mean([1, 3]) + len(F.__name__)"
    assert run_cell("k", source, ["import statistics", "import no_such_module"], "f")() > 5
    with pytest.raises(NameError):
        run_cell("k", "def f():\n    return helper", [], "f")()


@pytest.mark.parametrize(
    ("source", "code"),
    [("def (", "syntax"), ("1 / 0", "raised"), ("raise GeneratorExit", "raised"), ("x = 1", "missing")],
)
def test_a_cell_that_cannot_be_run_is_told(source, code):
    assert code_of(run_cell, "k", source, [], "f") == code
    assert reply_to("cell", ("k", source, [], "f", 0))["rejected"][0] == code


def test_a_cell_is_run_as_ipython_runs_it():
    """A statement at a time, with what other cells say of the future, in a module of the name that notebooks have."""
    future = ["from __future__ import annotations"]
    source = "def f(x: Nowhere) -> Nowhere: return __name__"
    assert run_cell("k", source, future, "f")("") == "__main__"
    assert run_cell("k", f"x = 1\n{future[0]}\n{source}", [], "f")("") == "__main__"
    with pytest.raises(Rejected, match="Nowhere"):
        run_cell("k", source, [], "f")
    tasks = "import asyncio\ntask = asyncio.create_task(asyncio.sleep(0, 5))\nasync with asyncio.Lock(): f = await task"
    with ThreadPoolExecutor(1) as thread:  # in this one, a browser that another test opened keeps a loop running
        assert thread.submit(run_cell, "k", tasks, [], "f").result() == 5
    for broken, code in (("f = 1\nreturn f", "syntax"), ("f = compile('(', 'x', 'exec')", "raised")):
        assert code_of(run_cell, "k", broken, [], "f") == code
    with pytest.raises(Rejected, match=r"not valid Python \(.*null"):
        run_cell("k", "f = 1\0", [], "f")


def test_a_result_that_does_not_fit_into_memory_is_told(monkeypatch):
    def full(*args):
        raise MemoryError

    monkeypatch.setattr(Host, "look", full)
    assert reply_to("look", (len, ()))["rejected"][0] == "memory"


@pytest.mark.slow
def test_limits_hold_for_the_process(tmp_path):
    program = """
import torch
from d2lmini.exercises.grading.endpoint import limit
limit(1.0, 2**28)
try:
    torch.zeros(2**30)
except RuntimeError:
    print("no memory")
try:
    open("large", "wb").write(bytes(2**25))
except OSError:
    print("no file")
while True:
    pass
"""
    words = [sys.executable, "-u", "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.stdout.split("\n")[:2] == ["no memory", "no file"] and done.returncode < 0
