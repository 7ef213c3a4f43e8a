"""Read the cells of a notebook file, or say what the file is instead."""

import json
import os
import re
import stat
from dataclasses import dataclass

LARGEST = 64 * 2**20  # bytes; parsing takes many times as many
BEGINNINGS = {
    b"PK\x03\x04": "a zip archive: it has to be unpacked first",
    b"\x1f\x8b": "a compressed archive: it has to be unpacked first",
    b"7z\xbc\xaf": "a compressed archive: it has to be unpacked first",
    b"Rar!": "a compressed archive: it has to be unpacked first",
    b"%PDF": "a PDF: the notebook itself has to be handed in",
    b"\0\x05\x16\x07": "what a Mac keeps beside a file, and not the file itself",
    b"version https://git-lfs": "a pointer of Git LFS, and not the file that it stands for",
}


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook: ``"code"``, ``"markdown"`` or ``"raw"``, and what was typed into it."""

    kind: str
    source: str


def read(path) -> bytes:
    """Return the content of a file, unless reading it would wait for ever or fill the memory.

    Raises:
        ValueError: it cannot be read; the message says why.
    """
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            os.scandir(path).close()  # says why the folder could not be searched
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is not a file, but a folder, a pipe or a device")
        if found.st_size > LARGEST:
            size = f"{found.st_size / 2**20:,.0f} MiB, and at most {LARGEST / 2**20:.0f} are read"
            raise ValueError(f"the file has {size}: do its outputs have to be cleared?")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ValueError("it is a link that leads nowhere" if path.is_symlink() else "it is gone") from error
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from error


def cells(data) -> list[Cell]:
    """Return the cells of a notebook.

    Args:
        data: the bytes of its file.

    Raises:
        ValueError: they are no notebook; the message says what they look like.
    """
    for beginning, what in BEGINNINGS.items():
        if data.startswith(beginning):
            raise ValueError(f"the file is {what}")
    try:
        text = data.decode(json.detect_encoding(data))  # editors on Windows write UTF-16, and byte order marks
    except UnicodeDecodeError as error:
        raise ValueError("the file is not UTF-8 text") from error
    if not text.strip("\0 \t\r\n\ufeff"):
        raise ValueError("the file is empty")
    try:
        notebook = json.loads(text)
    except (RecursionError, MemoryError) as error:
        raise ValueError("the file is no notebook: its JSON is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"the file is {_instead(text, error)}") from error
    found = notebook.get("cells") if isinstance(notebook, dict) else None
    if isinstance(found, list):
        return [_cell(number, cell) for number, cell in enumerate(found, start=1)]
    if isinstance(notebook, dict) and "worksheets" in notebook:
        old = f"nbformat {notebook.get('nbformat', 3)}, which nothing of today writes"
        raise ValueError(f"the file is a notebook of {old}: Jupyter converts it when it is opened there and saved")
    raise ValueError("the file is JSON, but no notebook: it has no list of cells")


def _instead(text, error):
    """Say what a text is that is not JSON; ``error`` is JSON's."""
    start = text.lstrip("\ufeff \t\r\n")
    if re.search(r"^<{7} ", text, re.M):
        return "a notebook with a merge conflict in it: one of the two sides has to be chosen"
    if start.startswith("<"):
        return "an HTML page and no notebook: did the download lead to a page for signing in?"
    if start.startswith("{") and (error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")):
        return "cut off in the middle: did the upload or the download end too early?"
    return f"no notebook: it is no JSON ({error.msg}, in line {error.lineno})"


def _cell(number, cell):
    try:
        kind, source = cell["cell_type"], cell["source"]
        return Cell(str(kind), source if isinstance(source, str) else "".join(source))
    except (LookupError, TypeError) as error:
        raise ValueError(f"the file is a notebook whose cell {number} is damaged") from error
