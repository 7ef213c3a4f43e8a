"""A check that has passed runs once more: what its author's inputs leave out is found in every part."""

from dataclasses import replace

import pytest
import torch
from toy_exercise import PART, TOY

from d2lmini.exercises.audit import audit
from d2lmini.exercises.engine import Code, again, registry, source
from d2lmini.exercises.engine.judge import judge
from d2lmini.exercises.engine.model import Coded, Experiment
from d2lmini.exercises.grading.remote import Loopback

NO_TENSORS = "counts, texts, lists or numbers: the answer takes no tensor of two axes"
# the parts that take less than all: of each relation those that do without
WITHOUT = {}


def memo(function, key):
    kept = {}

    def answer(*args):
        return kept.setdefault(key(*args), function(*args))

    return answer


def doubled_typed(x):
    """Return twice x, (B, D), in the dtype of x.

    Args:
        x: (B, D).
    """
    ### BEGIN SOLUTION
    return 2.0 * x
    ### END SOLUTION


def doubled_mean(x):
    """Return twice the mean over the batch.

    Args:
        x: (B, D).
    """
    ### BEGIN SOLUTION
    return 2.0 * x.mean(0)
    ### END SOLUTION


def verify_mean(t, answer):
    for _ in range(3):
        x = t.randn(*t.sizes(2))
        t.same(t.call(answer, x), 2 * x.double().mean(0))


TYPED = Code(key="own-99.1", answer=doubled_typed, verify=PART.verify)
MEAN = Code(key="own-99.1", answer=doubled_mean, verify=verify_mean)
WRONG = [
    ("strided", PART, lambda x: 2 * x.view(-1).view_as(x), "not contiguous, as a transposed tensor: is it `.view`?"),
    ("alone", PART, lambda x: (2 * x).squeeze(), "wrong only for a batch of one"),
    ("alone", PART, lambda x: (2 * x).squeeze(0), "has shape (5,), expected (1, 5)"),
    ("alone", PART, lambda x: 2 * x if len(x) > 1 else 3 * x, "has other values than it should"),
    ("alone", PART, lambda x: 2 * x if len(x) > 1 else None, "another result than in a larger batch"),
    ("alone", MEAN, lambda x: 2 * x.squeeze(0).mean(0), "wrong only for a batch of one"),
    ("values", PART, memo(lambda x: 2 * x, lambda x: x.shape), "is something kept from one call to the next"),
    (
        "double",
        TYPED,
        lambda x: x * torch.full(x.shape, 2.0) if x.dtype == torch.float32 else (2 * x).float(),
        "float64",
    ),
]


@pytest.mark.parametrize("host", [None, Loopback], ids=["here", "elsewhere"])
@pytest.mark.parametrize(("code", "part", "answer", "words"), WRONG)
def test_what_the_inputs_of_a_check_leave_out(code, part, answer, words, host):
    right = source.build(source.solution(part), part.name)
    passed = judge(part, right, seed=0)
    assert passed.passed and code in again.solved(part, 0).taken
    if code == "values" and host:  # what was kept stays in the other process
        answer = memo(lambda x: 2 * x, lambda x: x.shape)
    verdict = judge(part, answer, seed=0, host=host and host(part.verify.__module__))
    assert (verdict.status, verdict.code) == ("wrong", code), verdict
    assert words in verdict.message and verdict.checks == passed.checks


def test_a_part_may_do_without_and_gives_the_reason():
    part = replace(PART, without={"strided": "a reason"})
    assert judge(part, lambda x: 2 * x.view(-1).view_as(x), seed=0).passed
    assert not judge(PART, lambda x: 2 * x.view(-1).view_as(x), seed=0).passed


def test_a_check_that_its_solution_does_not_pass_again_refuses_nobody_and_the_audit_tells():
    def once(t, answer):
        PART.verify(t, answer)
        t.that(isinstance(t, again.Again) is False, "twice", "planted")

    part = replace(PART, verify=once)
    assert judge(part, lambda x: 2 * x, seed=0).passed
    assert "again" in {problem.rule for problem in audit(replace(TOY, parts=[part]), seconds=0.0, seeds=(0,))}


def test_the_audit_asks_for_a_check_of_what_a_text_promises():
    def separate(t, answer):
        x = t.randn(2, 3)
        for y in (x, 0 * x):
            got = t.call(answer, y)
            t.same(got, 2 * y.double())
            shared = t.look(lambda given, got: got.data_ptr() == given[0].data_ptr(), got)
            t.that(not shared, "shared", "the result shares its memory with x")
        x = x.requires_grad_()
        t.gradient(t.call(answer, x), 0)

    part = replace(PART, prompt="The result shares no memory with x.")
    rules = {problem.rule for problem in audit(replace(TOY, parts=[part]), seconds=0.0, seeds=(0,))}
    assert "promise" in rules
    part = replace(part, verify=separate)
    rules = {problem.rule for problem in audit(replace(TOY, parts=[part]), seconds=0.0, seeds=(0,))}
    assert "promise" not in rules


@pytest.mark.audit
def test_which_parts_take_which_relation():
    """A part that loses a relation is seen here: its inputs no longer allow it, or it has a reason to do without."""
    without = {}
    for exercise in registry.exercises():
        for part in exercise.parts:
            if isinstance(part, Coded) and not isinstance(part, Experiment):
                for name in set(again.RELATIONS) - again.solved(part, 0).taken:
                    without.setdefault(name, []).append(part.key)
    assert {name: " ".join(keys) for name, keys in without.items()} == WITHOUT
