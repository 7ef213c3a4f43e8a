"""The audit of exercises: each of its rules is seen to fail on a planted fault."""

import itertools
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from toy_exercise import CHOICE, DISCUSSION, MUTANTS, PART, TOY, doubled, verify, with_answer

from d2lmini.exercises.audit import audit
from d2lmini.exercises.engine import Exercise, Experiment, Identity, Mutant, Option


@pytest.mark.audit
def test_toys_are_in_order():
    for part in (PART, CHOICE, DISCUSSION):
        assert audit(replace(TOY, parts=[part])) == []


def undocumented(x):
    ### BEGIN SOLUTION
    return 2.0 * x
    ### END SOLUTION


def wrong(x):
    """Return three times x."""
    ### BEGIN SOLUTION
    return 3.0 * x
    ### END SOLUTION


def region_too_small(x):
    """Return twice x."""
    if x is not None:
        return 2.0 * x
    ### BEGIN SOLUTION
    return None
    ### END SOLUTION


def slow(t, answer):
    if t.seed == 1:
        WORKED.append(6.0)
    verify(t, answer)


WORKED = []  # seconds that were, as it were, computed


def broken(t, answer):
    raise RuntimeError("planted")


def never_calls(t, answer):
    for _ in range(5):
        t.that(True, "never", "nothing")


def checks_nothing(t, answer):
    t.call(answer, t.randn(2, 3))


def checks_by_chance(t, answer):
    for _ in range(4 + t.seed):
        verify(t, answer)


def errs_now_and_then(t, answer):
    verify(t, answer)
    t.that(t.seed != 6, "rare", "planted")


def checks_shape_only(t, answer):
    got = t.call(answer, t.randn(2, 3))
    for _ in range(3):
        t.that(isinstance(got, torch.Tensor) and got.shape == (2, 3), "shape", "wrong shape")


def takes_none(t, answer):
    got = t.call(answer, t.randn(2, 3))
    t.that(True, "a", "b")
    if got is not None:
        verify(t, answer)


def tells(t, answer):
    x = torch.tensor([1.25, 2.5, 3.75])
    got = t.call(answer, x)
    t.references.append(2 * x.double())
    t.that(isinstance(got, torch.Tensor) and torch.equal(got, 2 * x), "told", "expected 2.50, 5.00, 7.50")
    verify(t, answer)


def swallows(t, answer):
    x = torch.ones(2)
    try:
        t.call(answer, x)
    except BaseException:
        for _ in range(3):
            t.that(True, "a", "b")
        return
    verify(t, answer)


def reads_what_was_changed(t, answer):
    seen = Seen()
    t.call(lambda seen, x: (seen.note(), answer(x))[1], seen, t.randn(2))
    t.that(seen.calls == 1, "calls", "it was not called once")
    verify(t, answer)


class Seen:
    calls = 0

    def note(self):
        self.calls += 1


FAULTS = {
    "statement": replace(TOY, statement="short"),
    "hints": replace(PART, hints=[]),
    "docstring": with_answer(PART, undocumented),
    "proof": Identity(**vars(PART)),
    "solution: wrong": with_answer(PART, wrong),
    "solution: wrong now and then": replace(PART, verify=errs_now_and_then),
    "solution: broken check": replace(PART, verify=broken),
    "solution: vacuous": replace(PART, verify=checks_nothing),
    "count": replace(PART, verify=checks_by_chance),
    "time": replace(PART, verify=slow),
    "alternatives": replace(PART, alternatives=[]),
    "alternatives: wrong": replace(PART, alternatives=[doubled, wrong]),
    "stub": with_answer(PART, region_too_small),
    "generic: never called": replace(PART, verify=never_calls),
    "generic: zeros": replace(PART, verify=checks_shape_only),
    "generic: None": replace(PART, verify=takes_none, min_checks=2, without={"strided": "none", "alone": "none"}),
    "generic: raise and loop": replace(PART, verify=swallows),
    "mutants: few": replace(PART, mutants=MUTANTS[:5]),
    "mutants: many": replace(PART, mutants=[*MUTANTS, *MUTANTS, *MUTANTS]),
    "mutants: experiment": Experiment(**(vars(PART) | {"mutants": MUTANTS[:1]})),
    "mutants: no Python": replace(PART, mutants=[Mutant("same", ("return", "retrun")), *MUTANTS]),
    "mutants: pass": replace(PART, mutants=[Mutant("same", ("2.0 * x", "x + x")), *MUTANTS]),
    "diagnosis: another": replace(
        PART, mutants=[*MUTANTS, Mutant("other", ("2.0", "3.0"), "this too is three times x")]
    ),
    "diagnosis: untelling": replace(PART, mutants=[Mutant("values", ("2.0", "2.5")), *MUTANTS]),
    "elsewhere": replace(PART, verify=reads_what_was_changed),
    "reference": replace(PART, verify=tells),
    "options": replace(CHOICE, options=CHOICE.options[:2]),
    "explanation: option": replace(CHOICE, options=[*CHOICE.options, Option("all", "No.")]),
    "prompt": replace(CHOICE, prompt=""),
    "rubric": replace(DISCUSSION, rubric=["a cause"]),
    "explanation: model answer": replace(DISCUSSION, explanation=""),
}


@pytest.mark.audit
@pytest.mark.parametrize("fault", FAULTS)
def test_audit_sees_the_planted_fault(fault, monkeypatch):
    monkeypatch.setattr("d2lmini.exercises.audit.LOOP_LIMIT", 0.05)
    ticks = itertools.count()  # a look at the clock is 10 ms later than the one before, however busy the machine
    clocks = SimpleNamespace(
        process_time=lambda: sum(WORKED), perf_counter=lambda: 0.01 * next(ticks), sleep=time.sleep
    )
    monkeypatch.setattr("d2lmini.exercises.audit.time", clocks)
    planted = FAULTS[fault]
    exercise = planted if isinstance(planted, Exercise) else replace(TOY, parts=[planted])
    rules = {problem.rule for problem in audit(exercise, seconds=1.0 if "now and then" in fault else 0.0)}
    assert fault.split(":")[0] in rules, rules


def test_generic_answers_are_each_reported():
    exercise = replace(TOY, parts=[replace(PART, verify=never_calls)])
    details = [str(problem) for problem in audit(exercise, seconds=0.0) if problem.rule == "generic"]
    for name in ("None", "zeros", "NaN", "first argument", "raise", "SystemExit", "loop"):
        assert any(f"generic: {name}:" in detail for detail in details), name
