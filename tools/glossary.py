"""The pages "Glossary" and "Index", from tools/glossary.yml and the chapters' text."""

import re
from functools import cache
from itertools import groupby

import yaml

from tools import coverage, site
from tools._generated import ROOT, main, put

DATA = ROOT / "tools" / "glossary.yml"
MANY = 12  # sections; of a term in more of them the index names one a chapter
LEFT_OUT = {"summary", "going-further"}  # they repeat or contain what other headings have
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
MARK = "<!-- Written by `python -m tools.glossary` from tools/glossary.yml: change that. -->"


@cache
def terms():
    """What tools/glossary.yml holds, in the order of the alphabet. Returns: dict from terms to dicts."""
    entries = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return dict(sorted(entries.items(), key=lambda item: item[0].casefold()))


def words(term):
    """In which forms the chapters write a term: without what explains it in brackets. Returns: list of str."""
    return terms()[term].get("words") or [re.sub(r" \(.*\)$", "", term)]


def heading(term):
    """A term with its abbreviation, as "rotary encoding (RoPE)". Returns: str."""
    short = terms()[term].get("short")
    return f"{term} ({short})" if short else term


def pattern(word):
    """What finds a word and its plural, over hyphens and ends of lines; capital letters count in abbreviations."""
    inside = r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", word))
    abbreviation = re.match(r"[A-Z][A-Z0-9]", word)
    return re.compile(rf"(?<![\w-]){inside}(?:s|es)?(?!\w)", 0 if abbreviation else re.I)


def uses(term, markdown):
    """How often a text uses a term; where its links lead does not count. Returns: int."""
    text = LINK.sub(r"\1", markdown).replace("*", "")
    return sum(len(pattern(word).findall(text)) for word in words(term))


@cache
def parts():
    """Headings below a chapter's title, each with its own text alone. Returns: dict from targets to `Section`."""
    found = {}
    for name, _ in site.chapters():
        there = list(coverage.sections(f"chapters/{name}.ipynb").values())[1:]
        for place, section in enumerate(there):
            own = section.markdown
            for below in there[place + 1 :]:  # what stands under a heading of a lower level has its own entry
                own = own.replace(below.markdown, "") if below.markdown in section.markdown else own
            if section.slug not in LEFT_OUT:
                found[f"{name[:2]}#{section.slug}"] = section._replace(markdown=own)
    return found


def places(term):
    """Where the chapters use a term. Returns: dict from targets to how often."""
    only = terms()[term].get("only", [""])
    return {
        target: count
        for target, section in parts().items()
        if any(target.startswith(start) for start in only) and (count := uses(term, section.markdown))
    }


def _link(target, bold=False):
    section = coverage.find(target)
    link = f"[{target[:2]} {section.title}]({section.path}#{section.slug})"
    return f"**{link}**" if bold else link


def _by_letter(line):
    """Markdown: a heading for each letter, and a line for each term."""
    text = []
    for letter, group in groupby(terms(), key=lambda term: term[0].upper()):
        text += [f"## {letter}", "", *map(line, group), ""]
    return "\n".join(text)


def glossary():
    """Returns: str, Markdown."""

    def line(term):
        entry = terms()[term]
        return f"- **{heading(term)}**: {entry['says']} {_link(entry['at'])}."

    opening = (
        "The terms of the book, each in a sentence or two, and the section to read. "
        "The [index](book_index.md) tells where it is used. Letters are on the [notation page](notation.md)."
    )
    return f"# Glossary\n\n{MARK}\n\n{opening}\n\n{_by_letter(line)}"


def index():
    """Returns: str, Markdown."""

    def line(term):
        found, at = places(term), terms()[term]["at"]
        if len(found) > MANY:  # of each chapter the section that has it most often
            chapters = groupby(found, key=lambda target: target[:2])
            found = [max(group, key=found.get) for _, group in chapters]
        named = sorted({*found, at}, key=lambda target: (target[:2], _in_order().index(target)))
        links = " · ".join(_link(target, bold=target == at) for target in named)
        return f"- [{term}](glossary.md#{term[0].lower()}): {links}"

    opening = (
        "Where the chapters use the terms of the [glossary](glossary.md). In **bold**: the section to read first. "
        f"For a term in more than {MANY} sections, one section per chapter is listed: the one that uses it most. "
        "Summaries are left out."
    )
    return f"# Index\n\n{MARK}\n\n{opening}\n\n{_by_letter(line)}"


@cache
def _in_order():
    """All headings in the order of the book. Returns: tuple of targets."""
    names = [name for name, _ in site.chapters()]
    return tuple(f"{name[:2]}#{slug}" for name in names for slug in coverage.sections(f"chapters/{name}.ipynb"))


def sync(check):
    """Returns: list of the files that were out of step."""
    pages = {"glossary.md": glossary(), "book_index.md": index()}
    return [path for name, text in pages.items() for path in put(ROOT / name, text.rstrip("\n") + "\n", check)]


if __name__ == "__main__":
    main(sync, command="python -m tools.glossary")
