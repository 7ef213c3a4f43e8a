"""What the pages "Glossary" and "Index" hold, from tools/glossary.yml and the chapters' text."""

import re
from functools import cache
from itertools import groupby

import yaml

from tools import coverage, site
from tools._generated import ROOT

DATA = ROOT / "tools" / "glossary.yml"
MANY = 12  # sections; of a term in more of them the index names one a chapter
LEFT_OUT = {"summary", "going-further"}  # they repeat or contain what other headings have
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


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
    link = f"[{target[:2]} {section.title}](../{section.path}#{section.slug})"
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

    return _by_letter(line)


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

    return _by_letter(line)


@cache
def _in_order():
    """All headings in the order of the book. Returns: tuple of targets."""
    names = [name for name, _ in site.chapters()]
    return tuple(f"{name[:2]}#{slug}" for name in names for slug in coverage.sections(f"chapters/{name}.ipynb"))
