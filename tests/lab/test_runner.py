"""The runner: it seeds, shares, refuses and records what an experiment returns."""

import dataclasses
import json

import pytest
import torch

from d2lmini import experiments, results
from d2lmini.lab import records, runner


class Toy:
    """A stand-in for the module of an experiment."""

    @dataclasses.dataclass(frozen=True)
    class Config:
        sizes: tuple = (1, 2)
        seeds: tuple = (3,)
        batches_per_step: int = 2

    def __init__(self, outcome=None):
        self.__name__ = "toy"
        self.PRESETS = {"smoke": self.Config()}
        metrics = {"headline": "one", "loss": [0.5, 1 / 3]}
        self.outcome = outcome or {"metrics": metrics, "curves": {"loss": [1.0]}}

    def run(self, config, device, parts):
        assert config == self.PRESETS["smoke"] and isinstance(device, torch.device)
        self.drawn = torch.rand(1).item()
        return self.outcome


def test_the_record_holds_everything(tmp_path):
    toy = Toy()
    record = json.loads(runner.run(toy, "smoke", out=tmp_path).read_text())
    assert results.problems(record) == []
    assert record["config"] == {"sizes": [1, 2], "seeds": [3], "batches_per_step": 2} and record["seeds"] == [3]
    assert record["metrics"]["loss"] == [0.5, 1 / 3]  # to the last digit
    assert record["command"] == "python -m d2lmini run toy --preset smoke"
    assert runner.execute(toy, "smoke", device="cpu")["command"].endswith("--preset smoke --device cpu")


def test_the_commit_is_that_of_the_start(monkeypatch):
    toy = Toy()
    seen = {"commit": "before", "dirty": False}
    monkeypatch.setattr(records, "source", lambda: seen | {"dirty": hasattr(toy, "drawn")})
    assert runner.execute(toy, "smoke")["source"] == seen


def test_seeded():
    toy, drawn = Toy(), []
    for _ in range(2):
        runner.execute(toy, "smoke")
        drawn.append(toy.drawn)
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"loss": {"test": [1.0, float("nan")]}}, ValueError, r"metrics.loss.test\[1\] is nan"),
        ({"loss": float("inf")}, ValueError, "metrics.loss is inf"),
        ({"loss": torch.ones(2)}, TypeError, "metrics.loss is a Tensor"),
        ({3: 1.0}, TypeError, "metrics has the key 3"),
    ],
)
def test_refused(tmp_path, metrics, error, message):
    toy = Toy({"metrics": metrics, "curves": {}})
    with pytest.raises(error, match=message):
        runner.run(toy, "smoke", out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_keeps_the_old_record(tmp_path):
    toy = Toy()
    path = runner.run(toy, "smoke", out=tmp_path)
    before = path.read_bytes()
    toy = Toy({"metrics": {"loss": float("nan")}, "curves": {}})
    with pytest.raises(ValueError, match="nan"):
        runner.run(toy, "smoke", out=tmp_path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_run_that_is_killed_leaves_nothing_in_the_folder(tmp_path, monkeypatch):
    there, execute = [], runner.execute

    def look(*arguments):
        there.extend(tmp_path.iterdir())  # what stays if the process is killed in the middle of its work
        return execute(*arguments)

    monkeypatch.setattr(runner, "execute", look)
    path = runner.run(Toy(), "smoke", out=tmp_path)
    assert there == [] and list(tmp_path.iterdir()) == [path]


def test_unwritable_folder_is_found_out_before_the_run(tmp_path):
    toy = Toy()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        runner.run(toy, "smoke", out=tmp_path / "file")
    assert not hasattr(toy, "drawn")


def test_of_several_processes_the_first_one_writes(tmp_path, monkeypatch):
    toy = Toy()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    runner.run(toy, "smoke", out=tmp_path)
    assert hasattr(toy, "drawn") and list(tmp_path.iterdir()) == []
    monkeypatch.setenv("RANK", "0")
    record = json.loads(runner.run(toy, "smoke", out=tmp_path).read_text())
    assert results.problems(record) == [] and record["device"]["processes"] == 2
    assert record["command"] == "torchrun --nproc-per-node 2 -m d2lmini run toy --preset smoke"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("translation_transformer", "has 2 batches, which 3 processes cannot share evenly"),
        ("vision_vit", "has 1 batch, which 3 processes .* `python -m d2lmini run vision_vit --preset smoke` instead"),
    ],
)
def test_processes_share_the_batches_of_a_step_evenly(name, message, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setattr(experiments.find(name), "run", None)  # it is refused before
    with pytest.raises(ValueError, match=message):
        runner.execute(experiments.find(name), "smoke")


def test_a_preset_that_is_not_there():
    with pytest.raises(ValueError, match="toy has no preset 'big', only smoke"):
        runner.run(Toy(), "big")
