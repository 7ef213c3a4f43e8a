"""Make Sphinx's citations of the links that tools/citations.py writes.

Works of the same authors and year get letters, here and there by the same function. The roles that docutils gives to
the list and its entries go: to a screen reader a list has items, and these are none.
"""

import re
from collections import defaultdict

from pybtex.plugin import find_plugin, register_plugin
from pybtex.style.formatting.plain import Style as Plain
from pybtex.style.labels import BaseLabelStyle

# needs no quotes: notebooks come as JSON
LINK = re.compile(r"\[\[[^\[\]]*\]\]\((?:\.\./)*(?:pages/)?bibliography\.md#([\w-]+)\)")
ROLES = re.compile(r' role="(?:list|doc-biblioentry)"')


def label(entry):
    """What stands in the text for an entry of references.bib. Returns: str, as "Vaswani et al., 2017"."""
    names = [" ".join(map(str, p.rich_prelast_names + p.rich_last_names)) for p in entry.persons["author"]]
    who = names[0] if len(names) == 1 else " and ".join(names) if len(names) == 2 else f"{names[0]} et al."
    return f"{who}, {entry.fields['year']}"


def tell_apart(entries):
    """Writes a letter behind the years of entries that have one label, in the order of the bibliography: 2023a, 2023b.

    Args:
        entries: iterable of pybtex's entries, changed in place; those that have letters stay as they are.
    """
    same = defaultdict(list)
    for entry in find_plugin("pybtex.style.sorting", "author_year_title")().sort(entries):
        same[label(entry)].append(entry)
    for group in same.values():
        if len(group) > 1:
            for entry, letter in zip(group, "abcdefghijklmnopqrstuvwxyz", strict=False):
                entry.fields["year"] += letter


class _Labels(BaseLabelStyle):
    def format_labels(self, sorted_entries):
        return map(label, sorted_entries)


class _AuthorYear(Plain):
    """The list is headed by what stands in the text, not by numbers that no text has."""

    def __init__(self, **options):
        super().__init__(**{**options, "label_style": _Labels})


def _letters(app, env, docnames):
    tell_apart(env.get_domain("cite").bibdata.data.entries.values())


def _cite(app, docname, source):
    source[0] = LINK.sub(r"{cite}`\1`", source[0])


def _plain(app, pagename, templatename, context, doctree):
    if pagename == "pages/bibliography":
        context["body"] = ROLES.sub("", context["body"])


def setup(app):
    register_plugin("pybtex.style.formatting", "author_year", _AuthorYear)
    app.connect("env-before-read-docs", _letters)
    app.connect("source-read", _cite)
    app.connect("html-page-context", _plain)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
