"""The translator: its length penalty, and the mean of its last epochs."""

from dataclasses import replace

import pytest

from d2lmini.experiments import translation_transformer as translator
from d2lmini.experiments.translation import translators
from d2lmini.lab import runner

from ..test_cuts import without_times


def test_the_length_penalty_is_chosen_on_the_validation_split(monkeypatch):
    asked = []

    def score(model, data, split, beam_size, penalty):
        asked.append((split, beam_size, penalty))
        return {"bleu": {0.0: 1.0, 0.5: 3.0, 1.0: 2.0}[penalty]}, []

    monkeypatch.setattr(translators, "score", score)
    config = translator.Config(beam_size=4, length_penalties=(0.0, 0.5, 1.0))
    assert translator.best_length_penalty(None, None, config) == (0.5, {"0.0": 1.0, "0.5": 3.0, "1.0": 2.0})
    assert asked == [("val", 4, 0.0), ("val", 4, 0.5), ("val", 4, 1.0)]
    assert translator.best_length_penalty(None, None, translator.Config()) == (0.6, {}) and len(asked) == 3


@pytest.mark.train
def test_the_mean_of_the_last_epochs_survives_a_cut(tmp_path, monkeypatch):
    small = replace(translator.PRESETS["smoke"], max_epochs=3, max_steps=None, averaged=2, val_sentences=4)
    monkeypatch.setitem(translator.PRESETS, "smoke", small)
    monkeypatch.setattr(translators, "samples", lambda *_: [])
    whole = runner.execute(translator, "smoke", "cpu")
    means, load_mean = [], translators.LastEpochs.load_mean

    def counted(self, epochs):
        means.append(list(epochs))
        load_mean(self, epochs)

    monkeypatch.setattr(translators.LastEpochs, "load_mean", counted)
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
