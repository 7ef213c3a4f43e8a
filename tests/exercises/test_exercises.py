"""The notebooks made from the exercises are in step and run."""

import re

import nbformat
import pytest

from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.model import Coded
from tools._generated import ROOT

pytest.importorskip("pybtex", reason="NOTEBOOKS SKIPPED: the book's packages are not installed")
from tools import exercise_notebooks, prose

SOLVED = [ROOT / f"exercises/solutions/{name}.ipynb" for name, _ in exercise_notebooks.CHAPTERS.values()]
UNSOLVED = [ROOT / f"exercises/{name}.ipynb" for name, _ in exercise_notebooks.CHAPTERS.values()]


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def text_of(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


LONGEST = 300  # lines of a document
LONG = {  # three parts with code, or an experiment with models that are watched: they may become shorter
    "d2l_11_1_3": 451,
    "d2l_11_8_2": 440,
}


def test_no_document_is_too_long_and_none_lies_about():
    files = list(map(registry.path, registry.keys()))
    assert sorted(files) == sorted(registry.FOLDER.glob("ch*/*.md"))
    lengths = {file.stem: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {name: n for name, n in lengths.items() if n > LONG.get(name, LONGEST)} == {}
    assert sum(lengths.values()) < 18_700
    assert [name for name, n in LONG.items() if lengths[name] <= LONGEST] == []


def texts(exercise):
    """All that readers see of an exercise, and the advice that authors write."""
    yield exercise.statement
    for part in exercise.parts:
        yield from (part.prompt, part.explanation, *part.hints, *getattr(part, "rubric", ()))
        yield from (text for option in getattr(part, "options", ()) for text in (option.text, option.why))
        if isinstance(part, Coded):
            yield from (part.answer.__doc__, *part.advice.values(), *(mutant.message for mutant in part.mutants))


@pytest.mark.parametrize("key", registry.keys())
def test_the_prose_is_in_the_style_of_the_book(key):
    assert [fault for text in texts(registry.load(key)) for fault in prose.faults(text, strict=False)] == []


def test_all_exercises_of_both_books_are_there_and_no_others():
    sections = {1: 4, 2: 4, 3: 3, 4: 2, 5: 2, 6: 3, 7: 5, 8: 3, 9: 4}  # of D2L's chapter 11, and how many each has
    d2l = {f"d2l-11.{section}.{n}" for section, count in sections.items() for n in range(1, count + 1)}
    udl = {f"udl-12.{n}" for n in range(1, 12)}
    assert len(d2l) == 30 and len(udl) == 11
    there = set(registry.keys())
    own = {key for key in there if key.startswith("own-")}
    assert there - own == d2l | udl


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("d2l-11.3.1", "d2l-11.3.1"),
        (" D2L-11.3.1\n", "d2l-11.3.1"),
        ("11.3.1", "d2l-11.3.1"),
        ("d2l_11_3_1", "d2l-11.3.1"),
        ("12.5A", "udl-12.5a"),
        ("UDL 12.5 b", "udl-12.5b"),
        ("own-4.1", "own-04.1"),
        ("04.1", "own-04.1"),
    ],
)
def test_a_key_may_be_written_in_many_ways(written, key):
    assert registry.find(written)[1].key == key


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("d2l-11.3.9", "no exercise 'd2l-11.3.9'; d2l-11.3 has d2l-11.3.1, d2l-11.3.2 and d2l-11.3.3"),
        ("11.3", "no exercise '11.3'; d2l-11.3 has d2l-11.3.1, d2l-11.3.2 and d2l-11.3.3"),
        ("d2l-11.3", "; d2l-11.3 has d2l-11.3.1, d2l-11.3.2 and d2l-11.3.3"),
        ("own-4.9", "; own-04 has own-04.1"),
        ("d2l-11.1", "; d2l-11.1 has d2l-11.1.1, d2l-11.1.2,"),
        ("11.1", "'11.1' is ambiguous: own-11.1, d2l-11.1.1, d2l-11.1.2, d2l-11.1.3 or d2l-11.1.4?"),
        ("11.33.1", "no exercise '11.33.1'; did you mean d2l-11.3.1?"),
        ("d2l-1l.3.1", "did you mean d2l-11.3.1?"),
        ("d2l-12.5", "no exercise 'd2l-12.5'; did you mean udl-12.5a or udl-12.5b?"),
        ("d2l-12.5a", "did you mean udl-12.5a?"),
        ("d2l-12.99", "; 12 has own-12.1, udl-12.1, udl-12.2,"),
        ("12.5", "udl-12.5 has parts: udl-12.5a, udl-12.5b"),
        ("udl-12.5c", "there is no 'udl-12.5c': udl-12.5 has parts: udl-12.5a, udl-12.5b"),
        ("d2l-11.3.1a", "there is no 'd2l-11.3.1a': d2l-11.3.1 has one part only"),
        ("d2l-99.9", "there is no exercise 'd2l-99.9'"),
        ("²", "there is no exercise '²'"),
        ("", "there is no exercise ''"),
        (5000 * "1", "there is no exercise '111"),
        (12.10, "there is no exercise 12.1; did you mean own-12.1 or udl-12.1?"),
        (None, "there is no exercise None"),
    ],
)
def test_a_key_that_is_none_tells_which_there_are(written, message):
    with pytest.raises(KeyError) as caught:
        registry.find(written)
    assert message in caught.value.args[0]


def test_a_number_of_two_books_is_ambiguous(monkeypatch):
    monkeypatch.setattr(registry, "keys", lambda: ("d2l-12.5", "own-12.5", "udl-12.5"))
    with pytest.raises(KeyError, match=r"'12\.5a' is ambiguous: d2l-12\.5a, own-12\.5a or udl-12\.5a\?"):
        registry.find("12.5a")
    assert registry.find("udl-12.5a")[1].key == "udl-12.5a"


def test_advice_on_what_is_raised_names_its_condition():
    """It is shown for any exception, and misleads about one with another cause."""
    parts = [part for exercise in registry.exercises() for part in exercise.parts if isinstance(part, Coded)]
    texts = {f"{part.key}: {part.advice['raised']}" for part in parts if "raised" in part.advice}
    texts |= {
        f"{part.key}: {m.message}" for part in parts for m in part.mutants if m.diagnosis == "raised" and m.message
    }
    assert len(texts) > 20
    assert sorted(text for text in texts if not re.match(r"\S+: If ", text)) == []


def test_notebooks_are_in_step():
    stale = exercise_notebooks.sync(check=True)
    assert not stale, f"{stale}: mend with {exercise_notebooks.COMMAND}"


@pytest.mark.parametrize("path", SOLVED, ids=lambda p: p.stem)
def test_solved_notebook_leaves_nbval_nothing_to_overlook(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    for cell in code_cells(path):
        assert cell.execution_count, f"{cell.id} was never executed: nbval would compare nothing"
        lines = [line for line in cell.source.splitlines() if line.strip()]
        assert not any(line.lstrip().startswith(("%", "!")) for line in lines), f"{cell.id} has a magic"
        tags = cell.metadata.get("tags", [])
        assert not any("nbval" in tag.lower() or tag == "raises-exception" for tag in tags), f"{cell.id}: {tags}"
    verdicts = [text_of(c) for c in code_cells(path) if c.source.startswith("check(")]
    chapter = path.stem[:2]
    parts = [p.key for e in registry.exercises(chapter) for p in e.parts]
    assert len(verdicts) == len(parts)
    for key, verdict in zip(parts, verdicts, strict=True):
        assert re.match(rf"(PASSED|RECORDED) {re.escape(key)}: ", verdict), verdict


@pytest.mark.parametrize("path", SOLVED, ids=lambda p: p.stem)
def test_solved_page_hides_what_would_give_the_answer_away(path):
    for cell in code_cells(path):
        tags = cell.metadata.get("tags", [])
        if "# exercise:" in cell.source:
            assert "hide-input" in tags, cell.id
        if re.search(r" [A-Z] is right\. ", text_of(cell)):
            assert "hide-cell" in tags, cell.id


@pytest.mark.parametrize("path", UNSOLVED, ids=lambda p: p.stem)
def test_unsolved_notebook_runs_and_says_not_attempted(path, monkeypatch, tmp_path, capsys):
    """In this process: a kernel of its own costs nine seconds, and nbval gives one to each solved notebook."""
    monkeypatch.setenv("D2LMINI_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setenv("D2LMINI_STRICT", "0")
    notebook = nbformat.read(path, as_version=4)
    assert not any("### BEGIN" in cell.source or cell.get("outputs") for cell in notebook.cells)
    parts = [p.key for e in registry.exercises(path.stem[:2]) for p in e.parts]
    headers = re.findall(r"^# exercise: (\S+)$", "\n".join(c.source for c in notebook.cells), re.M)
    assert headers == parts
    names, verdicts = {"__name__": "__main__"}, []
    for cell in code_cells(path):
        exec(cell.source, names)
        printed = capsys.readouterr().out
        if cell.source.startswith("check("):
            verdicts.append(printed)
    assert len(verdicts) == len(parts)
    for key, verdict in zip(parts, verdicts, strict=True):
        assert verdict.startswith(f"NOT ATTEMPTED {key}: "), verdict


def test_stale_solved_notebook_is_noticed(tmp_path):
    source = SOLVED[-1]
    chapter = source.stem[:2]
    fresh, origin = exercise_notebooks.solved(chapter), exercise_notebooks._origin(chapter)
    assert exercise_notebooks.in_step(source, fresh, origin)
    assert not exercise_notebooks.in_step(source, fresh, "another hash")
    assert not exercise_notebooks.in_step(tmp_path / "absent.ipynb", fresh, origin)
    damages = {
        "source": lambda cell: cell.update(source=cell.source + "\n"),
        "count": lambda cell: cell.update(execution_count=None),
        "tags": lambda cell: cell.metadata.update(tags=["x"]),
    }
    for name, damage in damages.items():
        notebook = nbformat.read(source, as_version=4)
        damage(next(c for c in notebook.cells if c.cell_type == "code"))
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
        assert not exercise_notebooks.in_step(tmp_path / f"{name}.ipynb", fresh, origin), name


def test_where_only_text_or_looks_changed_the_outputs_stay():
    source = SOLVED[-1]
    chapter = source.stem[:2]
    fresh, origin = exercise_notebooks.solved(chapter), exercise_notebooks._origin(chapter)
    fresh.cells[0].source += " More words."
    fresh.cells[-1].metadata["tags"] = ["x"]
    next(c for c in fresh.cells if c.cell_type == "code").metadata["tags"] = ["x"]
    assert exercise_notebooks.carry_over(source, fresh, origin)
    found = nbformat.read(source, as_version=4)
    for cell, had in zip(fresh.cells, found.cells, strict=True):
        assert cell.get("outputs") == had.get("outputs") and cell.get("execution_count") == had.get("execution_count")
    assert not exercise_notebooks.carry_over(source, exercise_notebooks.solved(chapter), "another hash")
    changed = exercise_notebooks.solved(chapter)
    next(c for c in changed.cells if c.cell_type == "code").source += "\n"
    assert not exercise_notebooks.carry_over(source, changed, origin)
