"""Attention to long sequences: which pairs to leave out, how to do without pairs, and how to do all of them in tiles.

patterns.py          sparse: masks of local, global, random ... attention; pairs, and layers until everything has met
linear.py            kernelised: sums over the keys in place of pairs, in linear time; as a recurrent network
random_features.py   Performer's features, with which the kernel is that of softmax, on average
low_rank.py          fewer keys: projected (Linformer), or compressed by a convolution
tiles.py             exact: tiles with an online softmax, forward and backward, in linear memory
"""

from .linear import LinearState, elu_feature_map, kernel_weights, linear_attention, linear_attention_step
from .low_rank import LinformerAttention, MemoryCompressedAttention
from .patterns import (
    bigbird_mask,
    block_local_mask,
    count_pairs,
    full_mask,
    global_mask,
    interaction_matrices,
    layers_per_pair,
    layers_to_reach,
    random_mask,
    strided_mask,
)
from .random_features import PositiveRandomFeatures
from .tiles import OnlineSoftmax, tiled_attention

__all__ = [
    "LinearState",
    "LinformerAttention",
    "MemoryCompressedAttention",
    "OnlineSoftmax",
    "PositiveRandomFeatures",
    "bigbird_mask",
    "block_local_mask",
    "count_pairs",
    "elu_feature_map",
    "full_mask",
    "global_mask",
    "interaction_matrices",
    "kernel_weights",
    "layers_per_pair",
    "layers_to_reach",
    "linear_attention",
    "linear_attention_step",
    "random_mask",
    "strided_mask",
    "tiled_attention",
]
