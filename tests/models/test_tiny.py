"""TinyTransformer: its blocks are those of the package; what is switched off, hidden, refused and begun with."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import d2lmini as d2l
from d2lmini.models.tiny import TinyBlock, TinyConfig, TinyTransformer

TOKENS = torch.randint(9, (2, 6), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("norm_place", "norm", "maker"),
    [("before", "layer", nn.LayerNorm), ("after", "rms", nn.RMSNorm), (None, "layer", nn.Identity)],
)
def test_a_block_is_the_encoders(norm_place, norm, maker):
    block = TinyBlock(TinyConfig(9, norm_place=norm_place, norm=norm, ffn="gelu"))
    other = d2l.TransformerEncoderBlock(32, 128, 4, norm_first=norm_place == "before", norm=maker, activation=nn.GELU)
    other.load_state_dict(block.state_dict())
    X = torch.randn(2, 6, 32)
    assert_close(block(X, causal=True), other(X, causal=True))


def test_what_is_switched_off_is_not_there():
    X = torch.randn(2, 6, 32)
    alone = TinyBlock(TinyConfig(9, norm_place=None, residual=False, ffn=None))
    assert_close(alone(X), alone.attention(X, X, X))
    assert [name for name, _ in alone.named_parameters() if "attention" not in name] == []
    network = TinyBlock(TinyConfig(9, norm_place="after", residual=False))
    Y = network.addnorm1.ln(network.attention(X, X, X))
    assert_close(network(X), network.addnorm2.ln(network.ffn(Y)))


@pytest.mark.parametrize("positions", [None, "learned", "sines", "rotary", "alibi"])
def test_later_tokens_are_hidden_and_order_is_known(positions):
    torch.manual_seed(0)
    model = TinyTransformer(TinyConfig(9, positions=positions))
    nn.init.normal_(model.dense.weight)
    changed = TOKENS.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 9
    assert_close(model(changed)[:, :4], model(TOKENS)[:, :4])
    seeing = TinyTransformer(TinyConfig(9, positions=positions, causal=False))
    nn.init.normal_(seeing.dense.weight)
    assert (seeing(changed)[:, :4] - seeing(TOKENS)[:, :4]).abs().max() > 1e-3
    turned = seeing(TOKENS.flip(1)).flip(1)
    same = torch.allclose(turned, seeing(TOKENS), atol=1e-5)
    assert same == (positions is None)


def test_the_loss_begins_at_log_v_and_only_chosen_places_count():
    model = TinyTransformer(TinyConfig(9))
    targets = TOKENS.clone()
    targets[:, :3] = -100
    logits = model(TOKENS)
    assert model.loss(logits, targets).item() == pytest.approx(math.log(9), rel=0.05)
    assert_close(model.loss(logits, targets), nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    groups = model.configure_optimizers().param_groups
    assert {p.dim() for p in groups[0]["params"]} == {2} and {p.dim() for p in groups[1]["params"]} == {1}


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="positions is 'roman'"):
        TinyConfig(9, positions="roman")
    with pytest.raises(ValueError, match="multiple of num_heads, 5"):
        TinyTransformer(TinyConfig(9, num_heads=5))
    with pytest.raises(ValueError, match="7 tokens, but the model has learned 6 positions"):
        TinyTransformer(TinyConfig(9, max_len=6))(torch.zeros(1, 7, dtype=torch.long))
    for name in ("vocab_size", "num_blks", "max_len"):
        with pytest.raises(ValueError, match=f"{name} is True, expected an integer, at least 1"):
            TinyConfig(**{"vocab_size": 9, name: True})
    model = TinyTransformer(TinyConfig(9))
    for wrong in (TOKENS + 9, TOKENS - 9, TOKENS[0], TOKENS.float(), TOKENS > 3):
        with pytest.raises(ValueError, match=r"tokens are .*, expected"):
            model(wrong)
    with pytest.raises(TypeError, match="tokens are a list"):
        model(TOKENS.tolist())
