"""Diagrams: how things are put together, drawn by one hand; each is a function that returns a `Diagram`.

bert.py          BERT: the stack with its two heads, its targets, its heads for tasks
drawing.py       boxes, arrows with shapes on them, sums, frames: a diagram is a short text that becomes inline SVG
efficient.py     long sequences: three ways to attend in them
gpt.py           language models: the decoder-only stack, its targets, the loop that generates
t5.py            T5, from an input with sentinels to its target; a layer of experts
tokenization.py  from a text to tokens, ids and embeddings
transformer.py   the Transformer: encoder block, decoder block, the whole model
"""

from .bert import bert, masked_targets, task_heads
from .drawing import Diagram
from .efficient import long_sequences
from .gpt import decoding_loop, gpt, shifted_targets
from .t5 import switch, t5
from .tokenization import text_to_embeddings
from .transformer import decoder_block, encoder_block, transformer

__all__ = [
    "Diagram",
    "bert",
    "decoder_block",
    "decoding_loop",
    "encoder_block",
    "gpt",
    "long_sequences",
    "masked_targets",
    "shifted_targets",
    "switch",
    "t5",
    "task_heads",
    "text_to_embeddings",
    "transformer",
]
