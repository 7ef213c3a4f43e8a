"""The pages Glossary and Index, from tools/glossary.yml: what a term means, where it is explained and used."""

import re
from functools import cache

import yaml

from tools import coverage, site
from tools._generated import ROOT, main, put

DATA = ROOT / "tools" / "glossary.yml"
MOST = 8  # sections that the index names of one term, beside the one that explains it
GLOSSARY = """\
# Glossary

<!-- Written by `python -m tools.glossary` from tools/glossary.yml: change that. -->

The terms of this book in a sentence or two. A link leads to the section that explains the term; the
[index](book_index.md) has the others that use it. Letters are on the [notation page](notation.md).
"""
INDEX = """\
# Index

<!-- Written by `python -m tools.glossary` from tools/glossary.yml: change that. -->

Where each term of the [glossary](glossary.md) is used. **Bold**: the section that explains it. Of those that merely
use it, the eight that do so most; openings and summaries are left out.
"""


@cache
def terms():
    """Returns: dict from terms to (place, definition, pattern of its forms), in the order of the alphabet."""
    found = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return {term: (place, text, _pattern(term, *forms)) for term, (place, text, *forms) in found.items()}


def _pattern(term, forms=""):
    words = [re.escape(term), *re.split(r",\s*", forms)] if forms else [re.escape(term)]
    either = "|".join(word.replace(r"\ ", r"\s+").replace(" ", r"\s+") for word in words)
    return re.compile(rf"(?<![\w-])(?:{either})(?!\w)", re.I)


@cache
def _smallest():
    """Each chapter's sections with their own words, not those of headings below; no openings, no summaries.

    Returns: list of (chapter, Section, text).
    """
    found = []
    for name, _ in site.chapters():
        there = list(coverage.sections(f"chapters/{name}.ipynb").values())
        for number, section in enumerate(there):
            if not number or section.slug == "summary":
                continue
            text = section.markdown
            for below in there[number + 1 :]:
                text = text.replace(below.markdown, "")
            found.append((name[:2], section, text))
    return found


def link(place):
    """A place of the data file as a link. Returns: str."""
    section = coverage.find(place)
    return f"[{place[:2]} {section.title}]({section.path}#{section.slug})"


def used_in(term):
    """Places whose own words have the term, those with most uses first. Returns: list of str, ``"06#counting"``."""
    _, _, pattern = terms()[term]
    counts = [(len(pattern.findall(text)), f"{chapter}#{section.slug}") for chapter, section, text in _smallest()]
    return [place for count, place in sorted(counts, key=lambda pair: -pair[0]) if count]


def glossary():
    """Returns: the page, as markdown."""
    parts, letter = [GLOSSARY], None
    for term, (place, text, _) in terms().items():
        if term[0].upper() != letter:
            letter = term[0].upper()
            parts.append(f"## {letter}\n")
        parts.append(f"**{term}**: {text} {link(place)}\n")
    return "\n".join(parts)


def index():
    """Returns: the page, as markdown."""
    parts, letter = [INDEX], None
    for term, (place, _, _) in terms().items():
        if term[0].upper() != letter:
            letter = term[0].upper()
            parts.append(f"{chr(10) if letter != 'A' else ''}## {letter}\n")
        others = sorted([other for other in used_in(term) if other != place][:MOST])
        parts.append(f"- {term}: {'; '.join([f'**{link(place)}**', *map(link, others)])}")
    return "\n".join(parts) + "\n"


def sync(check):
    """Returns: list of the files that were out of step."""
    return [*put(ROOT / "glossary.md", glossary(), check), *put(ROOT / "book_index.md", index(), check)]


if __name__ == "__main__":
    main(sync, command="python -m tools.glossary")
