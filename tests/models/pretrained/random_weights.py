"""What the tests of published weights have in common."""

import importlib.util

import pytest
import torch
from torch import nn

if importlib.util.find_spec("transformers") is None:
    pytest.skip(
        "TRANSFORMERS TESTS SKIPPED: pip install transformers, as requirements.txt has it", allow_module_level=True
    )


def at_random(model):
    """A model with every parameter drawn: biases and positions too, which start at 0."""
    torch.manual_seed(1)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


def tiny_vit(**options):
    """A ``ViTForImageClassification``."""
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    return at_random(ViTForImageClassification(ViTConfig(**sizes, image_size=12, patch_size=4, **options)))


def tiny_gpt2():
    """A ``GPT2LMHeadModel``."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 37, "n_positions": 32, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_inner": 40}
    return at_random(GPT2LMHeadModel(GPT2Config(**sizes, layer_norm_epsilon=1e-3)))


def tiny_llama(groups=2, tied=True):
    """A ``LlamaForCausalLM`` of sizes that all differ."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": 37, "max_position_embeddings": 32, "hidden_size": 24, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 6, "num_key_value_heads": groups, "head_dim": 10, "intermediate_size": 44}
    rope = {"rope_type": "default", "rope_theta": 500.0}
    config = LlamaConfig(**sizes, **heads, rope_parameters=rope, rms_norm_eps=1e-3, tie_word_embeddings=tied)
    return at_random(LlamaForCausalLM(config))
