"""Texts by name: novels, plays, Wikipedia articles, and this book's own prose."""

import re
from pathlib import Path

from d2lmini.data import registry
from d2lmini.data.store import DataError

BOOK = Path(__file__).parent / "assets" / "book.txt"
_MARK = re.compile(r"^\*\*\* ?(START|END) OF TH(?:IS|E) PROJECT GUTENBERG EBOOK.*$", re.M)
_CREDIT = re.compile(r"\A(?:Produced by|An Anonymous Volunteer).*?\n\n+", re.S)
_CLOSING = re.compile(r"\n[ \t]*End of (?:the )?Project Gutenberg.*\Z", re.S)


def load_text(name, part=None, download=True):
    """Read a text.

    Args:
        name: ``"tinyshakespeare"``, ``"gutenberg"``, ``"wikitext2"`` or ``"book"``.
        part: of ``"wikitext2"``: ``"train"``, ``"valid"`` or ``"test"``. Of ``"gutenberg"``: a book's
            number there, such as 35; None for all, one after the other, in the order of their numbers.
        download: whether to fetch what is not on this machine.

    Returns:
        str with ``\\n`` as the only line end.

    Raises:
        ValueError: there is no such text or part.
        DataError: a file is missing or damaged.
    """
    if name == "book" and part is None:
        return "\n\n".join(book_text())
    if name == "tinyshakespeare" and part is None:
        return _read(registry.path(name, "input.txt", download))
    if name == "wikitext2" and part in ("train", "valid", "test"):
        return _read(registry.path(name, f"{part}.txt", download))
    if name == "gutenberg":
        files = [file.name for file in registry.get(name).files]
        if part is not None:
            files = [file for file in files if file == f"{part}.txt"]
        if files:
            books = [strip_gutenberg(_read(registry.path(name, file, download))) for file in files]
            return "\n\n\n".join(books)
    raise ValueError(
        f"there is no text {name!r} with part {part!r}, expected 'tinyshakespeare', 'gutenberg' (part: None "
        "or a book's number), 'wikitext2' (part: 'train', 'valid' or 'test') or 'book'"
    )


def book_text():
    """This book's own prose.

    Returns:
        list of str, its paragraphs.

    Raises:
        DataError: this installation of the package came without it.
    """
    if not BOOK.is_file():
        raise DataError(f"{BOOK} does not exist: `make sync` writes the book's text, in a checkout")
    return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", _read(BOOK)) if paragraph.strip()]


def strip_gutenberg(text):
    """Cut header, licence and credits off a text of Project Gutenberg.

    Args:
        text: the whole file, with ``\\n`` line ends.

    Returns:
        str, what stands between the two marks, without the line that closes it and the credits that open it.

    Raises:
        ValueError: it does not have one mark of each kind.
    """
    marks = list(_MARK.finditer(text))
    if [mark[1] for mark in marks] != ["START", "END"]:
        found = [mark[0] for mark in marks]
        raise ValueError(f"expected one '*** START OF THIS PROJECT GUTENBERG EBOOK' and one END, not {found}")
    body = text[marks[0].end() : marks[1].start()].strip()
    return _CLOSING.sub("", _CREDIT.sub("", body)).strip()


def _read(path):
    """Decode as UTF-8; universal newlines make every line end a ``\\n``."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text ({error})") from error
