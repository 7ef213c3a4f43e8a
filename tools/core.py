"""The budget of a chapter's core, and the times at the top of each chapter: `python -m tools.core [NN ...]`.

What a core may be stands in `LIMITS`; a chapter that must break a limit stands in `EXCEPTIONS`, with the reason.
"""

import ast
import re
import sys
from functools import cache
from typing import NamedTuple

import nbformat

import d2lmini.figures
from tools import layers, prose, site
from tools._generated import ROOT, main, put
from tools.layers import CHECK, CORE, FURTHER

LIMITS = {"words": 1400, "lines": 70, "lines a cell": 12, "lines of a class": 20, "columns": 88, "predictions": 3}
LIMITS["pixels"] = 2 * 900  # above the first thing to touch: two screens, 1,280 wide
EXCEPTIONS = {}  # chapter: {limit: (number, why)}
WAITING = ()  # chapters not in this form yet
# Minutes for a word, a displayed equation, a line of code that carries an idea, one of bookkeeping, a prediction, an
# output, a figure that moves: the rates of readers who timed seven chapters. Sums are rounded to five.
WORD, EQUATION, LINE, BOOKKEEPING, PREDICTION, OUTPUT, FIGURE = 1 / 200, 0.6, 1 / 7, 1 / 15, 0.75, 0.58, 4
_BOOKKEEPING = re.compile(r"^ *(?:assert|print\(|plt\.|d2l\.plot|d2l\.show_)|assert_close|results\.|record")
TIMES = re.compile(r"^\*Core \d+ min, [^\n]*\*\n\n", re.M)


class Minutes(NamedTuple):
    """Minutes of a first reading, exercises left out: the core, with the checks, with Going further."""

    core: int
    checks: int
    further: int


@cache
def read(name):
    """The pieces of a chapter. Returns: list of `layers.Piece`."""
    return layers.read(name)


def words(piece):
    """How many words of prose a piece has, what its code writes as text included. Returns: int."""
    return prose.count(piece.text if piece.kind == "prose" else layers.told(piece.text))


def _lines(piece):
    """Minutes for the lines of a cell. Returns: float."""
    lines = layers.code_lines(piece.text)
    light = len(lines) if piece.folded else sum(bool(_BOOKKEEPING.search(text)) for text in lines)
    return BOOKKEEPING * light + LINE * (len(lines) - light)


def minutes_of(piece):
    """Minutes of reading by the rates above. Returns: float."""
    if piece.kind == "prose":
        equations = piece.text.count("$$") // 2
        return WORD * words(piece) + EQUATION * equations + PREDICTION * len(prose.predictions(piece.text))
    shown = FIGURE if _has_figure(piece.text) else OUTPUT if layers.shows(piece.text) else 0
    return WORD * words(piece) + _lines(piece) + shown


@cache
def minutes(name):
    """The times of a chapter, each including the ones before it. A folded input is a check, its output is not.

    Args:
        name: as "03_attention_scoring".

    Returns:
        `Minutes`, multiples of five.
    """
    took = {CORE: 0.0, CHECK: 0.0, FURTHER: 0.0}
    for piece in read(name):
        took[piece.layer] += minutes_of(piece)
        if piece.layer == CORE and piece.folded:
            took[CORE] -= _lines(piece)
            took[CHECK] += _lines(piece)
    sums = took[CORE], took[CORE] + took[CHECK], sum(took.values())
    return Minutes(*(5 * max(1, round(value / 5)) for value in sums))


def _has_figure(source):
    """Whether a cell shows a figure that moves; a check or a record may name one and prints a line."""
    if re.match(r"# @title (?:Check|Record|Plot|Diagram): ", source):
        return False
    names = (getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(ast.parse(source)))
    return not _figures().isdisjoint(names)


@cache
def _figures():
    return {name for name in d2lmini.figures.__all__ if name[0].isupper()}


def measure(pieces):
    """What a core holds. Returns: dict with words, lines, predictions, and longest cell, class and line of code."""
    core = [piece for piece in pieces if piece.layer == CORE]
    seen = [piece for piece in core if piece.kind == "code" and not piece.folded]
    sizes = [(len(layers.code_lines(piece.text)), bool(re.search(r"^class ", piece.text, re.M))) for piece in seen]
    return {
        "words": sum(map(words, core)),
        "lines": sum(size for size, _ in sizes),
        "lines a cell": max((size for size, is_class in sizes if not is_class), default=0),
        "lines of a class": max((size for size, is_class in sizes if is_class), default=0),
        "columns": max((len(line) for piece in seen for line in piece.text.split("\n")), default=0),
        "predictions": sum(len(prose.predictions(piece.text)) for piece in core if piece.kind == "prose"),
    }


def faults(pieces, number=None):
    """What a chapter's form breaks: limits, order, words that the style bans.

    Args:
        pieces: list of `layers.Piece`.
        number: as "03", whose `EXCEPTIONS` count; None: none.

    Returns:
        list of str, empty where nothing is wrong.
    """
    allowed = {**LIMITS, **{limit: most for limit, (most, _) in EXCEPTIONS.get(number, {}).items()}}
    found = [
        f"{name}: {size}, at most {allowed[name]}" for name, size in measure(pieces).items() if size > allowed[name]
    ]
    return found + _order(pieces) + _visible(pieces) + _written(pieces)


def _order(pieces):
    """Hook before code, the class in the first half, goals and summary, what is folded at the end."""
    core, found = [piece for piece in pieces if piece.layer == CORE], []
    first = next((at for at, piece in enumerate(core) if piece.kind == "code"), len(core))
    if sum(words(piece) for piece in core[:first] if piece.level == 2) < 40:
        found.append("there is code before the problem: the first section begins with prose")
    classes = [at for at, p in enumerate(core) if p.kind == "code" and re.search(r"^class ", p.text, re.M)]
    if not classes:
        found.append("the core has no class")
    elif sum(words(piece) for piece in core[: classes[0]]) > sum(map(words, core)) / 2:
        found.append("the class comes in the second half of the core")
    goals, answers = len(prose.items(core[0].text)), len(prose.items(_section(core, "Summary")))
    if not 3 <= goals <= 5 or goals != answers:
        found.append(f"{goals} goals (3 to 5) and {answers} lines of the summary: each goal is answered in a line")
    headings = [piece.heading for piece in pieces if piece.level == 2]
    if headings[-1:] != ["Going further"] or pieces[-1].layer != FURTHER:
        found.append("the last section is not Going further, folded")
    return found


def _section(core, heading):
    """What a section of the core writes, texts of its code included. Returns: str."""
    at = next((at for at, piece in enumerate(core) if piece.heading == heading), len(core))
    texts = []
    for piece in core[at : at + 1] + core[at + 1 :]:
        if piece.level and piece.heading != heading:
            break
        texts.append(piece.text if piece.kind == "prose" else layers.told(piece.text))
    return "\n\n".join(texts)


def _visible(pieces):
    """Code that is open checks nothing, draws nothing, reads no record; a check prints one line."""
    found = []
    for piece in (piece for piece in pieces if piece.kind == "code"):
        tree = ast.parse(piece.text)
        if not piece.folded and piece.layer == CORE:
            if any(isinstance(node, ast.Assert) for node in ast.walk(tree)) or "assert_close" in piece.text:
                found.append(f"cell {piece.cell}: an open cell asserts; fold it as a check")
            if re.search(r"\bplt\.|\bresults\.", piece.text):
                found.append(f"cell {piece.cell}: an open cell draws or reads a record; fold it")
        if piece.folded and re.match(r"# @title Check: ", piece.text):
            names = [
                getattr(n.func, "attr", getattr(n.func, "id", "")) for n in ast.walk(tree) if isinstance(n, ast.Call)
            ]
            if sum(name in ("print", "show_text") for name in names) != 1:
                found.append(f"cell {piece.cell}: a check prints one line")
    return found


def _written(pieces):
    """Paragraphs, predictions, brackets and words."""
    found = []
    for piece in pieces:
        text = piece.text if piece.kind == "prose" else layers.told(piece.text)
        found += [f"cell {piece.cell}: {fault}" for fault in prose.faults(text, strict=piece.layer == CORE)]
    return found


def line(name):
    """The line of a chapter's first cell that tells its times. Returns: str."""
    core, checks, further = minutes(name)
    return f"*Core {core} min, with checks {checks}, with Going further {further}.*"


def sync(check):
    """Returns: list of the chapters whose line of times was out of step."""
    stale = []
    for name, _ in site.chapters():
        path = ROOT / "chapters" / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        title, rest = TIMES.sub("", notebook.cells[0].source).split("\n", 1)
        notebook.cells[0].source = f"{title}\n\n{line(name)}\n\n{rest.lstrip()}"
        stale += put(path, nbformat.writes(notebook) + "\n", check)
    return stale


def report(numbers):
    """Print what chapters measure and what they break. Args: numbers: as ["03"]; empty: all."""
    for name, _ in site.chapters():
        if not numbers or name[:2] in numbers:
            sizes = ", ".join(f"{key} {size}" for key, size in measure(read(name)).items())
            print(f"{name}: {sizes}; {line(name)}")
            for fault in faults(read(name), name[:2]):
                print(f"   {fault}")


if __name__ == "__main__":
    if {"--check", "--sync"} & set(sys.argv):
        sys.argv = [arg for arg in sys.argv if arg != "--sync"]
        main(sync, command="python -m tools.core --sync")
    else:
        report(sys.argv[1:])
