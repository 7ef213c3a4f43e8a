"""The order of reading, from tools/course.yml: the map on the front page, what to read before, the syllabi."""

import json
import re
from functools import cache

import nbformat
import yaml

from d2lmini.exercises.engine import registry
from d2lmini.figures.diagrams.drawing import Diagram
from tools import coverage, site
from tools._generated import ROOT, between, main, put

SPINE = 3  # the column of the map in which most chapters stand
RUN_TIMES = ROOT / "d2lmini" / "results" / "run_times.json"
NAMES = {name[:2]: name for name, _ in site.chapters()}
TITLES = {name[:2]: title for name, title in site.chapters()}


@cache
def table():
    """What tools/course.yml holds. Returns: dict with the keys chapters and courses."""
    return yaml.safe_load((ROOT / "tools" / "course.yml").read_text(encoding="utf-8"))


def _listed(words):
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _linked(needs):
    return _listed([f"[chapter {number}]({NAMES[number]}.ipynb)" for number in needs])


def read_before(number):
    """The line of a chapter's opening that says what to read before it. Returns: str."""
    chapter = table()["chapters"][number]
    if not chapter["needs"]:
        return "**Read before:** nothing of this book. You should know matrix products, gradients and a training loop."
    line = f"**Read before:** {_linked(chapter['needs'])}"
    if also := chapter.get("also"):
        line += f"; for the section *{also['section']}* {_linked(also['needs'])}, too"
    return f"{line}."


def with_line(source, line):
    """A chapter's first cell with the line at its end, once. Returns: str."""
    return re.sub(r"\n+\*\*Read before:\*\*.*$", "", source.rstrip(), flags=re.S) + f"\n\n{line}"


def book_map():
    """The chapters, and arrows to each from those that it builds on. Returns: `Diagram`."""
    chapters = table()["chapters"]
    needs = "; ".join(f"{n} needs {_listed(c['needs'])}" for n, c in chapters.items() if c["needs"])
    drawn = Diagram(
        "The chapters of this book",
        "From top to bottom, each chapter with its sections of the two books, how many items of the tutorial and of "
        f"the slides it takes up, and its number of exercises; {needs}.",
        "An arrow leads to a chapter from one that it builds on. A box is a link. Lecture items are those of the "
        "tutorial Transformers I and of the slides that the chapter takes up; the page Coverage lists them.",
    )
    for number, chapter in chapters.items():
        column, row = chapter["at"]
        count, items = len(registry.exercises(number)), lecture_items(number)
        drawn.box(number, (column, -2 * row), f"{number} {TITLES[number]}", width=2.8, accent=_accent(number),
                  link=f"chapters/{NAMES[number]}.html")  # fmt: skip
        drawn.text(f"{number} books", (column, -2 * row - 0.52), chapter["sections"])
        lectures = f"{items} lecture item{'s' * (items > 1)}; " if items else ""
        drawn.text(f"{number} sections", (column, -2 * row - 0.84), f"{lectures}{count} exercises")
    for number, chapter in chapters.items():
        for before in chapter["needs"]:
            (column, row), (onto, below) = chapters[before]["at"], chapter["at"]
            beside, back = row == below, onto == SPINE != column  # back: from the side to the middle
            enter = "top" if not (beside or back) else "left" if column < onto else "right"
            leave = {"left": "right", "right": "left"}[enter] if beside else "bottom"
            drawn.arrow(before if beside else f"{before} sections", number, leave=leave, enter=enter)
    return drawn


def lecture_items(number):
    """How many items of the tutorial and the slides a chapter takes up, by the page Coverage. Returns: int."""
    rows = [row for row in coverage.rows().values() if row.source in ("borealis", "slides")]
    return sum(any(f"{number}#" in target for targets in row.targets.values() for target in targets) for row in rows)


def _accent(number):
    """Attention and Transformers plain, vision orange, language models blue."""
    return "orange" if number in ("10", "11") else "blue" if number >= "12" else None


def map_block():
    """The map as raw HTML for a page that is not executed. Returns: str."""
    page = re.sub(r"\s*\n\s*", " ", book_map()._repr_html_())
    page = re.sub(r"d2lmini-tip-\d+", "d2lmini-tip-map", page)  # whatever was drawn before it
    return f"```{{raw}} html\n{page}\n```"


def syllabi():
    """Markdown: a table for each course; times are those in which its chapters execute."""
    measured = json.loads(RUN_TIMES.read_text(encoding="utf-8"))
    lines = []
    for name, weeks in table()["courses"].items():
        lines += [f"### In {name}", "", "| week | chapters | execute in | exercises |", "|---|---|---|---|"]
        for number, week in enumerate(weeks, 1):
            chapters = ", ".join(f"[{n} {TITLES[n]}](chapters/{NAMES[n]}.ipynb)" for n in week["chapters"])
            took = sum(measured[NAMES[n]]["cpu"]["seconds"] for n in week["chapters"])
            lines.append(f"| {number} | {chapters} | {took:.0f} s | {', '.join(week['exercises'])} |")
        lines.append("")
    return "\n".join(lines)


def sync(check):
    """Returns: list of the files that were out of step."""
    stale = []
    for number, name in NAMES.items():
        path = ROOT / "chapters" / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        notebook.cells[0].source = with_line(notebook.cells[0].source, read_before(number))
        stale += put(path, nbformat.writes(notebook) + "\n", check)
    for page, name, body in (("intro.md", "map", map_block()), ("lecturers.md", "syllabi", syllabi())):
        text = (ROOT / page).read_text(encoding="utf-8")
        stale += put(ROOT / page, between(text, name, body), check)
    return stale


if __name__ == "__main__":
    main(sync, command="python -m tools.course")
