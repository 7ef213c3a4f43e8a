"""What students hand in: names of any kind, files of any kind; each has its own row, and none stops the class."""

import csv
import json
import os
import sys
import unicodedata
from pathlib import Path

import pytest
from stand_ins import no_answer_runs, notebook

from d2lmini.exercises import grade

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names, and grade elsewhere")
HEADER = "# exercise: d2l-11.3.2\n"  # of one part, so that none is missing


@pytest.fixture
def graded(tmp_path, monkeypatch, capsys):
    """A function that grades a class; no answer runs, its source is the message. Returns: rows, and what is printed."""

    def judge(notebook, rules):
        return {key: ("passed", "ok", source) for key, source in notebook["answers"].items()}

    no_answer_runs(monkeypatch, judge)

    def run(folder, **options):
        rows = grade(folder, tmp_path / "out.csv", unsafe=True, **options)
        return rows, capsys.readouterr().out

    return run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "class").mkdir()
    return tmp_path / "class"


def hand_in(folder, name, text):
    """Write a file whose name may be bytes."""
    path = os.path.join(os.fsencode(folder), name if isinstance(name, bytes) else name.encode())
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    "names",
    [
        [b"M\xfcller.ipynb", b"M\xf6ller.ipynb", "M\N{REPLACEMENT CHARACTER}ller.ipynb"],  # of an archive in Latin-1
        [b"\xc0\xee\xcb\xc4.ipynb", b"\xd5\xc5\xc8\xfd.ipynb"],  # in GBK
        ["a\nb.ipynb", "a\x1bb.ipynb", "a\N{REPLACEMENT CHARACTER}b.ipynb", "a b.ipynb"],
        [unicodedata.normalize(form, "Müller.ipynb") for form in ("NFC", "NFD")],  # a Mac's archive has the second
        ["ann.ipynb", "ann.IPYNB", "ann.ipynb.txt", "ann (2).ipynb", "Ann.ipynb"],
        ["a\u202eb.ipynb", "a\u202db.ipynb", "ab.ipynb"],  # what turns the order of the text around
        ["a/hw.ipynb", "b/hw.ipynb", "hw.ipynb"],
        [b"a\xff/hw.ipynb", b"a\xfe/hw.ipynb"],
        ["\N{CJK UNIFIED IDEOGRAPH-674E}" * 80 + ".ipynb", "a.ipynb"],
        [b"\xfc" * 240 + b".ipynb", b"\xfc" * 239 + b"\xf6.ipynb"],
        [".ipynb", "?.ipynb"],
    ],
)
def test_two_students_are_two_whatever_they_are_called(names, folder, graded, tmp_path):
    for number, name in enumerate(names):
        hand_in(folder, name, notebook(f"{HEADER}answer = {number}"))
    rows, _ = graded(folder, gradebook=tmp_path / "marks.csv", gradescope=tmp_path / "json", reports=tmp_path / "html")
    assert sorted(row["message"][-1] for row in rows) == [str(number) for number in range(len(names))]
    assert len({row["notebook"] for row in rows}) == len(names)
    assert all(row["notebook"].isprintable() for row in rows)
    assert len({str(path).casefold() for path in (tmp_path / "json").rglob("*.json")}) == len(names)
    pages = [path.read_text() for path in (tmp_path / "html").rglob("*.html")]
    assert len(pages) == len(names) and all(page.count("d2l-11.3.2") == 2 for page in pages)  # one row, and its message
    with open(tmp_path / "marks.csv", newline="", encoding="utf-8-sig") as file:
        assert len(list(csv.DictReader(file))) == len(names)


@pytest.mark.parametrize(
    "name",
    [
        "\N{ARABIC LETTER ALEF}\u200c\N{ARABIC LETTER BEH}.ipynb",  # zero width non-joiner, usual in Persian
        "\u200eann\u200f.ipynb",
        "\N{WOMAN}\u200d\N{ROCKET}.ipynb",
        "at\N{NO-BREAK SPACE}9\N{NARROW NO-BREAK SPACE}AM\N{IDEOGRAPHIC SPACE}x.ipynb",
        "Mu\N{SOFT HYPHEN}ller.ipynb",
        "\uf8ff.ipynb",
        "\N{DEVANAGARI LETTER KA}\u094d\u200d\N{DEVANAGARI LETTER SSA}.ipynb",
    ],
)
def test_a_character_of_a_script_is_shown_as_it_is(name, folder, graded):
    hand_in(folder, name, notebook(f"{HEADER}answer = 'A'"))
    assert [row["notebook"] for row in graded(folder)[0]] == [name]


def test_what_is_no_file_costs_itself_alone(folder, graded, monkeypatch):
    good = notebook(f"{HEADER}answer = 'A'")
    hand_in(folder, "hw1.ipynb/hw1.ipynb", good)  # a zip unpacked into its own folder
    (folder / "empty.ipynb").mkdir()
    (folder / "dangling.ipynb").symlink_to("nowhere")
    (folder / "loop.ipynb").symlink_to("loop.ipynb")
    (folder / "tree.ipynb").symlink_to(folder)
    (folder / "link.ipynb").symlink_to("hw1.ipynb/hw1.ipynb")
    os.mkfifo(folder / "pipe.ipynb")
    hand_in(folder, "closed.ipynb", good)
    hand_in(folder, "gone/a.ipynb", good)
    read, walk = Path.read_bytes, os.scandir

    def refused(kind):
        def call(path, *rest):
            if Path(os.fsdecode(path)).name in ("closed.ipynb", "gone"):
                raise PermissionError(13, "Permission denied", os.fsdecode(path))
            return kind(path, *rest)

        return call

    monkeypatch.setattr(Path, "read_bytes", refused(read))
    monkeypatch.setattr(os, "scandir", refused(walk))
    rows, said = graded(folder)
    told = {row["notebook"]: (row["verdict"], row["message"]) for row in rows}
    assert {name for name, (verdict, _) in told.items() if verdict == "passed"} == {"hw1.ipynb/hw1.ipynb", "link.ipynb"}
    for name, fragment in {
        "dangling.ipynb": "leads nowhere",
        "loop.ipynb": "link",
        "pipe.ipynb": "not a file",
        "closed.ipynb": "Permission denied",
        "gone": "Permission denied",
    }.items():
        assert told.pop(name)[0] == "unreadable" and fragment in {r["notebook"]: r["message"] for r in rows}[name]
    assert len(told) == 2 and "tree.ipynb" in said


JUNK = ["__MACOSX/._ann.ipynb", "__MACOSX/ann.ipynb", "._ann.ipynb", "a/.ipynb_checkpoints/ann-checkpoint.ipynb"]
OTHERS = ["ann.zip", "ann.pdf", "ann.ipynb.zip", "ann.ipynb~", "ann.py", "ann.html", "ipynb"]


def test_what_is_no_notebook_is_passed_over_with_a_word(folder, graded, tmp_path):
    for name in ["ann.ipynb", "bob.IPYNB", "cyd.ipynb.txt", "dan.Ipynb.JSON", *JUNK, *OTHERS]:
        hand_in(folder, name, notebook(f"{HEADER}answer = 'A'"))
    hand_in(folder, "set.ipynb", notebook(f"{HEADER}answer = ..."))
    options = {"problem_set": folder / "set.ipynb", "reports": folder / "pages", "gradebook": folder / "marks.csv"}
    for _ in range(2):  # what the first run wrote is no hand-in
        rows, said = graded(folder, **options)
        assert {row["notebook"] for row in rows} == {"ann.ipynb", "bob.IPYNB", "cyd.ipynb.txt", "dan.Ipynb.JSON"}
        assert said.count("\n") == 1 and all(name in said for name in ("__MACOSX", "._ann", ".ipynb_checkpoints"))
        assert all(name in said for name in OTHERS) and not [n for n in ("set.ipynb", "marks", "pages") if n in said]
    for number in range(100):
        hand_in(folder, f"photo{number}.jpg", "")
    said = graded(folder, **options)[1]
    assert "more" in said and len(said) < 500


def test_a_folder_without_notebooks_says_what_is_there(folder, graded):
    hand_in(folder, "ann.zip", "")
    with pytest.raises(FileNotFoundError, match=r"holds no \.ipynb file.*ann\.zip"):
        graded(folder)


def test_a_table_keeps_umlauts_in_a_spreadsheet(folder, graded, tmp_path):
    hand_in(folder, "Müller.ipynb", notebook(f"{HEADER}answer = 'A'"))
    graded(folder, gradebook=tmp_path / "marks.csv")
    for name in ("out.csv", "marks.csv"):  # without the mark Excel on Windows takes them for cp1252
        assert (tmp_path / name).read_bytes().startswith("\ufeffnotebook".encode())


MARKDOWN = {"cell_type": "markdown", "metadata": {}, "source": [HEADER, "answer = 'A'"]}


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_in_a_cell_that_is_no_code_is_told(kind, folder, graded):
    cells = json.loads(notebook("# exercise: d2l-11.3.3\nx = 1"))["cells"]
    statement = {**MARKDOWN, "source": "## Exercise: d2l-11.3.1\nWrite\n\n    # exercise: KEY"}
    hand_in(folder, "one.ipynb", notebook(cells=[*cells, {**MARKDOWN, "cell_type": kind}]))
    hand_in(folder, "two.ipynb", notebook(cells=[{**MARKDOWN, "cell_type": kind}]))
    hand_in(folder, "three.ipynb", notebook(HEADER + "answer = 'A'", cells=[*cells, statement]))
    hand_in(folder, "four.ipynb", notebook(cells=[*json.loads(notebook(HEADER + "answer = 'A'"))["cells"], MARKDOWN]))
    rows, _ = graded(folder)
    for name in ("one.ipynb", "two.ipynb"):
        (row,) = [r for r in rows if r["notebook"] == name and r["exercise"] == "d2l-11.3.2"]
        assert row["verdict"] == "missing" and f"{kind} cell" in row["message"].lower()
    assert not [r for r in rows if r["exercise"] == "d2l-11.3.1"]
    assert [r["verdict"] for r in rows if r["notebook"] == "four.ipynb" and r["exercise"] == "d2l-11.3.2"] == ["passed"]
    assert not [r for r in rows if r["verdict"] == "no answers"]


def test_missing_is_what_a_notebook_states_and_does_not_answer(folder, graded):
    """The problem set that was handed out need not be at hand: the notebook says what it asks."""
    statement = {**MARKDOWN, "source": "## A title\n\n*`own-09.3`, our own. Kind: code.*\n\n*`own-99.9`, none.*"}
    cells = json.loads(notebook("# exercise: udl-12.5b\nanswer = 'A'", HEADER, "# exercise: own-99.8\nx = 1"))["cells"]
    hand_in(folder, "one.ipynb", notebook(cells=[statement, *cells]))
    rows = graded(folder)[0]
    assert [row["exercise"] for row in rows if row["verdict"] == "missing"] == ["own-09.3a", "own-09.3b", "udl-12.5a"]
