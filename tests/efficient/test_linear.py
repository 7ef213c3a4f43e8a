"""Linear attention against sums over pairs, in value and gradient; its work against its length."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.efficient.linear import (
    LinearState,
    elu_feature_map,
    kernel_weights,
    linear_attention,
    linear_attention_step,
)
from d2lmini.efficient.random_features import PositiveRandomFeatures
from d2lmini.measure import LargestTensor, peak_bytes

few = settings(max_examples=40, deadline=None, derandomize=True)


def inputs(*shapes, seed=0, grad=False, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_(grad) for shape in shapes]


def by_loop(queries, keys, values, seen, causal, feature_map):
    """(T, E) of (T, D), (S, D), (S, E), pair by pair."""
    T, S = len(queries), len(keys)
    rows = []
    for t in range(T):
        total, output = 0.0, torch.zeros_like(values[0]) if S else values.sum(0)
        for s in range(S):
            if seen[s] and not (causal and s > t + S - T):
                weight = feature_map(queries[t]) @ feature_map(keys[s])
                total, output = total + weight, output + weight * values[s]
        rows.append(output / total if isinstance(total, torch.Tensor) else output)
    return torch.stack(rows) if rows else values[:0]


@few
@given(st.data(), st.integers(0, 5), st.integers(0, 4), st.booleans(), st.integers(1, 7), st.booleans())
def test_equal_to_the_loop(data, T, extra, causal, chunk_size, heads):
    S, B, D, E = T + extra, 2, 3, 2
    valid_lens = torch.tensor(data.draw(st.lists(st.integers(0, S), min_size=B, max_size=B)))
    lead = (B, 3) if heads else (B,)
    q, k, v = inputs((*lead, T, D), (*lead, S, D), (*lead, S, E), seed=data.draw(st.integers(0, 99)), grad=True)
    got = linear_attention(q, k, v, valid_lens, causal=causal, chunk_size=chunk_size)

    def one(b, *h):
        return by_loop(q[b][h], k[b][h], v[b][h], torch.arange(S) < valid_lens[b], causal, lambda x: F.elu(x) + 1)

    want = torch.stack([torch.stack([one(b, h) for h in range(3)]) if heads else one(b) for b in range(B)])
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(kernel_weights(q, k, valid_lens, causal=causal) @ v, want)
    want = want + 0 * (q.sum() + k.sum() + v.sum())  # else nothing has a gradient where there are no keys
    if T:
        slope = torch.randn_like(want)
        for a, b in zip(*(torch.autograd.grad((x * slope).sum(), (q, k, v)) for x in (got, want)), strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["elu", "random", "stable"])
def test_gradcheck_with_a_row_without_keys(causal, kind):
    features = PositiveRandomFeatures(3, 4, generator=torch.Generator().manual_seed(0))
    feature_map = {"elu": elu_feature_map, "random": features, "stable": features.stable}[kind]
    valid_lens = torch.tensor([0, 3])

    def attend(q, k, v):
        return linear_attention(q, k, v, valid_lens, causal=causal, feature_map=feature_map, chunk_size=2)

    q, k, v = inputs((2, 3, 3), (2, 5, 3), (2, 5, 2), grad=True)
    assert torch.autograd.gradcheck(attend, (q, k, v))
    assert not attend(q, k, v)[0].any()


def test_the_stable_features_change_nothing_but_the_range():
    q, k, v = inputs((2, 4, 5), (2, 7, 5), (2, 7, 3))
    features = PositiveRandomFeatures(5, 16)
    for causal in (False, True):
        plain = linear_attention(q, k, v, causal=causal, feature_map=features)
        torch.testing.assert_close(linear_attention(q, k, v, causal=causal, feature_map=features.stable), plain)
    q, k, v = (x.float() for x in (40 * q, 40 * k, v))
    assert not linear_attention(q, k, v, feature_map=features).isfinite().all() or not features(k).all()
    stable = linear_attention(q, k, v, feature_map=features.stable)
    assert stable.isfinite().all()


def test_token_by_token_is_the_same():
    q, k, v = inputs((2, 3, 6, 5), (2, 3, 9, 5), (2, 3, 9, 4))
    want = linear_attention(q, k, v, causal=True, chunk_size=4)
    state, steps = None, []
    for s in range(9):
        t = max(0, s - 3)  # the first three keys come before the first query; what they get is not kept
        before = None if state is None else LinearState(*(x.clone() for x in state))
        output, new = linear_attention_step(q[:, :, t : t + 1], k[:, :, s : s + 1], v[:, :, s : s + 1], state)
        assert before is None or all(map(torch.equal, before, state))  # the old state is left alone
        assert new.matrix.shape == (2, 3, 5, 4) and new.normalizer.shape == (2, 3, 5)
        state, steps = new, [*steps, output]
    torch.testing.assert_close(torch.cat(steps[3:], -2), want)
    torch.testing.assert_close(state.matrix, elu_feature_map(k).mT @ v)
    torch.testing.assert_close(state.normalizer, elu_feature_map(k).sum(-2))


def test_masks_of_heads_and_what_is_hidden_has_no_effect():
    q, k, v = inputs((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 2))
    seen = torch.rand(2, 3, 1, 6, generator=torch.Generator().manual_seed(2)) < 0.5
    want = kernel_weights(q, k)
    want = torch.where(seen, want, 0)
    want = (want / want.sum(-1, keepdim=True)).nan_to_num() @ v
    for feature_map in (elu_feature_map, PositiveRandomFeatures(5, 8).stable):
        clean = linear_attention(q, k, v, mask=seen, feature_map=feature_map)
        dirty = [x.masked_fill(~seen.mT, math.nan).requires_grad_() for x in (k, v)]
        output = linear_attention(q, *dirty, mask=seen, feature_map=feature_map)
        torch.testing.assert_close(output, clean)
        assert all(x.isfinite().all() for x in torch.autograd.grad(output.sum(), dirty))
    torch.testing.assert_close(linear_attention(q, k, v, mask=seen), want)


def test_a_single_position():
    q, k, v = inputs((2, 1, 3), (2, 1, 3), (2, 1, 4))
    for causal in (False, True):
        torch.testing.assert_close(linear_attention(q, k, v, causal=causal), v)


def test_elu_plus_one_and_beyond_where_elu_rounds():
    x = torch.linspace(-9, 9, 100, dtype=torch.float64)
    torch.testing.assert_close(elu_feature_map(x), F.elu(x) + 1)
    x = torch.tensor([-30.0, 200.0], requires_grad=True)
    assert F.elu(x)[0] + 1 == 0 < elu_feature_map(x)[0]
    assert torch.autograd.grad(elu_feature_map(x).sum(), x)[0].isfinite().all()


def test_features_that_round_to_zero_give_zeros():
    q, k, v = inputs((1, 2, 3), (1, 4, 3), (1, 4, 2), grad=True)
    output = linear_attention(q - 1e4, k, v)
    assert not output.any() and not torch.autograd.grad(output.sum(), q)[0].any()


def test_half_precision_is_summed_in_single():
    ones = torch.ones(1000, dtype=torch.bfloat16)
    assert sum(ones) == 256  # the reason
    q, k, v = inputs((2, 300, 4), (2, 300, 4), (2, 300, 3), dtype=torch.bfloat16)
    want = linear_attention(q.float(), k.float(), v.float(), causal=True)
    got = linear_attention(q, k, v, causal=True)
    assert got.dtype == torch.bfloat16 and torch.equal(got, want.bfloat16())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = PositiveRandomFeatures(4, 8)
        for causal in (False, True):
            got = linear_attention(q.float(), k, v.float(), causal=causal)
            torch.testing.assert_close(got, linear_attention(q.float(), k.float(), v.float(), causal=causal))
            assert linear_attention(q, k.float(), v, causal=causal, feature_map=features.stable).dtype == torch.bfloat16
        last, state = linear_attention_step(q[:, :1], k[:, :1], v[:, :1])
        assert last.dtype == torch.bfloat16 and state.matrix.dtype == torch.float32
        assert kernel_weights(q, k).dtype == torch.bfloat16


@pytest.mark.parametrize("causal", [False, True])
def test_work_and_memory_grow_with_the_length(causal):
    flops, memory, largest = {}, {}, {}
    for T in (512, 1024, 2048):
        q, k, v = inputs(*[(1, T, 8)] * 3, grad=True, dtype=torch.float32)

        def step(q=q, k=k, v=v):
            return torch.autograd.grad(linear_attention(q, k, v, causal=causal, chunk_size=16).sum(), (q, k, v))

        with FlopCounterMode(display=False) as counter, LargestTensor() as seen:
            step()
        flops[T], largest[T], memory[T] = counter.get_total_flops(), seen.numel, peak_bytes(step)
    for cost in (flops, memory, largest):
        assert 1.9 < cost[1024] / cost[512] < 2.1 and 1.9 < cost[2048] / cost[1024] < 2.1
    assert largest[2048] <= 2048 * (16 + 9)


def test_later_tokens_change_nothing_before():
    q, k, v = inputs((1, 9, 3), (1, 9, 3), (1, 9, 2))
    whole = linear_attention(q, k, v, causal=True, chunk_size=4)
    torch.testing.assert_close(linear_attention(q[:, :6], k[:, :6], v[:, :6], causal=True, chunk_size=4), whole[:, :6])
    torch.testing.assert_close(linear_attention(q[:, 6:], k, v, causal=True, chunk_size=2), whole[:, 6:])


Q, K, V = inputs((2, 3, 4), (2, 5, 4), (2, 5, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_attention(Q, K, V, torch.ones(2, 3).long()), "the queries have masks of their own"),
        (lambda: linear_attention(Q, K, V, mask=torch.ones(3, 5).bool()), "the queries have masks of their own"),
        (lambda: linear_attention(Q, K, V, torch.tensor([1, 6])), "valid_lens holds 6"),
        (lambda: linear_attention(Q, K, V, chunk_size=0), "chunk_size is 0"),
        (lambda: linear_attention(K, Q, Q, causal=True), "there are 5 queries but 3 keys"),
        (lambda: linear_attention(Q, K, V, feature_map=lambda x: x.sum(-1)), r"feature_map made \(2, 3\)"),
        (lambda: linear_attention(Q, K[..., :3], V), "expected .* of both"),
        (lambda: linear_attention(Q, K, V[:, :4]), "5 keys but 4 values"),
        (lambda: linear_attention_step(Q, K, V), "there are 3 queries and 5 keys, expected one"),
    ],
)
def test_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()
