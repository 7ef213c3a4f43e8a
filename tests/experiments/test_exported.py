"""A run of each kind of model, at its smoke preset, is exported and comes back."""

import dataclasses
import json

import pytest
import torch

from d2lmini import experiments, results
from d2lmini.experiments import exported
from d2lmini.lab import runner
from d2lmini.lab.export import export
from d2lmini.models.weights import files
from d2lmini.models.weights.trained import MODELS, trained
from d2lmini.training import CheckpointError

INPUTS = {
    "Transformer": lambda model: (torch.tensor([[4, 5, 6]]), torch.tensor([[1, 5, 6]]), torch.tensor([3])),
    "ViT": lambda model: (torch.rand(2, 1, 28, 28),),
    "ImageGPT": lambda model: (torch.randint(4, (2, 7, 7)),),
    "GPT": lambda model: (torch.randint(40, (2, 9)),),
    "BERTForPretraining": lambda model: (torch.randint(5, 100, (2, 9)),),
}
KINDS = [
    "translator_grammar",
    "vit_fashion",
    "image_gpt_fashion",
    "gpt_shakespeare",
    "bert_wikitext",
    "causal_wikitext",
]


def smoke(name):
    return dataclasses.replace(exported.find(name), preset="smoke")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Function of an experiment: the folder of its smoke run, and its record; run once."""
    made = {}

    def run(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            record = runner.run(experiments.find(name), "smoke", "cpu", folder, folder / "kept")
            made[name] = folder / "kept", record
        return made[name]

    return run


@pytest.mark.train
@pytest.mark.parametrize("name", KINDS)
def test_a_run_is_exported_and_comes_back(name, runs, tmp_path):
    what = smoke(name)
    folder, record = runs(what.experiment)
    path, costs = export(what, experiments.find(what.experiment), folder, tmp_path, record)
    assert path == files.path_of(name, tmp_path) and costs["bytes"] == path.stat().st_size
    metrics = json.loads(record.read_text(encoding="utf-8"))["metrics"]
    model = trained(name, tmp_path)
    assert model.trained.headline == metrics["headline"] and model.trained.preset == "smoke"
    source = what.read(experiments.find(what.experiment).PRESETS["smoke"], folder, json.loads(record.read_text()))
    assert costs["before"][costs["metric"]] == pytest.approx(source.recorded, abs=2e-2)
    original = MODELS[what.model](**source.config).eval()
    original.load_state_dict(source.tensors, strict=False)
    inputs = INPUTS[what.model](model)
    with torch.no_grad():
        given, expected = model(*inputs), original(*inputs)
    given, expected = (x[0] if isinstance(x, tuple) else x for x in (given, expected))
    torch.testing.assert_close(given, expected, rtol=0.05, atol=0.05)
    assert not given.equal(expected)
    assert costs["kind"] == ("int8" if costs["lost_points"]["int8"] <= 0.2 else "float16")  # few windows: either


@pytest.mark.train
def test_the_mean_of_the_last_epochs_is_exported(tmp_path):
    """As of `laptop`: averaged epochs, beam search, a length penalty chosen on the validation split."""
    experiment = experiments.find("translation_transformer")
    small = {"max_steps": None, "averaged": 2, "max_epochs": 3, "beam_size": 2, "length_penalties": (0.0, 1.0)}
    config = dataclasses.replace(experiment.PRESETS["smoke"], **small)

    class Changed:
        __name__, PRESETS, run = experiment.__name__, {"smoke": config}, staticmethod(experiment.run)

    record = runner.run(Changed(), "smoke", "cpu", tmp_path, tmp_path / "kept")
    what = smoke("translator_grammar")
    export(what, Changed(), tmp_path / "kept", tmp_path, record)
    assert trained("translator_grammar", tmp_path).trained.extra["beam_size"] == 2
    epochs = [torch.load(tmp_path / f"kept/training.epochs/{i}.pt", weights_only=True) for i in (1, 2)]
    name = "encoder.blks.0.ffn.dense1.bias"
    mean = (epochs[0][name] + epochs[1][name]) / 2
    torch.testing.assert_close(files.read(files.path_of("translator_grammar", tmp_path)).tensors[name], mean)
    (tmp_path / "kept/training.epochs/1.pt").unlink()
    with pytest.raises(CheckpointError, match=r"lacks 1\.pt, of which the model is the mean"):
        export(what, Changed(), tmp_path / "kept", tmp_path, record)


@pytest.mark.train
def test_a_run_that_is_not_finished(runs):
    what = smoke("vit_fashion")
    folder, record = runs(what.experiment)
    config, record = experiments.find(what.experiment).PRESETS["smoke"], json.loads(record.read_text())
    with pytest.raises(CheckpointError, match=r"is not finished: it has no seed-0\.json"):
        what.read(config, folder / "seed-0", record)
    (folder / "seed-0").rename(folder / "elsewhere")
    try:
        with pytest.raises(CheckpointError, match="there is no checkpoint in"):
            what.read(config, folder, record)
    finally:
        (folder / "elsewhere").rename(folder / "seed-0")


def test_each_export_is_of_a_preset_that_there_is():
    assert list(exported.EXPORTS) == [
        *("translator_grammar", "translator_tatoeba", "vit_fashion", "image_gpt_fashion", "gpt_shakespeare"),
        *("bert_wikitext", "causal_wikitext"),
    ]
    for what in exported.EXPORTS.values():
        assert what.model in MODELS and what.metric in ("points", "nats", "bits")
        assert what.preset in experiments.find(what.experiment).PRESETS
    assert set(files.names()) <= exported.EXPORTS.keys()
    assert results.config_matches(
        results.load("translation_transformer", "cpu"), experiments.find("translation_transformer").PRESETS["cpu"]
    )


def test_an_unknown_name():
    with pytest.raises(ValueError, match="there is no model 'gpt5' to export, only translator_grammar, "):
        exported.find("gpt5")
    with pytest.raises(ValueError, match="no contestant 'causal', only masked"):
        config = dataclasses.replace(experiments.find("bert_pretrain").PRESETS["smoke"], contestants=("masked",))
        exported.find("causal_wikitext").read(config, None, None)
