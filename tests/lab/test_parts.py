"""A run in parts: what is finished is done once, and what goes on is what it would have been."""

import pytest
import torch

from d2lmini.__main__ import main
from d2lmini.lab.parts import Parts, Unfinished
from d2lmini.training import CheckpointError


def test_a_part_is_done_once_and_the_next_one_draws_what_it_would(tmp_path):
    done = []

    def part(name):
        done.append(name)
        return {"drawn": torch.rand(2).tolist(), "pair": (1, 2)}

    def run(parts):
        torch.manual_seed(3)
        return [parts(name, part, name) for name in "abc"]

    whole = run(Parts())
    assert whole[0]["pair"] == [1, 2]  # as JSON gives it back, kept or not
    for _ in range(3):
        try:
            found = run(Parts(tmp_path, max_seconds=1e-9))
        except Unfinished:
            continue
    assert found == whole and done == ["a", "b", "c"] * 2
    assert Parts(tmp_path).seconds_before > 0


def test_killed_inside_of_a_part(tmp_path):
    def work(value):
        if value is None:
            raise KeyboardInterrupt
        return value

    assert Parts(tmp_path)("a", work, 1) == 1
    with pytest.raises(KeyboardInterrupt):
        Parts(tmp_path)("b", work, None)
    parts = Parts(tmp_path)
    assert parts("a", work, 2) == 1 and parts("b", work, 3) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json", "run.json"]


def test_parts_of_another_run_are_refused(tmp_path):
    Parts(tmp_path, {"config": {"lr": 1, "sizes": (1, 2)}}, commit="first")
    assert Parts(tmp_path, {"config": {"lr": 1, "sizes": (1, 2)}}, commit="second").begun_at == "first"
    with pytest.raises(CheckpointError, match=r"another configuration:\n  config.lr: 1 in the checkpoint, now 2"):
        Parts(tmp_path, {"config": {"lr": 2, "sizes": (1, 2)}})
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"a.json is damaged .*: move it away"):
        Parts(tmp_path, {"config": {"lr": 1, "sizes": (1, 2)}})


def test_the_command_line_says_how_to_go_on(tmp_path, capsys):
    words = ["run", "associative_recall", "--preset", "smoke", "--device", "cpu", "--out", str(tmp_path / "out")]
    assert main([*words, "--max-minutes", "1"]) == 1
    assert "max_minutes needs a folder" in capsys.readouterr().err
    words += ["--checkpoint", str(tmp_path / "kept"), "--max-minutes"]
    assert main([*words, "0"]) == 1
    assert "max_minutes is 0.0, expected more than 0" in capsys.readouterr().err
    assert main([*words, "1e-9"]) == 75
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(f"what is finished is kept in {tmp_path / 'kept'}: the same command goes on")
    assert not list((tmp_path / "out").iterdir())
    assert main([*words, "1e-9"]) == 0
    assert (tmp_path / "out" / "associative_recall.smoke.json").exists()


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "cpu:x"])
def test_a_device_that_is_not_here_takes_one_line(device, tmp_path, capsys):
    words = ["run", "associative_recall", "--preset", "smoke", "--out", str(tmp_path)]
    assert main([*words, "--device", device]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert repr(device) in line and "expected" in line


def test_a_part_may_not_be_called_run(tmp_path):
    with pytest.raises(ValueError, match="may not be called run"):
        Parts(tmp_path)("run", dict)
