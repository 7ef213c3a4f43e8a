"""Every single change of a solution is refused by the check of its part, or listed as another right answer.

`operators.py` makes the changes. Those that are right all the same stand in `equivalent.md`, each with a word why. An
ordinary run tries a few of each part, an audit tries all.
"""

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
from operators import changes
from toy_exercise import PART

from d2lmini.exercises.engine import registry, source
from d2lmini.exercises.engine.document import take_apart
from d2lmini.exercises.engine.judge import BROKEN, PASSED, judge, prepare
from d2lmini.exercises.engine.model import Coded, Experiment, Part

SAMPLE = 5  # changes of a part that an ordinary run tries; of an experiment, which trains, one
SLOPES = re.compile(r"\.gradient\(|\bgradients=")  # what a check says that compares gradients
ENDLESS = 3.0  # seconds until a loop counts as endless, where the check has no longer time of its own
LEFT_OUT = {  # parts in which most changes are right, as the check asks what comes out and not how, or which take long
    "own-16.4a": "any table that keeps the two promises is right",
    "own-17.1a": "the fit comes to the same minimum from nearly any start, by nearly any steps",
    "own-18.2a": "any attempt that the judge takes is right",
    "udl-12.9a": "any two patterns that meet the conditions are right",
    "d2l-11.4.2b": "its check takes two seconds a change",
    "d2l-11.7.1": "its check takes two seconds a change",
}


def listed(text):
    """Return key of a part -> (line before, line after) -> why that is right, too.

    Below ``## key`` stand lines of its solution, and below each what may stand there instead, ``> line | why``, as
    mistakes do in a document.
    """
    found, part, was = {}, None, None
    for line in text.splitlines():
        if line.startswith("## "):
            if line[3:] in found:
                raise ValueError(f"{line[3:]} stands there twice")
            part = found[line[3:]] = {}
        elif line.startswith("> "):
            now, _, why = line[2:].rpartition(" | ")
            if not now or not why:
                raise ValueError(f"no word why: {line}")
            if (was, now) in part:
                raise ValueError(f"listed twice: {was} {line}")
            part[was, now] = why
        elif part is not None and line:
            was = line
    return found


@cache
def equivalent():
    return listed(Path(__file__).with_name("equivalent.md").read_text(encoding="utf-8"))


@cache
def made(key):
    """Return pairs of a coded part of an exercise and the changes of its solution, none where it is left out."""
    parts = zip(registry.load(key).parts, take_apart(registry.path(key)).parts, strict=True)
    return [
        (part, _changes(part, text)) for part, text in parts if isinstance(part, Coded) and part.key not in LEFT_OUT
    ]


def _changes(part, text):
    """Gradients are cut where a check compares some; an experiment may have more steps or another rate."""
    check = "".join(block.text for block in text.code if block.role == "check")
    numbers = ("number_changed",) if isinstance(part, Experiment) else ()
    slopes = SLOPES.search(check) and not isinstance(part, Experiment)
    return changes(source.solution(part), numbers if slopes else ("detached", *numbers))


def by_turn(found, count, seed):
    """Draw ``count`` changes, each of another type as far as there are types."""
    drawn, kinds, turn = Random(seed).sample(found, len(found)), Counter(), {}
    for change in drawn:
        kinds[change.kind] += 1
        turn[change] = kinds[change.kind]
    return sorted(drawn, key=turn.get)[:count]


def problems(part, some, right, seed=0):
    """Return what is wrong with the verdicts on some changes of a part, ``right`` of which are equivalent."""
    undiagnosed = replace(part, mutants=())  # why a change is refused does not matter here, and takes long to find
    seconds = part.seconds if part.seconds > Part.seconds else ENDLESS
    prepare(part, part.answer)
    found = []
    for change in some:
        verdict = judge(undiagnosed, source.build(change.source, part.name), seed=seed, seconds=seconds)
        said = f"## {part.key}, {change.kind}, seed {seed}\n{change.was}\n> {change.now}\n"
        if verdict.status == BROKEN:
            found.append(f"{said}breaks the check: {verdict}")
        elif verdict.status == PASSED and (change.was, change.now) not in right:
            found.append(f"{said}passes: mend the check or, if this is right, list it in equivalent.md")
        elif verdict.status != PASSED and (change.was, change.now) in right:
            found.append(f"{said}is listed as right, and refused: {verdict}")
    return found


def needless(found, right):
    """Return the entries of a part's list that are no change of its solution."""
    return sorted(right.keys() - {(change.was, change.now) for change in found})


@pytest.mark.parametrize("key", registry.keys())
def test_a_few_changes_of_each_type_are_refused(key):
    for part, found in made(key):
        right = equivalent().get(part.key, {})
        assert needless(found, right) == [], part.key
        some = by_turn(found, 1 if isinstance(part, Experiment) else SAMPLE, part.key)
        assert not (wrong := problems(part, some, right)), "\n\n".join(wrong)


@pytest.mark.audit
@pytest.mark.parametrize("key", registry.keys())
def test_every_change_is_refused(key):
    wrong = [problem for part, found in made(key) for problem in problems(part, found, equivalent().get(part.key, {}))]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.audit
@pytest.mark.parametrize(("key", "why"), LEFT_OUT.items())
def test_a_part_that_is_left_out(key, why):
    pytest.skip(f"CHANGES OF {key} ARE NOT TRIED: {why}")


def test_what_is_listed_or_left_out_is_a_part():
    coded = {part.key for exercise in registry.exercises() for part in exercise.parts if isinstance(part, Coded)}
    assert equivalent().keys() | LEFT_OUT.keys() <= coded
    assert equivalent().keys() & LEFT_OUT.keys() == set()


# planted faults

TWICE = changes(source.solution(PART), ("name_exchanged",))
SAME = ("return 2.0 * x", "return 2.0 / x")


def accepts_all(t, answer):
    for _ in range(PART.min_checks):
        t.call(answer, t.randn(2, 3))


def test_a_check_that_accepts_a_wrong_answer_is_noticed():
    assert {change.now for change in TWICE} > {SAME[1], "return 4.0 * x", "return x", "return 2.0 * x.detach()"}
    assert problems(PART, TWICE, {}) == []
    lax = problems(
        replace(PART, verify=accepts_all, without=dict.fromkeys(("values", "strided", "alone"), "")), TWICE, {}
    )
    assert len(lax) == len(TWICE) and all("passes: mend the check" in problem for problem in lax)


def test_a_check_that_a_wrong_answer_breaks_is_noticed():
    def verify(t, answer):
        t.same(t.call(answer, t.randn(2, 3)).no_such_thing, t.randn(2, 3))

    (problem, *_) = problems(replace(PART, verify=verify), TWICE, {})
    assert "breaks the check" in problem


def test_an_entry_that_is_refused_or_no_longer_made_is_noticed():
    (problem,) = problems(PART, TWICE, {SAME: "wrong"})
    assert "is listed as right, and refused" in problem
    gone = ("return 2.0 * x", "return 7.0 * x")
    assert needless(TWICE, {SAME: "wrong", gone: "no change"}) == [gone]


LIST = """\
Words above.

## own-99.1
return x
> return x | y | a word why
> return y | another

z = 1
> z = 2 | as good
"""


def test_a_list_is_read():
    entries = {
        ("return x", "return x | y"): "a word why",
        ("return x", "return y"): "another",
        ("z = 1", "z = 2"): "as good",
    }
    assert listed(LIST) == {"own-99.1": entries}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [("## own-99.1\n", "twice"), ("> z = 2 | as good\n", "listed twice"), ("> z = 3\n", "no word why")],
)
def test_a_faulty_list_is_refused(more, sentence):
    with pytest.raises(ValueError, match=sentence):
        listed(LIST + more)


def test_a_few_are_of_as_many_types_as_there_are():
    kinds = {change.kind for change in TWICE}
    some = by_turn(TWICE, len(kinds), "seed")
    assert {change.kind for change in some} == kinds and some == by_turn(TWICE, len(kinds), "seed")
    assert len(by_turn(TWICE, 3, "seed")) == 3
