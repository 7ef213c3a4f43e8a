"""T5's names in ``transformers``, and ours."""

import torch

from ..t5 import T5
from ..t5_config import T5Config
from .checkpoints import load_renamed, with_eps

RENAMES = (
    (r"^lm_head\.", "decoder.dense."),
    (r"\.embed_tokens\.", ".embedding."),
    (r"\.final_layer_norm\.", ".norm."),
    (r"\.block\.0\.layer\.0\.SelfAttention\.relative_attention_bias\.", ".position."),
    (r"\.block\.", ".blks."),
    (r"^(encoder.*)\.layer\.0\.SelfAttention\.([qkvo])\.", r"\1.attention.W_\2."),
    (r"^(decoder.*)\.layer\.0\.SelfAttention\.([qkvo])\.", r"\1.attention1.W_\2."),
    (r"\.layer\.1\.EncDecAttention\.([qkvo])\.", r".attention2.W_\1."),
    (r"\.layer\.\d\.DenseReluDense\.wi_0\.", ".ffn.gate."),
    (r"\.layer\.\d\.DenseReluDense\.wi(_1)?\.", ".ffn.dense1."),
    (r"\.layer\.\d\.DenseReluDense\.wo\.", ".ffn.dense2."),
    (r"\.layer\.0\.layer_norm\.", ".addnorm1.ln."),
    (r"\.layer\.1\.layer_norm\.", ".addnorm2.ln."),
    (r"\.layer\.2\.layer_norm\.", ".addnorm3.ln."),
)
_FFNS = {"relu": "relu", "gated-gelu": "geglu"}
FIXED = {"model_type": ("t5",), "feed_forward_proj": tuple(_FFNS)}


def load_transformers_t5(model, state_dict, *, layer_norm_eps=1e-6):
    """Puts the weights of a ``T5ForConditionalGeneration`` into a `T5`, in place; then both give the same scores.

    Args:
        model: a `T5` of the same sizes, with ``tie_weights=False`` where theirs does not scale the decoder's outputs.
        state_dict, layer_norm_eps: as in `load_transformers_vit`.

    Returns:
        The model.

    Raises:
        ValueError: names or shapes do not fit; the model stays as it was.
    """
    weights = dict(state_dict)
    # an older file has a bias of cross-attention, which is never used
    weights.pop("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", None)
    shared = weights.pop("shared.weight", None)
    if shared is not None:
        tied = {f"{name}.weight": shared for name in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")}
        weights = tied | weights
        if model.config.tie_weights and not torch.equal(weights["lm_head.weight"], shared):
            raise ValueError("the last layer does not share the embeddings: expected a T5 with tie_weights=False")
    load_renamed(model, weights, RENAMES, "a T5 of the same sizes, as T5Config makes it")
    return with_eps(model, layer_norm_eps)


def make(config, weights, folder):
    """A `T5` as a configuration describes it, without its weights."""
    if config.get("num_decoder_layers") not in (None, config["num_layers"]):
        raise ValueError(
            f"{folder} is a checkpoint with {config['num_layers']} layers in the encoder and "
            f"{config['num_decoder_layers']} in the decoder, expected as many in both"
        )
    # transformers 5 ties always, and writes down apart whether the tied outputs are scaled
    scaled = config.get("scale_decoder_outputs", config.get("tie_word_embeddings", True))
    ids = {"pad": "pad_token_id", "start": "decoder_start_token_id", "eos": "eos_token_id"}
    sizes = T5Config(
        vocab_size=config["vocab_size"],
        num_hiddens=config["d_model"],
        num_heads=config["num_heads"],
        head_size=config["d_kv"],
        num_blks=config["num_layers"],
        ffn_num_hiddens=config["d_ff"],
        ffn=_FFNS[config.get("feed_forward_proj", "relu")],
        tie_weights=scaled,
        dropout=config["dropout_rate"],
        num_buckets=config["relative_attention_num_buckets"],
        max_distance=config.get("relative_attention_max_distance", 128),
        **{ours: config[theirs] for ours, theirs in ids.items() if config.get(theirs) is not None},
    )
    return T5(sizes)
