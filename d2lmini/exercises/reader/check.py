"""What a reader calls: ``check``, ``hint``, ``review``, ``reset``. They print, so that they work in any front end."""

import os
from pathlib import Path
from urllib.parse import quote

import torch

from ...shell import in_notebook, running_shell
from ..engine import registry, source
from ..engine.judge import NOT_ATTEMPTED, PASSED, RECORDED, judge, prepare
from ..engine.model import Choice, Discussion, Identity
from ..engine.registry import NOTEBOOKS, REPOSITORY, find, listed
from .front_end import show, show_verdict, waiting
from .other_cells import note
from .plain_math import plain
from .progress import ASSESSMENTS, forget, load_progress, next_open, record, record_review

LATER = "D2LMINI_CHECKED_LATER"  # in the environment: keys of parts that a lecturer keeps and checks


def check(key, answer=..., *, seed=None, device="cpu", record=True):
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
    strict = os.environ.get("D2LMINI_STRICT") == "1"
    if (chosen := _found(key, 'check("{part.key}", {part.name})')) is None:
        return
    exercise, part = chosen
    torch.empty(0, device=device)  # a device that is not there is no fault of the check
    alone = strict or not record  # solved notebooks are compared word by word
    prepare(part, answer)
    with waiting(part.seconds, quiet=alone):
        verdict = judge(part, answer, seed=seed, device=device)
    no_option = isinstance(part, Choice) and verdict.code == "type"  # a slip, and no try
    number = 0 if no_option or not record else _record(verdict)
    if alone:
        print(verdict)
    else:
        show_verdict(verdict.status, plain(str(verdict)) + _which_try(part, number))
    if in_notebook() and verdict.status != NOT_ATTEMPTED and (warning := note(answer)):
        print(warning)
    if verdict.passed and not alone and os.environ.get("D2LMINI_SOLUTIONS") != "0":  # not in a problem set
        _what_now(exercise, part)
    if strict and verdict.status not in (PASSED, RECORDED):
        raise AssertionError(str(verdict))


_record = record
_hints_given: dict[str, int] = {}


def _found(key, call):
    """Return (exercise, part), or None after it was said which parts the exercise has, or that a lecturer has it."""
    try:
        return find(key)
    except registry.SeveralParts as several:
        if os.environ.get("D2LMINI_STRICT") == "1":
            raise
        calls = [call.format(part=part) for part in several.exercise.parts]
        print(f"{several.exercise.key} has {len(calls)} parts, one to a call: {listed(calls, 'or')}")
        return None
    except registry.UnknownKey:
        if key not in os.environ.get(LATER, "").split():
            raise
        print(f"{key}: your lecturer checks this one, when you hand the notebook in")
        return None


def _which_try(part, number):
    """Options can be tried one after another: so the number stands beside the verdict."""
    if not isinstance(part, Choice) or not number:
        return ""
    return " (your first try)" if number == 1 else f" (your try number {number})"


def _what_now(exercise, part):
    """Show in one line what comes next, and where the worked solution stands; in a notebook both are links."""
    after = linked = "this was the last: every exercise is done"
    if follows := next_open(exercise, part):
        other, todo = follows
        where = f" in chapter {other.chapter}" if other.chapter != exercise.chapter else ""
        head, name = f"next{where}: {todo.key} (", f"{NOTEBOOKS[other.chapter]}.ipynb"
        after = f"{head}{other.title})"
        link = _link(name, other) if where or Path(name).exists() else ""
        linked = f"{head}[{other.title}]({link}))" if link else after
    if exercise.key not in registry.ours():  # its solution is its author's to show
        show(after, linked)
        return
    name = f"solutions/{NOTEBOOKS[exercise.chapter]}.ipynb"
    rest = f'heading "{exercise.title}"'
    show(
        f"{after}; worked solution: exercises/{name}, {rest}",
        f"{linked}; worked solution: [exercises/{name}]({_link(name, exercise)}), {rest}",
    )


def _link(name, exercise):
    """Return where an exercise of a notebook is: as JupyterLab has it, or on Colab."""
    # a link leads from the notebook's own folder, which is the current one; on Colab there is no such file
    if not Path(name).exists():
        return f"{REPOSITORY}/exercises/{name}"
    return f"{name}#{quote(exercise.title.replace(' ', '-'))}"


def hint(key):
    """Show the next hint of a part, one at each call; after the last one they begin again.

    Raises:
        KeyError: there is no such exercise.
    """
    if (chosen := _found(key, 'hint("{part.key}")')) is None:
        return
    _, part = chosen
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
    """Keep your own judgement of a proof or a discussion that you checked, after you compared it with the model.

    Args:
        key: of an identity or a discussion.
        assessment: ``"agrees"``, ``"partly"`` or ``"differs"``.

    Raises:
        KeyError: there is no such exercise.
        ValueError: another assessment, or a part that checks verify and no reader needs to.
    """
    if (chosen := _found(key, 'review("{part.key}", ...)')) is None:
        return
    _, part = chosen
    if not isinstance(part, (Identity, Discussion)):
        raise ValueError(f"{part.key} is a {part.kind}: check() verifies it, there is nothing to assess yourself")
    if assessment not in ASSESSMENTS:
        raise ValueError(f"the assessment is {assessment!r}, expected one of {', '.join(ASSESSMENTS)}")
    if not load_progress().get(part.key, {}).get("tries"):
        print(f'{part.key} was not attempted yet, so nothing is counted: call check("{part.key}", {part.name}) first')
        return
    record_review(part.key, assessment)
    print(f"REVIEWED {part.key}: {assessment} (counted as self-assessed)")


def reset(key=None):
    """Forget what you did of a part, of an exercise with its parts, or after a question of all of them.

    Your answers stay where they are; in a notebook an empty cell for the part is put below. What is forgotten stays in
    a file beside that of the progress, whose name ends in ``.before-reset-1``, or the next free number.

    Args:
        key: of a part or of an exercise; None: all.

    Raises:
        KeyError: there is no such exercise.
    """
    if key is None:
        begun = load_progress()
        if begun and not _agreed(f"Forget what you did of {len(begun)} parts? Type yes: "):
            print("nothing was forgotten")
            return
        forget(begun)
        _hints_given.clear()
        print(f"RESET all {len(begun)} parts that were begun")
        return
    try:
        parts = [find(key)[1]]
    except registry.SeveralParts as several:
        parts = several.exercise.parts
    forget([part.key for part in parts])
    for part in parts:
        _hints_given.pop(part.key, None)
    print(f"RESET {', '.join(part.key for part in parts)}")
    if in_notebook() and len(parts) == 1:
        running_shell().set_next_input(source.answer_cell(parts[0], source.unanswered(parts[0])))


def _agreed(question):
    try:
        return input(question).strip().lower() == "yes"
    except (EOFError, NotImplementedError):  # nobody is there to ask: a script, or a notebook that is executed
        return False
