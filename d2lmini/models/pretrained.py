"""Published weights: checkpoints of Hugging Face's ``transformers`` in our models, which then give the same scores.

A model's parameters have other names there than here, and that is all: a table of renames for each. Files, and versions
of transformers before 5, name the parts of a block in one way, models in memory since then in another; the tables have
both, as alternatives.
"""

import json
import re
from pathlib import Path

from torch import nn

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


def from_transformers(folder):
    """A model as a checkpoint folder of ``transformers`` describes it, with its weights.

    For example, of one from the hub::

        folder = huggingface_hub.snapshot_download("google/vit-base-patch16-224")
        model = from_transformers(folder)

    Args:
        folder: with ``config.json`` and ``model.safetensors``, as ``save_pretrained`` writes them, of a
            ``ViTForImageClassification`` or a ``SwinForImageClassification``.

    Returns:
        A `ViT` or a `Swin`, in evaluation mode.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: it is the checkpoint of another model.
    """
    from safetensors.torch import load_file

    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    kind = config.get("model_type")
    if kind not in _MODELS:
        raise ValueError(f"{folder} is a checkpoint of model_type {kind!r}, expected {' or '.join(map(repr, _MODELS))}")
    for name, expected in (("hidden_act", "gelu"), ("use_absolute_embeddings", False)):
        if config.get(name, expected) != expected:
            raise ValueError(f"{folder} is a checkpoint with {name} {config[name]!r}, expected {expected!r}")
    weights = load_file(Path(folder) / "model.safetensors")
    if "classifier.bias" not in weights:
        raise ValueError(
            f"{folder} has no classifier.bias: expected a model ...ForImageClassification, no bare encoder"
        )
    make, load = _MODELS[kind]
    model = make(config, num_classes=len(weights["classifier.bias"]))
    return load(model, weights, layer_norm_eps=config["layer_norm_eps"]).eval()


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
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = layer_norm_eps
    return model


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


def _renamed(name, renames):
    for theirs, ours in renames:
        name = re.sub(theirs, ours, name)
    return name


def _fits(parameter, tensor):
    return nn.parameter.is_lazy(parameter) or parameter.shape == tensor.shape  # a lazy one takes the shape


def _make_vit(config, num_classes):
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
        num_classes=num_classes,
        num_channels=config["num_channels"],
    )


def _make_swin(config, num_classes):
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
    return Swin(SwinConfig(**sizes, num_classes=num_classes))


# by their model_type
_MODELS = {"vit": (_make_vit, load_transformers_vit), "swin": (_make_swin, load_transformers_swin)}
