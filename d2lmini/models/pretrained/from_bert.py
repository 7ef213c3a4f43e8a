"""BERT's names in ``transformers``, and ours.

Files of 2019 call factors and biases of norms gamma and beta. A bare encoder has no prefix; with heads on top, it has.
"""

from ..bert import BERT, BERTForPretraining
from ..bert_config import BERTConfig
from .checkpoints import ACTIVATIONS, load_renamed, renamed, with_eps

_ENCODER = (
    (r"LayerNorm\.gamma$", "LayerNorm.weight"),
    (r"LayerNorm\.beta$", "LayerNorm.bias"),
    (r"^bert\.", ""),
    (r"^embeddings\.word_embeddings\.", "embedding."),
    (r"^embeddings\.position_embeddings\.", "pos_embedding."),
    (r"^embeddings\.token_type_embeddings\.", "segment_embedding."),
    (r"^embeddings\.LayerNorm\.", "norm."),
    (r"^encoder\.layer\.", "blks."),
    (r"\.attention\.self\.query\.", ".attention.W_q."),
    (r"\.attention\.self\.key\.", ".attention.W_k."),
    (r"\.attention\.self\.value\.", ".attention.W_v."),
    (r"\.attention\.output\.dense\.", ".attention.W_o."),
    (r"\.attention\.output\.LayerNorm\.", ".addnorm1.ln."),
    (r"\.intermediate\.dense\.", ".ffn.dense1."),
    (r"\.output\.dense\.", ".ffn.dense2."),
    (r"\.output\.LayerNorm\.", ".addnorm2.ln."),
    (r"^pooler\.dense\.", "pooler.0."),
)
RENAMES = (
    *_ENCODER,
    (r"^(?!cls\.)", "bert."),
    (r"^cls\.predictions\.transform\.dense\.", "mlm.dense."),
    (r"^cls\.predictions\.transform\.LayerNorm\.", "mlm.norm."),
    (r"^cls\.predictions\.(decoder\.)?bias$", "mlm.decoder.bias"),
    (r"^cls\.predictions\.decoder\.weight$", "mlm.decoder.weight"),
    (r"^cls\.seq_relationship\.", "nsp."),
)
FIXED = {
    "hidden_act": ("gelu", *(name for name in ACTIVATIONS if name != "gelu")),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "tie_word_embeddings": (True,),
}


def load_transformers_bert(model, state_dict, *, layer_norm_eps=1e-12):
    """Puts the weights of a ``BertModel``, ``BertForMaskedLM`` or ``BertForPreTraining`` into ours, in place.

    Args:
        model: a `BERT`, with or without a pooler as theirs, or a `BERTForPretraining`, of the same sizes. A `BERT`
            leaves out weights of theirs for pretraining.
        state_dict, layer_norm_eps: as in `load_transformers_vit`.

    Returns:
        The model.

    Raises:
        ValueError: names or shapes do not fit; the model stays as it was.
    """
    weights = {name: tensor for name, tensor in state_dict.items() if not name.endswith("position_ids")}  # computed
    if isinstance(model, BERT):
        weights = {name: tensor for name, tensor in weights.items() if not name.startswith("cls.")}
        load_renamed(model, weights, _ENCODER, "a BERT of the same sizes, with or without a pooler as theirs")
    else:
        embeddings = (weights.get(f"{prefix}embeddings.word_embeddings.weight") for prefix in ("bert.", ""))
        weights["cls.predictions.decoder.weight"] = next(
            (E for E in embeddings if E is not None), None
        )  # may be left out
        if model.nsp is None:  # without it nothing learns the pooler
            weights = {name: tensor for name, tensor in weights.items() if "pooler." not in name}
        load_renamed(model, weights, RENAMES, "a BERTForPretraining of the same sizes, next_sentence as theirs")
    return with_eps(model, layer_norm_eps)


def make(config, weights, folder):
    """A `BERTForPretraining` where the weights have a head for masked tokens, else a `BERT`, as configured."""
    names = {renamed(name, RENAMES) for name in weights}
    pretraining, next_sentence = "mlm.dense.weight" in names, "nsp.weight" in names
    sizes = {
        "vocab_size": config["vocab_size"],
        "max_len": config["max_position_embeddings"],
        "num_hiddens": config["hidden_size"],
        "num_heads": config["num_attention_heads"],
        "num_blks": config["num_hidden_layers"],
        "ffn_num_hiddens": config["intermediate_size"],
        "num_segments": config["type_vocab_size"],
        "dropout": config["hidden_dropout_prob"],
        "activation": ACTIVATIONS[config.get("hidden_act", "gelu")],
        "use_pooler": next_sentence if pretraining else "bert.pooler.0.weight" in names,
    }
    if pretraining:
        return BERTForPretraining(BERTConfig(**sizes), next_sentence=next_sentence)
    return BERT(BERTConfig(**sizes))
