"""Grading a folder: every bad notebook costs itself alone, and nobody can print a verdict.

`test_sandbox.py` tries what answers can do to the machine; where there is no sandbox, these here run without.
"""

import csv
import json

import pytest
from stand_ins import no_answer_runs, notebook

from d2lmini.exercises import check_file, grade
from d2lmini.exercises.engine import registry, source
from d2lmini.exercises.engine.model import Discussion
from d2lmini.exercises.grading import answer as answer_module
from d2lmini.exercises.grading import folder as grading
from d2lmini.exercises.grading import sandbox
from d2lmini.exercises.grading.table import COLUMNS, gradescope_results, totals

pytestmark = pytest.mark.slow
LETTER = next(x for x, option in registry.find("udl-12.5b")[1].lettered.items() if option.right)
RIGHT = f"# exercise: udl-12.5b\nanswer = '{LETTER}'"
SOLUTION = "# exercise: d2l-11.3.2\n" + source.solution(registry.find("d2l-11.3.2")[1])
IMPORTS = "%matplotlib inline\n!pip list\nimport math\nimport torch\nimport no_such_module_at_all"


FORGED = """\
import os, sys
line = '{"key": "d2l-11.3.1", "status": "passed", "code": "ok", "message": "all checks hold"}' + chr(10)
print(line); print(line, file=sys.stderr)
for number in range(1, 20):
    try: os.write(number, line.encode())
    except OSError: pass
"""
HANGS = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\nwhile True: pass"


def answer(key, body, before=""):
    name = registry.find(key)[1].name
    return f"# exercise: {key}\n{before}\ndef {name}(*args):\n    {body}\n"


CLASS = {
    "group/dangerous.ipynb": notebook(
        "import os, torch",
        answer("d2l-11.3.1", "return args[0]", FORGED + "os._exit(0)"),
        answer("d2l-11.3.2", "return torch.empty(2 * 2**30, dtype=torch.uint8)"),
        f"# exercise: d2l-11.3.3\n{HANGS}",
        answer("udl-12.5a", "while True: pass"),
        RIGHT,
    ),
    "mistaken.ipynb": notebook(
        IMPORTS,
        "1 / 0",
        "def (",
        answer("d2l-11.3.1", "return args[0]", FORGED),
        "# exercise: d2l-11.3.3\ndef (",
        "# exercise: udl-12.5a\n1 / 0",
        "# exercise: d2l-99.9\nx = 1",
        "# exercise: =cmd()\nx = 1",
        "# exercise: udl-12.5b\nx = 1",
        SOLUTION,
    ),
    "asleep.ipynb": notebook(
        "# exercise: udl-12.5b\nanswer = 'Z'",
        RIGHT,
        answer("d2l-11.3.1", "import time; time.sleep(600)"),
        SOLUTION,
    ),
    "no_answers.ipynb": notebook("x = 1"),
    "empty.ipynb": "",
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    for name, text in CLASS.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    table = folder / "out.csv"
    unsafe = bool(sandbox.why_not())
    outputs = {"gradebook": folder / "marks.csv", "gradescope": folder / "json", "reports": folder / "pages"}
    rows = grade(folder, table, seconds=1.0, memory=2**30, seed=1, **outputs, unsafe=unsafe)
    with open(table, newline="", encoding="utf-8-sig") as file:
        written = list(csv.DictReader(file))
    return rows, written, folder / "json"


def verdicts(graded, name):
    return {row["exercise"]: row for row in graded[0] if row["notebook"] == name}


def test_every_notebook_has_rows_and_the_table_is_written(graded):
    rows, written, _ = graded
    assert {r["notebook"] for r in rows} == set(CLASS)
    assert len(rows) == len(written) and tuple(written[0]) == COLUMNS


@pytest.mark.parametrize(
    ("name", "key", "verdict", "code", "fragment"),
    [
        ("group/dangerous.ipynb", "d2l-11.3.1", "crashed", "crashed", "no result"),
        ("group/dangerous.ipynb", "d2l-11.3.2", "wrong", "raised", "alloc"),
        ("group/dangerous.ipynb", "d2l-11.3.3", "timeout", "timeout", "endless loop"),
        ("group/dangerous.ipynb", "udl-12.5a", "timeout", "timeout", "endless loop"),
        ("group/dangerous.ipynb", "udl-12.5b", "passed", "ok", f"{LETTER} is right"),
        ("mistaken.ipynb", "d2l-11.3.1", "crashed", "crashed", "no result"),
        ("mistaken.ipynb", "d2l-11.3.2", "passed", "ok", "checks hold"),
        ("mistaken.ipynb", "d2l-11.3.3", "wrong", "syntax", "line 2"),
        ("mistaken.ipynb", "udl-12.5a", "wrong", "raised", "ZeroDivisionError"),
        ("mistaken.ipynb", "udl-12.5b", "wrong", "missing", "does not define answer"),
        ("mistaken.ipynb", "d2l-99.9", "wrong", "unknown", "no exercise 'd2l-99.9'"),
    ],
)
def test_each_answer_costs_itself_alone(graded, name, key, verdict, code, fragment):
    row = verdicts(graded, name)[key]
    assert (row["verdict"], row["code"]) == (verdict, code), row
    assert fragment in row["message"]


@pytest.mark.parametrize(("name", "verdict"), [("no_answers", "no answers"), ("empty", "unreadable")])
def test_bad_file_gets_one_row_that_says_so(graded, name, verdict):
    (row,) = verdicts(graded, f"{name}.ipynb").values()
    assert row["verdict"] == verdict


def test_an_answer_that_sleeps_costs_its_limit_once(graded):
    rows = verdicts(graded, "asleep.ipynb")
    assert (rows["d2l-11.3.1"]["verdict"], rows["d2l-11.3.1"]["code"]) == ("timeout", "asleep")
    assert "did nothing for 1 s" in rows["d2l-11.3.1"]["message"]
    assert (rows["d2l-11.3.2"]["verdict"], rows["d2l-11.3.2"]["code"]) == ("not judged", "left")
    assert "since d2l-11.3.1 before it slept" in rows["d2l-11.3.2"]["message"]


def test_of_two_cells_with_one_key_the_last_counts_and_both_are_told(graded):
    message = verdicts(graded, "asleep.ipynb")["udl-12.5b"]["message"]
    assert message.startswith(f"{LETTER} is right") and "several cells of this notebook answer it" in message
    assert "several cells" not in verdicts(graded, "group/dangerous.ipynb")["udl-12.5b"]["message"]


def test_a_student_can_be_sent_a_page(graded):
    page = (graded[2].parent / "pages" / "mistaken.html").read_text()
    title = registry.find("d2l-11.3.2")[0].title
    assert f"<th scope='row'>d2l-11.3.2</th><td>{title}</td><td>passed</td>" in page and "not yet" not in page
    assert "1 of " in page and "ZeroDivisionError" in page and "<script" not in page and "http" not in page


def test_a_bad_place_for_results_costs_nothing(tmp_path, monkeypatch):
    (tmp_path / "one.ipynb").write_text(notebook(RIGHT))
    (tmp_path / "file").write_text("")
    judged = []
    monkeypatch.setattr(grading, "_grade", lambda *args: judged.append(args))
    places = [
        (tmp_path / "absent" / "out.csv", {}),
        (tmp_path, {}),
        (tmp_path / "out.csv", {"gradebook": tmp_path}),
        (tmp_path / "out.csv", {"gradebook": tmp_path / "absent" / "marks.csv"}),
        (tmp_path / "out.csv", {"gradescope": tmp_path / "file"}),
        (tmp_path / "out.csv", {"reports": tmp_path / "file" / "pages"}),
    ]
    for table, more in places:
        with pytest.raises(OSError):
            grade(tmp_path, table, unsafe=True, **more)
    with pytest.raises(ValueError, match="both tables"):
        grade(tmp_path, tmp_path / "out.csv", gradebook=tmp_path / "out.csv", unsafe=True)
    assert not judged


def test_a_run_that_was_killed_goes_on(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.ipynb").write_text(notebook(RIGHT))
    table, kept = tmp_path / "out.csv", tmp_path / "out.csv.partial"
    judged = []

    def judge(notebook, rules):
        judged.append(rules.seed)
        if len(judged) == 2:
            raise KeyboardInterrupt
        return {key: ("passed", "ok", "told once") for key in notebook["answers"]}

    no_answer_runs(monkeypatch, judge)  # in this process, so that it can be killed at the second notebook
    monkeypatch.setattr(grading, "as_completed", list)
    with pytest.raises(KeyboardInterrupt):
        grade(tmp_path, table, unsafe=True)
    seed = judged[0]
    assert not table.exists() and len(kept.read_text().splitlines()) == 2
    with open(kept, "a") as file:
        file.write('{"hash": "cut off by the ki')
    (tmp_path / "c.ipynb").write_text(notebook(RIGHT, "x = 1"))
    before = len(judged)
    rows = grade(tmp_path, table, unsafe=True)
    assert {r["notebook"] for r in rows} == {"a.ipynb", "b.ipynb", "c.ipynb"} and not kept.exists()
    assert judged[before:] == [seed, seed]  # a was kept, and the inputs are those of before
    judged += [0, 0]
    grade(tmp_path, table, unsafe=True, seed=3)
    assert judged[-3:] == [3, 3, 3]


def test_spreadsheet_gets_no_formula(graded):
    assert any(row["exercise"] == "'=cmd()" for row in graded[1])
    assert not any(value.startswith(("=", "+", "-", "@")) for row in graded[1] for value in row.values())


def test_check_file_reports_each_answer(tmp_path, monkeypatch):
    path = tmp_path / "mine.ipynb"
    path.write_text("")
    assert check_file(path) == ["UNREADABLE mine.ipynb: the file is empty"]
    row = {"verdict": "not attempted", "exercise": "udl-12.5a", "message": "no answer yet"}
    monkeypatch.setattr(grading, "_grade", lambda *args: [row, row])
    assert check_file(path) == 2 * ["NOT ATTEMPTED udl-12.5a: no answer yet"]


def test_nothing_to_grade_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        grade(tmp_path / "absent", tmp_path / "out.csv")
    with pytest.raises(FileNotFoundError, match=r"holds no \.ipynb"):
        grade(tmp_path, tmp_path / "out.csv")
    with pytest.raises(FileNotFoundError, match="is not a file"):
        check_file(tmp_path / "absent.ipynb")


def test_a_name_of_another_cell_is_told(tmp_path):
    body = answer("d2l-11.3.1", "return helper(*args)")
    (tmp_path / "one.ipynb").write_text(notebook("def helper(x):\n    return x", body, "y = 1"))
    (line, *_) = [line for line in check_file(tmp_path / "one.ipynb") if "d2l-11.3.1" in line]
    assert "NameError" in line and "helper is defined in another cell" in line


def test_totals_count_what_is_verified(graded):
    lines = {line.split()[0]: line for line in totals(graded[0]).splitlines()}
    assert " 1 of 5 verified" in lines["group/dangerous.ipynb"]
    assert "unreadable: the file is empty" in lines["empty.ipynb"]


def test_a_gradebook_has_a_row_for_each_notebook_and_a_column_for_each_part(graded):
    with open(graded[2].parent / "marks.csv", newline="", encoding="utf-8-sig") as file:
        marks = {line["notebook"]: line for line in csv.DictReader(file)}
    assert set(marks) == set(CLASS)
    parts = [part.key for one in registry.exercises("03") for part in one.parts]
    assert list(marks["empty.ipynb"]) == ["notebook", "verified", "of", "to read", "note", *parts]
    mistaken = marks["mistaken.ipynb"]  # two of its keys are no exercises, and count nowhere
    texts = sum(isinstance(part, Discussion) for one in registry.exercises("03") for part in one.parts)
    assert (mistaken["verified"], mistaken["of"], mistaken["to read"]) == ("1", str(len(parts) - texts), "0")
    assert mistaken["d2l-11.3.2"] == "passed" and mistaken["udl-12.5a"] == "wrong"
    # of an exercise with two parts one is answered; of what else the chapter has, nobody knows that it was asked
    assert marks["asleep.ipynb"]["udl-12.5a"] == "missing" and marks["asleep.ipynb"]["d2l-11.3.3"] == ""
    assert marks["empty.ipynb"]["note"] == "unreadable: the file is empty" and not marks["empty.ipynb"]["udl-12.5a"]


def test_gradescope_gets_a_file_for_each_notebook(graded):
    rows, _, folder = graded
    tests = json.loads((folder / "group" / "dangerous.json").read_text())["tests"]
    assert {t["name"]: t["score"] for t in tests}["udl-12.5b"] == 1.0
    assert sum(t["max_score"] for t in tests) == 5 and all(t["status"] in ("passed", "failed") for t in tests)
    assert not {"score", "status"} - set(json.loads(gradescope_results("x", rows[:1]))["tests"][0])


def test_the_same_seed_gives_the_same_verdicts_and_a_sandbox_is_required(tmp_path, monkeypatch):
    (tmp_path / "one.ipynb").write_text(notebook(RIGHT))
    assert grade(tmp_path, tmp_path / "a.csv", seed=1, unsafe=True) == grade(tmp_path, tmp_path / "b.csv", unsafe=True)
    monkeypatch.setattr(sandbox, "why_not", lambda: "planted")
    with pytest.raises(sandbox.NoSandbox):
        grade(tmp_path, tmp_path / "c.csv")
    assert not (tmp_path / "c.csv").exists()


def test_what_no_file_of_text_can_take_costs_no_table(tmp_path):
    raises = answer("d2l-11.3.1", "raise ValueError('\\ud800 \\x1b[2J')")
    (tmp_path / "one.ipynb").write_text(notebook(raises, "# exercise: \ud800", RIGHT))
    rows = grade(tmp_path, tmp_path / "out.csv", unsafe=True)
    assert {row["exercise"]: row["verdict"] for row in rows}["udl-12.5b"] == "passed"
    written = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert "\x1b" not in written and "\N{REPLACEMENT CHARACTER}" in written


def test_a_judge_that_fails_costs_no_other_verdict(tmp_path, monkeypatch):
    def judge_cell(key, *order):
        if key == "d2l-11.3.2":
            raise TypeError("planted")
        return "passed", "ok", "fine"

    no_answer_runs(monkeypatch, answer_module.judge_notebook)
    monkeypatch.setattr(answer_module, "judge_cell", judge_cell)
    (tmp_path / "one.ipynb").write_text(notebook(SOLUTION, RIGHT))
    rows = {row["exercise"]: row for row in grade(tmp_path, tmp_path / "out.csv", unsafe=True)}
    assert rows["udl-12.5b"]["verdict"] == "passed"
    assert rows["d2l-11.3.2"]["verdict"] == "not judged" and "TypeError: planted" in rows["d2l-11.3.2"]["message"]
