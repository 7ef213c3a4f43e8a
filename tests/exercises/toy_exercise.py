"""A toy exercise of each kind, without a fault: the tests plant faults into it."""

import inspect
from dataclasses import replace

import torch

from d2lmini.exercises.engine import Choice, Code, Discussion, Exercise, Mutant, Option


def doubled(x):
    """Return twice x, (B, D)."""
    ### BEGIN SOLUTION
    return 2.0 * x
    ### END SOLUTION


def added(x):
    return x + x


def verify(t, answer):
    B, D = t.sizes(2)
    x = t.randn(B, D).requires_grad_()
    want = 2 * x.detach().cpu().double()
    got = t.call(answer, x)
    t.same(got, want)
    t.same(t.gradient(got, 0), torch.full((B, D), 2.0, dtype=torch.float64), "the gradient")


MUTANTS = [
    Mutant("same", ("2.0 * x", "1.0 * x"), "this is x"),
    Mutant("triple", ("2.0", "3.0"), "this is three times x"),
    Mutant("sign", ("return ", "return -"), "the sign is wrong"),
    Mutant("dtype", ("2.0 * x", "2.0 * x.double()")),
    Mutant("shape", ("2.0 * x", "2.0 * x[:-1]")),
    Mutant("grad", ("2.0 * x", "2.0 * x.detach()")),
]
PART = Code(
    key="own-99.1",
    hints=["Add it to itself."],
    answer=doubled,
    text=inspect.getsource(doubled),
    verify=verify,
    alternatives=[added],
    mutants=MUTANTS,
)
STATEMENT = "Write `doubled(x)`, which returns twice its argument, an array of shape (B, D). " * 2
TOY = Exercise(key="own-99.1", title="Twice", statement=STATEMENT, source="own", chapter="99", parts=[PART])


def with_answer(part, answer):
    """The part with another solution."""
    return replace(part, answer=answer, text=inspect.getsource(answer))


CHOICE = Choice(
    key="own-99.1",
    prompt="Which letter?",
    hints=["The first."],
    options=[
        Option("this", "It is this one since the author says so.", right=True),
        Option("that", "Not that one since the author says otherwise."),
        Option("none", "Not none since there must be one, says the author."),
    ],
)
DISCUSSION = Discussion(
    key="own-99.1",
    prompt="Why?",
    hints=["Think."],
    rubric=["a cause", "an effect", "an example"],
    explanation="Because everything has a cause, and each cause has an effect, as examples show time again.",
)
