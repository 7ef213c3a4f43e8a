"""Models with weights of Hugging Face's, random ones: the same scores and gradients."""

import copy
import importlib.util
import json

import pytest
import torch
from torch import nn

from d2lmini.models.gpt import GPT
from d2lmini.models.pretrained import (
    _SWIN,
    _renamed,
    from_transformers,
    load_transformers_gpt2,
    load_transformers_swin,
    load_transformers_vit,
)
from d2lmini.models.swin import Swin, SwinConfig
from d2lmini.models.vit import ViT

if importlib.util.find_spec("transformers") is None:
    pytest.skip(
        "TRANSFORMERS TESTS SKIPPED: pip install transformers, as requirements.txt has it", allow_module_level=True
    )

IMAGES = torch.rand(5, 3, 12, 12, generator=torch.Generator().manual_seed(0))


def at_random(model):
    torch.manual_seed(1)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)  # biases and positions too, which start at 0
    return model.eval()


@pytest.fixture(scope="module")
def theirs():
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    config = ViTConfig(**sizes, image_size=12, patch_size=4, num_channels=3, num_labels=7, layer_norm_eps=1e-3)
    return at_random(ViTForImageClassification(config))


@pytest.fixture
def make():
    def make(img_size=12, **options):
        options = {"use_bias": True, "num_classes": 7, "num_channels": 3, **options}
        return ViT(img_size, 4, 24, 40, 3, 2, 0.1, 0.1, **options)

    return make


def test_weights_of_a_model_in_memory(theirs, make):
    model = load_transformers_vit(make(num_channels=None), theirs.state_dict(), layer_norm_eps=1e-3).eval()
    torch.testing.assert_close(model(IMAGES), theirs(pixel_values=IMAGES).logits)


def test_a_checkpoint_folder_and_another_resolution(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    model = from_transformers(tmp_path)
    torch.testing.assert_close(model(IMAGES), theirs(pixel_values=IMAGES).logits)
    large = torch.rand(2, 3, 20, 24)
    expected = theirs(pixel_values=large, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(model.resize((20, 24))(large), expected)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "bert"}, "of model_type 'bert', expected 'vit' or 'swin' or 'gpt2'"),
        ({"hidden_act": "relu"}, "with hidden_act 'relu', expected 'gelu'"),
        ({"model_type": "swin", "use_absolute_embeddings": True}, "use_absolute_embeddings True, expected False"),
    ],
)
def test_a_checkpoint_of_another_model(theirs, tmp_path, changed, message):
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changed))
    with pytest.raises(ValueError, match=message):
        from_transformers(tmp_path)


def test_an_encoder_without_a_classifier(theirs, tmp_path):
    theirs.vit.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"has no classifier.bias: expected a model ...ForImageClassification"):
        from_transformers(tmp_path)


@pytest.mark.parametrize("options", [{"use_bias": False}, {"pooling": "mean"}, {"img_size": 16}, {"num_classes": 8}])
def test_weights_that_do_not_fit(theirs, make, options):
    model = make(**options)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"use_bias=True.*another shape: .*(blks|cls_token|pos_embedding|head)"):
        load_transformers_vit(model, theirs.state_dict())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_projections_without_a_bias(make, tmp_path):
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    theirs = at_random(ViTForImageClassification(ViTConfig(**sizes, image_size=12, patch_size=4, qkv_bias=False)))
    theirs.save_pretrained(tmp_path)
    model = from_transformers(tmp_path)
    torch.testing.assert_close(model(IMAGES), theirs(pixel_values=IMAGES).logits)
    assert model.num_parameters == theirs.num_parameters()
    attention = model.blks[1].attention
    assert attention.W_q.bias is attention.W_k.bias is attention.W_v.bias is None and attention.W_o.bias is not None


# ---- Swin


@pytest.fixture
def their_swin():
    """Makes one of three stages: 16 x 32 patches, 8 x 16 and 4 x 8, where there is nothing left to shift."""
    from transformers import SwinConfig, SwinForImageClassification

    def make(**options):
        sizes = {"embed_dim": 8, "depths": (2, 3, 2), "num_heads": (2, 4, 4), "window_size": 4, "mlp_ratio": 1.5}
        config = SwinConfig(**sizes, image_size=(32, 64), patch_size=2, num_channels=3, num_labels=5, **options)
        return at_random(SwinForImageClassification(config))

    return make


LARGE = torch.rand(2, 3, 32, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("options", [{}, {"qkv_bias": False, "layer_norm_eps": 1e-2}])
def test_a_swin_in_float64_with_its_gradients(their_swin, tmp_path, options):
    theirs = their_swin(**options)
    theirs.save_pretrained(tmp_path)
    theirs, model = theirs.double(), from_transformers(tmp_path).double()
    assert [len(stage) for stage in model.stages] == [2, 3, 2]
    inputs, found = [LARGE.clone().requires_grad_() for _ in range(2)], []
    for network, X in zip((theirs, model), inputs, strict=True):
        scores = network(X)
        scores = getattr(scores, "logits", scores)
        scores.square().sum().backward()
        found.append(scores)
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(inputs[1].grad, inputs[0].grad)
    ours = dict(model.named_parameters())
    assert len(ours) == len(list(theirs.parameters()))
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(ours[_renamed(name, _SWIN)].grad, parameter.grad)
    hidden = theirs.swin(LARGE).last_hidden_state
    torch.testing.assert_close(model.norm(model.features(LARGE)[-1]).flatten(1, 2), hidden)


def test_a_swin_in_memory_and_from_an_older_file(their_swin):
    theirs = their_swin()
    sizes = {"img_size": (32, 64), "num_hiddens": 8, "num_blks": (2, 3, 2), "num_heads": (2, 4, 4), "window_size": 4}
    config = SwinConfig(**sizes, mlp_ratio=1.5, num_channels=3, num_classes=5)
    older = {"swin.encoder.layers.0.blocks.0.attention.self.relative_position_index": torch.zeros(16, 16)}
    model = load_transformers_swin(Swin(config), theirs.state_dict() | older).eval()
    torch.testing.assert_close(model(LARGE.float()), theirs(LARGE.float()).logits)
    with pytest.raises(ValueError, match=r"expected a Swin of the same sizes. Missing.*head.weight"):
        load_transformers_swin(Swin(SwinConfig(**sizes, mlp_ratio=1.5, num_channels=3)), theirs.state_dict())


@pytest.fixture(scope="module")
def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 37, "n_positions": 32, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_inner": 40}
    return at_random(GPT2LMHeadModel(GPT2Config(**sizes, layer_norm_epsilon=1e-3)))


def from_folder(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    return GPT.from_pretrained(tmp_path)


def test_gpt2_logits_and_gradients(gpt2, tmp_path):
    model = from_folder(gpt2, tmp_path).double()
    tokens = torch.randint(37, (3, 11))
    theirs = copy.deepcopy(gpt2).double()
    losses = [model.loss(logits(tokens[:, :-1]), tokens[:, 1:]) for logits in (model, lambda x: theirs(x).logits)]
    torch.testing.assert_close(model(tokens), theirs(tokens).logits)
    torch.testing.assert_close(*losses)
    for loss in losses:
        loss.backward()
    wte, c_attn = theirs.transformer.wte.weight, theirs.transformer.h[1].attn.c_attn.weight
    torch.testing.assert_close(model.embedding.weight.grad, wte.grad)
    ours = [getattr(model.blks[1].attention, name).weight.grad.T for name in ("W_q", "W_k", "W_v")]
    torch.testing.assert_close(torch.cat(ours, 1), c_attn.grad)


@torch.no_grad()
def test_gpt2_generates_the_same_cached_and_left_padded(gpt2, tmp_path):
    model = from_folder(gpt2, tmp_path)
    prompts, mask = torch.randint(1, 37, (3, 6)), torch.ones(3, 6, dtype=torch.long)
    padding = torch.tensor([0, 2, 5])
    mask[torch.arange(6) < padding[:, None]] = 0
    wanted = gpt2.generate(
        prompts, attention_mask=mask, do_sample=False, max_new_tokens=20, pad_token_id=0, eos_token_id=None
    )
    logits, state = model.extend(prompts, model.empty_state(3, padding))
    found = [prompts, logits[:, -1:].argmax(-1)]
    while len(found) < 21:
        logits, state = model.step(found[-1][:, 0], state)
        found.append(logits.argmax(-1, keepdim=True))
    assert torch.equal(torch.cat(found, 1), wanted)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    theirs = gpt2(prompts, attention_mask=mask, position_ids=positions).logits
    real = mask.bool()
    torch.testing.assert_close(model(prompts, padding)[real], theirs[real])


def test_gpt2_as_it_is_published(gpt2, tmp_path):
    """The files of the hub: no prefix, no last layer, masks as buffers."""
    from safetensors.torch import save_file

    gpt2.save_pretrained(tmp_path)
    weights = {name.removeprefix("transformer."): t.clone() for name, t in gpt2.transformer.state_dict().items()}
    weights["h.0.attn.bias"] = torch.ones(1, 1, 32, 32).tril()
    save_file(weights, tmp_path / "model.safetensors")
    tokens = torch.randint(37, (2, 9))
    torch.testing.assert_close(GPT.from_pretrained(tmp_path)(tokens), gpt2(tokens).logits)


def test_bad_gpt2_checkpoints(gpt2, theirs, tmp_path, monkeypatch):
    model = from_folder(gpt2, tmp_path)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    weights = gpt2.state_dict()
    short = weights | {"transformer.wte.weight": torch.zeros(36, 24)}
    for wrong in (
        short,
        {k: v for k, v in weights.items() if ".ln_1.bias" not in k},
        {**weights, "more": torch.ones(1)},
    ):
        with pytest.raises(ValueError, match="do not fit: expected a GPT of the same sizes"):
            load_transformers_gpt2(model, wrong)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"activation_function": "silu"}))
    with pytest.raises(ValueError, match="activation_function 'silu', expected 'gelu_new' or 'gelu' or 'relu'"):
        GPT.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config))
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"model.safetensors is damaged .*: fetch it again"):
        GPT.from_pretrained(tmp_path)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        GPT.from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config.json is damaged"):
        GPT.from_pretrained(tmp_path)
    theirs.save_pretrained(tmp_path / "vit")
    with pytest.raises(ValueError, match="is a checkpoint of a ViT, expected a GPT-2"):
        GPT.from_pretrained(tmp_path / "vit")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FileNotFoundError, match="there is no folder 'nobody/nothing', and the hub gives no model"):
        GPT.from_pretrained("nobody/nothing")
