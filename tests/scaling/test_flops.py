"""FLOPs of training: as torch counts them in real steps, and as papers state them."""

from dataclasses import replace

import pytest
import torch
from gpt_forms import FORMS
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.scaling import gpt_training_flops, matrix_parameters, training_flops

TOY = replace(GPT_CONFIGS["toy"], vocab_size=37, max_len=24, num_hiddens=16, num_heads=2, num_blks=3)


@pytest.mark.parametrize("form", FORMS)
def test_torch_counts_the_same(form):
    config = replace(FORMS[form], vocab_size=37, max_len=24)
    B, T = 3, 20
    model, tokens = GPT(config), torch.randint(config.vocab_size, (B, T))
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model.loss(model(tokens), tokens).backward()
    assert gpt_training_flops(config, B * T, context=T) == counter.get_total_flops()


def test_attention_comes_on_top():
    context = TOY.max_len
    whole, causal = gpt_training_flops(TOY, 100), gpt_training_flops(TOY, 100, causal=True)
    without = training_flops(matrix_parameters(TOY), 100)
    assert whole - without == 12 * 100 * context * TOY.num_hiddens * TOY.num_blks
    assert (causal - without) / (whole - without) == pytest.approx((context + 1) / (2 * context))


def test_gpt3_as_published():
    """Brown et al. 2020, appendix D: 3.14e23, by 6 N D; attention adds a few per cent."""
    config = GPT_CONFIGS["gpt3"]
    assert training_flops(174.6e9, 300e9) == pytest.approx(3.14e23, rel=2e-3)
    assert matrix_parameters(config) == pytest.approx(174.6e9, rel=2e-3)
    assert 1.0 < gpt_training_flops(config, 300e9) / 3.14e23 < 1.05


def test_bad_input():
    for arguments in ((-1, 5), (5, -1), (float("nan"), 5)):
        with pytest.raises(ValueError, match="expected numbers from 0"):
            training_flops(*arguments)
    for tokens in (-1, float("nan")):
        with pytest.raises(ValueError, match=f"got {tokens} tokens"):
            gpt_training_flops(TOY, tokens)
    with pytest.raises(ValueError, match="context of 0"):
        gpt_training_flops(TOY, 5, context=0)
