"""What a reader calls: ``check``, ``hint`` and ``review``. They print, so that they work in any front end."""

import os
from pathlib import Path

from ...shell import in_notebook
from ..engine.judge import NOT_ATTEMPTED, PASSED, RECORDED, judge
from ..engine.model import Discussion, Identity
from ..engine.registry import NOTEBOOKS, REPOSITORY, find
from .front_end import show, waiting
from .other_cells import note
from .plain_math import plain
from .progress import ASSESSMENTS, next_open, record, record_review


def check(key, answer, *, seed=None, device="cpu", record=True):
    """Check an answer and print one verdict.

    Args:
        key: of the part: ``"d2l-11.3.1"``, ``"udl-12.5a"``, or ``"12.5a"``.
        answer: a function, or for a choice its letter, or for a discussion your text.
        seed: of the random inputs, to repeat a failure; fresh ones at each call when None.
        device: where the inputs live. The CPU by default: other devices round differently.
        record: whether the try counts in your progress; if not, the verdict is all that is shown.

    Raises:
        KeyError: there is no such exercise.
        AssertionError: the answer does not pass and ``D2LMINI_STRICT`` is 1.
    """
    exercise, part = find(key)
    strict = os.environ.get("D2LMINI_STRICT") == "1"
    alone = strict or not record  # solved notebooks are compared word by word
    with waiting(part.seconds, quiet=alone):
        verdict = judge(part, answer, seed=seed, device=device)
    print(verdict if alone else plain(str(verdict)))
    if record:
        _record(verdict)
    if in_notebook() and verdict.status != NOT_ATTEMPTED and (warning := note(answer)):
        print(warning)
    if verdict.passed and not alone:
        _what_now(exercise, part)
    if strict and verdict.status not in (PASSED, RECORDED):
        raise AssertionError(str(verdict))


_record = record
_hints_given: dict[str, int] = {}


def _what_now(exercise, part):
    """Show in one line what comes next, and where the worked solution stands."""
    if follows := next_open(exercise, part):
        other, todo = follows
        where = f" in chapter {other.chapter}" if other.chapter != exercise.chapter else ""
        after = f"next{where}: {todo.key} ({other.title})"
    else:
        after = "this was the last: every exercise is solved"
    name = f"solutions/{NOTEBOOKS[exercise.chapter]}.ipynb"
    # a link of a notebook leads from its own folder, which is the current one; on Colab there is no such file
    link = name if Path(name).exists() else f"{REPOSITORY}/exercises/{name}"
    rest = f"heading {part.key}"
    show(
        f"{after}; worked solution: exercises/{name}, {rest}",
        f"{after}; worked solution: [exercises/{name}]({link}), {rest}",
    )


def hint(key):
    """Show the next hint of a part, one at each call; after the last one they begin again.

    Raises:
        KeyError: there is no such exercise.
    """
    _, part = find(key)
    if not part.hints:
        print(f"{part.key} has no hints")
        return
    given, count = _hints_given.get(part.key, 0), len(part.hints)
    _hints_given[part.key] = given + 1
    head = f"hint {given % count + 1} of {count}"
    if given and given % count == 0:
        head += " (you have seen them all: from the first again)"
    text = part.hints[given % count].strip()
    show(f"{head}: {plain(' '.join(text.split()))}", f"{head}: {text}")


def review(key, assessment):
    """Keep your own judgement of a proof or a discussion, after you compared it with the model.

    Args:
        key: of an identity or a discussion.
        assessment: ``"agrees"``, ``"partly"`` or ``"differs"``.

    Raises:
        KeyError: there is no such exercise.
        ValueError: another assessment, or a part that checks verify and no reader needs to.
    """
    _, part = find(key)
    if not isinstance(part, (Identity, Discussion)):
        raise ValueError(f"{part.key} is a {part.kind}: check() verifies it, there is nothing to assess yourself")
    if assessment not in ASSESSMENTS:
        raise ValueError(f"the assessment is {assessment!r}, expected one of {', '.join(ASSESSMENTS)}")
    record_review(part.key, assessment)
    print(f"REVIEWED {part.key}: {assessment} (counted as self-assessed)")
