"""Runs in parts: a run that was cut or killed ends with the record of an undisturbed one."""

import json
import re
from contextlib import suppress
from dataclasses import replace

import pytest

from d2lmini import experiments, results
from d2lmini.experiments import _translation
from d2lmini.experiments import translation_transformer as translator
from d2lmini.lab import records, runner
from d2lmini.lab.parts import Parts, Unfinished

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
@pytest.mark.parametrize("name", experiments.names())
def test_cut_twice(name, tmp_path):
    experiment = experiments.find(name)
    whole = json.loads(records.dump(runner.execute(experiment, "smoke", "cpu")))
    with pytest.raises(Unfinished):  # after one step, or one part
        runner.execute(experiment, "smoke", "cpu", tmp_path / "kept", max_minutes=1e-9)
    with suppress(Unfinished):  # some have but two parts
        runner.execute(experiment, "smoke", "cpu", tmp_path / "kept", max_minutes=1e-9)
    record = json.loads(records.dump(runner.execute(experiment, "smoke", "cpu", tmp_path / "kept")))
    assert results.problems(record) == []
    if name in TIMED:
        assert shape(record) == shape(whole)
    else:
        assert without_times(record) == without_times(whole)
    meant = {key: record[key] for key in ("experiment", "preset", "config")} | {"device": "cpu"}
    assert record["wall_s"] + 0.01 > Parts(tmp_path / "kept", meant).seconds_before > 0  # the slices before count


@pytest.mark.train
def test_the_mean_of_the_last_epochs_survives_a_cut(tmp_path, monkeypatch):
    small = replace(translator.PRESETS["smoke"], max_epochs=3, max_steps=None, averaged=2, val_sentences=4)
    monkeypatch.setitem(translator.PRESETS, "smoke", small)
    monkeypatch.setattr(_translation, "samples", lambda *_: [])
    whole = runner.execute(translator, "smoke", "cpu")
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
        runner.execute(translator, "smoke", "cpu", tmp_path)
    record = runner.execute(translator, "smoke", "cpu", tmp_path)
    assert len(steps) < 3 * whole["metrics"]["steps"] and means == [[1, 2]]
    assert without_times(record) == without_times(whole)
