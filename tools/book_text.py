"""The book's own prose as a corpus that ships with the package: d2lmini/data/assets/book.txt, a paragraph a line."""

import re

import nbformat

from tools import citations
from tools._generated import ROOT, main, put

TEXT = ROOT / "d2lmini" / "data" / "assets" / "book.txt"
# formulas, cross-references and marks of Markdown are not prose
CUTS = [
    (re.compile(r"\$\$.*?\$\$", re.S), " "),
    (citations.RAW, ""),
    (citations.LINK, ""),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"<[^>]+>"), " "),
    (re.compile(r"[*_`$\\]"), ""),
    (re.compile(r"^(?:#+|-|\d+\.)\s+", re.M), ""),
]


def paragraphs(markdown):
    """The paragraphs of a Markdown text without its marks; tables left out. Returns: list of str."""
    for pattern, instead in CUTS:
        markdown = pattern.sub(instead, markdown)
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", markdown))
    return [block for block in blocks if block and not block.startswith("|")]


def sync(check):
    """Returns: list of the files that were out of step."""
    text = []
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                text += paragraphs(cell.source)
    return put(TEXT, "\n\n".join(text) + "\n", check)


if __name__ == "__main__":
    main(sync, command="python -m tools.book_text")
