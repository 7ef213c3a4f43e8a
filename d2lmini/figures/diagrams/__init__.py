"""Diagrams: how things are put together, drawn by one hand; each is a function that returns a `Diagram`.

drawing.py       boxes, arrows with shapes on them, sums, frames: a diagram is a short text that becomes inline SVG
tokenization.py  from a text to tokens, ids and embeddings
transformer.py   the Transformer: encoder block, decoder block, the whole model
"""

from .drawing import Diagram
from .tokenization import text_to_embeddings
from .transformer import decoder_block, encoder_block, transformer

__all__ = ["Diagram", "decoder_block", "encoder_block", "text_to_embeddings", "transformer"]
