"""Verdicts on good, bad and hostile answers, and what a check has to work with."""

import os
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from toy_exercise import PART, doubled

from d2lmini.exercises.engine import LargestTensor, Traffic, Trial, source
from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.engine.judge import judge


def verdict_of(answer, **options):
    return judge(PART, answer, seed=3, **options)


@pytest.mark.parametrize(
    ("answer", "status", "code", "fragment"),
    [
        (None, "not attempted", "stub", "no answer"),
        (..., "not attempted", "stub", "no answer"),
        (3, "wrong", "type", "expected a function, got a int"),
        (lambda x: ..., "not attempted", "stub", "placeholder"),
        (lambda x: None, "wrong", "type", "return"),
        (lambda x: x.tolist(), "wrong", "type", "is a list"),
        (lambda x: (2 * x).to("meta"), "wrong", "device", "on meta, expected cpu"),
        (lambda x: (2 * x).bfloat16(), "wrong", "dtype", "bfloat16, expected torch.float32"),
        (lambda x: (2 * x).T, "wrong", "shape", "last two axes look swapped"),
        (lambda x: 2 * x[:1], "wrong", "shape", "expected ("),
        (lambda x: 2 * x.unsqueeze(0), "wrong", "shape", "has shape (1, "),
        (lambda x: torch.zeros(()), "wrong", "shape", "has shape ()"),
        (lambda x: x / 0, "wrong", "nonfinite", "NaN or infinite"),
        (lambda x: 2.5 * x, "wrong", "values", "entries are wrong, the first at [0, 0]"),
        (lambda x: -2 * x, "wrong", "sign", "the sign is wrong"),
        (lambda x: x.data.mul_(2), "wrong", "mutates", "argument number 1 in place"),
        (lambda x, y: x, "wrong", "raised", "TypeError"),
    ],
)
def test_verdicts_name_the_first_fault(answer, status, code, fragment):
    verdict = verdict_of(answer)
    assert (verdict.status, verdict.code) == (status, code)
    assert fragment in verdict.message


def test_exception_shows_the_learners_own_line():
    answer = source.build("def doubled(x):\n    y = x @ x.T @ x.T  # oops\n    return y\n", "doubled")
    message = verdict_of(answer).message
    assert "RuntimeError" in message and "at your line 2: y = x @ x.T @ x.T" in message


def test_exception_with_a_faulty_message_is_survived():
    class Nasty(Exception):
        def __str__(self):
            raise ValueError

    def answer(x):
        raise Nasty

    assert "raises Nasty" in verdict_of(answer).message


@pytest.mark.parametrize("leave", [SystemExit(0), SystemExit("bye"), RecursionError(), MemoryError()])
def test_whatever_is_raised_becomes_a_verdict(leave):
    def answer(x):
        raise leave

    assert verdict_of(answer).code == "raised"


def test_keyboard_interrupt_is_the_readers_own():
    def answer(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verdict_of(answer)


def test_reference_is_out_of_reach():
    kept = []

    def answer(x):  # changes its input for good, and torch's functions as well
        kept.append(x)
        x.data.zero_()
        return x

    assert verdict_of(answer).code == "mutates"
    assert verdict_of(doubled).passed


def test_seed_repeats_the_inputs_and_fresh_ones_differ():
    seen = []

    def answer(x):
        seen.append(x.sum().item())
        return 2 * x

    for seed in (5, 5, None, None):
        judge(PART, answer, seed=seed)
    assert seen[0] == seen[1] and len(set(seen[1:])) == 3


def test_state_is_restored():
    def answer(x):
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        warnings.simplefilter("ignore")
        os.chdir("/")
        return 2 * x

    def state():
        return (
            torch.get_rng_state().tolist(),
            random.getstate(),
            np.random.get_state()[1].tolist(),
            torch.get_default_dtype(),
            torch.get_default_device(),
            torch.is_grad_enabled(),
            list(warnings.filters),
            os.getcwd(),
        )

    before = state()
    verdict_of(answer)
    assert state() == before


def test_prints_are_let_through_up_to_a_bound(capsys):
    def answer(x):
        print("hello")
        print("x" * 100_000)
        return 2 * x

    assert verdict_of(answer).passed
    out = capsys.readouterr().out
    assert "hello" in out and "prints more than is shown" in out and len(out) < 3_000


# trial


def test_sizes_differ():
    for seed in range(20):
        sizes = Trial(seed).sizes(5)
        assert len(set(sizes)) == 5 and min(sizes) >= 2


def test_numbers():
    t = Trial(0)
    t.number(3, 3)
    t.number(torch.tensor(3.0), 3)
    for got, code in [
        (None, "type"),
        ("3", "type"),
        (True, "type"),
        (float("nan"), "nonfinite"),
        (..., "stub"),
    ]:
        with pytest.raises(Rejected) as caught:
            t.number(got, 3)
        assert caught.value.code == code
    with pytest.raises(Rejected) as caught:
        t.number(6, 3, mistakes={"twice": (6, "counted twice")})
    assert caught.value.code == "twice"
    assert t.checks == 8


def test_tuples_dicts_and_directions():
    t = Trial(0)
    assert t.unpack([1, 2], "left", "right") == (1, 2)
    assert t.fields({"a": 1, "b": 2}, "b") == (2,)
    t.below([1, 1, 5], [2, 3, 4], 0.9, "no", "not below")
    for call, code in [
        (lambda: t.unpack(None, "a"), "type"),
        (lambda: t.unpack(torch.ones(2), "a", "b"), "type"),
        (lambda: t.unpack((1,), "a", "b"), "shape"),
        (lambda: t.fields(None, "a"), "type"),
        (lambda: t.fields([1], "a"), "type"),
        (lambda: t.fields({}, "a"), "shape"),
        (lambda: t.below([1, 1, 5], [2, 3, 4], 1.1, "no", "not below"), "no"),
        (lambda: t.below([float("nan")], [1], 0, "no", "not below"), "no"),
        (lambda: t.that(torch.tensor(True), "no", "a tensor is not True"), "no"),
    ]:
        with pytest.raises(Rejected) as caught:
            call()
        assert caught.value.code == code


def test_infinities_and_nan_are_never_equal_to_numbers():
    t = Trial(0)
    inf, nan = float("inf"), float("nan")
    t.same(torch.tensor([inf, 1.0]), torch.tensor([inf, 1.0]).double())
    for got, want in [([1.0], [nan]), ([nan], [nan]), ([-inf], [inf]), ([1.0], [inf])]:
        with pytest.raises(Rejected):
            t.same(torch.tensor(got), torch.tensor(want).double())


def test_lists_and_modules_are_given_as_copies():
    t = Trial(0)
    for value, change in [
        ([torch.ones(2)], lambda v: v[0].zero_()),
        ({"a": [1]}, lambda v: v["a"].append(2)),
        (torch.nn.Linear(2, 2), lambda v: v.weight.data.zero_()),
    ]:
        with pytest.raises(Rejected) as caught:
            t.call(change, value)
        assert caught.value.code == "mutates"
    assert value.weight.abs().sum() > 0


def test_memory_is_seen():
    x, y = torch.ones(5, 1), torch.ones(1, 7)
    with LargestTensor() as seen:
        (x.expand(5, 1000) + 0).sum()
    assert seen.numel == 5000
    with LargestTensor() as seen:
        x.expand(5, 1000)
    assert seen.numel == 5
    with Traffic() as traffic:
        x @ y.reshape(1, 7)
    assert traffic.bytes == 4 * (5 + 7 + 35)


@pytest.mark.slow
def test_a_short_limit_cuts_no_import_in_two():
    program = """
import sys
from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.judge import judge
part = registry.load("d2l-11.4.2").parts[1]
assert "torch._dynamo" not in sys.modules
judge(part, part.answer, seconds=0.01)
assert "torch._dynamo" in sys.modules
print(judge(part, part.answer).status)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert found.stdout.strip() == "passed", found.stderr
