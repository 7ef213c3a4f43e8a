"""The notation page: every letter of a chapter's equations stands in that chapter's row, and no other does."""

import re

import nbformat
import pytest
from conftest import ROOT

import d2lmini

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
PAGE = (ROOT / "pages" / "notation.md").read_text(encoding="utf-8")
MATH = re.compile(r"\$\$(.*?)\$\$|(?<![\\$])\$([^$]+?)\$(?!\$)", re.S)
NAMES = re.compile(r"\\(?:text|texttt|operatorname\*?|mathrm|mathbb|begin|end)\{[^{}]*\}")  # words, sets of numbers
KINDS = {"mathbf": "bold", "boldsymbol": "bold", "mathcal": "script"}
FONT = re.compile(rf"\\({'|'.join(KINDS)})\s*\{{?\\?([A-Za-z]+|\d)\}}?")
GREEK = re.compile(
    r"\\(alpha|beta|gamma|delta|epsilon|varepsilon|eta|theta|kappa|lambda|mu|xi|pi|rho|sigma|tau|phi|varphi|psi|omega"
    r"|ell|Delta|Phi|Pi|Sigma|Omega)(?![A-Za-z])"
)


def letters(markdown):
    """The letters of the formulas of a text; "bold x" and "script L" are letters of their own. Returns: set of str."""
    found = set()
    for formula in (display or inline for display, inline in MATH.findall(markdown)):
        rest = NAMES.sub(" ", formula)
        found |= {f"{KINDS[font]} {letter}" for font, letter in FONT.findall(rest)}
        rest = FONT.sub(" ", rest)
        found |= set(GREEK.findall(rest))
        found |= set(re.findall(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", " ", rest)))
    return found


ROWS = {name: letters(row) for name, row in re.findall(r"^\| (all|\d\d) \| (.*) \|$", PAGE, re.M)}


def test_letters_are_told_apart():
    text = r"$\mathbf{x}_i$, $$L = \text{word} + \boldsymbol\phi(\mathcal{M}) \operatorname{softmax}(\beta)$$, `$z`"
    assert letters(text) == {"bold x", "i", "L", "bold phi", "script M", "beta"}


def test_there_is_a_row_for_every_chapter():
    assert list(ROWS) == ["all", *(path.name[:2] for path in CHAPTERS)]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_row_has_the_letters_of_the_chapters_equations(path):
    cells = nbformat.read(path, as_version=4).cells
    used = letters("\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown"))
    row = ROWS[path.name[:2]]
    assert used - row - ROWS["all"] == set(), "not on the notation page"
    assert row - used == set(), "not in the chapter"


def test_the_legend_of_shapes_is_that_of_the_package():
    legend = dict(re.findall(r"\b([A-Zh]) {2}(\w+(?: \w+)?)", d2lmini.__doc__))
    section = PAGE.split("## The letters of shapes")[1].split("\n## ")[0]
    there = {letter: sense for letter, sense in re.findall(r"\| (\w) \| ([^|]+?) (?=\|)", section)}
    assert set(legend) == set(there) - {"d"} and len(legend) >= 10
    assert [letter for letter, sense in legend.items() if sense.split()[0].rstrip(",") not in there[letter]] == []
