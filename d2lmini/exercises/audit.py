"""Audit an exercise: does it keep every promise that exercises make?

    python -m d2lmini.exercises.audit d2l-11.3.1     # one exercise
    python -m d2lmini.exercises.audit                # all
    python -m d2lmini.exercises.audit --seconds 60 d2l-11.3.1   # right answers with the seeds of a minute

The tests run the same function over all exercises, with one seed for each wrong answer.
"""

import argparse
import itertools
import math
import re
import sys
import time
from dataclasses import dataclass
from functools import partial

import torch
from torch.utils._pytree import tree_map

from .engine import again, registry, source
from .engine.judge import BROKEN, NOT_ATTEMPTED, PASSED, TIMEOUT, judge
from .engine.model import Choice, Coded, Experiment, Identity
from .faults import Aliased, faults
from .grading.remote import Loopback

SEEDS = (0, 1, 2)
LEAST_MUTANTS = {"code": 6, "identity": 1, "count": 3, "experiment": 2}
MOST_MUTANTS = 12
LOOP_LIMIT = 0.5  # seconds that the endless loop gets
NEW = re.compile(r"\bshares? (?:no|its own) memory\b|\b(?:a )?new (?:tensors?|matrix)\b")  # a promise
UNTELLING = ("ok", "stub", "values", "timeout", "broken", "vacuous")  # no diagnosis of its own


@dataclass(frozen=True)
class Problem:
    """A broken promise: of which part, which rule, and what was seen."""

    key: str
    rule: str
    detail: str

    def __str__(self):
        return f"{self.key}: {self.rule}: {self.detail}"


def audit(exercise, seconds=1.0, tally=None, seeds=SEEDS) -> list[Problem]:
    """Return what is wrong with an exercise; an empty list when nothing is.

    Args:
        exercise: an `Exercise`.
        seeds: those with which wrong answers are judged; most of an experiment's with the first alone.
        seconds: how long the right answers of a part are judged with one seed after another; a few are judged anyway.
        tally: a dict into which the number of seeds of each right answer is written.
    """
    tally, broken = {} if tally is None else tally, []
    if len(exercise.statement) < 80:
        broken.append(Problem(exercise.key, "statement", "below the title the statement is missing, or very short"))
    for part in exercise.parts:
        problems = [] if part.hints else [("hints", "there are none")]
        if isinstance(part, Coded):
            text = f"{exercise.statement if len(exercise.parts) == 1 else ''} {part.prompt} {part.answer.__doc__}"
            problems += _promises(part, " ".join(text.split()), seeds)
            problems += _coded(part, seconds, tally, seeds[:1] if isinstance(part, Experiment) else seeds)
        else:
            problems += _choice(part) if isinstance(part, Choice) else _discussion(part)
        broken += (Problem(part.key, *problem) for problem in problems)
    return broken


def _coded(part, seconds, tally, seeds):
    if not part.answer.__doc__:
        yield "docstring", "the answer says nothing about its arguments and its result"
    if isinstance(part, Identity) and len(part.explanation) < 80:
        yield "proof", "an identity needs a model proof in `explanation`"
    yield from _right_answers(part, source.solved(part), seconds, tally)
    yield from _stub(part)
    yield from _generic(part)
    yield from _mutants(part, seeds)
    yield from _faults(part, source.solved(part), seeds)


def _right_answers(part, solution, seconds, tally):
    if not part.alternatives:
        yield "alternatives", "there is none: a second right answer shows that the check is not too narrow"
    answers = {part.name: solution} | {f.__name__: f for f in part.alternatives}
    for name, answer in answers.items():
        rule = "solution" if answer is solution else "alternatives"
        least = (1,) if answer is not solution else SEEDS[:1] if isinstance(part, Experiment) else SEEDS
        verdicts, slowest = _over_seeds(part, answer, least, seconds / len(answers))
        tally[f"{part.key} {name}"] = len(verdicts)
        wrong = [verdict for verdict in verdicts if verdict.status != PASSED]
        if wrong:
            seed = wrong[0].seed
            yield rule, f"{name}: with {len(wrong)} of {len(verdicts)} seeds, the first of them {seed}: {wrong[0]}"
            continue
        if slowest > part.seconds / 2:
            yield "time", f"{name} takes {slowest:.1f} s of the {part.seconds:g} s that an answer has"
        checks = {verdict.checks for verdict in verdicts}
        if len(checks) > 1:  # it is printed, and the solved notebooks are compared with what they printed before
            yield "count", f"the number of checks depends on the seed: {sorted(checks)}"
        if answer is solution or not isinstance(part, Experiment):
            yield from _elsewhere(part, answer, verdicts[0], name)


def _promises(part, text, seeds):
    """Some check must look at what a text promises, and the solution must pass a second time."""
    if promise := NEW.search(text):
        fault = Aliased(source.solved(part), "an argument itself", "shared")
        passed = [seed for seed in seeds if judge(part, fault, seed=seed).passed]
        if passed or not fault.applied:
            yield "promise", f"the text says {promise[0]!r}, and an answer that returns an argument itself passes"
    for seed in seeds if again.asked(part) else ():
        try:
            again.solved(part, seed)
        except Exception as error:
            yield "again", f"with seed {seed} the solution does not pass a second time: {error}"
            break


def _over_seeds(part, answer, least, seconds):
    """Judge an answer with the seeds ``least``, and then with as many as fit: a check may err now and then.

    Returns:
        (verdicts, processor time of the slowest but the first).
    """
    first, *others = least
    verdicts, slowest = [judge(part, answer, seed=first)], 0.0  # it may load libraries, and is not timed
    begin = time.perf_counter()
    for seed in itertools.chain(others, itertools.count(max(least) + 1)):
        start = time.process_time()
        verdicts.append(judge(part, answer, seed=seed))
        slowest = max(slowest, time.process_time() - start)
        if len(verdicts) >= len(least) and time.perf_counter() - begin > seconds:
            return verdicts, slowest


def _elsewhere(part, answer, here, name):
    """The verdict on an answer in another process must be the same: `verify` sees what crosses, and no more."""
    there = judge(part, answer, seed=here.seed, host=Loopback())
    if (here.status, here.code, here.checks) != (there.status, there.code, there.checks):
        yield "elsewhere", f"{name}: here {here.code!r}, {here.checks} checks; from another process: {there}"


def _stub(part):
    verdict = judge(part, source.build(source.stub(part), part.name), seed=0)
    if verdict.status != NOT_ATTEMPTED:
        yield "stub", f"expected 'not attempted', got: {verdict}"


def _generic(part):
    """Answers that are wrong for every exercise."""

    def mapped(change):
        return lambda *args, **kwargs: tree_map(partial(_changed, change=change), part.answer(*args, **kwargs))

    answers = {
        "None": lambda *args, **kwargs: None,
        "zeros": mapped(lambda x: x * 0),
        "NaN": mapped(lambda x: x * math.nan),
        "first argument": lambda *args, **kwargs: [*args, *kwargs.values()][0],
        "raise": lambda *args, **kwargs: 1 / 0,
        "SystemExit": lambda *args, **kwargs: sys.exit(0),
    }
    for name, answer in answers.items():
        verdict = judge(part, answer, seed=0)
        if verdict.status in (PASSED, BROKEN):
            yield "generic", f"{name}: {verdict}"
        yield from _leaks(verdict, name)
    verdict = judge(part, _loop, seed=0, seconds=LOOP_LIMIT)
    if verdict.status != TIMEOUT:
        yield "generic", f"loop: expected a timeout, got: {verdict}"


def _loop(*args, **kwargs):
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


def _changed(value, change):
    """A leaf of a result with ``change`` made of its floats."""
    if isinstance(value, torch.Tensor):
        return change(value) if value.is_floating_point() else torch.zeros_like(value)
    return change(value) if isinstance(value, (int, float)) else None


def _mutants(part, seeds):
    least = LEAST_MUTANTS[part.kind]
    if len(part.mutants) < least:
        yield "mutants", f"there are {len(part.mutants)}, a part of this kind needs {least}"
    if len(part.mutants) > MOST_MUTANTS:
        yield "mutants", f"there are {len(part.mutants)}, expected {MOST_MUTANTS} at most: those that students make"
    for mutant in part.mutants:
        if mutant.diagnosis in UNTELLING:
            yield "diagnosis", f"{mutant}: {mutant.diagnosis!r} names no cause; give the mutant a code and a message"
        try:
            answer = source.mutant(part, mutant)
        except SyntaxError as error:
            yield "mutants", f"{mutant}: {error}"
            continue
        yield from _wrong(part, answer, mutant.diagnosis, str(mutant), seeds)


def _faults(part, solution, seeds):
    """Faults that any answer may have, each where this one has something to which it applies."""
    for fault in faults(solution):
        if isinstance(part, Experiment) and fault.diagnosis != "shape":  # it returns numbers, and takes long
            continue
        if applies := [seed for seed in seeds if _applies(part, fault, seed)]:
            yield from _wrong(part, fault, fault.diagnosis, f"the solution, {fault.__name__}", applies)


def _applies(part, fault, seed):
    fault.applied = 0
    judge(part, fault, seed=seed)
    return fault.applied > 0


def _wrong(part, answer, diagnosis, name, seeds):
    """A wrong answer must get its diagnosis."""
    for seed in seeds:
        verdict = judge(part, answer, seed=seed)
        if verdict.status in (PASSED, BROKEN):
            yield "mutants", f"{name}: {verdict}"
        elif verdict.code != diagnosis:
            yield "diagnosis", f"{name}: expected {diagnosis!r}, got {verdict.code!r}: {verdict}"
        yield from _leaks(verdict, name)
    if not isinstance(part, Experiment):
        yield from _elsewhere(part, answer, verdict, name)


def _leaks(verdict, name):
    """No number of three digits or more in a message may be one of the reference."""
    shown = {float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", verdict.message) if _digits(n) >= 3}
    for want in verdict.references:
        for value in torch.as_tensor(want).flatten().double().tolist():
            if any(n and abs(n - value) <= 5e-3 * abs(n) for n in shown):
                yield "reference", f"{name}: the message shows {value:.4g}: {verdict.message}"
                return


def _digits(number):
    return len(re.sub(r"e.*|\D", "", number).lstrip("0"))


def _choice(part):
    if len(part.options) < 3:
        yield "options", f"there are {len(part.options)}, expected three or more"
    if not part.prompt:
        yield "prompt", "a choice needs its question in `prompt`"
    for letter, option in part.lettered.items():
        if len(option.why) < 30:
            yield "explanation", f"option {letter} is not explained"


def _discussion(part):
    if len(part.rubric) < 3:
        yield "rubric", "a discussion needs three points or more"
    if len(part.explanation) < 80:
        yield "explanation", "a discussion needs a model answer"


def main():
    parser = argparse.ArgumentParser(description="audit exercises: does each keep every promise that exercises make?")
    parser.add_argument("keys", nargs="*", metavar="key", help="of an exercise, d2l-11.3.1; none: all")
    parser.add_argument("--seconds", type=float, default=1.0, help="for right answers of a part (default: %(default)s)")
    words, known = parser.parse_args(), registry.keys()
    if unknown := [key for key in words.keys if key not in known]:
        sys.exit(f"no such exercise: {', '.join(unknown)}")
    failed = False
    for key in words.keys or known:
        tally = {}
        problems = audit(registry.load(key), words.seconds, tally)
        failed |= bool(problems)
        print(f"{key}: {'in order' if not problems else f'{len(problems)} problems'}", flush=True)
        for problem in problems:
            print(f"  {problem}")
        if words.seconds > 1:
            print("".join(f"  {name}: {number} seeds\n" for name, number in tally.items()), end="", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
