"""What an answer takes from other cells is told by name, and nothing else is."""

import linecache

import pytest

from d2lmini.exercises.engine import registry, source
from d2lmini.exercises.reader import other_cells
from d2lmini.exercises.reader.other_cells import assigned, borrowed, imported, note

IMPORTS = source.PRELUDE + "from d2lmini import check\nfrom functools import lru_cache, wraps\n"


def ran(*cells):
    """Run cells as IPython does. Returns: their namespace."""
    namespace = {"__name__": "__main__", "In": [""]}
    for cell in (IMPORTS, *cells):
        namespace["In"].append(cell)
        filename = f"/tmp/ipykernel_1/{abs(hash(cell))}.py"
        linecache.cache[filename] = (len(cell), None, cell.splitlines(True), filename)
        exec(compile(cell, filename, "exec"), namespace)
    return namespace


HELPER = "def helper(x):\n    return 2 * x\n"


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        ([HELPER, "def answer(x): return helper(x)"], ["helper"]),
        ([HELPER, "def answer(x): return [helper(y) for y in x]"], ["helper"]),
        ([HELPER, "def inner(x): return helper(x)\ndef answer(x): return inner(x)"], ["helper"]),
        ([HELPER, "class answer(nn.Module):\n    def forward(self, x): return helper(x)"], ["helper"]),
        ([HELPER, "def answer(x):\n    class A:\n        y = helper(x)\n    return A.y"], ["helper"]),
        (["@lru_cache\n" + HELPER, "def answer(x): return helper(x)"], ["helper"]),
        ([HELPER, "@lru_cache\ndef answer(x): return helper(x)"], ["helper"]),
        (["class Base: pass", "class answer(Base):\n    def forward(self): pass"], ["Base"]),
        (["class Net(nn.Module): pass", "def answer(): return Net()"], ["Net"]),
        (["temperature = 2.0", HELPER, "def answer(x): return helper(x) / temperature"], ["helper", "temperature"]),
        (["p = [1]\nfor i in p: pass", "def answer(x): return p[i] + len(x)"], ["i", "p"]),
        (["queries = 1", "def answer(x): return x\nprint(answer(queries))"], ["queries"]),
        (["def same(f):\n    return f", "@same\ndef answer(x): return x"], ["same"]),
    ],
)
def test_what_another_cell_defines_is_named(cells, names):
    assert borrowed(ran(*cells)["answer"]) == names


@pytest.mark.parametrize(
    "cells",
    [
        [HELPER + "def answer(x): return helper(x)"],
        ["def answer(x): return math.exp(F.relu(d2l.masked_softmax(x, None)).sum() + nn.Linear(1, 1)(x)) + len(x)"],
        ["from math import pi\nfrom textwrap import dedent", "def answer(x): return pi * x + dedent(x)"],
        ["import numpy as np\nimport os.path", "def answer(x): return np.asarray(os.path.join(x))"],
        ["from collections import *", "def answer(x): return OrderedDict(x) | Counter(x)"],
        ["x = 1\nhelper = 2", "def answer(x):\n    helper = x\n    return helper"],
        ["x = 1", "x = 2\ndef answer(y): return x + y"],
        [HELPER, HELPER + "def answer(x): return helper(x)"],
        ["def answer(x): return nowhere_defined(x)"],
        ["def answer(x): return answer(x - 1) if x else check"],
        ["y = 1", "def answer(x):\n    class A:\n        y = 2\n        z = y\n    return A"],
        ["import importlib\nm = importlib.import_module('json')", "def answer(x): return m.dumps(x)"],
        ["try:\n    from math import tau\nexcept ImportError:\n    tau = 6.28", "def answer(x): return tau * x"],
        ["pi = 3", "from math import pi\ndef answer(x): return pi * x"],
        ["answer = 3"],
        ["answer = nn.Linear(1, 1)"],
        ["def answer(x): return In"],
    ],
)
def test_no_false_alarm(cells):
    assert note(ran(*cells)["answer"]) == ""


def test_names_of_the_prelude_are_those_of_every_notebook():
    namespace = ran("d2l = [1]", "def answer(x): return d2l[x]")
    del namespace["In"][1]  # the cell of the imports
    assert borrowed(namespace["answer"]) == []


def test_nothing_is_said_where_the_source_is_not_at_hand():
    namespace = ran("value = 1")
    exec(compile("def answer(x): return x + value", "<timed exec>", "exec"), namespace)
    assert borrowed(namespace["answer"]) == []


def test_note_says_what_will_happen(monkeypatch):
    assert note(ran(HELPER, "def answer(x): return helper(x)")["answer"]) == (
        "note: your answer uses `helper`, which another cell defines; graded alone it will be missing"
    )
    two = note(ran(HELPER, "value = 1", "def answer(x): return helper(x) + value")["answer"])
    assert "`helper` and `value`, which other cells define; graded alone they will be missing" in two
    monkeypatch.setattr(other_cells, "borrowed", lambda answer: 1 / 0)
    assert note(len) == ""


def test_names_of_a_cell():
    cell = "import a.b, c as d\nx, (y, *z) = 1, (2,)\nfor i in x: pass\ndef f(p): q = 1\nclass C: r = 1\n[s for s in x]"
    assert assigned(cell) == {"x", "y", "z", "i", "f", "C"} and imported(cell) == {"a", "d"}
    assert assigned("if 1:\n    with a as b: (c := 1)\nprint(e)") == {"b", "c"}
    assert assigned("def (") == assigned("\0") == set()


def test_solutions_stand_alone():
    for exercise in registry.exercises():
        for part in exercise.parts:
            if hasattr(part, "answer"):
                assert note(source.solved(part)) == ""
