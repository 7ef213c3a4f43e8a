"""An exercise of your own: begin one, and see what it lacks.

python -m d2lmini exercise new own-08.9
python -m d2lmini exercise audit own_08_9.md
"""

import os
import re
from pathlib import Path

from .audit import audit
from .engine import registry, written
from .engine.document import DocumentError

FIRST = Path(__file__).with_name("first_document.md")


def begin(key, folder=None) -> Path:
    """Write a first document, which works as it is, and return its path.

    Args:
        key: ``own-08.9``: the number of the chapter, and one that is not taken there.
        folder: where to; None: the folder in ``D2LMINI_EXERCISES``, or the current one.

    Raises:
        ValueError: the key is not of that form, or it is taken.
        OSError: the file cannot be written.
    """
    found = re.fullmatch(r"own-(\d{2})\.(\d{1,3})", key)
    if not found or found[1] not in registry.NOTEBOOKS:
        last = max(registry.NOTEBOOKS)
        raise ValueError(f"{key!r} is no key for an exercise of your own: own-08.9, with a chapter from 01 to {last}")
    folder = Path(folder or os.environ.get(registry.YOURS) or ".").expanduser()
    path = folder / f"{key.replace('-', '_').replace('.', '_')}.md"
    known = registry.keys(found[1])
    if key in known or path.exists():
        other = path if path.exists() else registry.path(key)
        free = next(name for n in range(1, 1000) if (name := f"own-{found[1]}.{n}") not in (*known, key))
        raise ValueError(f"{key} is taken, by {other}: {free} is free")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(FIRST.read_text(encoding="utf-8"), encoding="utf-8")
    return path


def lacks(path, seconds=1.0) -> list[str]:
    """Return what a document lacks, in sentences; an empty list where it keeps every promise that exercises make.

    Raises:
        OSError: it cannot be read.
    """
    try:
        found = [str(problem) for problem in audit(written.read(path), seconds)]
    except DocumentError as error:
        return [str(error)]
    # each seed may have found the same, and how to try its inputs again is for students
    return list(dict.fromkeys(re.sub(r"\s*\(the same inputs again: .*", "", one, flags=re.S) for one in found))
