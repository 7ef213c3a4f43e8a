"""Diagrams: how things are put together, drawn by one hand; each is a function that returns a `Diagram`.

alignment.py     from pretraining to preferences
attention.py     the three steps of every attention
bert.py          BERT: the stack with its two heads, its targets, its heads for tasks
clip.py          CLIP: pictures and texts in one space
drawing.py       boxes, arrows with shapes on them, sums, frames: a diagram is a short text that becomes inline SVG
efficient.py     long sequences: three ways to attend in them
gpt.py           language models: the decoder-only stack, its targets, the loop that generates
layout.py        how a page shows a diagram, wide or on a phone
multi_head.py    multi-head attention: cut into heads, an attention in each, side by side
multiscale.py    a pyramid; windows and their shift; attention among patches and among channels
recurrent.py     a recurrent encoder-decoder, without and with attention
position.py      who reads whom in a sequence; a pair of features turned by its position
scaling.py       where a budget of compute goes
scoring.py       scoring, masked and in batches
self_attention.py  three tokens, each in three roles, and their three mixes
shapes.py        the shapes of a real forward pass
t5.py            T5, from an input with sentinels to its target; a layer of experts
today.py         the block of 2017 and today's, side by side
tokenization.py  from a text to tokens, ids and embeddings
training.py      where the norm of a block stands, and the sizes there
transformer.py   the Transformer: encoder block, decoder block, the whole model
vision.py        the vision Transformer
"""

from ...renamed import names_of
from .alignment import alignment
from .attention import compare_normalize_mix
from .bert import bert, masked_targets, task_heads
from .clip import clip
from .drawing import Diagram
from .efficient import long_sequences
from .gpt import decoding_loop, gpt, shifted_targets
from .multi_head import multi_head
from .multiscale import attention_both_ways, pyramid, shifted_windows
from .position import mixing_layers, turned_pairs
from .recurrent import sequence_to_sequence
from .scaling import budget
from .scoring import masked_scoring
from .self_attention import self_attention
from .t5 import switch, t5
from .today import todays_block
from .tokenization import text_to_embeddings
from .training import residual_forms
from .transformer import decoder_block, encoder_block, transformer
from .vision import vision_transformer

__getattr__ = names_of(__name__)

__all__ = [
    "Diagram",
    "alignment",
    "attention_both_ways",
    "bert",
    "budget",
    "clip",
    "compare_normalize_mix",
    "decoder_block",
    "decoding_loop",
    "encoder_block",
    "gpt",
    "long_sequences",
    "masked_scoring",
    "masked_targets",
    "mixing_layers",
    "multi_head",
    "pyramid",
    "residual_forms",
    "self_attention",
    "sequence_to_sequence",
    "shifted_targets",
    "shifted_windows",
    "switch",
    "t5",
    "task_heads",
    "text_to_embeddings",
    "todays_block",
    "transformer",
    "turned_pairs",
    "vision_transformer",
]
