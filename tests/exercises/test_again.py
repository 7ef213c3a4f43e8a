"""A check that has passed runs once more: what its author's inputs leave out is found in every part."""

from dataclasses import replace

import pytest
import torch
from toy_exercise import PART, TOY, with_answer

from d2lmini.exercises.audit import audit
from d2lmini.exercises.engine import again, registry, source
from d2lmini.exercises.engine.judge import judge
from d2lmini.exercises.engine.model import Coded, Experiment
from d2lmini.exercises.grading.remote import Loopback

TAKE = {  # besides "values", which all do that take one of these
    "strided": """
        d2l-11.1.1a d2l-11.1.1b d2l-11.1.1c d2l-11.1.2 d2l-11.1.3a d2l-11.1.3b d2l-11.1.4a d2l-11.2.1 d2l-11.2.2a
        d2l-11.2.3 d2l-11.3.1 d2l-11.3.2 d2l-11.4.1a d2l-11.4.2a d2l-11.5.1 d2l-11.5.2a d2l-11.6.2 d2l-11.6.3
        d2l-11.7.3b d2l-11.7.5 d2l-11.8.2a d2l-11.9.1c d2l-11.9.3b d2l-11.9.4b own-04.1 own-05.1a own-07.1 own-08.1a
        own-08.2a own-08.3a own-08.3b own-09.1a own-09.1c own-09.2a own-09.2b own-09.3a own-10.1a own-10.1b own-11.1a
        own-13.1a own-13.2a own-13.3b own-14.2b own-15.2 own-16.1a own-16.2a own-16.3a own-16.3b own-17.1b own-18.1a
        own-18.4a own-18.4b own-19.1a own-19.3a own-19.4b own-19.5a own-19.5b own-19.6a own-19.6b own-19.7a own-19.7b
        udl-12.3 udl-12.4a udl-12.8c udl-12.11a udl-12.11b udl-12.11c
    """,
    "alone": """
        d2l-11.1.1a d2l-11.1.1b d2l-11.1.1c d2l-11.1.3a d2l-11.1.4a d2l-11.2.1 d2l-11.2.3 d2l-11.3.1 d2l-11.3.2
        d2l-11.5.1 d2l-11.5.2a d2l-11.6.2 d2l-11.6.3 d2l-11.7.3b d2l-11.7.5 d2l-11.8.2a d2l-11.9.1c d2l-11.9.3b
        d2l-11.9.4b own-05.1a own-08.2a own-09.2a own-09.3a own-10.1a own-11.1a own-13.2a own-13.3b own-15.2 own-16.1a
        own-16.2a own-16.3a own-16.3b own-18.1a own-18.4b own-19.1a own-19.3a own-19.5a own-19.7a udl-12.11a
        udl-12.11b udl-12.11c
    """,
    "double": """
        own-08.1a own-19.3a own-19.4a
    """,
}


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


TYPED = with_answer(PART, doubled_typed)
MEAN = with_answer(replace(PART, verify=verify_mean), doubled_mean)
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
    right = source.solved(part)
    passed = judge(part, right, seed=0)
    assert passed.passed and code in again.solved(part, 0).taken
    if code == "values" and host:  # what was kept stays in the other process
        answer = memo(lambda x: 2 * x, lambda x: x.shape)
    verdict = judge(part, answer, seed=0, host=host and host())
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
    take = {}
    for exercise in registry.exercises():
        for part in exercise.parts:
            if isinstance(part, Coded) and not isinstance(part, Experiment):
                for name in again.solved(part, 0).taken - {"values"}:
                    take.setdefault(name, []).append(part.key)
    assert {name: keys.split() for name, keys in TAKE.items()} == take
