"""Read the answer cells of a notebook, trusting nothing in it."""

import ast
import re
from collections import Counter
from contextlib import suppress

from ..engine import registry
from ..engine.registry import find
from ..reader.other_cells import assigned

HEADER = re.compile(r"^[ \t]*#+[ \t]*exercise[ \t]*:[ \t]*(\S+)", re.M | re.I)
STATEMENT = re.compile(r"^\*`([\w.-]+)`, ", re.M)  # the small line under the title of an exercise
# %magic, %%magic, !shell, ?help and help?; x = %magic and x = !shell; %time statement
_SPECIAL = re.compile(r"\s*(%{1,2}[A-Za-z_]|!|\?)|[^#]*\?\s*$")
_ASSIGNED = re.compile(r"([^=#]*=\s*)(%[A-Za-z_]|!)")
_TIMED = re.compile(r"(\s*)%time\s+(?=[^-\s])")
MAGICS = 100  # at most so many lines of a cell: it is parsed once for each
LONGEST = 2**20  # characters of a cell that is parsed at all


def answers(sources):
    """Return key -> Python source of its answer cell, known by its header; of two with one key the last counts.

    A key that names no part stays as it is written.
    """
    return {key: plain_python(source) for key, source in _headed(sources)}


def repeated(sources):
    """Return the keys that more than one cell answers."""
    return {key for key, number in Counter(key for key, _ in _headed(sources)).items() if number > 1}


def _headed(sources):
    return [(_full(match[1]), source) for source in sources if (match := HEADER.search(source))]


def misplaced(cells):
    """Return key -> kind of the cell, of answers that are in no code cell: it begins with their header.

    Args:
        cells: as `notebook_file.cells` returns them.
    """
    found = {}
    for cell in cells:
        match = cell.kind != "code" and HEADER.match(cell.source.strip())
        if match and not match[0].startswith("##"):  # that is a heading of the task
            with suppress(KeyError):
                found[find(match[1])[1].key] = cell.kind
    return found


def stated(cells):
    """Return the keys of the exercises whose statements are in a notebook."""
    known = registry.keys()
    keys = (key for cell in cells if cell.kind == "markdown" for key in STATEMENT.findall(cell.source))
    return [key for key in dict.fromkeys(keys) if key in known]


def _full(key):
    try:
        return find(key)[1].key
    except KeyError:
        return key


def plain_python(source):
    """Return a cell without what is IPython's own; lines keep their numbers.

    ``%magic``, ``%%magic``, ``!shell``, ``?name`` and ``name?`` become ``pass``, where they are no Python: the line of
    a string or of a sum may start with % too. ``x = !ls`` and ``x = %magic`` get what a silent shell gives, and
    ``%time x = 1`` is done without the clock. What any other such line would have done is not done.
    """
    lines = source.split("\n")
    for _ in range(MAGICS):
        try:
            _parsed("\n".join(lines))
            break
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            if not 0 <= at < len(lines) or (plain := _without_magic(lines[at])) is None:
                break
            while lines[at].endswith("\\") and at + 1 < len(lines):  # it goes on in the next line
                lines[at], at = plain, at + 1
                plain = plain[: len(plain) - len(plain.lstrip())] + "pass"
            lines[at] = plain
        except (ValueError, RecursionError, MemoryError):
            break
    return "\n".join(lines)


def _without_magic(line):
    """Return what is in place of a line of IPython's, or None if it is none."""
    if _TIMED.match(line):
        return _TIMED.sub(r"\1", line)
    if match := _ASSIGNED.match(line):
        return match[1] + "get_ipython()"
    return line[: len(line) - len(line.lstrip())] + "pass" if _SPECIAL.match(line) else None


def _parsed(source):
    """Return the tree of a cell. Raises: as `ast.parse`, or ValueError: it is too long for one that a person writes."""
    if len(source) > LONGEST:
        raise ValueError("too long")
    return ast.parse(source)


def imports(sources):
    """Return the import statements on the top level of all cells."""
    statements = []
    for source in sources:
        try:
            body = _parsed(plain_python(source)).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        statements += [ast.unparse(n) for n in body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return statements


def defined_elsewhere(name, sources) -> bool:
    """Whether a code cell defines a name on its top level; an import, which grading runs, is none.

    Args:
        name: that an answer did not find.
        sources: of the code cells, as `cells` returns them.
    """
    return any(name in assigned(plain_python(source)) for source in sources)
