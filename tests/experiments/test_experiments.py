"""Experiments: each has the form of one, its smoke preset runs, and the record survives a round trip."""

import dataclasses
import json
import re
import sys

import pytest
import torch
from conftest import ROOT
from torch.nn import functional as F

from d2lmini import experiments, results
from d2lmini.__main__ import main
from d2lmini.experiments import _translation
from d2lmini.experiments import pooling_fashion_mnist as pooled
from d2lmini.experiments import translation_transformer as translator
from d2lmini.lab import records, runner
from d2lmini.pooling import GaussianKernel, nadaraya_watson


@pytest.mark.train
@pytest.mark.parametrize("name", experiments.names())
def test_smoke_preset_and_round_trip(name, tmp_path):
    path = runner.run(experiments.find(name), "smoke", device="cpu", out=tmp_path)
    assert path == tmp_path / f"{name}.smoke.json" and list(tmp_path.iterdir()) == [path]
    record = json.loads(path.read_text(encoding="utf-8"))
    assert results.problems(record) == []
    assert results.config_matches(record, experiments.find(name).PRESETS["smoke"])
    assert records.dump(record) == path.read_text(encoding="utf-8")
    assert record["wall_s"] < 60


@pytest.mark.parametrize("name", experiments.names())
def test_form(name):
    module = experiments.find(name)
    presets, recorded = set(module.PRESETS), {preset for other, preset in results.recorded() if other == name}
    assert {"smoke", "cpu", "laptop"} <= presets and module.__doc__
    assert presets - {"smoke", "cpu", "laptop", "full"} <= recorded  # any other is there for its record
    for config in module.PRESETS.values():
        assert isinstance(config, module.Config) and config.seeds
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.seeds = ()


def test_every_laptop_preset_is_recorded_or_waits_for_a_reason():
    recorded = {name for name, preset in results.recorded() if preset == "laptop"}
    assert results.WAITING.keys() == set(experiments.names()) - recorded
    assert all(results.WAITING.values())


@pytest.mark.parametrize("option", ["preset", "device", "out", "checkpoint"])
def test_options_without_a_name_are_refused(option, capsys):
    assert main(["run", f"--{option}", "smoke"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--{option} without the name of an experiment, expected one of associative_recall" in line


def test_the_length_penalty_is_chosen_on_the_validation_split(monkeypatch):
    asked = []

    def score(model, data, split, beam_size, penalty):
        asked.append((split, beam_size, penalty))
        return {"bleu": {0.0: 1.0, 0.5: 3.0, 1.0: 2.0}[penalty]}, []

    monkeypatch.setattr(_translation, "score", score)
    config = translator.Config(beam_size=4, length_penalties=(0.0, 0.5, 1.0))
    assert translator.best_length_penalty(None, None, config) == (0.5, {"0.0": 1.0, "0.5": 3.0, "1.0": 2.0})
    assert asked == [("val", 4, 0.0), ("val", 4, 0.5), ("val", 4, 1.0)]
    assert translator.best_length_penalty(None, None, translator.Config()) == (0.6, {}) and len(asked) == 3


def test_unknown_names():
    with pytest.raises(ValueError, match="no experiment 'poling_fashion_mnist', only"):
        experiments.find("poling_fashion_mnist")


# ---- attention pooling over Fashion-MNIST


@pytest.fixture
def stored():
    generator = torch.Generator().manual_seed(0)
    keys = torch.randn(40, 6, generator=generator)
    return keys, torch.randint(10, (40,), generator=generator), torch.randn(700, 6, generator=generator)


def test_pooled_classes_is_nadaraya_watson(stored):
    keys, labels, queries = stored
    got = pooled.pooled_classes(queries, keys, labels, 0.7)
    expected, _ = nadaraya_watson(keys, F.one_hot(labels, 10).float(), queries, GaussianKernel(0.7))
    torch.testing.assert_close(got, expected)


def test_leave_one_out_loss_is_what_a_loop_gives(stored):
    keys, labels, _ = (x[:12] for x in stored)
    labels = labels % 3
    labels[7] = 9  # alone in its class: cannot be predicted, does not count
    losses = []
    for i in range(8):  # the first eight are queries
        others = [j for j in range(12) if j != i]
        weights = torch.softmax(torch.stack([-((keys[i] - keys[j]) ** 2).sum() / 2 for j in others]), 0)
        right = sum(w for w, j in zip(weights, others, strict=True) if labels[j] == labels[i])
        if right:
            losses.append(-right.log())
    assert len(losses) == 7
    scores = pooled.gaussian_scores(keys[:8], keys).requires_grad_()
    loss = pooled.leave_one_out_loss(scores, labels)
    torch.testing.assert_close(loss, torch.stack(losses).mean())
    loss.backward()
    assert scores.grad.isfinite().all()


def test_learned_width_is_the_best(stored):
    keys, labels = 7 * stored[0], (stored[0][:, :2].sum(1) > 0).long()
    width, losses = pooled.learn_width(keys, labels, 40)
    assert losses[-1] < losses[0]

    def loss(width):
        return pooled.leave_one_out_loss(pooled.gaussian_scores(keys, keys) / width**2, labels)

    assert all(loss(width) <= loss(width * factor) for factor in (0.5, 0.9, 1.1, 2))


def test_oriented_gradients_see_edges():
    flat = torch.full((1, 28, 28), 200, dtype=torch.uint8)
    assert pooled.oriented_gradients(flat).abs().max() == 0
    edge = torch.zeros(1, 28, 28, dtype=torch.uint8)
    edge[:, :, 14:] = 255  # grows to the right: direction 0, the first bin
    votes = pooled.oriented_gradients(torch.cat([edge, edge.mT])).view(2, 9, 7, 7)
    assert votes[0].sum((1, 2)).argmax() == 0 and votes[0, :, :, :2].abs().max() == 0
    assert votes[0, 1:].abs().max() == 0
    assert set(votes[1].sum((1, 2)).topk(2).indices.tolist()) == {2, 3}  # a quarter turn is 2.25 bins
    assert pooled.oriented_gradients(edge).shape == (1, 441)


def test_projection_learns(stored):
    keys = stored[0].repeat(5, 1)
    noise = torch.randn(200, generator=torch.Generator().manual_seed(1))
    keys[:, 1] = 30 * noise  # a loud feature that says nothing
    labels = (keys[:, 0] > 0).long()
    config = dataclasses.replace(pooled.Config(), dim=3, lr=0.05, min_steps=60)
    torch.manual_seed(0)
    _, losses = pooled.learn_projection(keys, labels, config)
    assert sum(losses[-5:]) / 5 < 0.5 * sum(losses[:5]) / 5


def test_too_many_stored():
    config = dataclasses.replace(pooled.PRESETS["smoke"], stored=(5_000,))
    with pytest.raises(ValueError, match=r"5000 stored and 200 test images, .* \(shipped\) has 2000"):
        pooled.run(config, torch.device("cpu"))


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install 'd2lmini\[experiments\]'"):
        pooled.run(pooled.PRESETS["smoke"], torch.device("cpu"))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "troubleshooting.md", "lecturers.md"])
def test_commands_on_pages_name_presets_that_exist(page):
    commands = re.findall(r"d2lmini run (\w+) --preset (\w+)", (ROOT / page).read_text(encoding="utf-8"))
    for name, preset in commands:
        assert name == "name" or preset in experiments.find(name).PRESETS, f"{name} has no preset {preset!r}"
