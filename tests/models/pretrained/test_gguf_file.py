"""A GGUF file of Llama's form, made here by the gguf package from random weights: the same scores as transformers'."""

import numpy as np
import pytest
import torch

from d2lmini.models.pretrained.from_llama import with_neighbours
from d2lmini.models.pretrained.gguf_file import GGUF, gpt_config, load_gguf

gguf = pytest.importorskip("gguf", reason="THE GGUF PACKAGE IS NOT THERE TO WRITE A FILE")
PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def write(path, theirs, architecture="llama", leave_out=(), add=lambda writer: None):
    """A file as llama.cpp's converter writes one: rows of W_q and W_k turned for neighbours."""
    config, size = theirs.config, theirs.config.head_dim
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    add(writer)
    writer.add_token_list([f"t{i}" for i in range(config.vocab_size)])
    names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    for i in range(config.num_hidden_layers):
        names |= {f"model.layers.{i}.{theirs}.weight": f"blk.{i}.{ours}.weight" for theirs, ours in PARTS.items()}
    for theirs_name, name in names.items():
        tensor = theirs.state_dict()[theirs_name].float()
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            tensor = with_neighbours(tensor, size)
        if name not in leave_out:
            writer.add_tensor(name, tensor.numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def theirs():
    pytest.importorskip("transformers", reason="PEERS SKIPPED: transformers is not installed")
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=41, max_position_embeddings=64, hidden_size=64, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=4, intermediate_size=96, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@torch.no_grad()
def test_the_scores_are_transformers(theirs, tmp_path):
    file = GGUF(write(tmp_path / "m.gguf", theirs))
    assert file.kind("token_embd.weight") == "F32" and file.shape("blk.0.attn_k.weight") == (32, 64)
    model = load_gguf(file)
    assert model.config.num_kv_heads == 4 and model.config.norm_eps == 1e-5 and not model.training
    tokens = torch.randint(41, (2, 9))
    torch.testing.assert_close(model(tokens), theirs(tokens).logits, rtol=1e-4, atol=1e-5)


def test_bad_files(theirs, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        GGUF(tmp_path / "nothing.gguf")
    whole = write(tmp_path / "m.gguf", theirs).read_bytes()
    for name, content in (("foreign", b"PK\x03\x04" + b"x" * 500), ("cut", whole[: len(whole) // 2]), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} is no whole GGUF file"):
            GGUF(tmp_path / name)
    with pytest.raises(ValueError, match="of architecture 'mamba', expected 'llama'"):
        load_gguf(GGUF(write(tmp_path / "mamba", theirs, architecture="mamba")))
    with pytest.raises(ValueError, match=r"do not fit: .* blks\.1\.ffn\.gate\.weight"):
        load_gguf(GGUF(write(tmp_path / "less", theirs, leave_out=("blk.1.ffn_gate.weight",))))
    settings = dict(GGUF(tmp_path / "m.gguf").settings)
    del settings["llama.context_length"]
    with pytest.raises(ValueError, match=r"has no setting 'llama\.context_length'"):
        gpt_config(settings)


CHANGES = {
    "rope.scaling.factor": lambda w: w.add_float32("llama.rope.scaling.factor", 4.0),
    "rope.scaling.type": lambda w: w.add_string("llama.rope.scaling.type", "linear"),
    "rope.scale_linear": lambda w: w.add_float32("llama.rope.scale_linear", 4.0),
    "rope.dimension_count": lambda w: w.add_uint32("llama.rope.dimension_count", 4),
    "attention.key_length": lambda w: w.add_uint32("llama.attention.key_length", 16),
    "attention.sliding_window": lambda w: w.add_uint32("llama.attention.sliding_window", 8),
    "attention.causal": lambda w: w.add_bool("llama.attention.causal", False),
    "expert_count": lambda w: w.add_uint32("llama.expert_count", 8),
    "vocab_size": lambda w: w.add_uint32("llama.vocab_size", 40),
    "final_logit_softcapping": lambda w: w.add_float32("llama.final_logit_softcapping", 30.0),
    "split.count": lambda w: w.add_uint16("split.count", 2),
    "adapter.type": lambda w: w.add_string("adapter.type", "lora"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_that_changes_the_model_is_refused(theirs, tmp_path, name):
    file = GGUF(write(tmp_path / "m.gguf", theirs, add=CHANGES[name]))
    with pytest.raises(ValueError, match=rf"the file has the setting '.*{name}' of .*, (expected|which is not known)"):
        load_gguf(file)


def test_settings_that_leave_it_as_it_is(theirs, tmp_path):
    def add(writer):
        writer.add_name("small")
        writer.add_vocab_size(41)
        writer.add_rope_dimension_count(8)
        writer.add_expert_count(0)
        writer.add_string("llama.rope.scaling.type", "none")

    assert torch.equal(
        load_gguf(GGUF(write(tmp_path / "more", theirs, add=add))).blks[1].ffn.gate.weight,
        load_gguf(GGUF(write(tmp_path / "m", theirs))).blks[1].ffn.gate.weight,
    )


@pytest.mark.parametrize("offset", [2**64 - 32, 2**64 - 4096, 2**63, 2**40, 0, 32])
def test_a_weight_that_lies_elsewhere_is_refused(theirs, tmp_path, offset):
    path = write(tmp_path / "m.gguf", theirs)
    data, name = bytearray(path.read_bytes()), b"blk.1.attn_q.weight"
    place = data.index(name) + len(name) + 4 + 2 * 8 + 4  # behind the number of sizes, two of them, and the kind
    data[place : place + 8] = offset.to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(ValueError, match="is no whole GGUF file"):
        GGUF(path)
