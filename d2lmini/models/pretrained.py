"""Weights of Hugging Face's ``ViTForImageClassification`` for our `ViT`: the same model, by other names."""

import json
from pathlib import Path

from torch import nn

from .vit import ViT

# theirs -> ours, applied one after the other. Files and older versions of transformers name the parts of a block as in
# the second group, models in memory since version 5 as in the third.
_RENAMED = (
    ("vit.embeddings.cls_token", "cls_token"),
    ("vit.embeddings.position_embeddings", "pos_embedding"),
    ("vit.embeddings.patch_embeddings.projection", "patch_embedding.conv"),
    ("vit.layernorm", "head.0"),
    ("classifier", "head.1"),
    (".layernorm_before", ".ln1"),
    (".layernorm_after", ".ln2"),
    # files
    ("vit.encoder.layer.", "blks."),
    (".attention.attention.query", ".attention.W_q"),
    (".attention.attention.key", ".attention.W_k"),
    (".attention.attention.value", ".attention.W_v"),
    (".attention.output.dense", ".attention.W_o"),
    (".intermediate.dense", ".mlp.dense1"),
    (".output.dense", ".mlp.dense2"),
    # in memory
    ("vit.layers.", "blks."),
    (".attention.q_proj", ".attention.W_q"),
    (".attention.k_proj", ".attention.W_k"),
    (".attention.v_proj", ".attention.W_v"),
    (".attention.o_proj", ".attention.W_o"),
    (".mlp.fc1", ".mlp.dense1"),
    (".mlp.fc2", ".mlp.dense2"),
)


def load_transformers_vit(model, state_dict, *, layer_norm_eps=1e-12):
    """Puts the weights of a ``ViTForImageClassification`` into a `ViT`, in place; then both give the same scores.

    Args:
        model: a `ViT` of the same sizes, with ``use_bias=True``, a class token and learned positions.
        state_dict: dict from their names to tensors: ``their_model.state_dict()``, or what
            ``safetensors.torch.load_file`` reads from the file of a checkpoint.
        layer_norm_eps: what is added to variances, as their configuration says.

    Returns:
        The model.

    Raises:
        ValueError: names or shapes do not fit; the model stays as it was.
    """
    weights = {_our_name(name): tensor for name, tensor in state_dict.items()}
    ours = model.state_dict()
    wrong = sorted(ours.keys() ^ weights.keys())
    wrong += [name for name in ours if name in weights and not _fits(ours[name], weights[name])]
    if wrong:  # nothing is overwritten
        raise ValueError(
            "the weights do not fit: expected a ViT of the same sizes with use_bias=True, pooling='class' and "
            f"positions='learned'. Missing, superfluous or of another shape: {', '.join(wrong)}"
        )
    model.load_state_dict(weights)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = layer_norm_eps
    return model


def from_transformers(folder):
    """A `ViT` as a checkpoint folder of ``ViTForImageClassification`` describes it, with its weights.

    For example, of one from the hub::

        folder = huggingface_hub.snapshot_download("google/vit-base-patch16-224")
        model = from_transformers(folder)

    Args:
        folder: with ``config.json`` and ``model.safetensors``, as ``save_pretrained`` writes them.

    Returns:
        A `ViT` in evaluation mode.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: it is the checkpoint of another model.
    """
    from safetensors.torch import load_file

    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    found = {name: config.get(name) for name in ("model_type", "hidden_act")}
    if found != {"model_type": "vit", "hidden_act": "gelu"}:
        raise ValueError(f"{folder} is a checkpoint with {found}, expected model_type 'vit' and hidden_act 'gelu'")
    weights = load_file(Path(folder) / "model.safetensors")
    if "classifier.bias" not in weights:
        raise ValueError(f"{folder} has no classifier.bias: expected a ViTForImageClassification, not a bare encoder")
    model = ViT(
        config["image_size"],
        config["patch_size"],
        config["hidden_size"],
        config["intermediate_size"],
        config["num_attention_heads"],
        config["num_hidden_layers"],
        emb_dropout=config["hidden_dropout_prob"],
        blk_dropout=config["hidden_dropout_prob"],
        use_bias=config["qkv_bias"],
        num_classes=len(weights["classifier.bias"]),
        num_channels=config["num_channels"],
    )
    return load_transformers_vit(model, weights, layer_norm_eps=config["layer_norm_eps"]).eval()


def _our_name(name):
    for theirs, ours in _RENAMED:
        name = name.replace(theirs, ours)
    return name


def _fits(parameter, tensor):
    return nn.parameter.is_lazy(parameter) or parameter.shape == tensor.shape  # a lazy one takes the shape
