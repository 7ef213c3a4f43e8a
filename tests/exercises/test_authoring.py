"""A lecturer's own exercise: begun, audited, found in a folder outside of the package, handed out and graded."""

import csv
import subprocess
import sys

import nbformat
import pytest
import torch

from d2lmini.__main__ import main as d2lmini_command
from d2lmini.exercises import check, grade
from d2lmini.exercises.authoring import FIRST, begin, lacks
from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.document import DocumentError

pytest.importorskip("pybtex", reason="LECTURERS' EXERCISES SKIPPED: the book's packages are not installed")
from tools import problem_set


@pytest.fixture
def yours(tmp_path, monkeypatch):
    """A folder with one exercise, `own-08.9`, that the package lacks."""
    folder = tmp_path / "yours"
    monkeypatch.setenv(registry.YOURS, str(folder))
    begin("own-08.9")
    return folder


def test_the_first_document_works_as_it_is(tmp_path, capsys):
    assert d2lmini_command(["exercise", "new", "own-03.7", "--folder", str(tmp_path / "new")]) == 0
    path = tmp_path / "new" / "own_03_7.md"
    assert path.read_text(encoding="utf-8") == FIRST.read_text(encoding="utf-8")
    assert d2lmini_command(["exercise", "audit", str(path), "--seconds", "0.1"]) == 0
    assert capsys.readouterr().out.endswith(f"{path}: in order\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("### Hints\n\n1. A gentle", "### Hint\n\n1. A gentle", ":23: '### Hint' is no heading of a section"),
        ("powers / powers.sum", "2 * powers / powers.sum", "own-03.7a: solution: "),
        ("| sign |", "| values |", "'values' names no cause"),
        (" | the softmax runs over the queries: the keys are the last axis", "", "expected 'over-queries', got "),
    ],
)
def test_what_a_document_lacks_is_told_in_words(tmp_path, old, new, said):
    text = FIRST.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = tmp_path / "own_03_7.md"
    path.write_text(text.replace(old, new), encoding="utf-8")
    found = lacks(path, seconds=0.1)
    assert any(said in one for one in found) and len(found) == len(set(found))
    assert not any("the same inputs again" in one for one in found)  # that is for students


def test_a_key_that_is_taken_or_none_of_yours_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"own-08\.2 is taken, by .*own_08_2\.md: own-08\.4 is free"):
        begin("own-08.2", tmp_path)
    begin("own-08.9", tmp_path)
    with pytest.raises(ValueError, match=r"own-08\.9 is taken"):
        begin("own-08.9", tmp_path)
    for key in ("own-8.9", "own-20.1", "d2l-11.3.9", "own-08.9a"):
        with pytest.raises(ValueError, match="is no key for an exercise of your own"):
            begin(key, tmp_path)


def test_it_is_found_and_checked_like_ours(yours, capsys):
    exercise, part = registry.find("8.9a")
    assert exercise.chapter == "08" and part.key == "own-08.9a" and exercise.key not in registry.ours()
    assert registry.keys("08")[-1] == "own-08.9" and len(registry.ours()) == 80
    check("own-08.9a", lambda scores: torch.softmax(scores, dim=-1), record=True)
    said = capsys.readouterr().out
    assert "PASSED own-08.9a: all 6 checks hold" in said and "worked solution" not in said
    check("own-08.9a", lambda scores: torch.softmax(scores, dim=0))
    assert "the softmax runs over the queries" in capsys.readouterr().out


def test_a_key_of_ours_is_not_replaced(yours):
    (yours / "own_08_2.md").write_text("# Mine\n", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"own_08_2\.md:1: the key own-08\.2 is taken, by .*give the file another"):
        registry.keys()


def test_students_who_lack_it_are_told_so_and_the_lecturer_grades_it(yours, tmp_path, monkeypatch, capsys):
    handed_out = tmp_path / "set.ipynb"
    problem_set.main(["own-08.9", "d2l-11.3.2", "--out", str(handed_out)])
    notebook = nbformat.read(handed_out, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "reference(" not in text and 'os.environ["D2LMINI_CHECKED_LATER"] = "own-08.9a own-08.9b"' in text

    student = 'import os\nos.environ["D2LMINI_CHECKED_LATER"] = "own-08.9a own-08.9b"\n'
    student += 'from d2lmini import check\ncheck("own-08.9a", print)\ncheck("own-08.8a", print)\n'
    monkeypatch.delenv(registry.YOURS)
    done = subprocess.run([sys.executable, "-c", student], capture_output=True, text=True, timeout=120)
    assert done.stdout == "own-08.9a: your lecturer checks this one, when you hand the notebook in\n"
    assert "there is no exercise 'own-08.8a'" in done.stderr

    monkeypatch.setenv(registry.YOURS, str(yours))
    for cell in notebook.cells:
        cell.source = cell.source.replace("raise NotImplementedError  # your code here", "return scores.softmax(-1)")
    (tmp_path / "in").mkdir()
    nbformat.write(notebook, tmp_path / "in" / "student.ipynb")
    grade(tmp_path / "in", tmp_path / "out.csv", problem_set=handed_out, seed=1)
    with (tmp_path / "out.csv").open(encoding="utf-8-sig") as file:
        verdicts = {row["exercise"]: row["verdict"] for row in csv.DictReader(file)}
    assert verdicts["own-08.9a"] == "passed" and verdicts["own-08.9b"] == "not attempted"
