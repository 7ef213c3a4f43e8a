"""Slides of each chapter, from the built book: `make slides` writes _build/html/slides/ with reveal.js beside them.

A slide has one thing to look at: a formula, a class, a cell and what it prints, a plot, a table, a diagram, a live
figure, a prediction. What the chapter says before it is in the speaker's notes (press S), as is the answer to a
prediction; of several paragraphs after what is shown the first belongs to it. A short last paragraph, and one that a
formula ends, stands on the slide. What is folded is left out. A cell with the tag `no-slide` is, too.
"""

import argparse
import html
import shutil
import sys
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from tools import pages, site
from tools._generated import ROOT

TITLE = f"d2lmini: {pages.TITLE}"
LEAD = 22  # words of a paragraph that stands above what is looked at
OF_FORMULA = 80  # and above a formula, whose letters it names, or after a colon
OPENING = 35  # words before the first thing to look at in a section, for which there is a slide
SHOWN = ("picture", "code", "finding")
PICTURES = ["table", "svg", "img"]
NOTHING_TO_SEE = ("script", "style", "noscript")
REVEAL = ("dist/reveal.js", "dist/reveal.css", "plugin/notes/notes.js", "plugin/notes/speaker-view.html")
SHEETS = ("pygments", "plots", "folds")  # of the book, by the beginning of their names
PAGE = """<!DOCTYPE html>
<html lang="en" data-content_root="../" data-theme="light">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="reveal/reveal.css">
{sheets}
<link rel="stylesheet" href="reveal/slides.css">
{mathjax}
</head>
<body>
<div class="reveal"><div class="slides">
{slides}
</div></div>
<script src="reveal/reveal.js"></script><script src="reveal/notes.js"></script><script src="reveal/slides.js"></script>
</body>
</html>
"""


@dataclass
class Slide:
    """What is seen: the heading of its section and `items`, HTML; `notes`, HTML of what is said."""

    heading: str
    items: list
    notes: list = field(default_factory=list)
    kind: str = "text"

    def html(self):
        notes = f'<aside class="notes">{"".join(self.notes)}</aside>' if self.notes else ""
        body = f'<div class="fit">{"".join(self.items)}</div>' if self.items else ""
        return f'<section data-kind="{self.kind}"><h2>{html.escape(self.heading)}</h2>{body}{notes}</section>'


class _Chapter:
    """Goes through the article of a chapter, and collects its slides."""

    def __init__(self, article):
        self.slides, self.said, self.heading = [], [], ""
        title = article.find("h1")
        self.title = _heading(title)
        self.walk(title.find_next_siblings())
        self.rest()

    def walk(self, nodes):
        for node in nodes:
            if isinstance(node, Tag) and node.name not in NOTHING_TO_SEE:
                self.take(node)

    def take(self, node):
        kinds = node.get("class", [])
        if node.name == "section":
            if "fold" not in kinds:
                self.section(node)
        elif "cell" in kinds:
            self.cell(node, kinds)
        elif "predict-answer" in kinds:
            if told := [p for p in node.find_all("p") if not p.find_parent("details")]:  # by the chapter or by a cell
                self.slides[-1].notes += ["<p>The answer:</p>", *map(str, told)]
            self.walk(node.children)
        elif "predict" in kinds:
            self.show([node], "predict")
        elif node.name in ("p", "blockquote"):
            if "fold-switch" not in kinds:
                self.said.append(node)
        elif node.name in ("ul", "ol", "dl", "table", "figure") or {"math", "highlight-text"} & {*kinds}:
            self.show([node], "math" if "math" in kinds else "list" if node.name in ("ul", "ol", "dl") else "picture")
        elif _pictures(node):
            self.show([node], "picture")

    def section(self, node):
        self.rest()
        outer, self.heading = self.heading, _heading(node.find(["h2", "h3", "h4"]))
        self.walk(child for child in node.children if getattr(child, "name", "") not in ("h2", "h3", "h4"))
        self.rest()
        self.heading = outer

    def cell(self, node, kinds):
        fold = node.find("details", class_="code", recursive=False)
        title = fold.summary.get_text(strip=True) if fold else ""
        if {"tag_setup", "tag_no-slide"} & {*kinds}:
            return
        output = node.find("div", class_="cell_output", recursive=False)
        if title.startswith("Check"):  # it is for who doubts
            self.said += output.find_all("div", class_="output", recursive=False) if output else []
            return
        code = node.find("div", class_="cell_input", recursive=False)
        shown = [[code]] if code else [[]]
        for child in output.children if output else ():
            if isinstance(child, Tag):
                if _pictures(child) and _pictures(*shown[-1]):  # one on a slide
                    shown.append([])
                shown[-1].append(child)
        for nodes in filter(None, shown):
            self.show(nodes, "code" if code in nodes else "picture" if _pictures(*nodes) else "finding")

    def show(self, nodes, kind):
        said, self.said = self.said, []
        last = self.slides[-1] if self.slides else None
        opens = not last or last.heading != (self.heading or self.title)
        if not opens and not said and kind in ("list", "finding") and last.kind == "list":  # a list goes on
            last.items += map(str, nodes)
            return
        if not opens and len(said) > 1 and last.kind in SHOWN and not last.notes:
            last.notes.append(str(said.pop(0)))
        room = 0 if kind == "predict" else OF_FORMULA if kind == "math" or (said and _announces(said[-1])) else LEAD
        lead = said[-1:] if said and _words(said[-1]) <= room else []
        before = said[: len(said) - len(lead)]
        if opens and _words(*before) > OPENING:  # a section begins with its problem
            self.opening(before)
            said = lead
        self.slides.append(Slide(self.heading or self.title, [*map(str, lead + nodes)], [*map(str, said)], kind))

    def rest(self):
        """What was said after the last thing to look at: notes of that slide, or a slide of its own."""
        said, self.said = self.said, []
        if not said:
            return
        if self.slides and self.slides[-1].heading == (self.heading or self.title):
            self.slides[-1].notes += map(str, said)
        else:
            self.opening(said)

    def opening(self, said):
        """A slide of the first paragraph, and of what it announces."""
        shown = next((i for i, node in enumerate(said, 1) if not _announces(node)), len(said))
        self.slides.append(Slide(self.heading or self.title, [*map(str, said[:shown])], [*map(str, said[shown:])]))


def _announces(node):
    return node.get_text().rstrip().endswith((":", ","))


def _heading(node):
    return "".join(
        one.get_text() if isinstance(one, Tag) else one for one in node.children if "headerlink" not in _classes(one)
    ).strip()


def _pictures(*nodes):
    return any(node.name in PICTURES or node.find(PICTURES) for node in nodes)


def _words(*nodes):
    return sum(len(node.get_text().split()) for node in nodes)


def _classes(node):
    return node.get("class", []) if isinstance(node, Tag) else []


def deck(text, name):
    """The slides of the built chapter in `name`.html. Returns: pair of its title and its page, HTML.

    Raises:
        ValueError: it has no article with a title.
    """
    page = BeautifulSoup(text, "html.parser")
    article = page.select_one("article.bd-article")
    title = article and article.find("h1")
    if not title:
        raise ValueError("this page has no article with a title")
    for node in article.select("a.headerlink, .predict-place, .copybtn"):
        node.decompose()
    for link in article.select("a[href]"):
        if "://" not in link["href"]:
            own = name + ".html" if link["href"].startswith("#") else ""  # what it names may be on no slide
            link["href"] = f"../chapters/{own}{link['href']}"
    for twin in article.select(":is(p, li)[id], :is(p, li) [id]"):  # a lead is also said in the notes
        del twin["id"]
    chapter = _Chapter(title.parent)
    lead = f'<p><a href="../chapters/{name}.html">{html.escape(TITLE)}</a></p>'
    first = Slide(chapter.title, [lead], [], "title")
    sheets = [link for link in page.select("link[rel=stylesheet]") if link["href"].split("/")[-1].startswith(SHEETS)]
    mathjax = [one for one in page.select("script") if "mathjax" in one.get("src", "") or "MathJax =" in one.text]
    return chapter.title, PAGE.format(
        title=html.escape(chapter.title),
        sheets="\n".join(map(str, sheets)),
        mathjax="\n".join(map(str, mathjax)),
        slides="\n".join(slide.html() for slide in (first, *chapter.slides)),
    )


def write(book):
    """Writes the slides of all chapters of a built book. Returns: dict from the title of a chapter to its file."""
    out, found = book / "slides", {}
    (out / "reveal").mkdir(parents=True, exist_ok=True)
    reveal = files("sphinx_revealjs") / "_static" / "revealjs"
    for name in REVEAL:
        (out / "reveal" / name.rsplit("/", 1)[1]).write_bytes((reveal / name).read_bytes())
    for name in ("slides.css", "slides.js"):
        shutil.copy(Path(__file__).parent / "slides_page" / name, out / "reveal" / name)
    for name, _ in site.chapters():
        title, page = deck((book / "chapters" / f"{name}.html").read_text(encoding="utf-8"), name)
        found[title] = out / f"{name}.html"
        found[title].write_text(page, encoding="utf-8")
    links = "".join(f'<li><a href="{path.name}">{html.escape(title)}</a></li>' for title, path in found.items())
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Slides</title><link rel="icon" href="data:,">'
    back = f'<p><a href="../index.html">{html.escape(TITLE)}</a></p>'
    (out / "index.html").write_text(f"{head}<h1>Slides</h1><ul>{links}</ul>{back}</html>", encoding="utf-8")
    site.lead_to(book, "slides/index.html", "Slides of each chapter")
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.slides", description=__doc__.splitlines()[0])
    parser.add_argument("--book", type=Path, default=ROOT / "_build" / "html", help="the built book")
    book = parser.parse_args().book
    try:
        written = write(site.built(book))
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    for title, path in written.items():
        print(f"{path}: {path.read_text(encoding='utf-8').count('<section')} slides, {title}")


if __name__ == "__main__":
    main()
