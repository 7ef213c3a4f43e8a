"""Find exercises and their parts by key."""

import difflib
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from . import written
from .document import DocumentError

FOLDER = Path(__file__).resolve().parent.parent
_NAMES = """
    01_queries_keys_values 02_attention_pooling 03_attention_scoring 04_bahdanau_attention 05_multi_head_attention
    06_self_attention_and_position 07_transformer 08_training_transformers 09_long_sequences 10_vision_transformer
    11_multiscale_vision 12_tokenization 13_bert 14_t5 15_gpt 16_decoding 17_scaling 18_after_pretraining 19_real_model
"""
# of a chapter: its exercises are exercises/NAME.ipynb, worked out in exercises/solutions/NAME.ipynb
NOTEBOOKS = {name[:2]: name for name in _NAMES.split()}
# where Colab opens the notebooks; `make sync` writes it from the address in _config.yml
REPOSITORY = "https://colab.research.google.com/github/d2lmini/d2lmini/blob/main"


def natural(key):
    """Sort key: numbers within a key count as numbers."""
    return [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", key)]


YOURS = "D2LMINI_EXERCISES"  # in the environment: a folder with more exercises, which the package does not have


def _files() -> dict[str, Path]:
    """Return the document of each exercise, by key, in order: names say where exercises are, none has to be read.

    Raises:
        DocumentError: a document of the reader's own has a key that is taken.
    """
    if not (folder := os.environ.get(YOURS)):
        return _of_the_package()
    files = dict(_of_the_package())
    for path in sorted(Path(folder).expanduser().rglob("*.md")):
        if not written.NAME.fullmatch(path.stem):
            continue
        if taken := files.get(key := written.key_of(path)):
            raise DocumentError(path, 1, f"the key {key} is taken, by {taken}: give the file another number")
        files[key] = path.resolve()
    return _in_order(files)


@cache
def _of_the_package():
    return _in_order({written.key_of(path): path for path in FOLDER.glob("ch[0-9][0-9]/*.md")})


def _in_order(files):
    return dict(sorted(files.items(), key=lambda pair: natural(pair[0])))


def keys(chapter=None) -> tuple[str, ...]:
    """Return the keys of all exercises, or of those of one chapter (``"03"``), in order."""
    return tuple(key for key, file in _files().items() if chapter in (None, _chapter(key, file)))


def ours() -> tuple[str, ...]:
    """Return the keys of the exercises that come with the package, in order."""
    return tuple(_of_the_package())


def chapters() -> list[str]:
    """Return the chapters that have exercises, in order."""
    return sorted({_chapter(key, file) for key, file in _files().items()})


def chapter_of(key) -> str:
    """Return the chapter of an exercise, ``"03"``: its folder, ``ch03``, or the first number of its key."""
    return _chapter(key, path(key))


def _chapter(key, file):
    folder = file.parent.name
    return folder[2:] if re.fullmatch(r"ch\d\d", folder) else f"{_numbers(key)[0]:02}"


def path(key) -> Path:
    """Return the document of the exercise with this key, without a part's letter."""
    return _files()[key]


def anchor(key) -> str:
    """Return how an address of an exercise or of a part ends: that of ``"udl-12.5b"`` is ``"udl-12-5b"``."""
    return key.replace(".", "-")


def load(key):
    """Return the exercise with this key, without a part's letter."""
    file = path(key)
    return _read(file, _chapter(key, file), file.stat().st_mtime_ns)  # an author changes it while a notebook is open


@cache
def _read(file, chapter, written_at):
    return replace(written.read(file), chapter=chapter)


def exercises(chapter=None):
    """Return all exercises, or those of one chapter (``"03"``): no others are imported."""
    return [load(key) for key in keys(chapter)]


class UnknownKey(KeyError):
    """No part has this key; the message says which may be meant."""

    def __str__(self):  # KeyError shows its argument in quotes, which suits a key and no sentence
        return str(self.args[0])


class SeveralParts(UnknownKey):
    """The key is that of an exercise with parts, and leaves open which of them is meant."""

    def __init__(self, exercise):
        super().__init__(f"{exercise.key} has parts: {', '.join(part.key for part in exercise.parts)}")
        self.exercise = exercise


def find(key):
    """Return (exercise, part) for the key of a part.

    ``"udl-12.5a"`` may be written in any case, with spaces, and without its book where no other one has that number.

    Raises:
        SeveralParts: it is the key of an exercise that has several parts.
        UnknownKey: for an unknown or ambiguous key, with those that look like it.
    """
    match = isinstance(key, str) and _KEY.fullmatch("".join(key.lower().split()))  # as a float 12.10 would be 12.1
    if not match:
        raise UnknownKey(f"there is no exercise {key!r}{_suggested(_similar(str(key).lower()))}")
    book, numbers, letter = match[1], _numbers(match[2]), match[3]
    matches = [k for k in keys() if _numbers(k) == numbers and book in (None, _book(k))]
    if matches and not book and not letter:
        matches += _within(numbers)  # own-11.1 is asked for, or section 11.1 of D2L
    if len(matches) > 1:
        raise UnknownKey(f"{key!r} is ambiguous: {listed([k + letter for k in matches], 'or')}?")
    if not matches:
        raise UnknownKey(f"there is no exercise {key!r}{_near(book, numbers, letter)}")
    exercise = load(matches[0])
    for part in exercise.parts:
        if part.key == matches[0] + letter:
            return exercise, part
    if len(exercise.parts) == 1:
        raise UnknownKey(f"there is no {key!r}: {matches[0]} has one part only, without a letter")
    if not letter:
        raise SeveralParts(exercise)
    raise UnknownKey(f"there is no {key!r}: {SeveralParts(exercise)}")


_KEY = re.compile(r"(?:(d2l|udl|own)[-_]?)?(\d{1,3}(?:[._]\d{1,3}){0,3})([a-z]?)", re.ASCII)


def _book(key):
    return key.partition("-")[0]


def _numbers(key):
    """Return the numbers of a key, so that 4.1 is 04.1."""
    return tuple(map(int, re.findall(r"\d+", key.rpartition("-")[2])))


def _within(section, book=None):
    """Return the exercises whose numbers go on from those of a section."""
    return [k for k in keys() if book in (None, _book(k)) and _numbers(k)[: len(section)] == section != _numbers(k)]


def _near(book, numbers, letter):
    """Return the end of a message: the exercises of that section, or that number in another book, or similar ones."""
    if book and (inside := _within(numbers, book)):
        return _contents(numbers, inside)
    same = [part.key for k in keys() if _numbers(k) == numbers for part in load(k).parts]
    if same := [key for key in same if not letter or key[-1] == letter] or same:
        return _suggested(same)
    for section, where in ((numbers, None), (numbers[:-1], book), (numbers[:-1], None)):
        if section and (inside := _within(section, where)):
            return _contents(section, inside)
    return _suggested(_similar(_dotted(numbers)))


def _contents(section, inside):
    name = ".".join(inside[0].split(".")[: len(section)])
    several = len({_book(k) for k in inside}) > 1
    return f"; {_dotted(section) if several else name} has {listed(inside, 'and')}"


def _similar(text):
    """Return the keys that are spelled most like a text, with or without the name of their book."""
    forms = [form for key in keys() for form in (key, key.partition("-")[2])]
    best = difflib.get_close_matches(text[:40], forms, 1, 0.75)
    return [key for key in keys() if {key, key.partition("-")[2]} & {*best}]


def _dotted(numbers):
    return ".".join(map(str, numbers))


def _suggested(candidates):
    return f"; did you mean {listed(candidates, 'or')}?" if candidates else ""


def listed(names, word) -> str:
    """Return names as a sentence has them: ``"a, b or c"``, with ``word`` before the last."""
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last
