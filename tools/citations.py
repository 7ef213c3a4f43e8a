"""Citations that read well in a notebook, too: `make sync` turns {cite}`key` into [[Author et al., year]](...#key).

The link leads to the list in `bibliography.md`, which is written here from `references.bib`. While the book is built,
tools/sphinx_ext/citations.py makes citations and a bibliography of Sphinx of both.
"""

import re
from functools import cache

from pybtex.database import parse_file
from pybtex.plugin import find_plugin

from tools._generated import ROOT, between, main, put
from tools.sphinx_ext.citations import LINK, tell_apart
from tools.sphinx_ext.citations import label as label_of

RAW = re.compile(r"\{cite\}`\s*([^`]+?)\s*`")


@cache
def _entries():
    entries = parse_file(str(ROOT / "references.bib")).entries
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
        to_root: the way from its folder to that of `bibliography.md`, as "../".

    Returns:
        str.

    Raises:
        ValueError: it cites what references.bib does not have.
    """

    def link(key):
        return f"[[{label(key)}]]({to_root}bibliography.md#{key})"

    markdown = RAW.sub(lambda found: ", ".join(link(key.strip()) for key in found[1].split(",")), markdown)
    return LINK.sub(lambda found: link(found[1]), markdown)


def references():
    """The list of all entries. Returns: str, Markdown."""
    style = find_plugin("pybtex.style.formatting", "plain")()
    backend = find_plugin("pybtex.backends", "markdown")()
    lines = []
    for entry in style.format_entries(_entries().values()):
        text = " ".join(entry.text.render(backend).replace(r"\.", ".").replace(r"\-", "-").split())
        lines.append(f'- <a id="{entry.key}"></a>[{label(entry.key)}] {text}')
    return "\n".join(lines)


def sync(check):
    """Returns: list of the files that were out of step."""
    page = (ROOT / "bibliography.md").read_text(encoding="utf-8")
    intro = readable((ROOT / "intro.md").read_text(encoding="utf-8"), "")
    return [
        *put(ROOT / "bibliography.md", between(page, "references", references()), check),
        *put(ROOT / "intro.md", intro, check),
    ]


if __name__ == "__main__":
    main(sync, command="python -m tools.citations")
