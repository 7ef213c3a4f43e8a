"""``check``, ``hint``, ``review`` and the file in which they keep the reader's progress."""

import json
import os
import re
import stat
import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest
from conftest import ROOT
from stand_ins import in_notebook, printed
from toy_exercise import DISCUSSION, PART, TOY

from d2lmini.__main__ import main
from d2lmini.exercises import check, hint, progress_report, reset, review
from d2lmini.exercises import progress as show_progress
from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.judge import Verdict
from d2lmini.exercises.engine.model import Discussion, Exercise
from d2lmini.exercises.reader import check as check_module
from d2lmini.exercises.reader import front_end, progress
from tools import site

CHOICE = registry.find("udl-12.5b")[1]
RIGHT = next(letter for letter, option in CHOICE.lettered.items() if option.right)
WRONG = "A" if RIGHT != "A" else "B"


@pytest.fixture(autouse=True)
def own_progress(monkeypatch, tmp_path):
    monkeypatch.setenv("D2LMINI_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.delenv("D2LMINI_STRICT", raising=False)
    return tmp_path / "progress.json"


def test_check_prints_one_verdict_and_returns_none(capsys):
    answer = registry.find("udl-12.5a")[1].answer
    assert check("udl-12.5a", answer) is None
    assert capsys.readouterr().out.startswith("PASSED udl-12.5a: all ")
    check("udl-12.5a", lambda scores: scores, seed=4)
    out = capsys.readouterr().out
    assert out.startswith("WRONG udl-12.5a: ") and "seed=4" in out and 'hint("udl-12.5a")' in out
    check("udl-12.5b", WRONG.lower())
    assert f"not {WRONG}. {CHOICE.lettered[WRONG].why[:10]}" in capsys.readouterr().out


def test_strict_raises(monkeypatch, capsys):
    monkeypatch.setenv("D2LMINI_STRICT", "1")
    with pytest.raises(AssertionError, match=r"NOT ATTEMPTED udl-12\.5a"):
        check("udl-12.5a", ...)
    check("udl-12.5b", RIGHT)


@pytest.fixture
def notebook(monkeypatch):
    """A notebook's front end. Returns: list of what was shown as Markdown or HTML."""
    return in_notebook(monkeypatch)


@pytest.fixture
def no_hints_yet(monkeypatch):
    monkeypatch.setattr(check_module, "_hints_given", {})


def test_hints_come_one_by_one_and_begin_again(no_hints_yet, capsys):
    said = []
    for key in ("d2l-11.3.1", "11.3.1", " D2L-11.3.1", "d2l-11.3.1", "d2l-11.3.1"):
        hint(key)
        said.append(capsys.readouterr().out)
    assert [text[:11] for text in said[:3]] == ["hint 1 of 3", "hint 2 of 3", "hint 3 of 3"]
    assert all(text.count("hint ") == text.count("\n") == 1 for text in said)
    assert said[3].startswith("hint 1 of 3 (you have seen them all: from the first again): Multiply out")
    assert said[4] == said[1]
    assert said[2].startswith("hint 3 of 3: Only qᵀkᵢ - 1/2 ‖kᵢ‖² is left")


def test_hints_of_a_notebook_are_markdown(no_hints_yet, notebook, capsys):
    for _ in range(3):
        hint("d2l-11.3.1")
    assert notebook[2].startswith(r"hint 3 of 3: Only $\mathbf q^\top \mathbf k_i")
    assert capsys.readouterr().out == ""


def test_a_part_without_hints(monkeypatch, capsys):
    monkeypatch.setattr(check_module, "find", lambda key: (TOY, replace(PART, hints=())))
    hint("99.1")
    assert capsys.readouterr().out == "own-99.1 has no hints\n"


def test_a_pass_tells_what_comes_next_and_where_the_solution_stands(capsys):
    check("udl-12.5b", WRONG)
    assert "next" not in capsys.readouterr().out
    check("12.5B ", RIGHT.lower())
    verdict, now = capsys.readouterr().out.splitlines()
    assert verdict.startswith("PASSED udl-12.5b: ")
    assert now == (  # it is the last of its chapter, but not the last to be solved
        "next: d2l-11.3.1 (Distance attention at the price of a dot product); "
        'worked solution: exercises/solutions/03_attention_scoring.ipynb, heading "A softmax with one huge input"'
    )


def test_a_pass_in_a_problem_set_names_no_solution(monkeypatch, capsys):
    monkeypatch.setenv("D2LMINI_SOLUTIONS", "0")
    check("udl-12.5b", RIGHT)
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["PASSED udl-12.5b"]


def solve(*keys):
    for key in keys:
        if isinstance(registry.find(key)[1], Discussion):
            progress.record_review(key, "agrees")
        else:
            progress.record(Verdict(key, "passed", "ok", ""))


def test_next_is_what_is_not_solved_yet():
    parts = [p.key for e in registry.exercises() for p in e.parts]

    def after(key):
        return (found := progress.next_open(*registry.find(key))) and found[1].key

    assert after("d2l-11.3.1") == "d2l-11.3.2" and after("udl-12.5b") == "d2l-11.3.1"
    solve("d2l-11.3.2", "d2l-11.3.3")
    assert after("d2l-11.3.1") == "udl-12.5a"
    solve("d2l-11.3.1", "udl-12.5a", "udl-12.5b")
    assert after("d2l-11.3.3") == "d2l-11.4.1a"  # of the next chapter
    solve(*(key for key in parts if key not in ("d2l-11.1.1b", "own-11.1b")))
    assert after("own-11.1b") == "d2l-11.1.1b" and after("d2l-11.1.1b") == "own-11.1b"
    solve("d2l-11.1.1b", "own-11.1b")
    assert after("d2l-11.3.1") is None


def test_the_next_chapter_and_the_end_are_told(capsys):
    parts = [p.key for e in registry.exercises() for p in e.parts]
    solve(*(key for key in parts if key not in ("udl-12.5b", "d2l-11.4.1b")))
    check("udl-12.5b", RIGHT)
    assert "\nnext in chapter 04: d2l-11.4.1b (" in capsys.readouterr().out
    solve("d2l-11.4.1b")
    check("udl-12.5b", RIGHT)
    assert "\nthis was the last: every exercise is done; worked solution: " in capsys.readouterr().out


def test_a_discussion_is_done_when_it_was_reviewed(monkeypatch):
    first, second = (Exercise(**vars(TOY) | {"parts": [p]}) for p in (PART, replace(DISCUSSION, key="own-99.2")))
    monkeypatch.setattr(progress, "chapters", lambda: [TOY.chapter])
    monkeypatch.setattr(progress, "exercises", lambda chapter: [first, second])
    assert progress.next_open(first, PART)[1].key == "own-99.2"
    progress.record_review("own-99.2", "agrees")
    assert progress.next_open(first, PART) is None


def test_the_solution_is_a_link_in_a_notebook(notebook, monkeypatch, tmp_path, capsys):
    path = "solutions/03_attention_scoring.ipynb"
    monkeypatch.chdir(tmp_path)
    check("udl-12.5b", RIGHT)
    (tmp_path / "solutions").mkdir()
    (tmp_path / path).write_text("")
    check("udl-12.5b", RIGHT)
    _, far, _, near = notebook
    assert f"[exercises/{path}](https://colab.research.google.com/github/" in far and f"/exercises/{path})" in far
    assert f'[exercises/{path}]({path}#A-softmax-with-one-huge-input), heading "A softmax' in near
    assert capsys.readouterr().out == ""


def test_what_comes_next_is_a_link_in_a_notebook(notebook, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    check("udl-12.5b", RIGHT)
    assert "next: d2l-11.3.1 (Distance attention at the price of a dot product);" in notebook[-1]  # on Colab no link
    (tmp_path / "03_attention_scoring.ipynb").write_text("")
    check("udl-12.5b", RIGHT)
    link = "(03_attention_scoring.ipynb#Distance-attention-at-the-price-of-a-dot-product)"
    assert f"next: d2l-11.3.1 ([Distance attention at the price of a dot product]{link});" in notebook[-1]
    solve("d2l-11.3.1", "d2l-11.3.2", "d2l-11.3.3", "udl-12.5a")
    check("udl-12.5b", RIGHT)
    assert "next in chapter 04: d2l-11.4.1a ([An LSTM instead of the GRU](https://colab.research" in notebook[-1]
    (tmp_path / "04_bahdanau_attention.ipynb").write_text("")
    check("udl-12.5b", RIGHT)
    assert "(04_bahdanau_attention.ipynb#An-LSTM-instead-of-the-GRU)" in notebook[-1]


def test_a_verdict_has_its_colour_in_a_notebook(notebook, monkeypatch):
    check("udl-12.5b", WRONG)
    check("udl-12.5b", RIGHT)
    wrong, passed, _ = notebook
    assert re.search(r"background:#b3261e;color:#fff[^>]*>WRONG</b> udl-12\.5b: ", wrong)
    assert re.search(r"background:#1a7f37;color:#fff[^>]*>PASSED</b> udl-12\.5b: ", passed)
    verdict = Verdict("udl-12.5b", "wrong", "values", "it is 1 < 2 & 3")
    monkeypatch.setattr(check_module, "judge", lambda *args, **kwargs: verdict)
    check("udl-12.5b", WRONG)
    assert "it is 1 &lt; 2 &amp; 3" in notebook[-1]


def test_white_is_legible_on_the_colours_of_verdicts():
    def luminance(colour):
        shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in front_end.COLOURS.values():
        assert 1.05 / (luminance(colour) + 0.05) > 4.5, colour


def test_the_bar_does_not_count_what_is_imported_first(monkeypatch):
    order = []
    monkeypatch.setattr(check_module, "prepare", lambda part, answer: order.append("imports"))
    monkeypatch.setattr(check_module, "waiting", lambda *args, **kwargs: nullcontext(order.append("bar")))
    check("udl-12.5a", lambda scores: scores)
    assert order == ["imports", "bar"]


@pytest.mark.parametrize("how", ["strict", "unrecorded"])
def test_a_solved_notebook_shows_the_verdict_alone(how, monkeypatch, notebook, capsys):
    monkeypatch.setenv("D2LMINI_STRICT", "1" if how == "strict" else "0")
    bars = []
    monkeypatch.setattr(check_module, "waiting", lambda *limits, quiet: nullcontext(bars.append((*limits, quiet))))
    check("udl-12.5b", RIGHT, record=how == "strict")
    assert capsys.readouterr().out.count("\n") == 1 and notebook == [] and bars == [(10.0, True)]


def test_every_chapter_has_its_notebooks():
    names = {path.stem for path in ROOT.glob("exercises/*.ipynb")}
    assert set(registry.NOTEBOOKS.values()) == names == {path.stem for path in ROOT.glob("exercises/solutions/*.ipynb")}
    assert {e.chapter for e in registry.exercises()} == set(registry.NOTEBOOKS)
    assert all(name.startswith(f"{chapter}_") for chapter, name in registry.NOTEBOOKS.items())
    assert site.colab("x") == f"{registry.REPOSITORY}/x"


def test_a_formula_of_a_verdict_is_plain_text(monkeypatch, capsys):
    verdict = Verdict("udl-12.5b", "wrong", "values", "it is $w^2$")
    monkeypatch.setattr(check_module, "judge", lambda *args, **kwargs: verdict)
    check("udl-12.5b", RIGHT)
    check("udl-12.5b", RIGHT, record=False)
    seen = ["WRONG udl-12.5b: it is w² (your first try)", "WRONG udl-12.5b: it is $w^2$"]
    assert capsys.readouterr().out.splitlines() == seen


def test_an_answer_that_uses_another_cell_is_told(notebook, monkeypatch, capsys):
    monkeypatch.setattr(check_module, "note", lambda answer: f"note: your answer {answer!r} uses `helper`")
    check("udl-12.5b", WRONG)
    assert capsys.readouterr().out == f"note: your answer {WRONG!r} uses `helper`\n"
    check("udl-12.5b", ...)
    assert "note" not in capsys.readouterr().out
    monkeypatch.delitem(sys.modules, "IPython")
    check("udl-12.5b", WRONG)
    assert "note" not in capsys.readouterr().out


def test_review_is_for_what_no_check_verifies():
    with pytest.raises(ValueError, match="nothing to assess yourself"):
        review("d2l-11.3.1", "agrees")


def test_review_keeps_the_full_key(own_progress, capsys):
    progress.record(Verdict("d2l-11.1.2", "wrong", "values", ""))
    review(" D2L-11.1.2", "partly")
    assert capsys.readouterr().out.startswith("REVIEWED d2l-11.1.2: partly")
    assert list(json.loads(own_progress.read_text())["parts"]) == ["d2l-11.1.2"]


def test_review_counts_nothing_that_was_never_attempted(own_progress, capsys):
    review("d2l-11.1.2", "agrees")
    assert 'not attempted yet, so nothing is counted: call check("d2l-11.1.2", ' in capsys.readouterr().out
    assert not own_progress.exists()


@pytest.mark.parametrize("slip", ["Z", "", "AB", "A, B", 1, ["A"], "the first"])
def test_what_is_no_option_is_no_try(slip, capsys, own_progress):
    check("udl-12.5b", slip)
    assert not own_progress.exists() and "try" not in capsys.readouterr().out
    check("udl-12.5b", WRONG)
    check("udl-12.5b", slip)
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("(your first try)") and second.startswith("WRONG") and "try" not in second


@pytest.mark.parametrize("key", ["udl-12.5b", "udl-12.5a"])
def test_tries_are_counted_until_one_passes(key, capsys, own_progress):
    part = registry.find(key)[1]
    wrong, right = (WRONG, RIGHT) if part is CHOICE else (lambda scores: scores, part.answer)
    for answer in (wrong, right, right, wrong):
        check(key, answer)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("PASSED", "WRONG"))]
    tries = [line.partition(" (your ")[2] for line in said]
    assert tries == (["first try)", "try number 2)", "", ""] if part is CHOICE else 4 * [""])
    kept = progress.load_progress()[key]
    assert (kept["tries"], kept["passed"], kept["last"]) == (2, True, "passed")


@pytest.mark.parametrize("call", [check, hint, lambda key: review(key, "agrees")])
def test_an_exercise_with_parts_names_them_in_a_sentence(call, capsys, own_progress):
    call("own-09.3")
    said = capsys.readouterr().out
    assert said.startswith("own-09.3 has 2 parts, one to a call: ")
    assert '("own-09.3a"' in said and '("own-09.3b"' in said
    assert not own_progress.exists()


def test_reset_forgets_a_part_or_an_exercise_and_keeps_a_copy(own_progress, capsys):
    solve("udl-12.5a", "udl-12.5b", "d2l-11.3.1")
    before = own_progress.read_text()
    reset("udl-12.5b")
    assert capsys.readouterr().out == "RESET udl-12.5b\n"
    assert set(progress.load_progress()) == {"udl-12.5a", "d2l-11.3.1"}
    assert own_progress.with_name("progress.json.before-reset-1").read_text() == before
    reset("udl-12.5")
    assert own_progress.with_name("progress.json.before-reset-1").read_text() == before
    assert "udl-12.5a" in own_progress.with_name("progress.json.before-reset-2").read_text()
    assert set(progress.load_progress()) == {"d2l-11.3.1"}
    with pytest.raises(KeyError, match="there is no exercise"):
        reset("own-99.9")


@pytest.mark.parametrize(("typed", "left"), [("yes", 0), (" Yes ", 0), ("y", 2), ("", 2), (EOFError, 2)])
def test_reset_of_all_asks_first(typed, left, monkeypatch, capsys):
    solve("udl-12.5a", "d2l-11.3.1")

    def typing(question):
        assert question == "Forget what you did of 2 parts? Type yes: "
        if typed is EOFError:
            raise EOFError
        return typed

    monkeypatch.setattr("builtins.input", typing)
    reset()
    assert len(progress.load_progress()) == left
    assert ("RESET all 2" if not left else "nothing was forgotten") in capsys.readouterr().out


def test_reset_of_nothing_asks_nothing(own_progress, capsys):
    reset()
    assert not own_progress.exists() and "RESET all 0" in capsys.readouterr().out


def test_reset_in_a_notebook_puts_an_empty_cell_below(notebook, monkeypatch):
    cells = []
    sys.modules["IPython"].get_ipython().set_next_input = cells.append
    reset("udl-12.5b")
    reset("d2l-11.3.1")
    assert cells[0].startswith("# exercise: udl-12.5b\nanswer = ...  # ")
    assert cells[1].startswith("# exercise: d2l-11.3.1\ndef ") and "raise NotImplementedError" in cells[1]


def test_progress_is_a_table_and_squares_in_a_notebook(monkeypatch, capsys):
    solve("udl-12.5a")
    check("udl-12.5b", WRONG)
    capsys.readouterr()
    show_progress("03")
    assert capsys.readouterr().out == progress_report("03") + "\n"
    shown = in_notebook(monkeypatch)
    show_progress(3)
    html = shown[0]
    assert html.count("<tr>") == 1 and "1 of 5" in html and html.count("<span title=") == 5
    assert "udl-12.5a, " in html and ": solved, 1 try" in html and ": begun, 1 try" in html
    show_progress()
    assert shown[1].count("<tr>") == len(registry.NOTEBOOKS)


def test_not_attempted_is_no_try(own_progress):
    check("udl-12.5a", ...)
    assert not own_progress.exists()
    check("12.5B", WRONG)
    check("udl-12.5b", ...)
    parts = json.loads(own_progress.read_text())["parts"]
    assert parts == {"udl-12.5b": {"tries": 1, "passed": False, "last": "wrong", "review": ""}}


def test_tries_stand_beside_each_part():
    check("udl-12.5b", WRONG)
    assert "not yet (wrong), 1 try\n" in progress_report()
    check("udl-12.5b", WRONG)
    assert "not yet (wrong), 2 tries\n" in progress_report()
    check("udl-12.5b", RIGHT)
    report = progress_report()
    assert "verified, 3 tries\n" in report and report.count(" tries") == 1 and " 0 tr" not in report


def test_progress_of_one_chapter(capsys):
    check("udl-12.5b", RIGHT)
    report = progress_report("03")
    assert "Verified by checks:  1 of 5" in report and "Chapter 03" in report and "Chapter 04" not in report
    assert [k for k in ("d2l-11.3.1", "udl-12.5b", "d2l-11.4.1a") if k in report] == ["d2l-11.3.1", "udl-12.5b"]
    assert progress_report("3") == progress_report(3) == report
    capsys.readouterr()
    assert main(["progress", "03"]) == 0 and capsys.readouterr().out == report + "\n"
    assert main(["progress"]) == 0 and capsys.readouterr().out == progress_report() + "\n"
    assert main(["progress", "99"]) == 1
    assert capsys.readouterr().err == (
        f"error: there is no chapter '99' with exercises, expected one of {', '.join(registry.NOTEBOOKS)}\n"
    )


def test_progress_is_private_and_counts_apart(own_progress):
    check("udl-12.5b", RIGHT)
    check("udl-12.5a", ..., record=False)
    progress.record_review("own-99.1", "agrees")
    if os.name == "posix":
        assert stat.S_IMODE(own_progress.stat().st_mode) == 0o600
    parts = json.loads(own_progress.read_text())["parts"]
    assert "udl-12.5a" not in parts and parts["own-99.1"]["passed"] is False
    report = progress_report()
    assert "Verified by checks:  1 of " in report and "Self-assessed:       0 of " in report
    assert [p.name for p in own_progress.parent.iterdir()] == ["progress.json"]


ENTRIES = ['"x"', "null", "1e999", "-1", "true", "[]", '1, "passed": "yes"', '1, "last": 3']
DAMAGED = ["", "{", "[]", '{"parts": 3}', '{"parts": {"a": 1}}', "\x00\xff", "[" * 100_000]
DAMAGED += [f'{{"parts": {{"{key}": {{"tries": {entry}}}}}}}' for key in ("udl-12.5b", "another") for entry in ENTRIES]


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda damage: damage[:60])
def test_damaged_progress_is_set_aside(own_progress, capsys, damage):
    own_progress.write_text(damage)
    check("udl-12.5b", RIGHT)
    assert "is damaged: kept as progress.json.damaged-1" in capsys.readouterr().out
    assert own_progress.with_name("progress.json.damaged-1").read_text() == damage
    assert json.loads(own_progress.read_text())["parts"]["udl-12.5b"]["tries"] == 1


def test_progress_of_before_is_still_found(monkeypatch, tmp_path):
    monkeypatch.delenv("D2LMINI_PROGRESS")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if sys.platform == "linux":
        assert progress.progress_path() == tmp_path / ".local/share/d2lmini/progress.json"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if sys.platform != "win32":
        assert progress.progress_path() == tmp_path / "data/d2lmini/progress.json"
    # macOS, where XDG_DATA_HOME counted for nothing
    monkeypatch.setattr(progress.sys, "platform", "darwin")
    before = tmp_path / "Library/Application Support/d2lmini/progress.json"
    before.parent.mkdir(parents=True)
    before.write_text('{"version": 1, "parts": {"udl-12.5b": {"tries": 2, "passed": false}}}')
    check("udl-12.5b", WRONG)
    assert json.loads(before.read_text())["parts"]["udl-12.5b"]["tries"] == 3
    before.unlink()
    assert progress.progress_path() == tmp_path / "data/d2lmini/progress.json"


def test_unwritable_progress_warns_once(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("D2LMINI_PROGRESS", str(tmp_path / "file" / "progress.json"))
    monkeypatch.setattr(progress, "_warned", set())
    with pytest.warns(UserWarning, match="going on without it") as caught:
        check("udl-12.5b", RIGHT)
        check("udl-12.5b", RIGHT)
    assert len({str(w.message) for w in caught}) == len(caught) <= 2
    assert capsys.readouterr().out.count("PASSED") == 2


@pytest.fixture
def homeless(monkeypatch):
    """A user as containers have them: HOME is unset, and no list of users has an entry."""
    pwd = pytest.importorskip("pwd")  # Windows has none

    def unknown(uid):
        raise KeyError(uid)

    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "D2LMINI_PROGRESS", "D2LMINI_CACHE", "D2LMINI_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(progress, "_warned", set())


def test_without_a_home_folder_there_is_a_verdict_and_one_line(homeless, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning) as caught:
        check("udl-12.5b", WRONG)
        check("udl-12.5b", RIGHT)
        review("d2l-11.1.2", "agrees")
        show_progress("03")
        reset("udl-12.5b")
    (line,) = (str(warning.message) for warning in caught)
    assert "progress is not kept" in line and "\n" not in line
    said = capsys.readouterr().out
    assert f"not {WRONG}." in said and "PASSED udl-12.5b" in said and "progress is not kept" in said
    assert list(tmp_path.iterdir()) == []  # no folder that is called ~
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    check("udl-12.5b", RIGHT)
    assert (tmp_path / "d2lmini" / "progress.json").exists()


def test_without_a_home_folder_the_command_line_says_the_same(homeless, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="not kept"):
        assert main(["progress"]) == 0
    assert main(["data"]) == 0 and "fashion" in capsys.readouterr().out.lower()


def test_interrupted_write_leaves_the_old_file(own_progress, monkeypatch):
    check("udl-12.5b", WRONG)
    before = own_progress.read_bytes()

    def fails(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress.os, "replace", fails)
    monkeypatch.setattr(progress, "_warned", set())
    with pytest.warns(UserWarning, match="No space left"):
        check("udl-12.5b", RIGHT)
    assert own_progress.read_bytes() == before
    assert len(list(own_progress.parent.iterdir())) == 1


def test_a_right_answer_reads_the_exercises_of_its_chapter_and_no_others():
    code = """
import sys
from d2lmini import check
from d2lmini.exercises.engine.registry import find

check("d2l-11.3.2", find("d2l-11.3.2")[1].answer)
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("exercise_documents.")}))
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("d2lmini.")}))
"""
    verdict, now, read, used = printed(code).splitlines()
    assert verdict.startswith("PASSED d2l-11.3.2: ") and now.startswith("next: d2l-11.3.3 ")
    assert read.split() == ["d2l_11_3_1", "d2l_11_3_2", "d2l_11_3_3", "udl_12_5a"]  # 12.5b is a choice
    assert not {"models", "training", "data", "figures"} & set(used.split())


TICKED = {"d2l-11.3.1": {"tries": 0, "passed": False, "last": "", "review": "", "ticked": True, "chosen": ""}}
CHOSEN = {"udl-12.5b": {"tries": 2, "passed": True, "last": "passed", "review": "", "ticked": False, "chosen": "AD"}}


@pytest.fixture
def written(tmp_path):
    """A file as the page of the book writes it."""
    path = tmp_path / "d2lmini-progress.json"
    path.write_text(json.dumps({"version": 1, "parts": TICKED | CHOSEN}))
    return path


def test_what_the_book_wrote_is_read_and_what_was_done_stays(own_progress, written, capsys):
    check("udl-12.5b", WRONG)
    solve("d2l-11.3.2")
    capsys.readouterr()
    assert main(["progress", "03", "--read", str(written)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"read {written}: 2 parts\n") and "Verified by checks:  2 of 5" in out
    assert "Ticked by you:       1 (" in out
    assert re.search(r"d2l-11\.3\.1 .*not yet \(not attempted\); ticked by you\n", out)
    once = own_progress.read_text()
    parts = json.loads(once)["parts"]
    assert parts["udl-12.5b"] == {"tries": 2, "passed": True, "last": "passed", "review": "", "chosen": "AD"}
    assert parts["d2l-11.3.2"]["passed"]
    show_progress(read=written)
    assert own_progress.read_text() == once


@pytest.mark.parametrize("names", [("mine", "other"), ("other", "mine")])
def test_of_two_entries_what_was_done_in_either(names):
    entries = {
        "mine": {"tries": 3, "passed": True, "last": "wrong", "review": ""},
        "other": {"tries": 1, "passed": False, "last": "passed", "review": "partly", "ticked": True, "chosen": "B"},
    }
    both = {"tries": 3, "passed": True, "last": "wrong", "review": "partly", "ticked": True, "chosen": "B"}
    assert progress.merged(*(entries[name] for name in names)) == both


def test_what_is_written_can_be_read_elsewhere(own_progress, tmp_path, capsys):
    check("udl-12.5b", RIGHT)
    copy = tmp_path / "copy.json"
    capsys.readouterr()
    show_progress("03", write=copy)
    assert capsys.readouterr().out.endswith(f"wrote {copy}: 1 part\n")
    assert json.loads(copy.read_text()) == json.loads(own_progress.read_text())
    own_progress.unlink()
    assert progress.read_progress(copy) == 1
    assert json.loads(copy.read_text()) == json.loads(own_progress.read_text())


def test_what_is_no_file_of_progress_is_not_read(own_progress, tmp_path, capsys):
    path = tmp_path / "other.json"
    for text in ("{", '{"parts": {"udl-12.5b": {"ticked": "yes"}}}', '{"parts": {"udl-12.5b": {"chosen": 3}}}'):
        path.write_text(text)
        assert main(["progress", "--read", str(path)]) == 1
        assert f"error: {path} is no file of progress" in capsys.readouterr().err
    assert main(["progress", "--read", str(tmp_path / "absent.json")]) == 1
    assert not own_progress.exists()


def test_what_is_ticked_is_not_next_and_not_counted_as_solved(written, notebook):
    progress.read_progress(written)
    assert progress.next_open(*registry.find("udl-12.5b"))[1].key == "d2l-11.3.2"
    show_progress("03")
    assert "1 of 5" in notebook[0] and "Distance attention at the price of a dot product: ticked by you" in notebook[0]


def test_the_variable_may_name_a_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("D2LMINI_PROGRESS", str(tmp_path))
    assert progress.progress_path() == tmp_path / "d2lmini-progress.json"
    check("udl-12.5b", RIGHT)
    assert json.loads((tmp_path / "d2lmini-progress.json").read_text())["parts"]["udl-12.5b"]["passed"]
