"""The table of mistakes of a part: what stands instead of a piece of the solution, and what to tell of it."""

import re
from functools import partial

from .model import Mutant

# what stands there instead | diagnosis | what to tell
_ROW = re.compile(r"(.*) *\| ([\w-]+)(?: +\|(?: ((?:(?! \| ).)*))?)?", re.S)


def mistakes(document, block, scope, solution) -> list[Mutant]:
    """Return the mistakes of a block ```mistakes.

    Args:
        document: a `Document`, for errors. block: a `Block` of it. scope: the names of its part. solution: a source.

    Raises:
        DocumentError: a row is not of the form, or its piece does not occur exactly once in the solution.
    """
    return [_mistake(document, *row, scope, solution) for row in _rows(document, block)]


def _rows(document, block):
    """Return lists (line of the row, line of the piece of the solution, that piece or None, the rest of the row)."""
    rows, piece, at, within = [], [], 0, False  # within a piece of the solution
    for number, line in enumerate(block.text.splitlines(), start=block.line + 1):
        if line.startswith(("> ", "= ")):
            if line[0] == ">" and not piece:
                raise document.error(number, "above this mistake the piece of the solution is missing")
            rows.append([number, at, "\n".join(piece) if line[0] == ">" else None, line[2:]])
            within = False
        elif rows and not within and line.startswith(">> "):  # code of several lines
            rows[-1][3] += f"\n{line[3:]}"
        elif rows and not within and line.startswith("    "):
            rows[-1][3] += f" {line.strip()}"
        else:
            at = at if within else number
            piece, within = [*piece, line] if within else [line], True
    if within:
        raise document.error(number, "below this piece of the solution no mistake follows, `> ...`")
    return rows


def _mistake(document, number, at, piece, rest, scope, solution):
    found = _ROW.fullmatch(rest)
    if not found:
        raise document.error(number, "a mistake is `> what stands there instead | diagnosis | what to tell`")
    instead, diagnosis, message = found[1].rstrip(), found[2], (found[3] or "").strip()
    if piece is None:
        try:
            return Mutant(diagnosis, eval(instead, {"partial": partial} | scope), message)
        except Exception as error:
            raise document.error(number, f"{instead!r} is no wrong answer of ```python wrong: {error}") from None
    if (count := solution.count(piece)) != 1:
        raise document.error(at, f"the text {piece!r} occurs {count} times in the solution, expected once")
    return Mutant(diagnosis, (piece, instead), message)
