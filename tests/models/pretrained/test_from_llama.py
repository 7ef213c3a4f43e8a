"""Today's block with weights of transformers' Llama, random ones: the same scores, gradients and texts."""

import copy
import json

import pytest
import torch
from random_weights import tiny_llama

from d2lmini.models.pretrained import from_transformers, load_transformers_llama

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # theirs makes the angles of positions in float32


def from_folder(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    return from_transformers(tmp_path)


@pytest.mark.parametrize("groups", [6, 2, 1])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_and_gradients_in_float64(groups, tied, tmp_path):
    theirs = tiny_llama(groups, tied)
    model, theirs = from_folder(theirs, tmp_path).double(), theirs.double()
    tokens = torch.randint(37, (3, 11))
    torch.testing.assert_close(model(tokens), theirs(tokens).logits, **CLOSE)
    for logits in (model, lambda x: theirs(x).logits):
        model.loss(logits(tokens[:, :-1]), tokens[:, 1:]).backward()
    layer, block = theirs.model.layers[1], model.blks[1]
    torch.testing.assert_close(model.embedding.weight.grad, theirs.model.embed_tokens.weight.grad, **CLOSE)
    torch.testing.assert_close(block.attention.W_v.weight.grad, layer.self_attn.v_proj.weight.grad, **CLOSE)
    torch.testing.assert_close(block.ffn.gate.weight.grad, layer.mlp.gate_proj.weight.grad, **CLOSE)
    torch.testing.assert_close(block.addnorm2.ln.weight.grad, layer.post_attention_layernorm.weight.grad, **CLOSE)


@torch.no_grad()
def test_generates_the_same_cached_and_left_padded(tmp_path):
    theirs = tiny_llama()
    model = from_folder(theirs, tmp_path).double()
    theirs = theirs.double()
    prompts, mask = torch.randint(1, 37, (3, 6)), torch.ones(3, 6, dtype=torch.long)
    padding = torch.tensor([0, 2, 5])
    mask[torch.arange(6) < padding[:, None]] = 0
    wanted = theirs.generate(
        prompts, attention_mask=mask, do_sample=False, max_new_tokens=20, pad_token_id=0, eos_token_id=None
    )
    logits, state = model.extend(prompts, model.empty_state(3, padding))
    assert state.caches[0].keys.shape == (3, 2, 6, 10)  # two groups of keys, not six heads
    found = [prompts, logits[:, -1:].argmax(-1)]
    while len(found) < 21:
        logits, state = model.step(found[-1][:, 0], state)
        found.append(logits.argmax(-1, keepdim=True))
    assert torch.equal(torch.cat(found, 1), wanted)


def test_what_does_not_fit(tmp_path):
    theirs = tiny_llama()
    model = from_folder(theirs, tmp_path)
    before = copy.deepcopy(model.state_dict())
    weights = theirs.state_dict()
    short = {**weights, "model.layers.0.self_attn.k_proj.weight": torch.zeros(10, 24)}
    for wrong in (short, {k: v for k, v in weights.items() if "layers.2" not in k}, {}):
        with pytest.raises(ValueError, match="of the form of Llama"):
            load_transformers_llama(model, wrong)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    config = json.loads((tmp_path / "config.json").read_text())
    for key, value, message in (
        ("rope_parameters", {"rope_type": "llama3", "rope_theta": 500.0}, "rope_type 'llama3', expected 'default'"),
        ("hidden_act", "gelu", "hidden_act 'gelu', expected 'silu'"),
        ("num_key_value_heads", 4, "num_kv_heads is 4, expected a divisor of num_heads, 6"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | {key: value}))
        with pytest.raises(ValueError, match=message):
            from_transformers(tmp_path)
