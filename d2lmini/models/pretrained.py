"""Published weights: checkpoints of Hugging Face's ``transformers`` in our models, which then give the same scores.

A model's parameters have other names there than here: a table of renames for each. Files, and versions of transformers
before 5, name the parts of a block in one way, models in memory since then in another; the tables have both, as
alternatives. GPT-2 also keeps queries, keys and values in one matrix, and its matrices transposed.
"""

import json
import re
from pathlib import Path

from torch import nn

from .gpt import GPT
from .gpt_config import GPTConfig
from .stages import MapBlock
from .swin import Swin, SwinConfig
from .vit import ViT

# rows of (theirs, a pattern; ours), applied one after the other
_VIT = (
    (r"^vit\.embeddings\.cls_token", "cls_token"),
    (r"^vit\.embeddings\.position_embeddings", "pos_embedding"),
    (r"^vit\.embeddings\.patch_embeddings\.projection", "patch_embedding.conv"),
    (r"^vit\.(encoder\.layer|layers)\.", "blks."),
    (r"\.layernorm_before\.", ".ln1."),
    (r"\.layernorm_after\.", ".ln2."),
    (r"\.attention\.(attention\.query|q_proj)\.", ".attention.W_q."),
    (r"\.attention\.(attention\.key|k_proj)\.", ".attention.W_k."),
    (r"\.attention\.(attention\.value|v_proj)\.", ".attention.W_v."),
    (r"\.attention\.(output\.dense|o_proj)\.", ".attention.W_o."),
    (r"\.(intermediate\.dense|mlp\.fc1)\.", ".mlp.dense1."),
    (r"\.(output\.dense|mlp\.fc2)\.", ".mlp.dense2."),
    (r"^vit\.layernorm\.", "head.0."),
    (r"^classifier\.", "head.1."),
)
_SWIN = (
    (r"^swin\.embeddings\.patch_embeddings\.projection", "patch_embedding.conv"),
    (r"^swin\.embeddings\.norm\.", "ln_patches."),
    (r"^swin\.encoder\.layers\.(\d+)\.blocks\.", r"stages.\1."),
    (r"^swin\.encoder\.layers\.(\d+)\.downsample\.norm\.", r"merging.\1.ln."),
    (r"^swin\.encoder\.layers\.(\d+)\.downsample\.reduction\.", r"merging.\1.dense."),
    (r"\.layernorm_before\.", ".ln1."),
    (r"\.layernorm_after\.", ".ln2."),
    (r"\.attention\.(self\.query|q_proj)\.", ".attention.attention.W_q."),
    (r"\.attention\.(self\.key|k_proj)\.", ".attention.attention.W_k."),
    (r"\.attention\.(self\.value|v_proj)\.", ".attention.attention.W_v."),
    (r"\.attention\.(output\.dense|o_proj)\.", ".attention.attention.W_o."),
    (r"\.(self|relative_position_bias)\.relative_position_bias_table$", ".bias_table"),
    (r"\.(intermediate\.dense|mlp\.fc1)\.", ".mlp.dense1."),
    (r"\.(output\.dense|mlp\.fc2)\.", ".mlp.dense2."),
    (r"^swin\.layernorm\.", "norm."),
    (r"^classifier\.", "head."),
)
_GPT2 = (
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
_GPT2_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu": "gelu", "relu": "relu"}


def from_transformers(folder):
    """A model as a checkpoint of ``transformers`` describes it, with its weights.

    Args:
        folder: with ``config.json`` and ``model.safetensors``, as ``save_pretrained`` writes them, of a
            ``ViTForImageClassification``, a ``SwinForImageClassification`` or a ``GPT2LMHeadModel``; or the name of one
            on the hub, as "openai-community/gpt2", which is downloaded.

    Returns:
        A `ViT`, a `Swin` or a `GPT`, in evaluation mode.

    Raises:
        FileNotFoundError: a file is missing, or there is neither such a folder nor, at the hub, such a model.
        ValueError: a file is damaged, or the checkpoint is of another model.
    """
    folder = _at_hand(folder)
    config = _read(folder / "config.json", lambda path: json.loads(path.read_text(encoding="utf-8")))
    kind = config.get("model_type")
    if kind not in _MODELS:
        raise ValueError(f"{folder} is a checkpoint of model_type {kind!r}, expected {' or '.join(map(repr, _MODELS))}")
    make, load, fixed = _MODELS[kind]
    for name, expected in fixed.items():
        if config.get(name, expected[0]) not in expected:
            raise ValueError(
                f"{folder} is a checkpoint with {name} {config[name]!r}, expected {' or '.join(map(repr, expected))}"
            )
    weights = _read(folder / "model.safetensors", _load_file)
    return load(make(config, weights, folder), weights, layer_norm_eps=_eps(config)).eval()


def _at_hand(folder):
    """A folder as it is; of a name on the hub, where its files were put."""
    if Path(folder).is_dir():
        return Path(folder)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(str(folder), allow_patterns=["config.json", "model.safetensors"]))
    except Exception as error:  # there are many kinds, and of every client others
        raise FileNotFoundError(
            f"there is no folder {str(folder)!r}, and the hub gives no model of this name ({type(error).__name__}): is "
            "there a network? A folder with config.json and model.safetensors will do"
        ) from error


def _read(path, reader):
    try:
        return reader(path)
    except OSError:
        raise
    except Exception as error:  # safetensors has an exception of its own
        raise ValueError(f"{path} is damaged ({error}): fetch it again") from error


def _load_file(path):
    from safetensors.torch import load_file

    return load_file(path)


def _eps(config):
    return config["layer_norm_eps" if "layer_norm_eps" in config else "layer_norm_epsilon"]


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
    _load(model, weights, _GPT2, "a GPT of the same sizes, as GPTConfig makes it by default")
    return _with_eps(model, layer_norm_eps)


def load_transformers_vit(model, state_dict, *, layer_norm_eps=1e-12):
    """Puts the weights of a ``ViTForImageClassification`` into a `ViT`, in place; then both give the same scores.

    Args:
        model: a `ViT` of the same sizes, with ``use_bias=True``, a class token and learned positions. Where theirs has
            no biases of queries, keys and values (``qkv_bias=False``), those of the model are taken away.
        state_dict: dict from their names to tensors: ``their_model.state_dict()``, or what
            ``safetensors.torch.load_file`` reads from the file of a checkpoint.
        layer_norm_eps: what is added to variances, as their configuration says.

    Returns:
        The model.

    Raises:
        ValueError: names or shapes do not fit; the model stays as it was.
    """
    _load(model, state_dict, _VIT, "a ViT of the same sizes with use_bias=True, pooling='class', positions='learned'")
    return _with_eps(model, layer_norm_eps)


def load_transformers_swin(model, state_dict, *, layer_norm_eps=1e-5):
    """Puts the weights of a ``SwinForImageClassification`` into a `Swin`, in place; then both give the same scores.

    Args:
        model: a `Swin` of the same sizes.
        state_dict, layer_norm_eps: as in `load_transformers_vit`.

    Returns:
        The model.

    Raises:
        ValueError: names or shapes do not fit; the model stays as it was.
    """
    _load(model, state_dict, _SWIN, "a Swin of the same sizes")
    model.norm.eps = layer_norm_eps
    for module in model.modules():
        if isinstance(module, MapBlock):  # the norms of patches and of merging are always torch's
            module.ln1.eps = module.ln2.eps = layer_norm_eps
    return model


def _load(model, state_dict, renames, expected):
    weights = {
        _renamed(name, renames): tensor
        for name, tensor in state_dict.items()
        if not name.endswith("relative_position_index")  # Swin's, computed, and yet in older files
    }
    ours = model.state_dict()
    unbiased = not any(name.endswith(".W_q.bias") for name in weights)
    without = {name for name in ours if unbiased and re.search(r"\.W_[qkv]\.bias$", name)}
    wrong = sorted((ours.keys() - without) ^ weights.keys())
    wrong += [name for name in ours if name in weights and not _fits(ours[name], weights[name])]
    if wrong:  # nothing is overwritten
        raise ValueError(
            f"the weights do not fit: expected {expected}. Missing, superfluous or of another shape: {', '.join(wrong)}"
        )
    for name in without:
        model.get_submodule(name.removesuffix(".bias")).bias = None
    model.load_state_dict(weights)


def _with_eps(model, eps):
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = eps
    return model


def _renamed(name, renames):
    for theirs, ours in renames:
        name = re.sub(theirs, ours, name)
    return name


def _fits(parameter, tensor):
    return nn.parameter.is_lazy(parameter) or parameter.shape == tensor.shape  # a lazy one takes the shape


def _num_classes(weights, folder):
    if "classifier.bias" not in weights:
        raise ValueError(
            f"{folder} has no classifier.bias: expected a model ...ForImageClassification, no bare encoder"
        )
    return len(weights["classifier.bias"])


def _make_vit(config, weights, folder):
    return ViT(
        config["image_size"],
        config["patch_size"],
        config["hidden_size"],
        config["intermediate_size"],
        config["num_attention_heads"],
        config["num_hidden_layers"],
        emb_dropout=config["hidden_dropout_prob"],
        blk_dropout=config["hidden_dropout_prob"],
        use_bias=True,
        num_classes=_num_classes(weights, folder),
        num_channels=config["num_channels"],
    )


def _make_swin(config, weights, folder):
    sizes = {
        "img_size": config["image_size"],
        "patch_size": config["patch_size"],
        "num_hiddens": config["embed_dim"],
        "num_blks": tuple(config["depths"]),
        "num_heads": tuple(config["num_heads"]),
        "window_size": config["window_size"],
        "dropout": config["hidden_dropout_prob"],
        "drop_path": config["drop_path_rate"],
        "mlp_ratio": config["mlp_ratio"],
        "num_channels": config["num_channels"],
    }
    return Swin(SwinConfig(**sizes, num_classes=_num_classes(weights, folder)))


def _make_gpt2(config, weights, folder):
    sizes = {
        "vocab_size": config["vocab_size"],
        "max_len": config["n_positions"],
        "num_hiddens": config["n_embd"],
        "num_heads": config["n_head"],
        "num_blks": config["n_layer"],
        "ffn_num_hiddens": config.get("n_inner"),
        "dropout": config["resid_pdrop"],
    }
    return GPT(GPTConfig(**sizes, ffn=_GPT2_ACTIVATIONS[config.get("activation_function", "gelu_new")]))


_VISION = {"hidden_act": ("gelu",), "use_absolute_embeddings": (False,)}
_PLAIN = {"scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,), "tie_word_embeddings": (True,)}
# by their model_type: how one is made and filled, and the settings that ours has in one way only, the default first
_MODELS = {
    "vit": (_make_vit, load_transformers_vit, _VISION),
    "swin": (_make_swin, load_transformers_swin, _VISION),
    "gpt2": (_make_gpt2, load_transformers_gpt2, {**_PLAIN, "activation_function": tuple(_GPT2_ACTIVATIONS)}),
}
