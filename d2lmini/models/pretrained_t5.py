"""Published weights of T5, in the way of `d2lmini.models.pretrained`: checkpoints of ``transformers`` in our `T5`."""

import json

import torch
from torch import nn

from .pretrained import _at_hand, _load, _load_file, _read
from .t5 import T5
from .t5_config import T5Config

# rows of (theirs, a pattern; ours), applied one after the other
_T5 = (
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
# settings that ours has in one way only, or a few, the default first
_FIXED = {"model_type": ("t5",), "feed_forward_proj": tuple(_FFNS)}


def t5_from_transformers(folder):
    """A `T5` as a checkpoint of ``transformers`` describes it, with its weights.

    Args:
        folder: with ``config.json`` and ``model.safetensors``, as ``save_pretrained`` writes them, of a
            ``T5ForConditionalGeneration``; or the name of one on the hub, as "google-t5/t5-small" or
            "google/flan-t5-small" (which has the form of version 1.1), which is downloaded.

    Returns:
        A `T5`, in evaluation mode.

    Raises:
        FileNotFoundError: a file is missing, or there is neither such a folder nor, at the hub, such a model.
        ValueError: a file is damaged, or the checkpoint is of another model.
    """
    folder = _at_hand(folder)
    config = _read(folder / "config.json", lambda path: json.loads(path.read_text(encoding="utf-8")))
    for name, expected in _FIXED.items():
        if config.get(name, expected[0]) not in expected:
            raise ValueError(
                f"{folder} is a checkpoint with {name} {config[name]!r}, expected {' or '.join(map(repr, expected))}"
            )
    weights = _read(folder / "model.safetensors", _load_file)
    return load_transformers_t5(_make(config, folder), weights, layer_norm_eps=config["layer_norm_epsilon"]).eval()


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
    _load(model, weights, _T5, "a T5 of the same sizes, as T5Config makes it")
    for module in model.modules():
        if isinstance(module, nn.RMSNorm):
            module.eps = layer_norm_eps
    return model


def _make(config, folder):
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
