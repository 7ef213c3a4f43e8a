"""Buffers that a change of dtype does not round: of any module, by any call, and back from the meta device."""

import copy

import pytest
import torch
from torch import nn

import d2lmini as d2l
from d2lmini.adapters import LowRankAdapter, adapt
from d2lmini.efficient import PositiveRandomFeatures
from d2lmini.quantized import QuantizedEmbedding, QuantizedLinear, quantize
from d2lmini.vision.grid_position import GridRotary

WEIGHT = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
MODULES = {
    "rotary": lambda: d2l.RotaryEmbedding(8),
    "rotary on a grid": lambda: GridRotary(8, (3, 4)),
    "sines": lambda: d2l.PositionalEncoding(6),
    "8 bits": lambda: QuantizedLinear(quantize(WEIGHT)),
    "4 bits": lambda: QuantizedLinear(quantize(WEIGHT, 4, 2, scale_dtype=torch.float32)),
    "a table in 8 bits": lambda: QuantizedEmbedding(quantize(WEIGHT)),
    "adapter": lambda: LowRankAdapter(nn.Linear(8, 6), 3, alpha=5),
    "random features": lambda: PositiveRandomFeatures(4, 7),
    "a model": lambda: adapt(d2l.quantize_model(d2l.GPT(d2l.GPT_CONFIGS["modern-toy"])), 3, alpha=5),
    "a Transformer": lambda: d2l.Transformer(d2l.TransformerConfig(11, 16, 24, 2, 2), 0),
    "a vision Transformer": lambda: d2l.ViT(28, 7, 32, 64, 4, 2, 0.1, 0.1, positions="rotary", num_channels=1),
}
CASTS = {
    "bfloat16": lambda module: module.bfloat16(),
    "half": lambda module: module.half(),
    "to": lambda module: module.to(torch.bfloat16),
    "to a device": lambda module: module.to("cpu", torch.float16),
    "double": lambda module: module.double(),
    "within another": lambda module: nn.Sequential(nn.Sequential(module)).bfloat16()[0][0],
    "a copy": lambda module: copy.deepcopy(module).half(),
}


def held(module):
    return {name: x.clone() for name, x in module.named_buffers() if x.is_floating_point()}


@pytest.mark.parametrize("cast", CASTS)
@pytest.mark.parametrize("make", MODULES)
def test_a_change_of_dtype_leaves_them(make, cast):
    torch.manual_seed(0)
    module = MODULES[make]()
    before = held(module)
    assert before
    for found in (held(CASTS[cast](module)), held(CASTS[cast](module).float())):
        assert {name: x.dtype for name, x in found.items()} == {name: x.dtype for name, x in before.items()}
        assert all(torch.equal(x, before[name]) for name, x in found.items())


@pytest.mark.parametrize("make", ["rotary", "rotary on a grid", "sines"])
def test_a_table_that_is_in_no_checkpoint_comes_back_from_the_meta_device(make):
    module = MODULES[make]()
    before = held(module)
    assert all(x.is_meta for x in module.to("meta").buffers())
    back = copy.deepcopy(module).to_empty(device="cpu")
    assert all(torch.equal(x, before[name]) for name, x in held(back).items())


def test_what_is_in_a_checkpoint_is_that_of_the_checkpoint():
    first, second = (LowRankAdapter(nn.Linear(8, 6), 3, alpha) for alpha in (5, 7))
    second.to("meta").to_empty(device="cpu").load_state_dict(first.state_dict())
    assert second.bfloat16().float().factor.item() == 5 / 3
