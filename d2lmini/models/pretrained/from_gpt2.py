"""GPT-2's names in ``transformers``, and ours.

It keeps queries, keys and values in one matrix there, and its matrices transposed.
"""

import re

from ..gpt import GPT
from ..gpt_config import GPTConfig
from .checkpoints import ACTIVATIONS, load_renamed, with_eps

RENAMES = (
    (r"^transformer\.", ""),
    (r"^wte\.", "embedding."),
    (r"^wpe\.", "pos_embedding."),
    (r"^h\.", "blks."),
    (r"\.ln_1\.", ".addnorm1.ln."),
    (r"\.ln_2\.", ".addnorm2.ln."),
    (r"\.attn\.c_([qkv])\.", r".attention.W_\1."),
    (r"\.attn\.c_proj\.", ".attention.W_o."),
    (r"\.mlp\.c_fc\.", ".ffn.dense1."),
    (r"\.mlp\.c_proj\.", ".ffn.dense2."),
    (r"^ln_f\.", "norm."),
    (r"^lm_head\.", "dense."),
)
FIXED = {
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "tie_word_embeddings": (True,),
    "activation_function": tuple(ACTIVATIONS),
}


def load_transformers_gpt2(model, state_dict, *, layer_norm_eps=1e-5):
    """Puts the weights of a ``GPT2LMHeadModel`` or ``GPT2Model`` into a `GPT`, in place; both then give the same.

    Args:
        model: a `GPT` of the same sizes, as `GPTConfig` makes it by default.
        state_dict, layer_norm_eps: as in `load_transformers_vit`.

    Returns:
        The model.

    Raises:
        ValueError: names or shapes do not fit; the model stays as it was.
    """
    weights = {}
    for name, tensor in state_dict.items():
        if name.endswith((".attn.bias", ".attn.masked_bias")):  # masks, computed, and yet in older files
            continue
        if re.search(r"\.c_(attn|proj|fc)\.weight$", name):
            tensor = tensor.T
        parts = zip("qkv", tensor.chunk(3), strict=True) if ".c_attn." in name else [("attn", tensor)]
        weights |= {name.replace(".c_attn.", f".c_{part}."): value.contiguous() for part, value in parts}
    if model.config.tie_weights:  # files of the bare model have the embeddings alone
        weights["lm_head.weight"] = weights.get("wte.weight", weights.get("transformer.wte.weight"))
    load_renamed(model, weights, RENAMES, "a GPT of the same sizes, as GPTConfig makes it by default")
    return with_eps(model, layer_norm_eps)


def make(config, weights, folder):
    """A `GPT` as a configuration describes it, without its weights."""
    sizes = {
        "vocab_size": config["vocab_size"],
        "max_len": config["n_positions"],
        "num_hiddens": config["n_embd"],
        "num_heads": config["n_head"],
        "num_blks": config["n_layer"],
        "ffn_num_hiddens": config.get("n_inner"),
        "dropout": config["resid_pdrop"],
    }
    return GPT(GPTConfig(**sizes, ffn=ACTIVATIONS[config.get("activation_function", "gelu_new")]))
