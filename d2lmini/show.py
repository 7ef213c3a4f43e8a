"""Findings of a run as a table and as a sentence: HTML and Markdown in a notebook, plain text in a terminal."""

import inspect
import math
import re
from html import escape

from .shell import running_shell

_MARKED = re.compile(r"(`[^`\n]+`|\$(?=\S)[^$\n]*?\S\$(?!\d)|\$[^$\s]\$(?!\d))")  # code and mathematics
_STRONG = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_EMPHASISED = re.compile(r"(?<![\w*])\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?![\w*])")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
# a number, perhaps with a sign before it and a short unit behind: "79 %", "1.2x", "3 ± 1"
_NUMERIC = re.compile(r"[-+−<>≈]?\s*\d[\d.,]*(e[-+]?\d+)?\s*(±\s*\d[\d.,]*)?\s*(\S{1,4})?", re.I)


def show_table(rows, columns, caption=None):
    """Shows a table: HTML in a notebook, aligned text in a terminal. It shows anywhere in a cell, also in a loop.

    Args:
        rows: list of rows, each a list with one cell a column. A float (also of NumPy, or a tensor of one element) is
            shown with three significant digits, from 1,000 to 1e7 as a whole number; an integer with separators of
            thousands; True and False as yes and no; None as an empty cell. A str is shown as it is; in it, and in
            the names of columns, `code`, $mathematics$ and **strong** are marked as in Markdown.
        columns: list of str, the names of the columns; a column of numbers is set to the right.
        caption: str, one sentence above the table; None: none.

    Raises:
        ValueError: there is no column or no row, or a row has not one cell a column.
        TypeError: a cell is neither a number nor a str.
    """
    _display(Table(rows, columns, caption))


def show_text(markdown):
    """Shows text whose numbers come from the run: Markdown in a notebook, plain text in a terminal.

    Args:
        markdown: str; the indentation that its lines share is taken away, so that it may be a string over several
            lines. In a terminal the marks of strong text, code and links are left out.
    """
    _display(Text(markdown))


class Table:
    """A table that a notebook shows as HTML and a terminal as text. Arguments and errors: `show_table`."""

    def __init__(self, rows, columns, caption=None):
        columns, rows = [str(name) for name in columns], [list(row) for row in rows]
        if not columns or not rows:
            raise ValueError(f"a table needs columns and rows, got {len(columns)} columns and {len(rows)} rows")
        for i, row in enumerate(rows):
            if len(row) != len(columns):
                raise ValueError(f"row {i} has {len(row)} cells for {len(columns)} columns: {row!r}")
        self.columns, self.caption = columns, caption
        self.rows = [[_as_text(cell, f"row {i}, column {name!r}") for cell, name in zip(row, columns, strict=True)]
                     for i, row in enumerate(rows)]  # fmt: skip
        self._right = [
            any(cells) and all(not cell or _NUMERIC.fullmatch(cell) or cell in ("nan", "inf", "-inf") for cell in cells)
            for cells in zip(*self.rows, strict=True)
        ]

    def _repr_html_(self):
        align = ["right" if right else "left" for right in self._right]
        head = [
            f'<th scope="col" style="text-align:{side}">{_as_html(name)}</th>'
            for name, side in zip(self.columns, align, strict=True)
        ]
        body = [
            [f'<td style="text-align:{side}">{_as_html(cell)}</td>' for cell, side in zip(row, align, strict=True)]
            for row in self.rows
        ]
        caption = f"<caption>{_as_html(self.caption)}</caption>" if self.caption else ""
        lines = ["<thead>", f"<tr>{''.join(head)}</tr>", "</thead>", "<tbody>"]
        lines += [f"<tr>{''.join(cells)}</tr>" for cells in body]
        # the classes are the theme's: it lets the container scroll, and the keyboard reach it
        table = f'<table class="table d2lmini-table">{caption}\n' + "\n".join(lines) + "\n</tbody>\n</table>"
        return f'<div class="pst-scrollable-table-container" style="overflow-x:auto">{table}</div>'

    def __repr__(self):
        lines = [[_plain(cell) for cell in row] for row in [self.columns, *self.rows]]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        text = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, self._right, strict=True)
            ).rstrip()
            for line in lines
        ]
        text.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(([_plain(self.caption)] if self.caption else []) + text)


class Text:
    """A text that a notebook shows as Markdown and a terminal without its marks. See `show_text`."""

    def __init__(self, markdown):
        self.markdown = inspect.cleandoc(markdown)

    def _repr_markdown_(self):
        return self.markdown

    def __repr__(self):
        return _plain(self.markdown)


def _display(thing):
    if running_shell():
        from IPython.display import display

        display(thing)
    else:
        print(thing)


def _as_text(cell, where):
    """A cell as str. A number is rounded here, alike for the page and for the terminal."""
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    try:
        number = cell.item() if hasattr(cell, "item") else cell  # of NumPy and torch
    except (RuntimeError, ValueError):
        raise TypeError(f"{where} holds {cell!r}, expected one number or a str") from None
    if isinstance(number, bool):
        return "yes" if number else "no"
    if isinstance(number, int):
        return f"{number:,}"
    if not isinstance(number, float):
        raise TypeError(f"{where} holds {cell!r}, expected a number or a str")
    size = abs(number)
    if not math.isfinite(number) or number == 0:
        return f"{number:g}"
    if size >= 1e7 or size < 1e-4:
        mantissa, exponent = f"{number:.2e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    # 999.7 has three digits before rounding and four behind
    return f"{number:,.0f}" if size >= 99.95 else f"{number:#.3g}"


def _as_html(text):
    """Text with the marks of Markdown that a cell may have, as HTML."""
    if power_of_ten := re.fullmatch(r"(-?\d\.\d+)e(-?\d+)", text):
        return f"{power_of_ten[1].replace('-', '−')} × 10<sup>{power_of_ten[2].replace('-', '−')}</sup>"
    if re.fullmatch(r"-\d[\d.,]*", text):
        return "−" + text[1:]
    parts = _MARKED.split(text)
    for i, part in enumerate(parts):
        inside = escape(part[1:-1], quote=False)
        if i % 2 and part[0] == "`":
            parts[i] = f"<code>{inside}</code>"
        elif i % 2:  # the class is what MathJax looks for in a book of Sphinx
            parts[i] = rf'<span class="math notranslate nohighlight">\({inside}\)</span>'
        else:
            part = _STRONG.sub(r"<strong>\1</strong>", escape(part, quote=False))
            parts[i] = _EMPHASISED.sub(r"<em>\1</em>", part)
    return "".join(parts)


def _plain(markdown):
    """Markdown without the marks of what is strong, code, mathematics or a link; the rest is readable as it is."""
    parts = _MARKED.split(markdown)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = part[1:-1]
        else:
            parts[i] = _LINK.sub(r"\1", _EMPHASISED.sub(r"\1", _STRONG.sub(r"\1", part)))
    return "".join(parts)
