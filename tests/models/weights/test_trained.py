"""Trained models by name: they are those of their files, and the files are those of their records."""

import dataclasses
import hashlib
import json
import socket

import pytest
import torch

import d2lmini as d2l
from d2lmini import experiments, results
from d2lmini.models.bert_config import BERTConfig
from d2lmini.models.weights import files
from d2lmini.models.weights.rounding import rounded
from d2lmini.models.weights.trained import MODELS, TrainedRun, assemble, trained
from d2lmini.tokenization.characters import CharacterTokenizer

NAMES = files.names()
RUN = {"experiment": "toy", "preset": "cpu", "headline": "it is good", "commit": "abc", "command": "python"}
BERT = BERTConfig(20, 8, 8, 2, 2, use_pooler=False, dropout=0.5)
CONFIGS = {
    "Transformer": {**dataclasses.asdict(d2l.TransformerConfig(12, 8, 16, 2, 2)), "pad": 0},
    "ViT": {
        **{"img_size": 4, "patch_size": 2, "num_hiddens": 8, "mlp_num_hiddens": 8, "num_heads": 2, "num_blks": 2},
        **{"emb_dropout": 0.5, "blk_dropout": 0.5, "use_bias": True, "num_channels": 1},
    },
    "ImageGPT": dataclasses.asdict(d2l.ImageGPTConfig(4, 3, 8, 16, 2, 2, 0.5)),
    "GPT": dataclasses.asdict(d2l.GPTConfig(3, 8, 8, 2, 2)),
    "BERTForPretraining": dataclasses.asdict(BERT),
}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def write(folder, kind="GPT", config=None, tensors=None, **changes):
    config = CONFIGS[kind] if config is None else config
    if tensors is None:
        tensors = dict(MODELS[kind](**config).named_parameters())
    said = {"name": "toy", "model": kind, "config": config, "tokenizer": None, "extra": {"causal": True}}
    said |= {"run": RUN, "rounding": {"kind": "int8"}} | changes
    files.write(files.path_of("toy", folder), rounded(tensors, "float16"), said)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_of_each_kind_comes_back(kind, tmp_path):
    model = MODELS[kind](**CONFIGS[kind])
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    write(tmp_path, kind, tensors=dict(model.named_parameters()))
    state = torch.get_rng_state()
    again = trained("toy", tmp_path)
    assert torch.get_rng_state().equal(state), "a reader's random numbers do not depend on it"
    assert type(again) is type(model) and not again.training
    assert again.state_dict().keys() == model.state_dict().keys()
    assert all(tensor.equal(again.state_dict()[name]) for name, tensor in model.state_dict().items())
    assert {parameter.dtype for parameter in again.parameters()} == {torch.float32}
    assert len(list(again.parameters())) == len(list(model.parameters())), "what was tied is tied"
    assert again.trained == TrainedRun("toy", **RUN, rounding={"kind": "int8"}, extra={"causal": True})
    assert str(again.trained) == "toy, preset cpu: it is good" and not hasattr(again, "tokenizer")


def test_the_tokenizer_comes_along(tmp_path):
    write(tmp_path, tokenizer={"kind": "characters", "tokens": CharacterTokenizer("cab").idx_to_token})
    assert trained("toy", tmp_path).tokenizer.encode("abc") == [0, 1, 2]


def test_an_unknown_name_is_answered_with_all_names(tmp_path):
    with pytest.raises(ValueError, match="there is no trained model 'no', only none at all"):
        trained("no", tmp_path)
    write(tmp_path)
    with pytest.raises(ValueError, match=r"there is no trained model 'no', only toy$"):
        trained("no", tmp_path)
    with pytest.raises(ValueError, match=f"no trained model 'no', only {', '.join(NAMES)}"):
        d2l.trained("no")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tensors": {"W": torch.ones(2)}}, "does not fit this package .*has other tensors: W, blks.0"),
        ({"config": CONFIGS["GPT"] | {"new": 1}, "tensors": {"W": torch.ones(2)}}, "does not fit this package .*'new'"),
        ({"run": {}}, "does not fit this package .*'experiment'"),
        ({"tokenizer": {"kind": "morse"}}, "does not fit this package .*'morse'"),
    ],
)
def test_what_does_not_fit(tmp_path, changes, message):
    write(tmp_path, **changes)
    with pytest.raises(files.WeightsError, match=message):
        trained("toy", tmp_path)


def test_a_class_that_is_not_here(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.delitem(MODELS, "GPT")
    with pytest.raises(files.WeightsError, match="holds a 'GPT', expected one of Transformer, ViT"):
        trained("toy", tmp_path)


def test_a_wrong_shape_is_named():
    tensors = dict(MODELS["GPT"](**CONFIGS["GPT"]).named_parameters())
    tensors["embedding.weight"] = torch.ones(3, 9)
    with pytest.raises(ValueError, match=r"embedding.weight is of shape \(3, 9\), expected \(3, 8\)"):
        assemble("GPT", CONFIGS["GPT"], tensors)


# ---- what ships with the package


def problems(path, folder=None):
    """What of a file is not that of its record and preset, as readable lines."""
    said = files.read(path).metadata
    run, faults = said["run"], []
    record_path = (folder or results.FOLDER) / f"{run['experiment']}.{run['preset']}.json"
    if not record_path.exists():
        return [f"{record_path.name} is missing"]
    content = record_path.read_bytes()
    record = json.loads(content)
    if hashlib.sha256(content).hexdigest() != run["record_sha256"]:
        faults.append("the record's checksum is another")
    for key, value in (
        ("config", record["config"]),
        ("command", record["command"]),
        ("headline", record["metrics"]["headline"]),
        ("commit", record["source"]["commit"]),
    ):
        if run[key] != value:
            faults.append(f"the record's {key} is another")
    if not results.config_matches(
        {"config": run["config"]}, experiments.find(run["experiment"]).PRESETS[run["preset"]]
    ):
        faults.append("the preset's configuration is another")
    return faults


@pytest.mark.parametrize("name", NAMES)
def test_weights_and_record_are_of_one_run(name):
    assert problems(files.path_of(name)) == [], f"python -m d2lmini export {name} --checkpoint FOLDER"


def test_it_is_seen_when_they_part(tmp_path):
    path = files.path_of("translator_grammar")
    record = results.load("translation_transformer", "cpu")
    assert problems(path, tmp_path) == ["translation_transformer.cpu.json is missing"]
    for change, fault in (
        ({"date": "2000"}, []),
        ({"config": record["config"] | {"lr": 1.0}}, ["the record's config is another"]),
        ({"metrics": {"headline": "better"}}, ["the record's headline is another"]),
        ({"source": {"commit": "b"}}, ["the record's commit is another"]),
    ):
        (tmp_path / "translation_transformer.cpu.json").write_text(json.dumps(record | change), encoding="utf-8")
        assert problems(path, tmp_path) == ["the record's checksum is another", *fault]


def test_it_is_seen_when_the_preset_changes(monkeypatch):
    presets = experiments.find("translation_transformer").PRESETS
    monkeypatch.setitem(presets, "cpu", dataclasses.replace(presets["cpu"], num_blks=7))
    assert problems(files.path_of("translator_grammar")) == ["the preset's configuration is another"]


@pytest.mark.parametrize("name", NAMES)
def test_each_one_is_whole_and_small(name):
    path = files.path_of(name)
    said = files.read(path).metadata
    assert said["name"] == name and path.stat().st_size <= 4_000_000
    model = d2l.trained(name)
    assert type(model).__name__ == said["model"]
    assert hasattr(model, "tokenizer") == (said["model"] not in ("ViT", "ImageGPT"))


def test_all_together_are_small():
    assert sum(files.path_of(name).stat().st_size for name in NAMES) <= 15_000_000


def test_the_costs_of_rounding_are_those_of_the_files():
    costs = json.loads((results.FOLDER / "live_rounding.json").read_text(encoding="utf-8"))
    assert sorted(costs) == NAMES
    for name, cost in costs.items():
        said, metric = files.read(files.path_of(name)).metadata, cost["metric"]
        assert said["rounding"] == {
            **{"kind": cost["kind"], "metric": metric},
            **{"before": cost["before"][metric], "after": cost["after"][metric]},
        }
        assert cost["lost_points"][cost["kind"]] <= 0.2 and cost["bytes"] == files.path_of(name).stat().st_size
        assert {key: cost[key] for key in ("experiment", "preset", "commit")}.items() <= said["run"].items()


def test_the_grammars_translator_translates():
    model = d2l.trained("translator_grammar")
    ids = [*model.tokenizer.encode_batch(["the small cat sees the dog ."])[0], model.tokenizer["<eos>"]]
    begin, end = model.tokenizer["<bos>"], model.tokenizer["<eos>"]
    tokens = model.translate(torch.tensor([ids]), torch.tensor([len(ids)]), begin, end, 20).tokens[0].tolist()
    text = model.tokenizer.decode(tokens[: tokens.index(end)])
    assert "chat" in text and "chien" in text
