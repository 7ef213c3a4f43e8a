"""A GPT with weights of transformers', random ones: the same scores, gradients and texts."""

import copy

import pytest
import torch
from random_weights import tiny_gpt2

from d2lmini.models.pretrained import from_transformers, load_transformers_gpt2


@pytest.fixture(scope="module")
def gpt2():
    return tiny_gpt2()


def from_folder(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    return from_transformers(tmp_path)


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
    torch.testing.assert_close(from_transformers(tmp_path)(tokens), gpt2(tokens).logits)


def test_weights_that_do_not_fit(gpt2, tmp_path):
    model = from_folder(gpt2, tmp_path)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    weights = gpt2.state_dict()
    short = weights | {"transformer.wte.weight": torch.zeros(36, 24)}
    for wrong in (
        short,
        {k: v for k, v in weights.items() if ".ln_1.bias" not in k},
        {**weights, "more": torch.ones(1)},
        {},
    ):
        with pytest.raises(ValueError, match="do not fit: expected a GPT of the same sizes"):
            load_transformers_gpt2(model, wrong)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
