"""The vision Transformer's names in ``transformers``, and ours."""

from ..vit import ViT
from .checkpoints import load_renamed, num_classes, with_eps

RENAMES = (
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
FIXED = {"hidden_act": ("gelu",), "use_absolute_embeddings": (False,)}


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
    load_renamed(
        model, state_dict, RENAMES, "a ViT of the same sizes with use_bias=True, pooling='class', positions='learned'"
    )
    return with_eps(model, layer_norm_eps)


def make(config, weights, folder):
    """A `ViT` as a configuration describes it, without its weights."""
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
        num_classes=num_classes(weights, folder),
        num_channels=config["num_channels"],
    )
