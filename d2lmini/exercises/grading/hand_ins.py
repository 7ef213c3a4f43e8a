"""Find what was handed in below a folder, and give every hand-in a name of its own, whatever its file is called."""

import os
import unicodedata
from pathlib import Path

ENDINGS = (".ipynb", ".ipynb.txt", ".ipynb.json")  # browsers save notebooks under all three, in any case
JUNK = (".ipynb_checkpoints", "__MACOSX")  # folders that Jupyter and a Mac's archives make
REORDERING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))  # characters that turn the text around them
LONGEST = 200  # bytes of a name that is written; file systems take 255
MOST_NAMED = 10


def find(folder):
    """Return the paths of all hand-ins below a folder, in order, and of all other files, links and folders of junk.

    A folder that may not be opened is a hand-in, too: it may hold some, and is to have a row.
    """
    found, others = [], []
    for parent, folders, names in os.walk(folder, onerror=lambda error: found.append(Path(error.filename))):
        inside = [name for name in folders if name not in JUNK and not Path(parent, name).is_symlink()]
        others += [Path(parent, name) for name in folders if name not in inside]
        folders[:] = inside
        for name in names:
            is_hand_in = name.lower().endswith(ENDINGS) and not name.startswith("._")
            (found if is_hand_in else others).append(Path(parent, name))
    return sorted(found), sorted(others)


def named(paths, folder) -> dict[str, Path]:
    """Return name -> path: the names are for people, differ for the eye, and may be written anywhere."""
    return dict(zip(_distinct([shown(os.path.relpath(path, folder)) for path in paths], _looks), paths, strict=True))


def outputs(names, ending) -> dict[str, str]:
    """Return name -> name of the file that is written for it, in a folder where upper and lower case may be one."""
    files = []
    for name in names:
        stem = next((name[: -len(e)] for e in ENDINGS if name.lower().endswith(e)), name)
        files.append("/".join(piece.encode()[:LONGEST].decode(errors="ignore") for piece in stem.split("/")) + ending)
    return dict(zip(names, _distinct(files, lambda name: _looks(name).casefold()), strict=True))


def shown(text, keep="") -> str:
    r"""Return a text as screens and files take it: what was no character in a name is ``\xfc``.

    Control characters, and those that turn the text around, are replaced. All others stay: some script needs them.

    Args:
        text: of a student.
        keep: control characters that stay.
    """
    return "".join(c if c in keep or _can_be_shown(c) else _in_place_of(ord(c)) for c in text)


def _can_be_shown(character):
    return unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp") and ord(character) not in REORDERING


def _in_place_of(code):
    byte = code - 0xDC00  # Python's way to keep a byte that it cannot decode
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else "\N{REPLACEMENT CHARACTER}"


def _looks(name):
    return unicodedata.normalize("NFC", name)


def _distinct(names, looks):
    """Number those that look like one before them: ``a.ipynb``, ``a (2).ipynb``."""
    taken, distinct = set(), []
    for name in names:
        stem, ending = os.path.splitext(name)
        number, free = 1, name
        while looks(free) in taken:
            number += 1
            free = f"{stem} ({number}){ending}"
        taken.add(looks(free))
        distinct.append(free)
    return distinct


def listed(paths, folder) -> str:
    """Return the first names of some paths, and how many more there are."""
    names = [shown(os.path.relpath(path, folder)) for path in paths]
    more = [f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return ", ".join(names[:MOST_NAMED] + more)
