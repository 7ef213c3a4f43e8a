"""Read the answer cells of a notebook, trusting nothing in it."""

import ast
import json
import re
from pathlib import Path

HEADER = re.compile(r"^\s*# exercise: *(\S+)", re.M)


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
        found = json.loads(text)["cells"]
        sources = [c["source"] for c in found if c["cell_type"] == "code"]
        return ["".join(s) for s in sources]
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the file is not a notebook ({type(error).__name__})") from error


def answers(sources):
    """Return key -> source of its answer cell, known by its header; of two with one key the last counts."""
    return {match[1]: source for source in sources if (match := HEADER.search(source))}


def imports(sources):
    """Return the import statements on the top level of all cells."""
    found = []
    for source in sources:
        plain = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith(("%", "!")))
        try:
            body = ast.parse(plain).body
        except (SyntaxError, ValueError, RecursionError):
            continue
        found += [ast.unparse(n) for n in body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return found


def defined_elsewhere(name, sources) -> bool:
    """Whether a cell defines ``name`` at its top level."""
    for source in sources:
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in body:
            targets = node.targets if isinstance(node, ast.Assign) else ()
            if getattr(node, "name", None) == name or any(getattr(t, "id", None) == name for t in targets):
                return True
    return False
