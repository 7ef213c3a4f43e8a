"""``check``, ``hint``, ``review`` and the file in which they keep the reader's progress."""

import json
import os
import stat
import sys

import pytest

from d2lmini.exercises import check, hint, progress_report, review
from d2lmini.exercises.engine import progress, registry


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
    check("udl-12.5b", "a")
    assert "not A. Sure is not right" in capsys.readouterr().out


def test_strict_raises(monkeypatch, capsys):
    monkeypatch.setenv("D2LMINI_STRICT", "1")
    with pytest.raises(AssertionError, match=r"NOT ATTEMPTED udl-12\.5a"):
        check("udl-12.5a", ...)
    check("udl-12.5b", "B")


def test_hints_come_one_by_one(capsys):
    hint("d2l-11.3.2")
    first = capsys.readouterr().out
    hint("d2l-11.3.2")
    second = capsys.readouterr().out
    assert first.count("hint ") == 1 and second.count("hint ") == 2 and second.startswith(first)


def test_review_is_for_what_no_check_verifies():
    with pytest.raises(ValueError, match="nothing to assess yourself"):
        review("d2l-11.3.1", "agrees")


def test_progress_is_private_and_counts_apart(own_progress):
    check("udl-12.5b", "A")
    check("udl-12.5b", "B")
    check("udl-12.5b", "C")
    check("udl-12.5a", ..., record=False)
    progress.record_review("own-99.1", "agrees")
    if os.name == "posix":
        assert stat.S_IMODE(own_progress.stat().st_mode) == 0o600
    parts = json.loads(own_progress.read_text())["parts"]
    assert parts["udl-12.5b"] == {"tries": 3, "passed": True, "last": "wrong", "review": ""}
    assert "udl-12.5a" not in parts and parts["own-99.1"]["passed"] is False
    report = progress_report()
    assert "Verified by checks:  1 of " in report and "Self-assessed:       0 of " in report
    assert [p.name for p in own_progress.parent.iterdir()] == ["progress.json"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"parts": 3}', '{"parts": {"a": 1}}', "\x00\xff", "deep"])
def test_damaged_progress_is_set_aside(own_progress, capsys, damage):
    damage = "[" * 100_000 if damage == "deep" else damage
    own_progress.write_text(damage)
    check("udl-12.5b", "B")
    assert "is damaged: kept as progress.json.damaged-1" in capsys.readouterr().out
    assert own_progress.with_name("progress.json.damaged-1").read_text() == damage
    assert json.loads(own_progress.read_text())["parts"]["udl-12.5b"]["passed"]


@pytest.mark.parametrize("key", ["udl-12.5b", "another"])
@pytest.mark.parametrize("tries", ['"x"', "null", "1e999", "-1", "true", "[]", '1, "passed": "yes"', '1, "last": 3'])
def test_progress_with_an_entry_that_is_damaged_is_set_aside(own_progress, capsys, key, tries):
    own_progress.write_text(f'{{"parts": {{"{key}": {{"tries": {tries}}}}}}}')
    progress_report()
    assert "is damaged: kept as progress.json.damaged-1" in capsys.readouterr().out
    check("udl-12.5b", "B")
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
    before.write_text('{"version": 1, "parts": {"udl-12.5b": {"tries": 2, "passed": true}}}')
    check("udl-12.5b", "A")
    assert json.loads(before.read_text())["parts"]["udl-12.5b"]["tries"] == 3
    before.unlink()
    assert progress.progress_path() == tmp_path / "data/d2lmini/progress.json"


def test_unwritable_progress_warns_once(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("D2LMINI_PROGRESS", str(tmp_path / "file" / "progress.json"))
    monkeypatch.setattr(progress, "_warned", set())
    with pytest.warns(UserWarning, match="going on without it") as caught:
        check("udl-12.5b", "B")
        check("udl-12.5b", "B")
    assert len({str(w.message) for w in caught}) == len(caught) <= 2
    assert capsys.readouterr().out.count("PASSED") == 2


def test_interrupted_write_leaves_the_old_file(own_progress, monkeypatch):
    check("udl-12.5b", "B")
    before = own_progress.read_bytes()

    def fails(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress.os, "replace", fails)
    monkeypatch.setattr(progress, "_warned", set())
    with pytest.warns(UserWarning, match="No space left"):
        check("udl-12.5b", "A")
    assert own_progress.read_bytes() == before
    assert len(list(own_progress.parent.iterdir())) == 1
