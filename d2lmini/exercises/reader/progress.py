"""What the reader has done so far: one private JSON file, written atomically, never lost.

Of each part it has: how many tries there were, whether one passed, what came of the last; the reader's own judgement of
a proof or a text; and from the pages of the book, whose script keeps the same form (progress.js), what was ticked
as solved and which options of a choice were chosen.
"""

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

from platformdirs import user_data_path

from ...shell import folder_of_user
from ..engine.judge import NOT_ATTEMPTED, PASSED
from ..engine.model import Discussion
from ..engine.registry import chapters, exercises

VERSION = 1
ASSESSMENTS = ("agrees", "partly", "differs")
_NEW = {"tries": 0, "passed": False, "last": "", "review": ""}
_PAGE = {"ticked": False, "chosen": ""}  # what only a page of the book writes
FILE = "d2lmini-progress.json"  # its name where it lies among other files
NOT_KEPT = "your progress is not kept, since there is no home folder (D2LMINI_PROGRESS can name a file for it)"


def progress_path() -> Path | None:
    """Return ``$D2LMINI_PROGRESS``, a file or a folder, or ``progress.json`` in the user's data folder.

    None: the user has no home folder, and the progress is not kept.
    """
    if chosen := os.environ.get("D2LMINI_PROGRESS"):
        return Path(chosen, FILE) if os.path.isdir(chosen) else Path(chosen)
    if (folder := folder_of_user(lambda: user_data_path("d2lmini", appauthor=False))) is None:
        _warn_once(f"{NOT_KEPT}; going on without it")
        return None
    path = folder / "progress.json"
    if sys.platform == "darwin" and not path.exists():  # it was here once, whatever XDG_DATA_HOME says
        before = Path(os.path.expanduser("~/Library/Application Support/d2lmini/progress.json"))
        return before if before.exists() else path
    return path


def load_progress() -> dict:
    """Return part key -> what is kept of it, a dict; a damaged file is set aside."""
    if (path := progress_path()) is None:
        return {}
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        _warn_once(f"cannot read the progress in {path} ({error.strerror}); going on without it")
        return {}
    if (parts := _parsed(text)) is None:
        _set_aside(path)
        return {}
    return parts


def _parsed(text):
    """Return the parts of a file of progress, or None if it is none or is damaged."""
    try:
        parts = json.loads(text)["parts"]
        return parts if all(_in_order(entry) for entry in parts.values()) else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _in_order(entry):
    fields = (_NEW | _PAGE).items()
    return all(type(entry.get(name, new)) is type(new) for name, new in fields) and entry.get("tries", 0) >= 0


def read_progress(path) -> int:
    """Add what a file holds, that a page of the book or another machine wrote; return of how many parts that is.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no file of progress.
    """
    found = _parsed(Path(path).read_bytes())
    if found is None:
        raise ValueError(f"{path} is no file of progress; the button of the book's page writes {FILE}")
    parts = load_progress()
    for key, entry in found.items():
        parts[key] = merged(parts.get(key, {}), entry)
    _save(parts)
    return len(found)


def merged(mine, other) -> dict:
    """Return what was done in either of two entries; to read a file twice is to read it once.

    Nothing is undone by it. What cannot be joined, a review, is that of ``mine``.
    """
    one, two = _NEW | _PAGE | mine, _NEW | _PAGE | other
    entry = {name: one[name] or two[name] for name in ("passed", "review", "ticked")}
    entry["tries"], entry["last"] = max((one["tries"], one["last"]), (two["tries"], two["last"]), key=lambda x: x[0])
    entry["chosen"] = max(one["chosen"], two["chosen"], key=len)
    return {name: value for name, value in entry.items() if name in _NEW or value}


def write_progress(path) -> int:
    """Write a copy for another machine or for the page *Your progress* of the book; return of how many parts."""
    parts = load_progress()
    Path(path).write_text(_text(parts), encoding="utf-8")
    return len(parts)


def _text(parts):
    return json.dumps({"version": VERSION, "parts": parts}, indent=1, sort_keys=True)


def _free(path, why):
    """A name beside a file that is not taken."""
    number = 1
    while (free := path.with_name(f"{path.name}.{why}-{number}")).exists():
        number += 1
    return free


def _set_aside(path):
    aside = _free(path, "damaged")
    try:
        path.rename(aside)
        print(f"the progress in {path} is damaged: kept as {aside.name}, starting afresh")
    except OSError as error:
        _warn_once(f"the progress in {path} is damaged and cannot be set aside ({error.strerror})")


def _save(parts):
    if (path := progress_path()) is None:
        return
    half = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, half = tempfile.mkstemp(dir=path.parent, prefix=".progress-")  # mkstemp makes it 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_text(parts))
        os.replace(half, path)
    except OSError as error:
        _warn_once(f"cannot keep the progress in {path} ({error.strerror}); going on without it")
        if half is not None and os.path.exists(half):
            os.unlink(half)


_warned = set()


def _warn_once(message):
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=4)


def _entry(parts, key):
    return parts.setdefault(key, dict(_NEW))


def record(verdict) -> int:
    """Count a try, until one passes. What was not attempted is no try: "Run all" changes nothing.

    Returns:
        the number of this try, or 0 if it is none.
    """
    parts = load_progress()
    entry = _entry(parts, verdict.key)
    if verdict.status == NOT_ATTEMPTED or entry.get("passed"):
        return 0
    entry["tries"] = entry.get("tries", 0) + 1
    entry["passed"] = verdict.status == PASSED
    entry["last"] = verdict.status
    _save(parts)
    return entry["tries"]


def record_review(key, assessment):
    """Keep the reader's own judgement of a proof or a text, apart from what was verified."""
    parts = load_progress()
    _entry(parts, key)["review"] = assessment
    _save(parts)


def forget(keys) -> int:
    """Forget what was done of these parts, all of it kept in a file beside the progress; return of how many."""
    parts = load_progress()
    begun = [key for key in keys if key in parts]
    if begun:
        path = progress_path()
        _free(path, "before-reset").write_bytes(path.read_bytes())
        _save({key: entry for key, entry in parts.items() if key not in begun})
    return len(begun)


def is_done(part, entry) -> bool:
    """Whether a part has passed, a discussion was reviewed, or a page was ticked; ``entry`` is what is kept of it."""
    return bool(entry.get("review" if isinstance(part, Discussion) else "passed") or entry.get("ticked"))


def next_open(exercise, part):
    """Return (exercise, part) of what comes next: in the same chapter, else in the next one; None if all is done.

    A chapter is imported when those before it are done.
    """
    parts, order = load_progress(), chapters()
    here = order.index(exercise.chapter)
    for chapter in order[here:] + order[:here]:  # after the last chapter the first follows
        every = [(e, p) for e in exercises(chapter) for p in e.parts]
        start = next((index for index, (_, p) in enumerate(every) if p.key == part.key), 0)
        for e, p in every[start:] + every[:start]:
            entry = parts.get(p.key, {})
            if p.key != part.key and not is_done(p, entry):
                return e, p
    return None
