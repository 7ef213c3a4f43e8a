"""Experiments by subject; `d2lmini.lab` says what an experiment is, runs it and records it.

``from d2lmini.experiments import vision_vit`` finds an experiment in the folder of its subject. The other modules of a
folder are what its experiments share.

attention/     a layer of it: what it can look up, its heads and positions, its costs
translation/   from one language to another
optimization/  depth, learning rates, optimizers
vision/        images
tokenization/  words, pieces and bytes
bert/          encoders: pretraining and fine-tuning
t5/            text to text
gpt/           models that write
laws/          the loss by size, data and compute
abilities/     what a prompt can ask for
real_model/    published weights, as they are, rounded and adapted; and what rewards teach a small model
exported.py    the models whose weights ship with the package, and of which run each is
"""

from difflib import get_close_matches
from importlib import import_module

from .. import renamed

SUBJECTS = {
    "attention": [
        "associative_recall",
        "attention_cost",
        "decoding_cost",
        "head_count",
        "head_roles",
        "pooling_fashion_mnist",
        "position_encodings",
    ],
    "translation": ["translation_bahdanau", "translation_d2l", "translation_transformer", "translation_width"],
    "optimization": ["depth_by_rate", "optimizers"],
    "vision": [
        "clip",
        "data_size",
        "image_gpt",
        "vision_cnn",
        "vision_d2l",
        "vision_davit",
        "vision_swin",
        "vision_vit",
    ],
    "tokenization": ["tokenizer_comparison"],
    "bert": ["bert_pairs", "bert_pretrain", "bert_qa", "bert_sentiment", "bert_tagging"],
    "t5": ["t5_pretrain", "t5_tasks"],
    "gpt": ["gpt_ablations", "gpt_book", "gpt_gutenberg", "gpt_shakespeare", "long_context", "long_recall"],
    "laws": ["scaling"],
    "abilities": ["chain_of_thought", "in_context", "in_context_sizes", "induction", "instruct"],
    "real_model": [
        "adapters",
        "prompt_examples",
        "quantized",
        "real_answers",
        "repeating_heads",
        "speculative",
        "verifiable",
    ],
}
_HOME = {name: subject for subject, names in SUBJECTS.items() for name in names}


def names():
    """Names of the experiments, sorted."""
    return sorted(_HOME)


def find(name):
    """The module of an experiment.

    Raises:
        ValueError: there is none of that name.
    """
    name = renamed.now(name)
    if name not in _HOME:
        near = get_close_matches(name, names(), n=1)
        meant = f"; did you mean {near[0]}? There are" if near else ", only"
        raise ValueError(f"there is no experiment {name!r}{meant} {', '.join(names())}")
    return import_module(f"{__name__}.{_HOME[name]}.{name}")


def __getattr__(name):
    if name in _HOME:
        return find(name)
    return _of_before(name)


_of_before = renamed.names_of(__name__, 1)


def __dir__():
    return sorted({*globals(), *_HOME})
