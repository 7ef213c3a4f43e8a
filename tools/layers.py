"""A chapter's three layers: what is open (core), what is folded where it stands (check), and Going further.

The tag `fold` says what is folded: of a code cell the input; of a Markdown cell, which is then a heading, the section.
"""

import ast
import re
from typing import NamedTuple

import nbformat

from tools._generated import ROOT

CORE, CHECK, FURTHER = "core", "check", "further"
HEADING = re.compile(r"^(#{1,6}) +(.+?) *$", re.M)
FENCE = re.compile(r"^(```|~~~).*?^\1 *$", re.M | re.S)
_SHOWS = re.compile(r"print|show_\w+|plot|display|scatter|imshow|bar")


class Piece(NamedTuple):
    """A code cell, or what a heading and the next one have between them.

    Attributes:
        layer: CORE, CHECK or FURTHER.
        kind: "prose" or "code".
        heading: of prose, the heading it begins with, or "".
        level: the heading's level, or 0.
        text: Markdown without the heading, or source.
        folded: of code, whether the input is folded.
        cell: the number of the cell, from 0.
    """

    layer: str
    kind: str
    heading: str
    level: int
    text: str
    folded: bool
    cell: int


def read(name):
    """The pieces of a chapter, in order, the setup cell left out. Returns: list of `Piece`."""
    return pieces(nbformat.read(ROOT / "chapters" / f"{name}.ipynb", as_version=4))


def pieces(notebook):
    """The pieces of a notebook, in order, the setup cell left out. Returns: list of `Piece`."""
    found, layer, folded_at = [], CORE, 0  # folded_at: the level of the heading whose section is folded, 0 for none
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code":
            if "setup" not in tags:
                found.append(Piece(layer, "code", "", 0, cell.source, "fold" in tags, number))
            continue
        for level, heading, text in _parts(cell.source):
            if level and (not folded_at or level <= folded_at):
                further = heading == "Going further"
                folded_at = level if "fold" in tags or further else 0
                layer = FURTHER if further else CHECK if folded_at else CORE
            found.append(Piece(layer, "prose", heading, level, text, False, number))
    return found


def _parts(markdown):
    """Markdown cut before its headings. Returns: list of (level, heading, text); level 0 where none begins it."""
    hidden = FENCE.sub(lambda fence: re.sub("[^\n]", " ", fence[0]), markdown)  # a # in code is no heading
    heads = list(HEADING.finditer(hidden))
    ends = [head.start() for head in heads] + [len(markdown)]
    parts = [(0, "", markdown[: ends[0]])] if markdown[: ends[0]].strip() else []
    for head, end in zip(heads, ends[1:], strict=True):
        parts.append((len(head[1]), head[2], markdown[head.end() : end].strip("\n")))
    return parts


def code_lines(source):
    """The lines of code that are read: neither empty nor a comment alone. Returns: list of str."""
    return [line for line in source.split("\n") if line.strip() and not line.strip().startswith("#")]


def told(source):
    """What the calls of `show_text` in a cell write, without the numbers that they put in. Returns: str, Markdown."""
    texts = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "show_text":
            texts += [_joined(argument) for argument in node.args]
    return "\n\n".join(texts)


def _joined(node):
    """A string expression with 0 for each number that is put in. Returns: str."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_joined(part) if isinstance(part, ast.Constant) else "0" for part in node.values)
    return " ".join(filter(None, (_joined(child) for child in ast.iter_child_nodes(node))))


def calls(tree):
    """The names of what a cell calls, without what they belong to. Returns: list of str."""
    found = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [getattr(function, "attr", getattr(function, "id", "")) for function in found]


def shows(source):
    """Whether a cell puts something on the page. Returns: bool."""
    tree = ast.parse(source)
    if any(_SHOWS.fullmatch(name) for name in calls(tree)):
        return True
    return bool(tree.body) and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";")
