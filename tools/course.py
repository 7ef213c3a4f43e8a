"""The order of reading, from tools/course.yml: routes and map of the front page, what to read before, the syllabi."""

import json
import re
from functools import cache

import nbformat
import yaml

from d2lmini.figures.diagrams.drawing import Diagram
from tools import site
from tools._generated import ROOT, between, main, put

SPINE = 3  # the column of the map that holds most chapters
STEP = 1.2  # from a row of the map to the next, in rows of the drawing
RUN_TIMES = ROOT / "d2lmini" / "results" / "run_times.json"
NAMES = {name[:2]: name for name, _ in site.chapters()}
TITLES = {name[:2]: title for name, title in site.chapters()}


@cache
def table():
    """What tools/course.yml holds. Returns: dict with the keys chapters, routes and courses."""
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


def chapters():
    """The rows of the table whose chapters are in `_toc.yml`: a part of the book may be built alone. Returns: dict."""
    return {number: chapter for number, chapter in table()["chapters"].items() if number in NAMES}


def needed(number):
    """The chapters to read before one, of those that are there. Returns: list of str."""
    return [before for before in table()["chapters"][number]["needs"] if before in NAMES]


def routes():
    """The ways through the book. Returns: list of (name, list of chapter numbers in their order)."""
    there = chapters()
    return [
        (route["name"], [n for n in (there if route["chapters"] == "all" else route["chapters"]) if n in there])
        for route in table()["routes"]
    ]


def core_minutes(numbers):
    """Minutes for the cores of these chapters together. Returns: int."""
    from tools.core import minutes  # which reads every chapter

    return sum(minutes(NAMES[number]).core for number in numbers)


def spent(minutes):
    """Minutes in words: "25 min", "2 h", "2 h 5 min". Returns: str."""
    hours, rest = divmod(minutes, 60)
    return " ".join([*[f"{hours} h"] * (hours > 0), *[f"{rest} min"] * (rest > 0 or hours == 0)])


def book_map():
    """The chapters, and arrows to each from those that it builds on. Returns: `Diagram`."""
    there = chapters()
    needs = "; ".join(f"{n} needs {_listed(needed(n))}" for n in there if needed(n))
    drawn = Diagram(
        "The chapters of this book and what each builds on",
        f"From top to bottom: {needs}." if needs else "One chapter.",
        "An arrow points from a chapter to one that builds on it. Orange: images. Blue: language models.",
    )
    for number, chapter in there.items():
        column, row = chapter["at"]
        drawn.box(number, (column, -STEP * row), f"{number} {TITLES[number]}", width=2.8, accent=accent(number),
                  link=f"chapters/{NAMES[number]}.html")  # fmt: skip
    for number, chapter in there.items():
        for before in needed(number):
            (column, row), (onto, below) = there[before]["at"], chapter["at"]
            level, back = row == below, onto == SPINE != column  # back: from the side to the middle
            enter = "top" if not (level or back) else "left" if column < onto else "right"
            leave = {"left": "right", "right": "left"}[enter] if level else "bottom"
            drawn.arrow(before, number, leave=leave, enter=enter)
    return drawn


def accent(number):
    """Attention and Transformers plain, vision orange, language models blue. Returns: str or None."""
    return "orange" if number in ("10", "11") else "blue" if number >= "12" else None


def syllabi():
    """Markdown: a table for each course, with the minutes of reading, the seconds in which its chapters execute, and
    exercises as a link that chooses them on the page."""
    measured = json.loads(RUN_TIMES.read_text(encoding="utf-8"))
    lines = []
    for name, weeks in table()["courses"].items():
        lines += [f"### In {name}", "", "| week | chapters | core | execute in | exercises |", "|---|---|---|---|---|"]
        had = []
        for number, week in enumerate(weeks, 1):
            had += week["chapters"]
            titles = ", ".join(f"[{n} {TITLES[n]}](../chapters/{NAMES[n]}.ipynb)" for n in week["chapters"])
            read = spent(core_minutes(week["chapters"]))
            took = sum(measured[NAMES[n]]["cpu"]["seconds"] for n in week["chapters"])
            chooses = f"#had={','.join(had)}&amp;set={','.join(week['exercises'])}"
            keys = f'<a href="{chooses}">{", ".join(week["exercises"])}</a>'
            lines.append(f"| {number} | {titles} | {read} | {took:.0f} s | {keys} |")
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
    page = ROOT / "pages" / "lecturers.md"
    return stale + put(page, between(page.read_text(encoding="utf-8"), "syllabi", syllabi()), check)


if __name__ == "__main__":
    main(sync, command="python -m tools.course")
