"""What a reader calls: ``check``, ``hint`` and ``review``. They print, so that they work in any front end."""

import os

from .judge import PASSED, RECORDED, judge
from .model import Discussion, Identity
from .progress import ASSESSMENTS, record, record_review
from .registry import find


def check(key, answer, *, seed=None, device="cpu", record=True):
    """Check an answer and print one verdict.

    Args:
        key: of the part: ``"d2l-11.3.1"``, ``"udl-12.5a"``.
        answer: a function, or for a choice its letter, or for a discussion your text.
        seed: of the random inputs, to repeat a failure; fresh ones at each call when None.
        device: where the inputs live. The CPU by default: other devices round differently.
        record: whether the try counts in your progress.

    Raises:
        KeyError: there is no such exercise.
        AssertionError: the answer does not pass and ``D2LMINI_STRICT`` is 1.
    """
    _, part = find(key)
    verdict = judge(part, answer, seed=seed, device=device)
    print(verdict)
    if record:
        _record(verdict)
    if os.environ.get("D2LMINI_STRICT") == "1" and verdict.status not in (PASSED, RECORDED):
        raise AssertionError(str(verdict))


_record = record
_hints_given: dict[str, int] = {}


def hint(key):
    """Print the first hint of a part, and one more at each call.

    Raises:
        KeyError: there is no such exercise.
    """
    _, part = find(key)
    given = _hints_given[key] = min(_hints_given.get(key, 0) + 1, len(part.hints))
    if not part.hints:
        print(f"{key} has no hints")
    for number, text in enumerate(part.hints[:given], start=1):
        print(f"hint {number} of {len(part.hints)}: {' '.join(text.split())}")


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
        raise ValueError(f"{key} is a {part.kind}: check() verifies it, there is nothing to assess yourself")
    if assessment not in ASSESSMENTS:
        raise ValueError(f"the assessment is {assessment!r}, expected one of {', '.join(ASSESSMENTS)}")
    record_review(key, assessment)
    print(f"REVIEWED {key}: {assessment} (counted as self-assessed)")
