"""A record: what it may hold, which commit it is of, and how it is written."""

import json
import math
import os
import re

from .. import results
from .parts import begun_at

_NO_RECORDS = ":(exclude)d2lmini/results/*.json*"


def source():
    """The commit that this package is checked out at, and whether it was changed since; None elsewhere.

    Records are no source: one experiment after another may write its own.

    Returns:
        dict with ``commit`` and ``dirty``.
    """
    commit = results.git("rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(results.git("status", "--porcelain", "--", ".", _NO_RECORDS))}


def refuse_unrepeatable(name, preset, checkpoint):
    """Raise where a record of the package could not be made again.

    Args:
        name, preset: of the experiment that is to be run.
        checkpoint: folder of a run to go on with, or None.

    Raises:
        ValueError: the package is not at a commit, unchanged, that has the experiment; or the run was begun at another.
    """
    now, begun = source(), begun_at(checkpoint)
    if begun not in (None, now["commit"]):
        now["begun_at"] = begun
    reasons = results.unrepeatable({"experiment": name, "preset": preset, "source": now})
    if reasons:
        raise ValueError(
            f"the results of the package hold what can be repeated, but of this record {'; '.join(reasons)}: commit "
            "first, or write it elsewhere by --out FOLDER"
        )


def check_plain(value, where):
    """Raise for what a record must not hold, and say ``where`` it is.

    Raises:
        ValueError: a number is not finite.
        TypeError: JSON cannot hold a value or a key.
    """
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}, a {type(key).__name__}; expected a str")
            check_plain(part, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            check_plain(part, f"{where}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}: the run diverged or divided by zero, and is not recorded")
    elif not isinstance(value, (str, int, float, bool, type(None))):
        raise TypeError(f"{where} is a {type(value).__name__}, expected plain numbers (`.tolist()`)")


def dump(record):
    """A record as JSON, one line for each list of numbers."""
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    flat = r"\[\n\s+([^\[\]{}]*?)\n\s+\]"  # a list that holds no list; in JSON, no string holds a line end
    return re.sub(flat, lambda match: "[" + re.sub(r",\n\s+", ", ", match[1]) + "]", text) + "\n"


def write(path, make):
    """Writes the record that ``make()`` returns to a path, where it appears whole or not at all.

    Raises:
        OSError: the folder cannot be written, which is found out before ``make`` is called.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.touch()  # hours before it is written: whether it can be
    half.unlink()  # a run that is killed leaves nothing
    text = dump(make())
    try:
        half.write_text(text, encoding="utf-8")
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)
