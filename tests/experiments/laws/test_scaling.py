"""The experiment on scaling: its sizes, its sweep, and that the prediction is finished before its run begins."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from d2lmini.experiments import scaling
from d2lmini.experiments.gpt import language
from d2lmini.experiments.laws.scaling import PRESETS, Size
from d2lmini.lab.parts import Parts
from d2lmini.scaling import matrix_parameters


def test_sizes_are_about_twice_the_one_before():
    config = PRESETS["laptop"]
    sizes = [matrix_parameters(scaling._model(config, size)) for size in (*config.sizes, config.held_back)]
    assert all(1.8 < b / a < 2.3 for a, b in pairwise(sizes))
    assert len(config.sizes) * len(config.all_steps) >= 12
    for preset in PRESETS.values():
        scaling.check(preset)


def test_a_run_that_is_not_larger_is_none_to_predict():
    config = PRESETS["smoke"]
    for wrong in ({"held_back": config.sizes[-1]}, {"held_back_steps": config.all_steps[-1]}):
        with pytest.raises(ValueError, match="expected more parameters and more steps"):
            scaling.run(replace(config, **wrong), torch.device("cpu"))
    with pytest.raises(ValueError, match="steps, of the sweep, is 5"):
        scaling.run(replace(config, steps=5), torch.device("cpu"))


def test_the_best_rate_is_of_those_that_did_not_diverge():
    runs = [{"rate_factor": f, "loss": loss} for f, loss in ((1.0, 3.0), (2.0, 2.5), (4.0, None))]
    assert scaling.best_factor(runs) == 2.0
    with pytest.raises(ValueError, match="all 1 runs of the sweep diverged"):
        scaling.best_factor(runs[2:])


def test_what_is_predicted_is_what_is_trained():
    config = PRESETS["smoke"]
    at = scaling._held_back(config)
    model = language.Learner(replace(config, model=scaling._model(config, config.held_back)))
    assert at["parameters"]["all"] == sum(p.numel() for p in model.parameters())
    assert at["parameters"]["blocks"] == sum(p.numel() for part in (model.blks, model.norm) for p in part.parameters())
    assert at["parameters"]["matrices"] == sum(
        p.numel() for p in [*model.blks.parameters(), model.dense.weight] if p.dim() > 1
    )
    assert at["tokens"] == config.held_back_steps * config.batch_size * config.model.max_len


@pytest.mark.train
def test_the_prediction_is_finished_first(tmp_path, monkeypatch, capsys):
    """When the held-back run begins the prediction is in its file, and is what the record tells."""
    config, true_learn, at_start = PRESETS["smoke"], scaling.learn, []

    def learn(config, size, *args):
        if size == config.held_back:
            at_start.append(json.loads((tmp_path / "prediction.json").read_text())["result"])
        else:
            assert not (tmp_path / "prediction.json").exists()
        return true_learn(config, size, *args)

    monkeypatch.setattr(scaling, "learn", learn)
    found = scaling.run(config, torch.device("cpu"), Parts(tmp_path))
    metrics = found["metrics"]
    assert at_start == [metrics["prediction"]]
    assert metrics["prediction"]["at"]["parameters"] == metrics["held_back"]["parameters"]
    assert metrics["prediction"]["at"]["flops"] == metrics["held_back"]["flops"]
    grid = {(run["size"], run["steps"]) for run in metrics["runs"]}
    assert len(grid) == len(metrics["runs"]) == len(config.sizes) * len(config.all_steps)
    assert all(run["rate_factor"] == metrics["factors"][run["size"]] for run in metrics["runs"])
    printed = capsys.readouterr().out
    assert -1 < printed.index("prediction: ") < printed.index("held back: ")
    assert metrics["outcome"]["joint"]["error"] == pytest.approx(
        metrics["prediction"]["losses"]["joint"]["loss"] / metrics["held_back"]["loss"] - 1
    )


def test_another_vocabulary_is_another_model():
    config = replace(PRESETS["smoke"], vocab_size=10**6, sizes=(Size(8, 1, 1),))
    with pytest.raises(ValueError, match="expected vocab_size 1000000"):
        scaling.run(config, torch.device("cpu"))


@pytest.mark.train
def test_a_run_that_diverged_has_no_loss_and_stops_no_other(capsys):
    config = PRESETS["smoke"]
    tokenizer = range(config.vocab_size)
    ids = [torch.arange(2_000) % config.vocab_size] * 2
    arguments = (config.sizes[0], 8, 1e30, tokenizer, ids, torch.device("cpu"), 0, Parts(), "too fast")
    run = scaling.learn(config, *arguments)
    assert run["loss"] is None and run["train_s"] is None and "too fast: " in capsys.readouterr().out
    calm = scaling.learn(config, arguments[0], 8, 1.0, *arguments[3:])
    assert calm["loss"] > 0 and calm["train_s"] > 0
    assert {key: run[key] for key in ("parameters", "flops", "tokens", "size")} == {
        key: calm[key] for key in ("parameters", "flops", "tokens", "size")
    }
    assert scaling.best_factor([run, calm]) == 1.0
