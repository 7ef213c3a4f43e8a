"""The form of an exercise: a Markdown document, whose prose is what readers see and whose marked code is what is run.

    # Title                   the statement below it
    ## a: code, seconds=20    a part: its letter (where there are several), its kind, its options; then what it asks
    ```python answer          the model solution; what stands below its docstring is the reader's to write, or else what
                              stands between ### BEGIN SOLUTION and ### END SOLUTION
    ### Hints                 1. gentle  2. more explicit
    ### Also right            ```python also: each function is another right answer
    ### Mistakes              ```mistakes, as below; ```python wrong: wrong answers that no small change gives
                              - **values**: what is added to the message of that diagnosis
    ### Check                 ```python check: `verify(t, answer)`; `reference`, where there is one, is right, too
                              - without **alone**: why the second run leaves this relation out
    ### What to take from it  or Model proof, or Model answer; a discussion has a ### Rubric

A choice has its options below what it asks: ``- [x] text``, on the lines below why it is right; ``- [ ]`` for a wrong
one. A text in ```mistakes is a piece of the solution; below it stands ``> instead | diagnosis | what to tell``. Code of
several lines goes on after ``>> ``, and what to tell after four spaces; ``= name | ...`` is a function of ```python
wrong, or a `partial` of one. A part may use what the parts above it define.

Here a document is taken apart; ``written.py`` makes an `Exercise` of it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from .model import Choice, Code, Count, Discussion, Experiment, Identity

KINDS = {kind.kind: kind for kind in (Code, Count, Identity, Experiment, Choice, Discussion)}
ROLES = ("answer", "also", "wrong", "check")
TOLD = ("What to take from it", "Model proof", "Model answer")
SECTIONS = ("Hints", "Also right", "Mistakes", "Check", "Rubric", *TOLD)
OPTIONS = {"seconds": float, "min_checks": int}

_PART = re.compile(r"(?:([a-h]): )?(\w+)((?:, \w+=[^\s,]+)*)")
_FENCE = re.compile(r"(`{3,})(.*)")


class DocumentError(ValueError):
    """A document is not of the form: file, line, and one sentence."""

    def __init__(self, path, line, sentence):
        super().__init__(f"{path}:{line}: {sentence}")


@dataclass
class Block:
    """A marked block of code: its role, ``mistakes`` or one of `ROLES`, the line of its fence, and its text."""

    role: str
    line: int
    text: str


@dataclass
class Section:
    """A heading, the line it stands in, and what stands below it: ``lines``, pairs of number and text, and blocks."""

    title: str
    line: int
    lines: list = field(default_factory=list)
    blocks: list = field(default_factory=list)

    @property
    def text(self):
        return "\n".join(line for _, line in self.lines).strip()


@dataclass
class PartText:
    """What a document says of one part: letter, kind, options, what it asks, and sections by their titles."""

    letter: str
    kind: str
    options: dict
    prompt: Section
    sections: dict = field(default_factory=dict)

    @property
    def blocks(self):
        return [block for section in (self.prompt, *self.sections.values()) for block in section.blocks]

    @property
    def code(self):
        """The blocks that are Python."""
        return [block for block in self.blocks if block.role in ROLES]


@dataclass
class Document:
    """A document taken apart: the section of its title, and its parts."""

    path: Path
    opening: Section
    parts: list = field(default_factory=list)

    @property
    def code(self):
        """The source of all its blocks: each line has the number that it has in the document, others are empty."""
        lines = {}
        for block in (block for part in self.parts for block in part.code):
            lines |= dict(enumerate(block.text.splitlines(), start=block.line + 1))
        return "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1)) + "\n"

    def error(self, line, sentence):
        return DocumentError(self.path, line, sentence)


def take_apart(path) -> Document:
    """Return the `Document` of a file; Windows line ends and a byte order mark are no matter.

    Raises:
        DocumentError: it is not of the form.
        OSError: it cannot be read.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(path, path.read_bytes()[: error.start].count(b"\n") + 1, "this is not UTF-8") from None
    lines = text.splitlines()
    if not lines or not re.match(r"# \S", lines[0]):
        raise DocumentError(path, 1, "it must begin with its title, `# ...`")
    document = Document(path, Section(lines[0][2:].strip(), 1))
    section, fence, block = document.opening, None, None
    for number, line in enumerate(lines[1:], start=2):
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1] == fence[0] and not opened[2].strip():
                fence = None
                if block:
                    section.blocks.append(block)
                    block = None
                    continue
            elif block:
                if opened and opened[2].strip():
                    raise document.error(block.line, "this block of code does not end before the next one begins")
                block.text += f"{line}\n"
                continue
        elif opened:
            fence = opened[1], number
            if role := _role(document, number, opened[2].strip()):
                block = Block(role, number, "")
                continue
        elif re.match(r"#{1,3} ", line):
            section = _section(document, number, line)
            continue
        section.lines.append((number, line))
    if fence:
        raise document.error(fence[1], "this block of code does not end: a line with ``` alone is missing")
    _complete(document)
    return document


def _role(document, number, words):
    language, _, role = words.partition(" ")
    if language == "mistakes":
        return language
    if language == "python" and role and role not in ROLES:
        raise document.error(number, f"a block of code cannot be {role!r}; its role is one of {', '.join(ROLES)}")
    return role if language == "python" else None


def _section(document, number, line):
    """The section that begins with a heading; that of a part or of the part above."""
    marks, _, words = line.partition(" ")
    words = words.strip()
    if marks == "##":
        found = _PART.fullmatch(words)
        if not found or found[2] not in KINDS:
            known = ", ".join(KINDS)
            raise document.error(number, f"{line!r} is no heading of a part, `## a: code`; the kinds are {known}")
        options = {}
        for option in found[3].split(", ")[1:]:
            name, value = option.split("=")
            try:
                options[name] = OPTIONS[name](value)
            except (KeyError, ValueError):
                raise document.error(number, f"{option!r} is none of seconds=20 and min_checks=5") from None
        document.parts.append(PartText(found[1] or "", found[2], options, Section(words, number)))
        return document.parts[-1].prompt
    if marks == "#" or not document.parts or words not in SECTIONS:
        known = ", ".join(SECTIONS)
        raise document.error(number, f"{line!r} is no heading of a section; below a part these are: {known}")
    if words in document.parts[-1].sections:
        raise document.error(number, f"this part has two sections {words!r}")
    document.parts[-1].sections[words] = Section(words, number)
    return document.parts[-1].sections[words]


def _complete(document):
    """Raise unless there are parts, with the letters a, b, ... or alone without one."""
    if not document.parts:
        raise document.error(1, "it has no part: `## code`, or `## a: code` where there are several")
    expected = [""] if len(document.parts) == 1 else list("abcdefgh"[: len(document.parts)])
    for part, letter in zip(document.parts, expected, strict=False):
        if part.letter != letter:
            form = f"{letter}: {part.kind}" if letter else part.kind
            raise document.error(part.prompt.line, f"this part must be `## {form}`")
    if len(document.parts) > len(expected):
        raise document.error(document.parts[8].prompt.line, "an exercise has eight parts at most")
