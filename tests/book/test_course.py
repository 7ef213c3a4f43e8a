"""The order of reading: the table, the map that is drawn from it, what chapters say to read before, the syllabi."""

import re

import nbformat
import pytest
from conftest import ROOT

from d2lmini.exercises.engine import registry
from tools import course, site
from tools.core import minutes

CHAPTERS = course.table()["chapters"]
COURSES = course.table()["courses"]


def test_every_chapter_stands_in_the_table_and_builds_on_earlier_ones_only():
    assert list(CHAPTERS) == [name[:2] for name, _ in site.chapters()]
    for number, chapter in CHAPTERS.items():
        needs = [*chapter["needs"], *chapter.get("also", {}).get("needs", [])]
        assert all(before in CHAPTERS and before < number for before in needs), number
        assert re.search(r"(D2L|UDL) (\d|notes)", chapter["sections"])
    assert [number for number, chapter in CHAPTERS.items() if not chapter["needs"]] == ["01"]


def test_no_need_is_named_that_another_one_needs():
    def all_needs(number):
        needs = CHAPTERS[number]["needs"]
        return set(needs).union(*map(all_needs, needs))

    for number, chapter in CHAPTERS.items():
        for before in chapter["needs"]:
            assert not any(before in all_needs(other) for other in chapter["needs"] if other != before), number


def drawings():
    """The map for a wide page and that for a phone."""
    wide, narrow, _ = course.book_map()._repr_html_().split("</svg>")
    return wide, narrow


def test_the_map_has_every_chapter_as_a_link_and_every_need_as_an_arrow():
    drawn, narrow = drawings()
    links = re.findall(r'<a href="chapters/(\w+)\.html"><text[^>]*>([^<]*)', drawn)
    assert links == [(name, f"{name[:2]} {title}") for name, title in site.chapters()]
    assert re.findall(r'<a href="chapters/(\w+)\.html"', narrow) == [name for name, _ in site.chapters()]
    assert (
        drawn.count("<polyline")
        == narrow.count("<polyline")
        == sum(len(chapter["needs"]) for chapter in CHAPTERS.values())
    )
    places = [tuple(chapter["at"]) for chapter in CHAPTERS.values()]
    assert len(set(places)) == len(places)
    assert 0.8 * float(re.search(r'<svg[^>]* width="([\d.]+)"', drawn)[1]) <= 735  # what a narrow column shows whole
    assert '<svg role="group"' in drawn  # an image may hold no links


def test_the_map_shows_titles_and_no_counts():
    titles = [f"{name[:2]} {title}" for name, title in site.chapters()]
    for drawn in drawings():  # the narrow one has a title on several lines
        assert " ".join(re.findall(r"<text[^>]*>([^<]*)", drawn)) == " ".join(titles)
        assert not re.search(r"lecture|exercise|item", drawn)


def test_the_map_of_a_part_of_the_book_is_that_part(monkeypatch):
    names = dict(list(course.NAMES.items())[:1])
    monkeypatch.setattr(course, "NAMES", names)
    drawn = course.book_map()._repr_html_()
    assert drawn.count("<a href") == 1 and "<polyline" not in drawn
    assert [numbers for _, numbers in course.routes()] == [["01"]] * 3


@pytest.mark.parametrize("number", CHAPTERS)
def test_a_chapter_says_what_to_read_before_it(number):
    path = ROOT / "chapters" / f"{course.NAMES[number]}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    line = notebook.cells[0].source.splitlines()[-1]
    assert line.startswith("**Read before:** ")
    linked = re.findall(r"\[chapter (\d\d)\]\((\w+\.ipynb)\)", line)
    also = CHAPTERS[number].get("also", {"needs": []})
    assert [n for n, _ in linked] == [*CHAPTERS[number]["needs"], *also["needs"]]
    assert all((ROOT / "chapters" / target).is_file() and target.startswith(n) for n, target in linked)
    if section := also.get("section"):
        assert any(re.search(rf"^#+ {section}$", cell.source, re.M) for cell in notebook.cells)


def test_the_line_stands_there_once():
    once = course.with_line("# Title\n\nWords.", "**Read before:** nothing.")
    assert course.with_line(once, "**Read before:** chapter 01.") == "# Title\n\nWords.\n\n**Read before:** chapter 01."


def test_the_syllabi_give_the_minutes_of_the_cores():
    rows = [row.split(" | ") for row in course.syllabi().splitlines() if re.match(r"\| \d", row)]
    weeks = [week for weeks in COURSES.values() for week in weeks]
    times = [course.spent(sum(minutes(course.NAMES[n]).core for n in week["chapters"])) for week in weeks]
    assert [row[2] for row in rows] == times
    chosen = [re.findall(r'href="#had=([\d,]+)&amp;set=([\w,.-]+)"', row[4]) for row in rows]
    assert [keys.split(",") for [(_, keys)] in chosen] == [week["exercises"] for week in weeks]
    assert [had for [(had, _)] in chosen][:2] == ["01,02,03", "01,02,03,04,05"]
    assert course.syllabi().strip() in (ROOT / "pages" / "lecturers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COURSES)
def test_a_course_reads_nothing_before_what_it_needs(name):
    read = set()
    for week in COURSES[name]:
        assert not read & set(week["chapters"])
        read |= set(week["chapters"])
        for number in week["chapters"]:
            assert {*CHAPTERS[number]["needs"], *CHAPTERS[number].get("also", {}).get("needs", [])} <= read, (
                name,
                number,
            )
        known = {exercise.key for number in week["chapters"] for exercise in registry.exercises(number)}
        assert set(week["exercises"]) <= known, (name, week)


def test_the_course_of_ten_weeks_reads_the_whole_book():
    assert sorted(n for week in COURSES["ten weeks"] for n in week["chapters"]) == list(CHAPTERS)
    assert len(COURSES["four weeks"]) == 4 and len(COURSES["ten weeks"]) == 10
