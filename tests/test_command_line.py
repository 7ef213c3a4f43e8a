"""The command line as a reader meets it: help, versions, slips, a reader that has seen enough."""

import subprocess
import sys

import pytest

import d2lmini
from d2lmini import selfcheck
from d2lmini.__main__ import main


def test_the_bare_command_shows_what_there_is(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    for command in ("check", "progress", "data", "run", "export", "grade"):
        assert f"    {command}" in printed


def test_the_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out == f"d2lmini {d2lmini.__version__}\n"


@pytest.mark.parametrize(
    ("given", "says"), [("progres", "did you mean progress?"), ("xyz", "expected check, progress")]
)
def test_a_slip_gets_a_suggestion(given, says, capsys):
    with pytest.raises(SystemExit) as stop:
        main([given])
    assert stop.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "progress", "data", "run", "export", "grade"])
def test_help_says_what_each_argument_is(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    lines = capsys.readouterr().out.split("\n\n", 1)[1].splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("  ") and not line.startswith("   "):
            assert "  " in line.strip() or following.startswith(" " * 20), line


def test_check_answers_its_question(capsys, monkeypatch):
    assert main(["check"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("Yes: ") and "optional" in printed
    monkeypatch.setattr(selfcheck, "_NEEDED", ("torch", "no-such-package"))
    assert main(["check"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "No: no-such-package must be installed first."
    monkeypatch.undo()
    monkeypatch.setattr(selfcheck, "_attention_agrees", lambda: False)
    assert main(["check"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("No: attention is wrong")


@pytest.mark.slow
def test_a_pipe_that_closes_early_is_no_error():
    command = f"{sys.executable} -m d2lmini run --list | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "0" and done.stderr == ""


@pytest.mark.parametrize(
    ("command", "where", "kept"),
    [
        (["run", "head_count", "--preset", "smoke"], "d2lmini.lab.runner.run", "nothing is kept"),
        (["run", "x", "--checkpoint", "FOLDER"], "d2lmini.experiments.find", "kept in FOLDER, and the same command"),
        (["run", "--list"], "d2lmini.experiments.names", ""),
        (["grade", "class", "--csv", "out.csv", "--seed", "1"], "d2lmini.exercises.grading.folder.grade", "out.csv"),
        (["data"], "d2lmini.data.registry.status", ""),
        (["check"], "d2lmini.selfcheck.report", ""),
        (["export"], "d2lmini.lab.export.overview", ""),
    ],
)
def test_ctrl_c_gets_a_sentence(command, where, kept, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    assert main(command) == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("stopped") and kept in line
