"""Llama's names in ``transformers``, and ours: today's block, with grouped queries.

Theirs turns feature j of a head together with feature j + d/2, ours its neighbour, so the rows of W_q and W_k change
places.
"""

from dataclasses import replace

from ..gpt import GPT
from ..gpt_config import LLAMA
from .checkpoints import load_renamed, with_eps

RENAMES = (
    (r"^model\.", ""),
    (r"^embed_tokens\.", "embedding."),
    (r"^layers\.", "blks."),
    (r"\.input_layernorm\.", ".addnorm1.ln."),
    (r"\.post_attention_layernorm\.", ".addnorm2.ln."),
    (r"\.self_attn\.([qkvo])_proj\.", r".attention.W_\1."),
    (r"\.mlp\.gate_proj\.", ".ffn.gate."),
    (r"\.mlp\.up_proj\.", ".ffn.dense1."),
    (r"\.mlp\.down_proj\.", ".ffn.dense2."),
    (r"^lm_head\.", "dense."),
)
FIXED = {
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "rope_scaling": (None,),
    "pretraining_tp": (1,),
}


def load_transformers_llama(model, state_dict, *, layer_norm_eps=1e-6):
    """Puts the weights of a ``LlamaForCausalLM`` into a `GPT`, in place; both then give the same scores.

    Args:
        model: a `GPT` of the same sizes, with rotary positions, RMS norms, ``ffn="swiglu"`` and no biases.
        state_dict, layer_norm_eps: as in `load_transformers_vit`.

    Returns:
        The model.

    Raises:
        ValueError: names or shapes do not fit; the model stays as it was.

    Source: Touvron et al. 2023.
    """
    weights = dict(state_dict)
    if model.config.tie_weights:  # files have the shared matrix once
        weights.setdefault("lm_head.weight", weights.get("model.embed_tokens.weight"))
    size = model.blks[0].attention.W_q.out_features // model.config.num_heads
    for name, tensor in weights.items():
        if name.endswith(("q_proj.weight", "k_proj.weight")) and len(tensor) % size == 0:
            weights[name] = with_neighbours(tensor, size)
    load_renamed(model, weights, RENAMES, "a GPT of the same sizes, of the form of Llama")
    return with_eps(model, layer_norm_eps)


def with_neighbours(weight, head_size):
    """Rows of W_q or W_k (heads * d, h): features j and j + d/2 of each head come to stand at 2j and 2j + 1."""
    return weight.unflatten(0, (-1, 2, head_size // 2)).transpose(1, 2).flatten(0, 2).contiguous()


def make(config, weights, folder):
    """A `GPT` as a configuration describes it, without its weights."""
    rope = config.get("rope_parameters") or {}  # since transformers 5
    if rope.get("rope_type", "default") != "default":
        raise ValueError(f"{folder} is a checkpoint with rope_type {rope['rope_type']!r}, expected 'default'")
    return GPT(
        replace(
            LLAMA,
            vocab_size=config["vocab_size"],
            max_len=config["max_position_embeddings"],
            num_hiddens=config["hidden_size"],
            num_heads=config["num_attention_heads"],
            num_kv_heads=config.get("num_key_value_heads"),
            head_size=config.get("head_dim"),
            num_blks=config["num_hidden_layers"],
            ffn_num_hiddens=config["intermediate_size"],
            rotary_base=rope.get("rope_theta", config.get("rope_theta", 10000.0)),
            norm_eps=config["rms_norm_eps"],
            tie_weights=config.get("tie_word_embeddings", False),
        )
    )
