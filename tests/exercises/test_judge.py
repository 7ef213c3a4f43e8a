"""Verdicts on good, bad and hostile answers."""

from dataclasses import replace

import pytest
import torch
from stand_ins import printed
from toy_exercise import CHOICE, DISCUSSION, PART, doubled

from d2lmini.exercises.engine import source
from d2lmini.exercises.engine.host import HostError
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
        (lambda x: 2 * x.unsqueeze(0), "wrong", "shape", ": shape (1, "),
        (lambda x: torch.zeros(()), "wrong", "shape", ": shape ()"),
        (lambda x: x / 0, "wrong", "nonfinite", "NaN or infinite"),
        (lambda x: 2.5 * x + x**2, "wrong", "values", "entries are wrong, the first at [0, 0]"),
        (lambda x: 4 * x, "wrong", "factor", "the result: every entry is 2 times what it should be"),
        (lambda x: -2 * x, "wrong", "sign", "the sign is wrong"),
        (lambda x: x.data.mul_(2), "wrong", "mutates", "argument number 1 in place"),
        (lambda x, y: x, "wrong", "raised", "TypeError"),
    ],
)
def test_verdicts_name_the_first_fault(answer, status, code, fragment):
    verdict = verdict_of(answer)
    assert (verdict.status, verdict.code) == (status, code)
    assert fragment in verdict.message


def few(t, answer):
    x = t.randn(3)
    for n in (2, 3):
        t.same(t.call(answer, x[:n]), 2 * x[:n].double())
    t.number(t.call(answer, 7.0), 14.0, "the number")


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (lambda x: 3.0 * x, "triple", "the result: it looks as if: this is three times x"),
        (lambda x: x.square() if type(x) is not float else 2.0 * x, "values", "2 of 2 entries are wrong"),
        (lambda x: 4.0 * x, "factor", "the result: it looks as if every entry is 2 times what it should be"),
        (lambda x: x + 8 if type(x) is float else 2.0 * x, "off-by-one", "number: it looks as if it is one too large"),
    ],
)
def test_what_few_entries_bear_out_is_said_with_doubt(answer, code, message):
    def checked(t, answer):
        few(t, lambda x: len(x) and answer(x) if isinstance(x, torch.Tensor) else answer(x))

    verdict = judge(replace(PART, verify=checked), answer, seed=0)
    assert verdict.code == code and message in verdict.message


def test_what_many_entries_bear_out_is_said_without():
    assert verdict_of(lambda x: 3.0 * x).message == "the result: this is three times x"


def test_advice_on_the_time_limit_is_added_also_where_another_process_keeps_it():
    def endless(x):
        while True:
            pass

    class Late:
        adopt = staticmethod(lambda answer: answer)

        def call(self, *args, **kwargs):
            raise HostError("too many steps?", "timeout", "timeout")

    advised = replace(PART, advice={"timeout": "Count the choices."})
    for options in ({"seconds": 0.3}, {"host": Late()}):
        verdict = judge(advised, endless, seed=0, **options)
        assert verdict.code == "timeout" and verdict.message.endswith("too many steps?\n  Count the choices.")
        assert judge(PART, endless, seed=0, **options).message.endswith("too many steps?")


def test_advice_of_a_relation_is_its_own_or_that_of_values():
    part = replace(PART, mutants=(), advice={"values": "look there", "sign": "look here"})
    assert judge(part, lambda x: 2.74 * x).message.endswith("factor\n  look there")
    assert judge(part, lambda x: -2 * x).message.endswith("sign\n  look here")
    assert judge(part, lambda x: x**2 + 5).message.endswith("\n  look there")


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


def test_a_letter_is_right_or_explained_and_a_text_is_recorded():
    for letter, option in CHOICE.lettered.items():
        verdict = judge(CHOICE, f" {letter.lower()} ")
        assert verdict.passed == option.right and option.why in verdict.message
    for slip in ("", "Z", 3, "A B", lambda: "A"):
        assert (judge(CHOICE, slip).status, judge(CHOICE, slip).code) == ("wrong", "type")
    assert judge(DISCUSSION, "A text.").status == "recorded"
    for part, nothing in ((CHOICE, None), (CHOICE, ...), (DISCUSSION, ...), (DISCUSSION, " ")):
        assert judge(part, nothing).status == "not attempted"


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

    firsts = []
    for seed in (5, 5, None, None):
        judge(PART, answer, seed=seed)
        firsts.append(seen[0])
        seen.clear()
    assert firsts[0] == firsts[1] and len(set(firsts[1:])) == 3


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
    assert printed(program) == "passed\n"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.05, 0.5, 1.5])
def test_a_session_survives_a_timeout(seconds):
    program = f"""
from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.judge import judge
part = registry.load("d2l-11.2.2").parts[0]
judge(part, part.answer, seed=1, seconds={seconds})
experiment = registry.load("d2l-11.1.3").parts[2]
print(judge(part, part.answer, seed=1).status, judge(experiment, experiment.answer, seed=1).status)
"""
    assert printed(program) == "passed passed\n"
