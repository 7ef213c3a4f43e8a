"""Published weights: checkpoints of Hugging Face's ``transformers`` in our models, which then give the same scores.

A model's parameters have other names there than here: one file and one table of renames for each. Files, and versions
of transformers before 5, name the parts of a block in one way, models in memory since then in another; the tables have
both, as alternatives.

checkpoints.py  what all of them share: to find a folder, to read a file, to rename
from_vit.py     the vision Transformer
from_swin.py    Swin
from_gpt2.py    GPT-2
from_bert.py    BERT
from_t5.py      T5
from_llama.py   Llama, the form of today's block; SmolLM2 has it
gguf_file.py    GGUF, a file of quantised weights with settings and tokens; a Llama from one
gguf_blocks.py  its blocks of 32 weights in 4 or 8 bits

Each ``from_`` has a model's table, how it is made and filled, and the settings (``FIXED``) that ours has in some ways
only, the default first.
"""

import json

from . import from_bert, from_gpt2, from_llama, from_swin, from_t5, from_vit
from .checkpoints import at_hand, eps_of, read, read_weights, weights_file
from .from_bert import load_transformers_bert
from .from_gpt2 import load_transformers_gpt2
from .from_llama import load_transformers_llama
from .from_swin import load_transformers_swin
from .from_t5 import load_transformers_t5
from .from_vit import load_transformers_vit

__all__ = [
    "from_transformers",
    "load_transformers_bert",
    "load_transformers_gpt2",
    "load_transformers_llama",
    "load_transformers_swin",
    "load_transformers_t5",
    "load_transformers_vit",
]
# by their model_type
_MODELS = {
    "vit": (from_vit.make, load_transformers_vit, from_vit.FIXED),
    "swin": (from_swin.make, load_transformers_swin, from_swin.FIXED),
    "gpt2": (from_gpt2.make, load_transformers_gpt2, from_gpt2.FIXED),
    "llama": (from_llama.make, load_transformers_llama, from_llama.FIXED),
    "bert": (from_bert.make, load_transformers_bert, from_bert.FIXED),
    "t5": (from_t5.make, load_transformers_t5, from_t5.FIXED),
}


def from_transformers(folder):
    """A model as a checkpoint of ``transformers`` describes it, with its weights.

    Args:
        folder: with ``config.json`` and ``model.safetensors``, as ``save_pretrained`` writes them, of a
            ``ViTForImageClassification``, a ``SwinForImageClassification``, a ``GPT2LMHeadModel``, a
            ``LlamaForCausalLM``, a ``BertModel``, a ``BertForMaskedLM``, a ``BertForPreTraining`` or a
            ``T5ForConditionalGeneration``; or the name of one on the hub, as "openai-community/gpt2" or
            "google/flan-t5-small" (T5 of version 1.1), which is downloaded. The
            tokens of its texts are those of ``tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")``.

    Returns:
        A `ViT`, a `Swin`, a `GPT` (of GPT-2 or Llama), a `BERT`, a `BERTForPretraining` or a `T5`, in evaluation mode.

    Raises:
        FileNotFoundError: a file is missing, or there is neither such a folder nor, at the hub, such a model.
        ValueError: a file is damaged, or the checkpoint is of another model.
    """
    folder = at_hand(folder)
    config = read(folder / "config.json", lambda path: json.loads(path.read_text(encoding="utf-8")))
    if not isinstance(config, dict):
        raise ValueError(f"{folder / 'config.json'} holds a {type(config).__name__}, expected settings by name")
    kind = config.get("model_type")
    if kind not in _MODELS:
        raise ValueError(f"{folder} is a checkpoint of model_type {kind!r}, expected {' or '.join(map(repr, _MODELS))}")
    make, load, fixed = _MODELS[kind]
    for name, expected in fixed.items():
        if config.get(name, expected[0]) not in expected:
            raise ValueError(
                f"{folder} is a checkpoint with {name} {config[name]!r}, expected {' or '.join(map(repr, expected))}"
            )
    weights = read(weights_file(folder), read_weights)
    try:
        model, eps = make(config, weights, folder), eps_of(config)
    except KeyError as error:
        raise ValueError(
            f"{folder / 'config.json'} has no {error}: is it that of another model than {kind!r}?"
        ) from error
    except TypeError as error:
        raise ValueError(f"{folder / 'config.json'} does not fit a {kind!r}: {error}") from error
    return load(model, weights, layer_norm_eps=eps).eval()
