"""What both books, the tutorial and the slides hold, and where it is here: the page "Coverage", from coverage.yml."""

import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import nbformat
import yaml
from markdown_it import MarkdownIt
from myst_parser.mdit_to_docutils.base import default_slugify

from d2lmini.exercises.engine import registry
from tools._generated import ROOT

DATA = ROOT / "tools" / "coverage.yml"
KINDS = {"section": "", "equation": "equation ", "figure": "figure ", "problem": "problem ", "part": ""}
VERBS = ("taught", "drawn", "computed", "solved")
FIELDS = {"title", "words", "note", "absent", "same", "below", *VERBS}
ANCHORS = 3  # levels of headings to which links are made: myst_heading_anchors of _config.yml
DRAWS = re.compile(r"\bdiagrams\.|from d2lmini\.figures import|show_heatmaps\(|\bplot\(|\bplt\b|\.imshow\(")


class Section(NamedTuple):
    """A heading of a notebook and all that stands below it, down to the next of its level."""

    path: str  # from the root of the repository
    slug: str
    title: str
    markdown: str
    code: str  # of the cells below, with what their pictures are said to show
    draws: bool

    def speaks_of(self, words):
        """Whether at least one of the texts stands in it, without regard to case or to breaks of lines."""
        own = " ".join(f"{self.markdown} {self.code}".casefold().split())
        return any(" ".join(word.casefold().split()) in own for word in words)


@cache
def sections(path):
    """The headings to which the book makes links. Returns: dict from slugs to `Section`, in order."""
    found, at = [], []  # headings as (level, title, place); what stands in the notebook, piece by piece
    for cell in nbformat.read(ROOT / path, as_version=4).cells:
        if cell.cell_type != "markdown":
            image = cell.metadata.get("mystnb", {}).get("image", {})
            shows = bool(image) or bool(DRAWS.search(cell.source))
            at.append(("code", f"{cell.source}\n{image.get('alt', '')}", shows))
            continue
        lines, last = cell.source.split("\n"), 0
        tokens = MarkdownIt().enable("table").parse(cell.source)
        for opening, inline in pairwise(tokens):
            if opening.type == "heading_open" and opening.level == 0:
                at.append(("markdown", "\n".join(lines[last : opening.map[0]]), False))
                last = opening.map[0]
                title = "".join(t.content for t in inline.children if t.type in ("text", "code_inline"))
                found.append((int(opening.tag[1]), title, len(at)))
        at.append(("markdown", "\n".join(lines[last:]), False))
    result = {}
    for number, (level, title, start) in enumerate(found):
        end = next((place for other, _, place in found[number + 1 :] if other <= level), len(at))
        text = {kind: "\n\n".join(t for k, t, _ in at[start:end] if k == kind) for kind in ("markdown", "code")}
        slug, more = default_slugify(title), 1
        while slug in result:  # as MyST does it
            slug, more = f"{slug}-{more}", more + 1
        if level <= ANCHORS:
            result[slug] = Section(path, slug, title, **text, draws=any(drawn for *_, drawn in at[start:end]))
    return result


@cache
def _chapters():
    return {path.stem[:2]: f"chapters/{path.name}" for path in sorted((ROOT / "chapters").glob("*.ipynb"))}


def find(target):
    """What a target of coverage.yml names.

    Args:
        target: "06#counting", a heading of chapter 06, or "udl-12.1", an exercise.

    Returns:
        Section.

    Raises:
        ValueError: there is no such chapter, heading or exercise.
    """
    chapter, mark, slug = target.partition("#")
    if mark:
        if chapter not in _chapters():
            raise ValueError(f"{target}: there is no chapter {chapter!r}")
        there = sections(_chapters()[chapter])
        if slug not in there:
            raise ValueError(f"{target}: {_chapters()[chapter]} has no such heading; it has {', '.join(there)}")
        return there[slug]
    exercise = next((e for e in registry.exercises() if e.key == target), None)
    if exercise is None:
        raise ValueError(f"{target}: neither CHAPTER#HEADING nor the key of an exercise")
    name = f"{registry.NOTEBOOKS[exercise.chapter]}.ipynb"
    there = sections(f"exercises/solutions/{name}").values()
    section = next(section for section in there if section.title == exercise.title)
    return section._replace(path=f"exercises/{name}", slug=registry.anchor(target))


class Row(NamedTuple):
    """An item of a source."""

    source: str
    kind: str
    number: str
    title: str
    targets: dict  # from verbs to lists of targets; empty where it is absent, or where rows below have them
    words: list
    note: str
    absent: str
    same: str
    below: bool

    @property
    def name(self):
        return f"{self.source} {self.kind} {self.number}"


@cache
def _sources():
    return yaml.safe_load(DATA.read_text(encoding="utf-8"))


def rows():
    """Every item. Returns: dict from names, as "udl equation 12.3", to `Row`, in order.

    Raises:
        ValueError: an entry is not as the top of coverage.yml says.
    """
    return read(_sources())


def read(sources):
    """The items of what coverage.yml holds; see `rows`."""
    found = {}
    for source in sources:
        for entry in source["rows"]:
            row = _row(source["source"], entry)
            if row.name in found:
                raise ValueError(f"{row.name} has two entries")
            found[row.name] = row
    for name, row in found.items():
        if row.same:
            other = found.get(row.same)
            if other is None or not other.targets or other.same:
                raise ValueError(f"{name} is said to be the same as {row.same!r}, which tells of no place")
            found[name] = row._replace(targets=other.targets, words=other.words)
    return found


def _row(source, entry):
    kinds = [kind for kind in KINDS if kind in entry]
    name = f"{source} {' '.join(f'{kind} {entry[kind]}' for kind in kinds)}"
    if len(kinds) != 1 or not isinstance(entry[kinds[0]], str) or not entry.get("title"):
        raise ValueError(f"{name or entry}: an entry has one of {', '.join(KINDS)}, in quotes, and a title")
    if strange := set(entry) - FIELDS - set(kinds):
        raise ValueError(f"{name}: unknown fields {sorted(strange)}")
    lists = {key: entry[key] for key in ("words", *VERBS) if entry.get(key)}
    if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists.values()):
        raise ValueError(f"{name}: {', '.join(lists)} are lists of texts; a number stands in quotes")
    targets = {verb: entry[verb] for verb in VERBS if entry.get(verb)}
    if sum(map(bool, (targets, entry.get("absent"), entry.get("same"), entry.get("below")))) != 1:
        raise ValueError(f"{name}: an entry has places, or what it is the same as, or rows below, or why it is absent")
    return Row(
        source,
        kinds[0],
        entry[kinds[0]],
        entry["title"],
        targets,
        *(entry.get(key, empty) for key, empty in (("words", []), ("note", ""), ("absent", ""), ("same", ""))),
        below=entry.get("below", False),
    )


def _here(row, names):
    """Markdown: where it is; each place once, with what it does there."""
    if row.below:
        return "below, each with its own row"
    if row.absent:
        return f"**not here.** {row.absent}"
    does = {}
    for verb in VERBS:
        for target in row.targets.get(verb, ()):
            does.setdefault(target, []).append(verb)
    links = []
    for target, verbs in does.items():
        try:
            section = find(target)
        except ValueError as error:
            raise ValueError(f"tools/coverage.yml, {row.name}: {error}") from None
        text = f"{target[:2]} {section.title}" if "#" in target else target
        links.append(f"[{text}](../{section.path}#{section.slug}) *{', '.join(verbs)}*")
    told = "; ".join(links)
    if row.same:
        source, kind, number = row.same.split(" ", 2)
        told = f"as {names[source]} {KINDS[kind]}{number}: {told}"
    return f"{told}. {row.note}" if row.note else told


def tables():
    """How many items each source has, and a table of them for each. Returns: str, Markdown."""
    every, names = rows(), {source["source"]: source["name"] for source in _sources()}
    kinds = ("sections", "equations", "figures", "problems", "other", "not here")
    count = [f"| source | {' | '.join(kinds)} |", "|---" * 7 + "|"]
    parts = []
    for source in _sources():
        own = [row for row in every.values() if row.source == source["source"]]
        numbers = [sum(row.kind == kind for row in own) for kind in KINDS]
        absent = sum(bool(row.absent) for row in own)
        count.append(f"| {source['name']} | {' | '.join(map(str, numbers))} | {absent} |")
        cite = f" {{cite}}`{source['cite']}`" if "cite" in source else ""
        lines = [
            f"## {source['name']}",
            "",
            f"{source['title']}{cite}.",
            "",
            "| there | what | here |",
            "|---|---|---|",
        ]
        for row in own:
            name, title = f"{KINDS[row.kind]}{row.number}", row.title
            if row.kind == "section":
                name, title = f"**{name}**", f"**{title}**"
            lines.append(f"| {name} | {title} | {_here(row, names)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(["\n".join(count), *parts])
