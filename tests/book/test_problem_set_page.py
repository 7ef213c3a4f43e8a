"""The chooser of a problem set on the page for lecturers."""

import re

import pytest

from tools import problem_set

ENTRIES = problem_set.entries()
STATE = "#had=01,02,03,07&source=UDL&set=own-04.1,udl-12.5"


@pytest.fixture
def chooser(open_page, exercise_base):
    """A function that opens the page with what stands at the end of its address."""

    def chooser(state="", **options):
        page = open_page(f"{exercise_base}/lecturers.html{state}", **options)
        assert page.log["errors"] == [] or not options.get("java_script_enabled", True)
        return page

    return chooser


def shown(page):
    return [re.match(r"\s*(\S+)", row)[1] for row in page.locator(".set-table tbody tr:visible").all_inner_texts()]


def status(page):
    return page.locator(".set-chosen [role=status]").inner_text()


def command(page):
    return page.locator(".set-chosen pre").inner_text()


def address(page):
    return page.evaluate("location.hash")


def fitting(**wanted):
    return [one.key for one in ENTRIES if one.fits(**wanted)]


def test_filters_are_those_of_the_command(chooser):
    page = chooser()
    assert shown(page) == [one.key for one in ENTRIES] and status(page).startswith(f"{len(ENTRIES)} of {len(ENTRIES)} ")
    for chapter in ("01", "02", "03", "07"):
        page.get_by_label(chapter, exact=True).check()
    assert shown(page) == fitting(had=["01", "02", "03", "07"])
    assert "Chapter 07 builds on 04, 05, 06: tick these for its exercises." in status(page)
    page.get_by_label("From:").select_option("UDL")
    assert shown(page) == fitting(had=["01", "02", "03"], source="UDL")
    page.get_by_label("From:").select_option("")
    for chapter in ("01", "02", "03", "07"):
        page.get_by_label(chapter, exact=True).uncheck()
    for kind in problem_set.KINDS:
        page.get_by_label("Kind:").select_option(kind)
        assert shown(page) == fitting(kind=kind)
    page.get_by_label("Kind:").select_option("no-code")
    page.get_by_label("no discussion, which only you can mark").check()
    assert shown(page) == fitting(kind="no-code", graded=True) == ["udl-12.2"]


def test_what_is_chosen_makes_the_command_in_the_order_of_choosing(chooser):
    page = chooser()
    assert not page.locator(".set-chosen pre").is_visible()
    for key in ("own-04.1", "d2l-11.3.2", "udl-12.5"):
        page.get_by_label(key, exact=True).check()
    page.get_by_label("d2l-11.3.2", exact=True).uncheck()
    assert command(page) == "python -m tools.problem_set own-04.1 udl-12.5 --out set1.ipynb"
    assert "Chosen: 2 exercises with 3 parts (2 code, 1 choice); limits 20 s." in status(page)
    page.get_by_label("Kind:").select_option("no-code")
    assert shown(page) == ["udl-12.5", "own-04.1", "udl-12.2", "d2l-11.9.2"]  # chosen ones stay in sight, to be undone
    page.get_by_label("own-04.1", exact=True).uncheck()
    assert "own-04.1" in shown(page) and page.evaluate("document.activeElement.value") == "own-04.1"
    page.get_by_role("button", name="Choose none").click()
    assert status(page).endswith("Chosen: 0 exercises.") and shown(page) == ["udl-12.2", "d2l-11.9.2"]
    assert not page.locator(".set-chosen pre").is_visible() and address(page) == "#kind=no-code"
    assert page.evaluate("document.activeElement.name") == "had"


def test_the_command_is_copied(chooser):
    page = chooser()
    page.get_by_label("udl-12.5", exact=True).check()
    page.locator(".set-chosen .highlight").hover()
    button = page.locator(".set-chosen button.copybtn")
    assert button.get_attribute("data-clipboard-target") == f"#{page.locator('.set-chosen pre').get_attribute('id')}"
    button.click()
    page.wait_for_function("document.querySelector('.set-chosen .copybtn').classList.contains('success')")


def test_the_address_keeps_the_choice_and_gives_it_back(chooser):
    page = chooser(STATE)
    assert command(page) == "python -m tools.problem_set own-04.1 udl-12.5 --out set1.ipynb"
    assert shown(page) == ["udl-12.5", "own-04.1"] and address(page) == STATE
    assert page.locator(".set-tools").evaluate("node => Math.abs(node.getBoundingClientRect().top) < innerHeight / 2")
    page.get_by_label("udl-12.5", exact=True).uncheck()
    page.get_by_label("no discussion, which only you can mark").check()
    assert address(page) == "#had=01,02,03,07&source=UDL&graded=yes&set=own-04.1"
    page.reload()
    assert command(page) == "python -m tools.problem_set own-04.1 --out set1.ipynb"
    page.evaluate(f"location.hash = '{STATE}'")  # a link that is opened while the page is
    page.locator(".set-chosen pre", has_text="own-04.1 udl-12.5").wait_for()
    assert not page.get_by_label("no discussion, which only you can mark").is_checked()


def test_a_week_of_a_syllabus_is_a_choice(chooser):
    page = chooser()
    page.get_by_role("link", name="d2l-11.1.1, d2l-11.3.1, udl-12.5").click()
    page.locator(".set-chosen pre", has_text="d2l-11.1.1 d2l-11.3.1 udl-12.5 --out set1.ipynb").wait_for()
    assert shown(page) == fitting(had=["01", "02", "03"])


def test_an_address_of_another_edition_or_of_a_heading_does_no_harm(chooser):
    page = chooser("#had=99&kind=poem&set=own-99.1,udl-12.5,udl-12.5,%3Cb%3E")
    assert command(page) == "python -m tools.problem_set udl-12.5 --out set1.ipynb"
    assert "The address also names own-99.1, <b>, not in this edition." in status(page)
    assert len(shown(page)) == len(ENTRIES)
    page = chooser("#choose-a-problem-set")
    assert status(page).endswith("Chosen: 0 exercises.") and address(page) == "#choose-a-problem-set"
    page.get_by_label("udl-12.5", exact=True).check()
    page.evaluate(
        "new Promise((done) => { addEventListener('hashchange', () => done()); location.hash = 'what-is-not'; })"
    )
    assert "udl-12.5" in command(page) and "Chosen: 1 exercise with" in status(page)


def test_it_works_by_keyboard(chooser):
    page = chooser()
    page.get_by_label("01", exact=True).focus()
    page.keyboard.press("Space")
    assert shown(page) == fitting(had=["01"])
    page.get_by_label("no discussion, which only you can mark").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "d2l-11.1.1"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Space")
    assert address(page) == "#had=01&set=d2l-11.1.1"


def test_a_title_leads_to_its_exercise(chooser):
    page = chooser()
    page.get_by_role("link", name="Distance attention at the price of a dot product").click()
    page.wait_for_url("**/exercises/03_attention_scoring.html#d2l-11-3-1")
    assert page.locator("#d2l-11-3-1").count() == 1


def test_without_javascript_the_table_is_there_and_no_box_is_dead(chooser):
    page = chooser(java_script_enabled=False)
    assert shown(page) == [one.key for one in ENTRIES]
    assert page.locator(":is(.set-tools, .set-table, .set-chosen) :is(input, select, button, pre):visible").count() == 0
    row = page.locator(".set-table tr", has_text="own-18.4").locator("td").all_inner_texts()
    assert row == ["01-07, 10, 12, 15-16, 18", "2 code, 1 choice", "20"]


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_it_fits_the_screen_and_is_accessible(chooser, width, theme):
    from axe_playwright_python.sync_playwright import Axe

    page = chooser(STATE, width=width, theme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for inside in (".set-list", ".set-table th", ".set-table td"):
        cut = page.locator(inside).evaluate_all("all => all.filter((n) => n.scrollWidth > n.clientWidth + 1).length")
        assert cut == 0, inside
    rules = Axe().run(page, context=".problem-set").response["violations"]
    assert [rule["id"] for rule in rules if rule["impact"] in ("serious", "critical")] == []
