"""What the book's search looks through: its sections, the glossary, the numbers of D2L and UDL, names of the package.

An entry is a list [kind, title, page's title, address, text, number]; `scripts/parts/sections.js` knows the kinds:

    term      of the glossary: leads to the section that explains it
    number    "D2L 11.3.2", "UDL equation 12.3": leads to where it is treated
    section   a heading of a chapter or a page, with its own text alone and, in a chapter, its number in this book
    exercise  a heading of an exercise page: without its solution
    name      of the package, on the API page
"""

import re

import yaml
from docutils import nodes
from sphinx import addnodes

from tools import coverage, glossary, site
from tools._generated import ROOT

# what they say has entries of its own, or is a list
LEFT_OUT = {f"pages/{name}" for name in ("glossary", "book_index", "coverage", "bibliography")}
SOURCES = {"d2l": "D2L", "udl": "UDL"}
_NAME = re.compile(r"[A-Za-z_]\w{3,}")
_PLAIN = re.compile(r"[\w =+*/()<>.,'^-]{1,16}")  # a formula that needs no typesetting
_GAP = re.compile(r" (?=[.,;:)])")  # what a citation leaves


def entries(env):
    """All of them. Args: the environment of a build. Returns: list of lists."""
    here = {f"{docname}.html" for docname in env.found_docs}
    found = [entry for entry in (*terms(), *numbers()) if entry[3].partition("#")[0] in here]
    for docname in sorted(env.found_docs - LEFT_OUT, key=site.served):
        doctree = env.get_doctree(docname)
        page = env.titles[docname].astext() if docname in env.titles else docname
        kind = "exercise" if docname.startswith("exercises/") else "section"
        own = own_numbers(env, docname)
        for title, slug, text in sections(doctree):
            found.append([kind, title, page, f"{site.served(docname)}.html#{slug}", text, own.get(slug, "")])
    for name, _, _, docname, anchor, _ in env.get_domain("py").get_objects():
        found.append(["name", name, "API", f"{site.served(docname)}.html#{anchor}", ""])
    return found


def own_numbers(env, docname):
    """The numbers of a page's sections in this book. Returns: dict from ids to str, as "11.3"."""
    given = env.toc_secnumbers.get(docname, {})
    return {anchor.removeprefix("#"): ".".join(map(str, number)) for anchor, number in given.items() if number}


def synonyms():
    """Words that readers use for others. Returns: dict from a word or abbreviation to a list of phrases."""
    found = yaml.safe_load((ROOT / "tools" / "synonyms.yml").read_text(encoding="utf-8"))
    for term, said in glossary.terms().items():
        if short := said.get("short", "").casefold():
            found[short] = [term, *found.get(short, [])]
    return found


def terms():
    """Entries of the glossary."""
    return [
        ["term", glossary.heading(term), "Glossary", _address(said["at"]), said["says"]]
        for term, said in glossary.terms().items()
    ]


def numbers():
    """Entries of what the two books number; what is not here leads nowhere."""
    found = []
    for row in coverage.rows().values():
        if row.source in SOURCES and row.targets:
            label = f"{SOURCES[row.source]} {'' if row.kind == 'section' else f'{row.kind} '}{row.number}"
            first = next(iter(row.targets.values()))[0]
            found.append(["number", f"{label}: {row.title}", coverage.find(first).title, _address(first), ""])
    return found


def _address(target):
    section = coverage.find(target)
    return f"{section.path.removesuffix('.ipynb')}.html#{section.slug}"


def sections(doctree):
    """The headings of a page, each with the text that stands directly below it.

    Returns:
        list of (title, id, text): no setup cell, nothing printed, no hint or solution; of code the names alone.
    """
    found = []
    for section in doctree.findall(nodes.section):
        title = next(iter(section.findall(nodes.title)), None)
        if title is None or not section["ids"]:
            continue
        reader = _Reader()
        for child in section.children:
            if not isinstance(child, (nodes.section, nodes.title)):
                reader.read(child)
        text = " ".join([*reader.words, *dict.fromkeys(reader.names)])
        text = _GAP.sub("", " ".join(text.split()))
        found.append((title.astext(), section["ids"][0], text))
    return found


def said(node):
    """What a reader sees of a node, in one line: no keys of citations, of a formula what needs no typesetting."""
    if isinstance(node, nodes.Text | addnodes.desc_parameterlist):  # which has its commas and brackets from astext
        return node.astext()
    if isinstance(node, nodes.math):
        return node.astext() if _PLAIN.fullmatch(node.astext()) else "…"
    return "" if node.get("refdomain") == "cite" else "".join(map(said, node.children))


class _Reader:
    """Gathers words and names of code; between raw ``<details>`` and its end it reads nothing."""

    def __init__(self):
        self.words, self.names, self.hidden = [], [], 0

    def read(self, node):
        if isinstance(node, nodes.raw):
            self.hidden += node.astext().count("<details") - node.astext().count("</details>")
            return
        classes = set(node.get("classes", ())) if isinstance(node, nodes.Element) else set()
        if self.hidden or classes & {"tag_setup", "tag_hide-input", "tag_hide-cell", "toctree-wrapper"}:
            return
        if "cell_input" in classes:
            self.names += _NAME.findall(node.astext())
        elif "cell_output" in classes:
            self.words += [said(p) for p in node.findall(nodes.paragraph)]  # what a cell says, not what it prints
        elif isinstance(node, nodes.TextElement):
            if not isinstance(node, (nodes.math_block, nodes.literal_block, nodes.comment)):
                self.words.append(said(node))
        elif isinstance(node, nodes.Element):
            for child in node.children:
                self.read(child)
