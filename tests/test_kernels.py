"""Whichever way attention is computed, the numbers are the same."""

import pytest
import torch
import torch.nn.functional as F

from d2lmini.attention import scaled_dot_product_attention


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("T", [1, 5])
@pytest.mark.parametrize("form", ["plain", "causal", "mask", "valid_lens", "bias"])
def test_keys_may_lie_feature_by_feature(form, T, monkeypatch):
    inputs = [torch.randn(2, 3, n, 4) for n in (T, 90, 90)]
    options = {
        "plain": {},
        "causal": {"causal": True},
        "mask": {"mask": torch.rand(T, 90) > 0.3},
        "valid_lens": {"valid_lens": torch.tensor([0, 70])},
        "bias": {"score_bias": torch.randn(1, 3, T, 90)},
    }[form]
    kernel, taken, results = F.scaled_dot_product_attention, [], []

    def watched(queries, keys, *args, **kwargs):
        taken.append(keys.stride(-1))
        return kernel(queries, keys, *args, **kwargs)

    for by_feature in (False, True):
        queries, keys, values = leaves = [x.clone().requires_grad_() for x in inputs]
        lying = keys.mT.contiguous().mT if by_feature else keys
        with monkeypatch.context() as patch:
            patch.setattr(F, "scaled_dot_product_attention", watched)
            with torch.no_grad():
                scaled_dot_product_attention(queries, lying, values, **options)
            assert set(taken) <= {1} and not (taken and by_feature and T == 1)
            taken.clear()
        output = scaled_dot_product_attention(queries, lying, values, **options)
        output.square().sum().backward()
        results.append([output, *(x.grad for x in leaves)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_under_autocast_on_a_cpu_the_kernel_computes_in_float32():
    rounded = [torch.randn(2, 4, 40, 16).bfloat16() for _ in range(3)]
    expected = scaled_dot_product_attention(*(x.float() for x in rounded), causal=True)
    bias = torch.randn(1, 1, 40, 40)
    with torch.autocast("cpu", torch.bfloat16):
        got = scaled_dot_product_attention(*rounded, causal=True)
        biased = scaled_dot_product_attention(*rounded, score_bias=bias)
    assert got.dtype == biased.dtype == torch.bfloat16
    assert torch.equal(got, expected.bfloat16())
    expected = scaled_dot_product_attention(*(x.float() for x in rounded), score_bias=bias)
    assert torch.equal(biased, expected.bfloat16())
