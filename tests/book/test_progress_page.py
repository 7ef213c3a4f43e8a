"""The page *Your progress*, the line on the front page, and the file that page and package read and write."""

import json

import pytest
from conftest import sphinx_extension

from d2lmini.__main__ import main
from d2lmini.exercises.engine import registry
from tools import exercise_cells

CHOICE, CODE = "udl-12.5b", "d2l-11.3.1"
ENTRY = {"tries": 0, "passed": False, "last": "", "review": "", "ticked": False, "chosen": ""}
RIGHT = next(x for x, option in registry.find(CHOICE)[1].lettered.items() if option.right)


@pytest.fixture
def at_work(open_page, exercise_base):
    """A function that answers and ticks on a page of exercises and then opens another page."""

    def at_work(then="your_progress.html"):
        page = open_page(f"{exercise_base}/exercises/03_attention_scoring.html")
        page.locator(f".choice[data-part='{CHOICE}'] .option[data-letter={RIGHT}] input").click()
        page.get_by_role("button", name="Check my choice").click()
        page.locator(f".tick[data-part='{CODE}'] input").check()
        page.goto(f"{exercise_base}/{then}")
        page.wait_for_function("bookProgress.begun() === 2")  # from the disk, a page hears of another one's later
        return page

    return at_work


def row(page, chapter="03"):
    name = f"{chapter} {exercise_cells.CHAPTERS[chapter][1]}" if chapter else "All chapters"
    return page.get_by_role("row", name=name).locator("td").all_inner_texts()


def status(page):
    return page.locator(".progress-tools [role=status]").inner_text()


def test_every_part_is_counted_once():
    keys = sphinx_extension("progress_page").keys
    for chapter in registry.chapters():
        choices, others = keys(chapter)
        parts = [part for exercise in registry.exercises(chapter) for part in exercise.parts]
        assert sorted(choices + others) == sorted(part.key for part in parts)
        assert choices == [part.key for part in parts if part.kind == "choice"]


def test_the_page_counts_choices_ticks_and_what_a_notebook_checked(at_work):
    page = at_work()
    assert row(page) == ["1 of 1", "1 of 4", "0"] and row(page, "05") == ["0 of 1", "0 of 6", "0"]
    assert row(page, "04") == ["–", "0 of 5", "0"]
    total = len([part for exercise in registry.exercises() for part in exercise.parts])
    choices, others, checked = row(page, "")
    assert choices.startswith("1 of ") and others.startswith("1 of ") and checked == "0"
    assert int(choices.split()[-1]) + int(others.split()[-1]) == total
    assert "passed" not in page.locator("article").inner_text().casefold() and page.log["errors"] == []


def test_the_front_page_says_it_in_a_line(at_work, open_page, exercise_base):
    total = len([part for exercise in registry.exercises() for part in exercise.parts])
    line = at_work("intro.html").locator(".progress-line")
    assert line.inner_text() == f"Your progress: 1 of {total} parts checked and right, 1 more ticked by you."
    assert not open_page(f"{exercise_base}/intro.html").locator(".progress-line").is_visible()


def test_the_file_goes_to_the_command_line_and_back(at_work, open_page, exercise_base, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("D2LMINI_PROGRESS", str(tmp_path / "progress.json"))
    page = at_work()
    with page.expect_download() as download:
        page.get_by_role("button", name="Write a file").click()
    assert download.value.suggested_filename == "d2lmini-progress.json"
    written = tmp_path / "d2lmini-progress.json"
    download.value.save_as(written)
    passed = {"tries": 1, "passed": True, "last": "passed", "chosen": RIGHT}
    assert json.loads(written.read_text())["parts"] == {CHOICE: ENTRY | passed, CODE: ENTRY | {"ticked": True}}

    (tmp_path / "progress.json").write_text('{"version": 1, "parts": {"d2l-11.3.2": {"tries": 3, "passed": true}}}')
    back = tmp_path / "back.json"
    assert main(["progress", "03", "--read", str(written), "--write", str(back)]) == 0
    out = capsys.readouterr().out
    assert "Verified by checks:  2 of 5" in out and "Ticked by you:       1 (" in out

    other = open_page(f"{exercise_base}/your_progress.html")  # of another browser, which knows nothing
    assert row(other) == ["0 of 1", "0 of 4", "0"]
    other.get_by_label("Read a file:").set_input_files(back)
    other.wait_for_function("document.querySelector('.progress-tools [role=status]').textContent !== ''")
    assert status(other).startswith("Read 3 parts from back.json.")
    assert row(other) == ["1 of 1", "1 of 4", "1"]
    other.goto(f"{exercise_base}/exercises/03_attention_scoring.html")
    assert "(verified in a notebook)" in other.locator(".tick[data-part='d2l-11.3.2']").inner_text()
    assert not other.locator(".tick[data-part='d2l-11.3.2'] input").is_checked()


def test_a_file_of_something_else_changes_nothing(at_work, tmp_path):
    page = at_work()
    for number, text in enumerate(("[1]", "{", '{"parts": {"udl-12.5b": {"passed": "yes"}}}')):
        path = tmp_path / f"other{number}.json"
        path.write_text(text)
        page.get_by_label("Read a file:").set_input_files(path)
        page.get_by_text(f"{path.name} is").wait_for()
        assert status(page) == f"{path.name} is no file of progress: nothing was read."
    assert row(page) == ["1 of 1", "1 of 4", "0"]


def test_to_forget_asks_first(at_work):
    page = at_work()
    kept = "Object.keys(localStorage).filter((name) => name.startsWith('d2lmini:')).sort().join()"
    page.evaluate("localStorage['d2lmini:predict-0'] = '(a)'; localStorage['d2lmini:open everything'] = 'yes'")
    said = []
    page.once("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.get_by_role("button", name="Forget everything").click()
    assert said[0].startswith("Forget what you did of 2 parts, and 1 prediction? ")
    assert row(page) == ["1 of 1", "1 of 4", "0"]
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget everything").click()
    assert row(page) == ["0 of 1", "0 of 4", "0"] and status(page) == "Answers, ticks and predictions are forgotten."
    assert page.evaluate(kept) == "d2lmini:open everything,d2lmini:progress"
    page.get_by_role("button", name="Forget everything").click()
    assert status(page) == "There is nothing to forget."


def test_what_another_tab_does_is_seen(at_work, exercise_base):
    page = at_work()
    tab = page.context.new_page()
    tab.goto(f"{exercise_base}/exercises/03_attention_scoring.html")
    tab.locator(".tick[data-part='d2l-11.3.2'] input").check()
    page.locator("[data-others*='d2l-11.3.2'] td", has_text="2 of 4").wait_for()
    assert row(page) == ["1 of 1", "2 of 4", "0"]


def test_without_javascript_there_is_what_can_be_done(open_page, exercise_base):
    page = open_page(f"{exercise_base}/your_progress.html", java_script_enabled=False)
    assert "Without JavaScript this page does not know what you did." in page.locator("article noscript").inner_text()
    assert row(page) == ["of 1", "of 4", "–"] and row(page, "04") == ["–", "of 5", "–"]
    assert not page.get_by_role("button", name="Write a file").is_visible()


def test_the_table_fits_a_phone(open_page, exercise_base):
    page = open_page(f"{exercise_base}/your_progress.html", width=390, theme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    right = page.locator(".progress-tools :is(button, input)").evaluate_all(
        "all => all.map(node => node.getBoundingClientRect().right)"
    )
    assert max(right) <= 390 - 12
    heads = page.locator(".progress-table thead th").evaluate_all("all => all.map(n => n.scrollWidth - n.clientWidth)")
    assert max(heads) <= 0
