"""A host in another process gives the verdicts of this one."""

import pickle
import sys

import pytest
import torch
from documents import DOCUMENT
from stand_ins import code_of
from toy_exercise import PART, doubled

from d2lmini.exercises.engine import LargestTensor, Trial
from d2lmini.exercises.engine.judge import judge
from d2lmini.exercises.engine.written import read
from d2lmini.exercises.grading import wire
from d2lmini.exercises.grading.remote import Loopback, RemoteHost, pack


def test_a_loopback_gives_the_verdicts_of_this_process():
    assert judge(PART, doubled, seed=3, host=Loopback()).passed
    wrong = [lambda x: -2 * x, lambda x: x / 0, lambda x: 2 * x.detach(), lambda x: x.data.mul_(2), lambda x: 1 / 0]
    for answer in wrong:
        here, there = judge(PART, answer, seed=3), judge(PART, answer, seed=3, host=Loopback())
        assert (here.code, here.message) == (there.code, there.message)


def test_a_module_that_an_answer_returns_is_called_where_it_lives():
    t = Trial(0, host=Loopback())
    made = t.call(t.host.adopt(torch.nn.Linear), 3, 2)
    assert not isinstance(made, torch.nn.Module)
    x = t.randn(4, 3).requires_grad_()
    got = t.call(made, x)
    assert got.shape == (4, 2) and t.gradient(got, 0, weights=torch.zeros(4, 2)).abs().sum() == 0
    weight, shape = t.look(lambda given, layer: (layer.weight, list(given[0].shape)), made)
    torch.testing.assert_close(got, torch.nn.functional.linear(x, weight, t.look(lambda g, layer: layer.bias, made)))
    assert shape == [4, 3]
    assert code_of(t.look, lambda given: 1 / 0) == "raised"


def test_measures_are_read_after_a_call():
    for host in (None, Loopback()):
        t = Trial(0, host=host)
        with t.watching(LargestTensor, "numel") as seen:
            t.call(t.host.adopt(lambda x: x[:, None] * x), torch.ones(7))
        assert seen.numel == 49


@pytest.mark.parametrize("fault", [5, [], ["a"], ["a", 5], {"a": 1}, None])
def test_a_fault_that_is_none_costs_the_answer_alone(fault):
    reply = wire.encode({"rejected": fault})
    with pytest.raises(wire.WireError):
        RemoteHost(lambda order: wire.halves(reply)).cell("k", "", [], "f", 0)


def test_what_a_check_takes_from_the_part_above_travels_by_value(monkeypatch, tmp_path):
    below = DOCUMENT[DOCUMENT.index("## a:") : DOCUMENT.index("## b:")].replace("## a:", "## b:")
    below = below.replace("def reference(x):\n    return x * 2\n\n\n", "")
    (tmp_path / "own_01_9.md").write_text(DOCUMENT[: DOCUMENT.index("## b:")] + below, encoding="utf-8")
    verify = read(tmp_path / "own_01_9.md").parts[1].verify
    reference = verify.__globals__["reference"]
    assert reference.__module__ == "exercise_documents.own_01_9a" != verify.__module__
    by_name, by_value = pickle.dumps(reference), pack(reference)
    monkeypatch.setitem(sys.modules, reference.__module__, None)  # as in the sandbox
    with pytest.raises(ImportError):
        pickle.loads(by_name)
    assert pickle.loads(by_value).__name__ == "reference"
