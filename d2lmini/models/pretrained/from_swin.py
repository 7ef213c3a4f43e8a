"""Swin's names in ``transformers``, and ours."""

from ..stages import MapBlock
from ..swin import Swin, SwinConfig
from .checkpoints import load_renamed, num_classes

RENAMES = (
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
FIXED = {"hidden_act": ("gelu",), "use_absolute_embeddings": (False,)}


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
    load_renamed(model, state_dict, RENAMES, "a Swin of the same sizes")
    model.norm.eps = layer_norm_eps
    for module in model.modules():
        if isinstance(module, MapBlock):  # the norms of patches and of merging are always torch's
            module.ln1.eps = module.ln2.eps = layer_norm_eps
    return model


def make(config, weights, folder):
    """A `Swin` as a configuration describes it, without its weights."""
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
    return Swin(SwinConfig(**sizes, num_classes=num_classes(weights, folder)))
