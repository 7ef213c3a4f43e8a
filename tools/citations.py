"""Citations that read well in a notebook, too: `make sync` turns {cite}`key` into [[Author et al., year]](...#key).

The link leads to `pages/bibliography.md`. While the book is built, tools/sphinx_ext/citations.py makes Sphinx's
citations of such links, and Sphinx writes that page from `pages/references.bib`.
"""

import re
from functools import cache

from pybtex.database import parse_file

from tools._generated import ROOT, main, put
from tools.sphinx_ext.citations import LINK, tell_apart
from tools.sphinx_ext.citations import label as label_of

RAW = re.compile(r"\{cite\}`\s*([^`]+?)\s*`")


@cache
def _entries():
    entries = parse_file(str(ROOT / "pages" / "references.bib")).entries
    tell_apart(entries.values())
    return entries


def label(key):
    """What stands in the text for an entry of references.bib. Returns: str, as "Vaswani et al., 2017".

    Works of the same authors and year have letters behind it.

    Raises:
        ValueError: there is no such entry.
    """
    if key not in _entries():
        raise ValueError(f"{key!r} is cited, but references.bib has no entry of this name")
    return label_of(_entries()[key])


def readable(markdown, to_root):
    """A Markdown text with its citations as links.

    Args:
        markdown: str.
        to_root: the way from its folder to that of `bibliography.md`, as "../pages/".

    Returns:
        str.

    Raises:
        ValueError: it cites what references.bib does not have.
    """

    def link(key):
        return f"[[{label(key)}]]({to_root}bibliography.md#{key})"

    markdown = RAW.sub(lambda found: ", ".join(link(key.strip()) for key in found[1].split(",")), markdown)
    return LINK.sub(lambda found: link(found[1]), markdown)


def sync(check):
    """Returns: list of the files that were out of step."""
    intro = readable((ROOT / "intro.md").read_text(encoding="utf-8"), "pages/")
    return put(ROOT / "intro.md", intro, check)


if __name__ == "__main__":
    main(sync, command="python -m tools.citations")
