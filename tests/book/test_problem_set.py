"""What is said of an exercise to a lecturer, the notebook of those that were chosen, and how it is graded."""

import ast
import re
from types import SimpleNamespace

import nbformat
import pytest

from d2lmini.__main__ import main as d2lmini_command
from d2lmini.data.catalogue import SETS
from d2lmini.exercises import check_file, grade
from d2lmini.exercises.engine import registry, source
from d2lmini.exercises.engine.document import take_apart
from d2lmini.exercises.engine.model import Coded
from d2lmini.exercises.grading import sandbox
from tools import exercise_cells, exercise_places, problem_set, site

ENTRIES = {one.key: one for one in problem_set.entries()}


def listed(capsys, *options):
    problem_set.main(["--list", *options])
    printed = capsys.readouterr().out
    return re.findall(r"^((?:d2l|udl|own)-\S+)", printed, re.M), printed


def wrong(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        problem_set.main(list(map(str, arguments)))
    return stop.value.code if isinstance(stop.value.code, str) else capsys.readouterr().err


# ---- what is known of an exercise


def test_every_exercise_is_known_by_what_its_files_say():
    assert list(ENTRIES) == [key for chapter in registry.chapters() for key in registry.keys(chapter)]
    one = ENTRIES["d2l-11.3.1"]
    assert (one.source, one.chapters, one.kinds, one.graded) == ("D2L", ("01", "02", "03"), ("code",), True)
    assert one.seconds == sum(part.seconds for part in one.exercise.parts)
    for one in ENTRIES.values():
        assert (problem_set.NO_CODE in one.words) == (not any(isinstance(p, Coded) for p in one.exercise.parts))
        assert one.graded == ("discussion" not in one.kinds) and one.chapters[-1] == one.exercise.chapter
    assert not ENTRIES["udl-12.8"].graded and ENTRIES["udl-12.2"].seconds == 0


def test_chapters_are_those_of_the_course_and_one_more_for_a_section_that_needs_it():
    assert ENTRIES["own-07.1"].chapters == ("01", "02", "03", "04", "05", "06", "07")
    assert "10" in ENTRIES["own-18.4"].chapters and "10" not in ENTRIES["own-18.1"].chapters
    assert problem_set.lacking(["01", "02", "03", "07"]) == {"07": ["04", "05", "06"]}
    assert problem_set.ranges(["01", "02", "03", "07", "09", "10"]) == "01-03, 07, 09-10"


def test_what_does_not_come_with_the_package_is_named():
    text = "import math\nimport torch\nfrom d2lmini import check\n\ndef f():\n    import sklearn.svm as svm\n"
    assert problem_set.packages(text) == ("sklearn",)


def test_no_exercise_needs_a_gpu_a_download_or_another_package():
    """As lecturers.md says: data come from the part that ships with the package."""
    for key, one in ENTRIES.items():
        assert one.packages == ()
        tree = ast.parse(take_apart(registry.path(key)).code)
        imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        assert not any(node.module.startswith("d2lmini.models.pretrained") for node in imported), key
        loads = {a.name for node in imported if node.module == "d2lmini.data.images" for a in node.names}
        other = {node.module for node in imported if node.module.startswith("d2lmini.data")}
        assert other <= {"d2lmini.data.images", "d2lmini.data.fashion_mnist"}, key
        assert loads <= {"fashion_mnist"}, key
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") in loads]
        assert all("'shipped'" in ast.unparse(call) for call in calls), key
        words = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        names = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        assert not (words | names) & {"cuda", "mps", *SETS}, key


# ---- the list


def test_the_list_has_what_fits(capsys):
    keys, printed = listed(capsys, "--had", "1-3", "7")
    assert keys == [*registry.keys("01"), *registry.keys("02"), *registry.keys("03")]
    assert "chapter 07 builds on 04-06, not among --had" in printed
    assert listed(capsys)[0] == list(ENTRIES)
    assert set(listed(capsys, "--kind", "no-code")[0]) == {"udl-12.2", "d2l-11.9.2"}
    assert listed(capsys, "--kind", "no-code", "--graded")[0] == ["udl-12.2"]
    keys, printed = listed(capsys, "--source", "UDL", "--had", "1-6", "--kind", "identity")
    assert keys == ["udl-12.3", "udl-12.4"]
    assert printed.splitlines()[-1].startswith("2 exercises with 3 parts (2 identity, 1 choice); the limits")


@pytest.mark.parametrize("text", ["0-3", "1-30", "three", "3-1", "1-", ""])
def test_chapters_that_are_none_are_refused(text, capsys):
    assert f"no chapters: '{text}'" in wrong(capsys, "--list", "--had", text)


@pytest.mark.parametrize("arguments", [(), ("d2l-11.3.1",), ("--out", "a.ipynb"), ("d2l-11.3.1", "--list")])
def test_keys_go_with_a_file_and_without_a_list(arguments, capsys):
    assert "expected keys with --out FILE, or --list" in wrong(capsys, *arguments)


# ---- the notebook


def test_the_notebook_has_the_exercises_in_this_order(tmp_path, capsys):
    path = tmp_path / "set1.ipynb"
    problem_set.main(["udl-12.5", "D2L-11.3.1", "own-4.1", "udl-12.5", "--out", str(path)])
    printed = capsys.readouterr().out
    assert "3 exercises with 4 parts (3 code, 1 choice)" in printed and f"--set {path}" in printed
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert re.findall(r"^# exercise: (\S+)", text, re.M) == ["udl-12.5a", "udl-12.5b", "d2l-11.3.1", "own-04.1"]
    assert re.findall(r'^check\("(\S+)"', text, re.M) == ["udl-12.5a", "udl-12.5b", "d2l-11.3.1", "own-04.1"]
    for key in ("udl-12.5", "d2l-11.3.1", "own-04.1"):
        exercise = registry.load(key)
        assert exercise.statement in text and all(hint in text for part in exercise.parts for hint in part.hints)
        assert all(part.explanation not in text for part in exercise.parts if part.explanation)
    assert '\nos.environ["D2LMINI_SOLUTIONS"] = "0"  # ' in text
    links = re.findall(r"\]\(([^)]*)\)", "\n".join(c.source for c in notebook.cells if c.id.endswith("-statement")))
    root = f"{site.address()}chapters/03_attention_scoring.html"
    assert len(links) == 3 and links[0] == f"{root}#why-divide-by-the-square-root-of-d"
    title = exercise_places.places()["own-16.4"].title  # the book's anchors, not those of a notebook
    assert site.section("chapters/16_decoding.ipynb", title).endswith(".html#is-greedy-search-s-text-the-likeliest")


def test_where_the_book_is_nowhere_read_links_lead_to_the_repository(monkeypatch):
    monkeypatch.setattr(site, "address", lambda: "")
    text = exercise_cells.problem_set([registry.load("udl-12.5")]).cells[2].source
    assert f"({site.repository()['url']}/blob/main/chapters/03_attention_scoring.ipynb)" in text


def test_a_key_that_is_none_says_which_are_near(tmp_path, capsys):
    path = tmp_path / "set1.ipynb"
    assert "d2l-11.3 has d2l-11.3.1, d2l-11.3.2" in wrong(capsys, "own-04.1", "d2l-11.3.9", "--out", path)
    assert "udl-12.5b is one part: a set has whole exercises" in wrong(capsys, "udl-12.5b", "--out", path)
    assert not path.exists()


def test_a_file_that_is_there_is_left_as_it_is(tmp_path, capsys):
    path = tmp_path / "set1.ipynb"
    path.write_text("an answer")
    assert f"{path} is there already" in wrong(capsys, "d2l-11.3.1", "--out", path)
    assert path.read_text() == "an answer"
    assert "error: " in wrong(capsys, "d2l-11.3.1", "--out", tmp_path / "absent" / "set1.ipynb")


# ---- how it is graded


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    """A problem set, and a folder with two answers to it."""
    place = tmp_path_factory.mktemp("handed in")
    folder, path = place / "class", place / "class" / "set1.ipynb"
    folder.mkdir()
    problem_set.main(["udl-12.5", "d2l-11.3.1", "--out", str(path)])
    notebook = nbformat.read(path, as_version=4)
    nbformat.write(notebook, folder / "empty.ipynb")
    cells = {cell.id: cell for cell in notebook.cells}
    part = registry.find("d2l-11.3.1")[1]
    cells["d2l-11-3-1-answer"].source = source.answer_cell(part, source.solution(part))
    cells["udl-12-5b-answer"].source = "# exercise: d2l-11.3.2\nx = 1"  # not of this set, and one of the set is gone
    nbformat.write(notebook, folder / "solved.ipynb")
    (folder / "nothing.ipynb").write_text('{"cells": []}')
    return SimpleNamespace(folder=folder, path=path, table=place / "out.csv")


def verdicts(rows, name):
    return {row["exercise"]: row["verdict"] for row in rows if row["notebook"] == name}


@pytest.mark.slow
def test_a_set_is_graded_and_nothing_else_is_missing(handed_in, capsys):
    unsafe = ["--unsafe"] if sandbox.why_not() else []
    options = ["--csv", str(handed_in.table), "--set", str(handed_in.path), "--seed", "1", *unsafe]
    assert d2lmini_command(["grade", str(handed_in.folder), *options]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"solved.ipynb +1 of 3 verified", printed) and re.search(r"empty.ipynb +0 of 3 ver", printed)
    rows = [dict(zip(("notebook", "exercise", "verdict"), line.split(","), strict=False)) for line in
            handed_in.table.read_text().splitlines()]  # fmt: skip
    parts = "udl-12.5a", "udl-12.5b", "d2l-11.3.1"
    assert verdicts(rows, "empty.ipynb") == dict.fromkeys(parts, "not attempted")
    assert verdicts(rows, "solved.ipynb") == dict(zip(parts, ("not attempted", "missing", "passed"), strict=True))
    assert verdicts(rows, "nothing.ipynb") == {"": "no answers"} and verdicts(rows, "set1.ipynb") == {}


@pytest.mark.slow
def test_without_the_set_only_what_the_notebook_states_is_missing(handed_in):
    rows = grade(handed_in.folder, handed_in.table, seconds=1.0, unsafe=bool(sandbox.why_not()))
    found = verdicts(rows, "solved.ipynb")
    assert set(found) == {"udl-12.5a", "udl-12.5b", "d2l-11.3.1", "d2l-11.3.2"}  # and not the rest of the chapter
    [gone] = [row["message"] for row in rows if row["exercise"] == "udl-12.5b" and row["notebook"] == "solved.ipynb"]
    assert gone == "no cell has a line `# exercise: udl-12.5b`" and found["udl-12.5b"] == "missing"


@pytest.mark.slow
def test_a_student_who_checks_a_set_is_told_of_its_parts_alone(handed_in):
    keys = [line.split(":")[0] for line in check_file(handed_in.folder / "empty.ipynb")]
    assert keys == [f"NOT ATTEMPTED {key}" for key in ("udl-12.5a", "udl-12.5b", "d2l-11.3.1")]


def test_a_set_without_answer_cells_is_refused(handed_in, tmp_path):
    for name, error in (("nothing.ipynb", ValueError), ("absent.ipynb", FileNotFoundError)):
        with pytest.raises(error):
            grade(handed_in.folder, tmp_path / "out.csv", problem_set=handed_in.folder / name)
    assert list(tmp_path.iterdir()) == []
