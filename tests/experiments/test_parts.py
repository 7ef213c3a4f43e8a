"""Runs in parts: a run that was cut or killed ends with the record of an undisturbed one."""

import json
import re
from contextlib import suppress
from dataclasses import replace

import pytest
import torch

from d2lmini import results
from d2lmini.__main__ import main
from d2lmini.experiments import _translation, runner
from d2lmini.experiments import translation_transformer as translator
from d2lmini.experiments._parts import Parts, Unfinished
from d2lmini.training import CheckpointError

TIMED = {"attention_cost", "decoding_cost"}  # what they measure is time


def without_times(value):
    """What must be equal: all but what clocks gave."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if not re.search(r"_s$|^date$|^device$", k)}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def shape(value):
    """The keys of a record, and how long its lists are."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    return len(value) if isinstance(value, list) else type(value)


@pytest.mark.train
@pytest.mark.parametrize("name", runner.list_experiments())
def test_cut_twice(name, tmp_path):
    whole = json.loads(runner.dump(runner.execute(name, "smoke", "cpu")))
    with pytest.raises(Unfinished):  # after one step, or one part
        runner.execute(name, "smoke", "cpu", tmp_path / "kept", max_minutes=1e-9)
    with suppress(Unfinished):  # some have but two parts
        runner.execute(name, "smoke", "cpu", tmp_path / "kept", max_minutes=1e-9)
    record = json.loads(runner.dump(runner.execute(name, "smoke", "cpu", tmp_path / "kept")))
    assert results.problems(record) == []
    if name in TIMED:
        assert shape(record) == shape(whole)
    else:
        assert without_times(record) == without_times(whole)
    meant = {key: record[key] for key in ("experiment", "preset", "config")} | {"device": "cpu"}
    assert record["wall_s"] + 0.01 > Parts(tmp_path / "kept", meant).seconds_before > 0  # the slices before count


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


@pytest.mark.train
def test_the_mean_of_the_last_epochs_survives_a_cut(tmp_path, monkeypatch):
    small = replace(translator.PRESETS["smoke"], max_epochs=3, max_steps=None, averaged=2, val_sentences=4)
    monkeypatch.setitem(translator.PRESETS, "smoke", small)
    monkeypatch.setattr(_translation, "samples", lambda *_: [])
    whole = runner.execute("translation_transformer", "smoke", "cpu")
    means, load_mean = [], _translation.LastEpochs.load_mean

    def counted(self, epochs):
        means.append(list(epochs))
        load_mean(self, epochs)

    monkeypatch.setattr(_translation.LastEpochs, "load_mean", counted)
    step, steps = translator.Model.training_step, []

    def killed(self, batch):
        steps.append(len(steps))
        if len(steps) == int(0.9 * 2 * whole["metrics"]["steps"]):  # in the last epoch, past the first one of the mean
            raise KeyboardInterrupt
        return step(self, batch)

    monkeypatch.setattr(translator.Model, "training_step", killed)
    with pytest.raises(KeyboardInterrupt):
        runner.execute("translation_transformer", "smoke", "cpu", tmp_path)
    record = runner.execute("translation_transformer", "smoke", "cpu", tmp_path)
    assert len(steps) < 3 * whole["metrics"]["steps"] and means == [[1, 2]]
    assert without_times(record) == without_times(whole)
