"""Read the answer cells of a notebook, trusting nothing in it."""

import ast
import json
import re
from collections import Counter
from pathlib import Path

from ..engine.registry import find
from ..reader.other_cells import assigned

HEADER = re.compile(r"^[ \t]*#+[ \t]*exercise[ \t]*:[ \t]*(\S+)", re.M | re.I)
_SPECIAL = re.compile(r"\s*(%{1,2}[A-Za-z_]|!|\?|[\w.]+\?{1,2}\s*$)")  # %magic, %%magic, !shell, ?help and help?
MAGICS = 100  # at most so many lines of a cell: it is parsed once for each


def cells(notebook):
    """Return the sources of the code cells.

    Raises:
        ValueError: the file is no notebook.
    """
    try:
        text = Path(notebook).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("the file is not UTF-8 text") from error
    if not text.strip():
        raise ValueError("the file is empty")
    try:
        notebook_cells = json.loads(text)["cells"]
        sources = [c["source"] for c in notebook_cells if c["cell_type"] == "code"]
        return ["".join(s) for s in sources]
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the file is not a notebook ({type(error).__name__})") from error


def answers(sources):
    """Return key -> Python source of its answer cell, known by its header; of two with one key the last counts.

    A key that names no part stays as it is written.
    """
    return {_full(match[1]): plain_python(source) for source in sources if (match := HEADER.search(source))}


def repeated(sources):
    """Return the keys that more than one cell answers."""
    count = Counter(_full(match[1]) for source in sources if (match := HEADER.search(source)))
    return {key for key, number in count.items() if number > 1}


def _full(key):
    try:
        return find(key)[1].key
    except KeyError:
        return key


def plain_python(source):
    """Return a cell without what is IPython's own; ``pass`` takes its place, so that lines keep their numbers.

    Dropped are lines that start with ``%magic``, ``%%magic``, ``!shell`` or ``?``, and ``name?``, where they are no
    Python: the line of a string or of a sum may start with % too. What such a line would have done is not done.
    ``x = !ls`` and ``x = %magic`` are left, and are errors.
    """
    lines = source.split("\n")
    for _ in range(MAGICS):
        try:
            ast.parse("\n".join(lines))
            break
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            if not (0 <= at < len(lines) and _SPECIAL.match(lines[at])):
                break
            lines[at] = lines[at][: len(lines[at]) - len(lines[at].lstrip())] + "pass"
        except (ValueError, RecursionError, MemoryError):
            break
    return "\n".join(lines)


def imports(sources):
    """Return the import statements on the top level of all cells."""
    statements = []
    for source in sources:
        try:
            body = ast.parse(plain_python(source)).body
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
