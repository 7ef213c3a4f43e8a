"""Looking inside a model: weights are recorded, heads switched off, and tokens traced back through the layers."""

import pytest
import torch
from torch import nn

from d2lmini.attention import AdditiveAttention, DotProductAttention, scaled_dot_product_attention
from d2lmini.hooks import attention_patterns, attention_rollout, capture_attention, head_masks
from d2lmini.multi_head import MultiHeadAttention


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def qkv(B=2, T=3, S=4, D=5, E=7, H=None, dtype=torch.float32, grad=False):
    lead = (B,) if H is None else (B, H)
    return [torch.randn(*lead, n, d).to(dtype).requires_grad_(grad) for n, d in ((T, D), (S, D), (S, E))]


def test_capture_attention_records_every_call_of_every_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = DotProductAttention(0.0), AdditiveAttention(6)

        def forward(self, queries, keys, values, valid_lens):
            self.second(queries, keys, values, valid_lens)
            return self.first(queries, keys, values, valid_lens) + self.first(keys[:, :3], keys, values)

    model, inputs, valid_lens = Model(), qkv(), torch.tensor([2, 4])
    with capture_attention(model) as record:
        model(*inputs, valid_lens)
    assert {name: len(weights) for name, weights in record.items()} == {"first": 2, "second": 1}
    expected = scaled_dot_product_attention(*inputs, valid_lens, return_weights=True)[1]
    torch.testing.assert_close(record["first"][0], expected)
    model(*inputs, valid_lens)
    assert len(record["first"]) == 2  # closed
    assert not model.first._forward_hooks


def test_capture_attention_closes_after_an_error_and_refuses_a_module_without_attention():
    module = DotProductAttention(0.0)
    with pytest.raises(ValueError, match="keys"), capture_attention(module):
        module(*qkv(D=5)[:1], *qkv(D=6)[1:])
    assert not module._forward_hooks
    with (
        pytest.raises(ValueError, match="Linear holds no attention module"),
        capture_attention(nn.Linear(1, 1)),
    ):
        pass


def test_heads_inside_a_model_are_masked_while_open():
    model = nn.ModuleDict({"a": MultiHeadAttention(6, 2), "b": MultiHeadAttention(6, 2)})
    X, mask = torch.randn(2, 5, 6), torch.tensor([0.0, 1.0])
    plain = {name: m(X, X, X) for name, m in model.items()}
    with head_masks(model, {"b": mask}):
        assert torch.equal(model["a"](X, X, X), plain["a"])
        torch.testing.assert_close(model["b"](X, X, X), model["b"].forward(X, X, X, head_mask=mask))
        assert not torch.allclose(model["b"](X, X, X), plain["b"])
    assert torch.equal(model["b"](X, X, X), plain["b"]) and not model["b"]._forward_pre_hooks
    missing = pytest.raises(ValueError, match="no multi-head attention 'c', expected one of a, b")
    with missing, head_masks(model, {"c": mask}):
        pass


def test_patterns_are_the_masks_of_a_model():
    masks = torch.rand(2, 2, 3, 4) < 0.4
    with_heads = MultiHeadAttention(6, 2, dropout=0.9)
    queries, keys = torch.randn(2, 3, 6), torch.randn(2, 4, 6)
    assert torch.equal(attention_patterns(with_heads, queries, keys, keys, mask=masks)["attention"], masks.any(1))
    assert with_heads.training and not with_heads.attention._forward_hooks
    with_heads.W_q.eval()
    attention_patterns(with_heads, queries, keys, keys)
    assert not with_heads.W_q.training and with_heads.W_k.training  # each as it was
    model = nn.Sequential(DotProductAttention(), nn.Linear(7, 1))
    found = attention_patterns(model[0], *qkv(), mask=masks[:, 0])
    assert torch.equal(found[""], masks[:, 0])
    with pytest.raises(ValueError, match="no attention module"):
        attention_patterns(model[1], torch.ones(7))


def test_rollout_is_the_product_by_a_loop():
    weights = [torch.rand(2, 3, 5, 5).softmax(-1) for _ in range(3)]
    rollout = attention_rollout(weights)
    for n in range(2):
        expected = torch.eye(5)
        for block in weights:
            expected = (0.5 * block[n].mean(0) + 0.5 * torch.eye(5)) @ expected
        torch.testing.assert_close(rollout[n], expected)
    torch.testing.assert_close(rollout.sum(-1), torch.ones(2, 5))
    torch.testing.assert_close(attention_rollout([w.flatten(0, 1) for w in weights], num_heads=3), rollout)


@pytest.mark.parametrize(
    ("weights", "heads", "message"),
    [
        ([], None, "there are no weights"),
        ([torch.rand(6, 5, 5)], None, "num_heads is None"),
        ([torch.rand(6, 5, 5)], 4, "num_heads is 4"),
        ([torch.rand(6, 5, 5)], 0, "num_heads is 0"),
        ([torch.rand(2, 3, 5, 5), torch.rand(2, 3, 6, 6)], None, "expected one shape"),
        ([torch.rand(2, 3, 5, 6)], None, r"shape \(2, 3, 5, 6\), expected \(N, H, T, T\)"),
    ],
)
def test_rollout_of_what_is_no_attention(weights, heads, message):
    with pytest.raises(ValueError, match=message):
        attention_rollout(weights, heads)
