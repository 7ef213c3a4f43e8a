"""Folders that hold no model of ours, or damaged files."""

import json

import pytest
import torch
from random_weights import tiny_gpt2, tiny_vit
from torch import nn

from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.models.pretrained import from_transformers
from d2lmini.models.pretrained.checkpoints import nothing_drawn


@pytest.fixture
def folder(tmp_path):
    tiny_gpt2().save_pretrained(tmp_path)
    return tmp_path


def change(folder, **settings):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "mamba"}, "of model_type 'mamba', expected 'vit' or 'swin' or 'gpt2'"),
        ({"activation_function": "silu"}, "activation_function 'silu', expected 'gelu_new' or 'gelu' or .* or 'relu'"),
    ],
)
def test_a_checkpoint_of_another_model(folder, changed, message):
    change(folder, **changed)
    with pytest.raises(ValueError, match=message):
        from_transformers(folder)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_embd": "21"}, "num_hiddens is '21', expected an integer"),
        ({"n_layer": None}, "num_blks is None, expected an integer"),
        ({"resid_pdrop": "0.1"}, r"dropout is '0.1', expected a number from 0 to 1"),
    ],
)
def test_settings_that_are_no_numbers(folder, changed, message):
    change(folder, **changed)
    with pytest.raises(ValueError, match=message):
        from_transformers(folder)


def test_a_configuration_that_is_a_list(folder):
    (folder / "config.json").write_text("[1, 2]")
    with pytest.raises(ValueError, match=r"config.json holds a list, expected settings by name"):
        from_transformers(folder)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden_act": "relu"}, "with hidden_act 'relu', expected 'gelu'"),
        ({"model_type": "swin", "use_absolute_embeddings": True}, "use_absolute_embeddings True, expected False"),
    ],
)
def test_settings_that_ours_does_not_have(tmp_path, changed, message):
    tiny_vit().save_pretrained(tmp_path)
    change(tmp_path, **changed)
    with pytest.raises(ValueError, match=message):
        from_transformers(tmp_path)


def test_files_that_are_damaged_or_missing(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"model.safetensors is damaged .*: fetch it again"):
        from_transformers(folder)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        from_transformers(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config.json is damaged"):
        from_transformers(folder)


def test_a_name_that_the_hub_does_not_have(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FileNotFoundError, match="there is no folder 'nobody/nothing', and the hub gives no model"):
        from_transformers("nobody/nothing")


def test_what_comes_from_a_file_is_not_drawn_and_drawing_comes_back():
    before = torch.random.get_rng_state()
    with pytest.raises(RuntimeError, match="inside"), nothing_drawn():
        GPT(GPT_CONFIGS["toy"])
        assert torch.equal(torch.random.get_rng_state(), before)
        raise RuntimeError("inside")
    assert nn.Linear(3, 4).weight.std() > 0 and not torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"has no model\.safetensors, in which the weights are expected, all of them$"),
        (["pytorch_model.bin"], r"has no model\.safetensors, .*, but pytorch_model\.bin: load it by transformers"),
        (
            [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)],
            r"but model-00001-of-00002\.safetensors, model-00002-of-00002\.safetensors: .* max_shard_size",
        ),
        (["tf_model.h5", "flax_model.msgpack"], r"but flax_model\.msgpack, tf_model\.h5"),
    ],
)
def test_weights_in_other_files_are_told(folder, names, message):
    (folder / "model.safetensors").unlink()
    for name in names:
        (folder / name).write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=message):
        from_transformers(folder)
