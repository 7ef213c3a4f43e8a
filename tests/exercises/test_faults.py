"""Faults that are made of a right answer: each is applied where it can be, and gets its diagnosis."""

import pytest
import torch
from toy_exercise import PART, doubled

from d2lmini.exercises.audit import _faults
from d2lmini.exercises.engine.judge import judge
from d2lmini.exercises.faults import faults


def named(solution, name):
    (fault,) = (fault for fault in faults(solution) if fault.__name__ == name)
    return fault


def test_every_fault_that_applies_gets_its_diagnosis():
    applied = []
    for fault in faults(doubled):
        verdict = judge(PART, fault, seed=0)
        assert (verdict.code == fault.diagnosis) if fault.applied else verdict.passed
        applied += [fault.diagnosis] if fault.applied else []
    assert sorted(set(applied)) == ["dtype", "grad", "mutates", "shape", "type"]
    assert list(_faults(PART, doubled, (0, 1))) == []


X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("name", "got", "want"),
    [
        ("in double", (X, 1, X.long()), (X.double(), 1, X.long())),
        ("one axis more", {"a": [X]}, {"a": [X[None]]}),
        ("turned", X, X.mT),
        ("turned", torch.ones(2, 2), None),
        ("one item less", (X, 2, 3), (X, 2)),
        ("one item less", {"a": 1, "b": 2}, {"a": 1}),
        ("one item less", [X, X], None),
        ("first item alone", (X, 2), X),
        ("first item alone", (2, X), None),
        ("lists", [X, "text"], [X.tolist(), "text"]),
        ("lists", 3.0, None),
    ],
)
def test_what_becomes_of_a_result(name, got, want):
    fault = named(lambda: got, name)
    found = fault()
    assert str(found) == str(got if want is None else want) and (fault.applied > 0) == (want is not None)
    assert [x.dtype for x in flat(found)] == [x.dtype for x in flat(got if want is None else want)]


def flat(value):
    return [x for x in value if isinstance(x, torch.Tensor)] if isinstance(value, tuple) else []


def test_arguments_are_changed_or_cut_off():
    x, flags = torch.ones(2), torch.tensor([True, False])
    named(lambda *args: None, "in place")("text", x)
    named(lambda *args: None, "in place")(flags)
    assert x.tolist() == [2.0, 2.0] and flags.tolist() == [False, True]
    w = torch.ones(2, requires_grad=True)
    second = named(lambda *args: [a.requires_grad for a in args], "argument 2 detached")
    assert second(w, w) == [True, False] and second.applied == 1
    assert second(w) == [True] and second(w, x) == [True, False] and second.applied == 1
