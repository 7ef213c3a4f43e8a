"""GGUF: settings, tokens and quantised weights in one file, as llama.cpp reads it; a `GPT` from one of Llama's form.

The ``gguf`` package finds its parts; `d2lmini.models.pretrained.gguf_blocks` makes weights of them. The rows of W_q and
W_k are in such a file as ours are: neighbouring features are turned together.
"""

from dataclasses import replace
from pathlib import Path

import torch

from ..gpt import GPT
from ..gpt_config import LLAMA
from .checkpoints import load_renamed, nothing_drawn
from .gguf_blocks import dequantize_q4_1, dequantize_q8_0

RENAMES = (
    (r"^token_embd\.", "embedding."),
    (r"^output_norm\.", "norm."),
    (r"^output\.", "dense."),
    (r"^blk\.", "blks."),
    (r"\.attn_norm\.", ".addnorm1.ln."),
    (r"\.ffn_norm\.", ".addnorm2.ln."),
    (r"\.attn_([qkv])\.", r".attention.W_\1."),
    (r"\.attn_output\.", ".attention.W_o."),
    (r"\.ffn_gate\.", ".ffn.gate."),
    (r"\.ffn_up\.", ".ffn.dense1."),
    (r"\.ffn_down\.", ".ffn.dense2."),
)


# what says nothing of what the model computes: about the file, its tokens, how it was made
_SAYS_NOTHING = ("GGUF.", "general.", "tokenizer.", "quantize.imatrix.")
_READ = {
    "llama.attention.head_count",
    "llama.attention.head_count_kv",
    "llama.attention.layer_norm_rms_epsilon",
    "llama.block_count",
    "llama.context_length",
    "llama.embedding_length",
    "llama.feed_forward_length",
    "llama.rope.freq_base",
}
_HEAD_SIZES = "rope.dimension_count", "attention.key_length", "attention.value_length"
# what ours has in some ways only
_FIXED = {
    "llama.attention.causal": (True,),
    "llama.expert_count": (0,),
    "llama.expert_used_count": (0,),
    "llama.rope.scaling.type": ("none",),
    "split.count": (0, 1),
    "split.no": (0,),
}


class GGUF:
    """A GGUF file: `settings` by name, and weights on request.

    Args:
        path: of the file.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is no GGUF file, is cut off, or has a weight outside of itself or inside of another.
        ModuleNotFoundError: the ``gguf`` package is not installed.
    """

    def __init__(self, path):
        from gguf import GGUFReader

        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no file {path}")
        try:
            reader = GGUFReader(path)
            self.settings = {name: field.contents() for name, field in reader.fields.items()}
        except Exception as error:  # the package has many: of shapes, of indices, its own
            raise ValueError(f"{path} is no whole GGUF file ({error}): fetch it again") from error
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        free = reader.data_offset
        for tensor in sorted(reader.tensors, key=lambda tensor: tensor.data_offset):
            if tensor.data_offset < free:  # an offset of nearly 2**64 comes out here, too
                raise ValueError(
                    f"{path} is no whole GGUF file (the weight {tensor.name} begins at byte {tensor.data_offset}, "
                    f"before {free}, where the ones before it end): fetch it again"
                )
            free = tensor.data_offset + int(tensor.n_bytes)

    @property
    def names(self):
        """Of the weights, a list of str."""
        return list(self._tensors)

    def kind(self, name):
        """How a weight is kept: "F32", "F16", "Q8_0", "Q4_1", ..."""
        return self._tensors[name].tensor_type.name

    def shape(self, name):
        """Of a weight, rows first, as torch has it."""
        return tuple(int(size) for size in reversed(self._tensors[name].shape))

    def data(self, name):
        """The bytes of a weight as they are in the file, uint8 of numpy."""
        return self._tensors[name].data.view("uint8").reshape(-1)

    def tensor(self, name):
        """A weight in float32, dequantised.

        Raises:
            ValueError: it is kept in a way that is not F32, F16, Q8_0 or Q4_1.
        """
        kind, shape = self.kind(name), self.shape(name)
        if kind in ("F32", "F16"):
            return torch.tensor(self._tensors[name].data).float().reshape(shape)
        if kind not in _DEQUANTIZE:
            raise ValueError(f"{name} is kept as {kind}, expected F32, F16, {' or '.join(_DEQUANTIZE)}")
        return _DEQUANTIZE[kind](self.data(name), shape)


_DEQUANTIZE = {"Q8_0": dequantize_q8_0, "Q4_1": dequantize_q4_1}


def gpt_config(settings):
    """The `GPTConfig` of the settings of a `GGUF` file.

    Raises:
        ValueError: the file is of another architecture than Llama's, a setting is missing, or one is there that may
            change what the model computes and that ours has not.
    """
    architecture = settings.get("general.architecture")
    if architecture != "llama":
        raise ValueError(f"the file holds a model of architecture {architecture!r}, expected 'llama'")
    try:
        heads = settings["llama.attention.head_count"]
        config = replace(
            LLAMA,
            vocab_size=len(settings["tokenizer.ggml.tokens"]),
            max_len=settings["llama.context_length"],
            limit_context=True,
            num_hiddens=settings["llama.embedding_length"],
            num_heads=heads,
            num_kv_heads=settings.get("llama.attention.head_count_kv", heads),
            num_blks=settings["llama.block_count"],
            ffn_num_hiddens=settings["llama.feed_forward_length"],
            rotary_base=settings.get("llama.rope.freq_base", 10000.0),
            # a float32 in the file
            norm_eps=float(f"{settings['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        )
    except KeyError as error:
        raise ValueError(f"the file has no setting {error}: is it that of another model?") from error
    size = config.num_hiddens // config.num_heads
    fixed = _FIXED | {f"llama.{name}": (size,) for name in _HEAD_SIZES} | {"llama.vocab_size": (config.vocab_size,)}
    for name, value in settings.items():
        if not name.startswith(_SAYS_NOTHING) and name not in _READ and value not in fixed.get(name, ()):
            expected = f"expected {' or '.join(map(repr, fixed[name]))}" if name in fixed else "which is not known here"
            raise ValueError(f"the file has the setting {name!r} of {value!r:.40}, {expected}")
    return config


def load_gguf(file):
    """A `GPT` with the weights of a `GGUF` file of Llama's form, in evaluation mode, float32.

    Raises:
        ValueError: the file is of another model, or weights are missing.
    """
    config = gpt_config(file.settings)
    weights = {name: file.tensor(name) for name in file.names}
    if "output.weight" not in weights:  # tied
        weights["output.weight"] = weights.get("token_embd.weight")
    elif config.tie_weights:
        raise ValueError("the last layer does not share the embeddings, expected a file without output.weight")
    with nothing_drawn():
        model = GPT(config)
    return load_renamed(model, weights, RENAMES, "a model of Llama's form").eval()
