"""Diagrams: how things are put together, drawn by one hand; each is a function that returns a `Diagram`.

drawing.py       boxes, arrows with shapes on them, sums, frames: a diagram is a short text that becomes inline SVG
gpt.py           language models: the decoder-only stack, its targets, the loop that generates
t5.py            T5, from an input with sentinels to its target; a layer of experts
tokenization.py  from a text to tokens, ids and embeddings
transformer.py   the Transformer: encoder block, decoder block, the whole model
"""

from .drawing import Diagram
from .gpt import decoding_loop, gpt, shifted_targets
from .t5 import switch, t5
from .tokenization import text_to_embeddings
from .transformer import decoder_block, encoder_block, transformer

__all__ = [
    "Diagram",
    "decoder_block",
    "decoding_loop",
    "encoder_block",
    "gpt",
    "shifted_targets",
    "switch",
    "t5",
    "text_to_embeddings",
    "transformer",
]
