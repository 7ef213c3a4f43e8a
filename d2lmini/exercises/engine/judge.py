"""Judge an answer: from a part and what the learner gives to a verdict."""

import contextlib
import random
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from . import source
from .again import again
from .compare import Rejected, alike, is_placeholder
from .guard import restored_state
from .host import HostError, load_for, scopes
from .limits import TOO_LONG, TimeUp, call_limited
from .model import Choice, Coded, Discussion, Experiment
from .relations import explain
from .trial import Stop, Trial

PASSED, WRONG, NOT_ATTEMPTED = "passed", "wrong", "not attempted"
TIMEOUT, RECORDED, BROKEN = "timeout", "recorded", "broken check"
FEW_ENTRIES, FEW_FLAGS = 3, 20  # fewer may be those of a foreseen mistake by chance
MOST_KNOWN = 32
AGAIN = 3  # times the limit of a check is that of the second run: each call is made for a row alone as well


@dataclass(frozen=True)
class Verdict:
    """What came of an answer.

    Args:
        key: of the part.
        status: one of the six words above, or "crashed".
        code: what kind of fault, for programs: ``shape``, ``dtype``, the name of a known mistake, ...
        message: the same for the learner.
        checks: how many comparisons ran.
        seed: of the random inputs; None where there were none.
        references: what the answer was compared with, for those who audit the exercise.
    """

    key: str
    status: str
    code: str
    message: str
    checks: int = 0
    seed: int | None = None
    references: tuple = ()

    @property
    def passed(self) -> bool:
        return self.status == PASSED

    def __str__(self):
        line = f"{self.status.upper()} {self.key}: {self.message}"
        if self.status in (WRONG, TIMEOUT) and self.seed is not None:
            line += f'\n  (the same inputs again: check("{self.key}", your_answer, seed={self.seed});'
            line += f' a hint: hint("{self.key}"))'
        return line


def judge(part, answer, *, seed=None, device="cpu", seconds=None, host=None) -> Verdict:
    """Return the verdict on ``answer``; no `Exception` of the answer's gets out.

    Args:
        part: the part of an exercise.
        answer: a callable, or for a choice a letter, or for a discussion a text.
        seed: of the random inputs; a fresh one when None.
        device: where the inputs live.
        seconds: time limit, that of the part when None.
        host: where the answer lives, which then keeps its limits; None: in this process.
    """
    if answer is None or is_placeholder(answer):
        return Verdict(part.key, NOT_ATTEMPTED, "stub", "no answer yet")
    if isinstance(part, Choice):
        return _choice(part, answer)
    if isinstance(part, Discussion):
        return _discussion(part, answer)
    seed = fresh_seed() if seed is None else seed
    if not callable(answer):
        return Verdict(part.key, WRONG, "type", f"expected a function, got a {type(answer).__name__}", seed=seed)
    return _coded(part, answer, seed, device, part.seconds if seconds is None else seconds, host)


def fresh_seed() -> int:
    """Return a seed that no global random state decides."""
    return random.SystemRandom().randrange(2**31)


def _choice(part, answer):
    letter = answer.strip().upper() if isinstance(answer, str) else None
    if letter not in part.lettered:
        letters = ", ".join(part.lettered)
        return Verdict(part.key, WRONG, "type", f"expected one of the letters {letters}, as a string")
    option = part.lettered[letter]
    why = " ".join(option.why.split())
    if option.right:
        return Verdict(part.key, PASSED, "ok", f"{letter} is right. {why}", checks=1)
    return Verdict(part.key, WRONG, f"option-{letter}", f"not {letter}. {why}", checks=1)


def _discussion(part, answer):
    if not isinstance(answer, str) or not answer.strip():
        return Verdict(part.key, NOT_ATTEMPTED, "stub", "expected your answer as a text")
    rubric = "".join(f"\n  - {point}" for point in part.rubric)
    return Verdict(
        part.key,
        RECORDED,
        "recorded",
        f'compare your text with these points, then call review("{part.key}", "agrees"), or with "partly" or '
        f'"differs":{rubric}',
    )


def prepare(part, answer):
    """Import what judging an answer takes: no limit and no display of the time should count it."""
    if isinstance(part, Coded) and callable(answer):
        load_for(answer, part.verify, heavy(part))


def _coded(part, answer, seed, device, seconds, host):
    trial = Trial(seed, device, host)
    limited = call_limited if host is None else lambda function, seconds: function()
    prepare(part, answer)

    def verdict(status, code, message):
        return Verdict(part.key, status, code, message, trial.checks, seed, tuple(trial.references))

    try:
        with restored_state(seed):
            answer = trial.host.adopt(answer)
            limited(lambda: part.verify(trial, answer), seconds)
            limited(lambda: again(part, answer, trial), AGAIN * seconds)
    except TimeUp:
        message = f"stopped after {seconds:g} s: {TOO_LONG}"
        return verdict(TIMEOUT, "timeout", _advised(message, part.advice.get("timeout")))
    except Rejected as fault:
        related = None
        if fault.code == "values":
            foreseen = _foreseen(part, trial)
            related = None if foreseen else _related(part, trial)
            fault = foreseen or related or fault
        advice = part.advice.get(fault.code) or (related and part.advice.get("values"))
        return verdict(NOT_ATTEMPTED if fault.code == "stub" else WRONG, fault.code, _advised(fault.message, advice))
    except HostError as error:
        return verdict(error.status, error.code, _advised(str(error), part.advice.get(error.code)))
    except Exception as error:
        return verdict(BROKEN, "broken", f"the check itself fails, please report it ({type(error).__name__}: {error})")
    if trial.checks < part.min_checks:
        message = f"only {trial.checks} comparisons ran, {part.min_checks} are required: please report it"
        return verdict(BROKEN, "vacuous", message)
    return verdict(PASSED, "ok", f"all {trial.checks} checks hold")


def _advised(message, advice):
    return f"{message}\n  {advice}" if advice else message


def _foreseen(part, trial):
    """Return the fault of the mutant that gives what the answer gave where it was found wrong, or None."""
    for mutant, compared in _wrong(part, trial.seed, trial.device, trial.checks):
        if alike(trial.compared, compared):
            return Rejected(mutant.diagnosis, f"{trial.compared.name}: {_looks(compared)}{mutant.message}")
    return None


def _looks(compared):
    """What a sentence begins with that few entries may bear out by chance."""
    if not isinstance(compared.got, torch.Tensor):
        return "it looks as if: "
    least = FEW_FLAGS if compared.got.dtype == torch.bool else FEW_ENTRIES
    return "" if compared.got.numel() >= least else "it looks as if: "


def _related(part, trial):
    """Return a fault that says how the answer's value is related to the right one, or None."""
    if trial.compared is None:
        return None
    try:
        explained = _exchanged(part, trial) or explain(trial.compared, trial.given)
    except Exception:  # no explanation is none, too: the answer is wrong all the same
        return None
    return explained and Rejected(explained[0], f"{trial.compared.name}: {explained[1]}")


def _exchanged(part, trial):
    """Return (code, sentence) if what is wrong is what another item of the result should be, or None.

    The check runs on the solution with the same seed, up to the same comparison.
    """
    if not trial.items or isinstance(part, Experiment):
        return None
    right = Trial(trial.seed, trial.device, last=trial.checks)
    with contextlib.suppress(Stop), restored_state(trial.seed, quiet=True):
        part.verify(right, source.solved(part))
    wrong, names = trial.compared, [name for name, item in trial.items.items() if item is trial.compared.got]
    for name, item in right.items.items():
        if names and name not in names and alike(wrong, replace(wrong, got=item)):
            return "exchanged", f"{_looks(wrong)}this is what `{name}` should be: are two results exchanged?"
    return None


@lru_cache(MOST_KNOWN)  # of the last wrong answers: an audit judges many with the same inputs
def _wrong(part, seed, device, checks):
    """Return pairs of a mutant with a message and what it gives at a comparison, where that is wrong.

    The check runs on each mutant with the same seed, so with the same inputs, up to that comparison.
    """
    outcomes = []
    for mutant in part.mutants:
        if not mutant.message:
            continue
        trial = Trial(seed, device, last=checks)
        try:
            with restored_state(seed, quiet=True):
                part.verify(trial, source.mutant(part, mutant))
        except Rejected as fault:
            if fault.code == "values" and trial.checks == checks:
                outcomes.append((mutant, trial.compared))
        except Exception:  # this mutant is no explanation
            continue
    return outcomes


def heavy(part) -> bool:
    """Whether answers to a part need libraries for training or measuring."""
    return isinstance(part, Experiment) or any({"LargestTensor", "Traffic"} & s.keys() for s in scopes(part.verify))
