"""Attention in tiles: equal to the formula in value and gradient, in linear memory, with less work under a mask."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.attention import scaled_dot_product_attention
from d2lmini.efficient.tiles import OnlineSoftmax, tiled_attention
from d2lmini.masks import sliding_window_mask
from d2lmini.measure import LargestTensor, peak_bytes

few = settings(max_examples=60, deadline=None, derandomize=True)


def inputs(T, S, D=3, E=4, lead=(2,), seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    sizes = (T, D), (S, D), (S, E)
    return [torch.randn(*lead, *n, generator=generator, dtype=dtype).requires_grad_() for n in sizes]


def formula(q, k, v, seen, scale=None):
    """Written out; a row with nothing gives zeros and no gradient."""
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    powers = torch.exp(scores - scores.detach().amax(-1, keepdim=True)) * seen if k.shape[-2] else scores
    total = powers.sum(-1, keepdim=True)
    return powers / torch.where(total == 0, 1, total) @ v


def value_and_gradients(attend, tensors):
    output = attend(*tensors)
    slope = torch.randn(output.shape, generator=torch.Generator().manual_seed(3), dtype=output.dtype)
    return [output, *torch.autograd.grad((output * slope).sum(), tensors)]


@few
@given(st.data(), st.integers(0, 9), st.integers(0, 4), st.booleans(), st.booleans(), st.integers(1, 12))
def test_equal_to_the_formula(data, T, extra, causal, heads, width):
    S, lead = T + extra, (2, 3) if heads else (2,)
    tile = data.draw(st.sampled_from([width, (width, 3), (2, width)]))
    tensors = inputs(T, S, lead=lead, seed=data.draw(st.integers(0, 99)))
    seen = torch.ones(*lead, T, S, dtype=torch.bool)
    valid_lens = mask = None
    of_lens = data.draw(st.sampled_from([None, (2,), (2, T)]))
    if of_lens is not None:
        count = 2 if len(of_lens) == 1 else 2 * T
        valid_lens = torch.tensor(
            data.draw(st.lists(st.integers(0, S), min_size=count, max_size=count)), dtype=torch.long
        )
        valid_lens = valid_lens.reshape(of_lens)
        rows = torch.arange(S) < valid_lens.reshape(2, *[1] * (len(lead) - 1), -1, 1)
        seen = seen & rows
    of_mask = data.draw(st.sampled_from([None, (T, S), (1, S), (2, T, S), (2, T, 1), "heads"]))
    if of_mask == "heads":
        of_mask = (2, 3, T, S) if heads else (1, T, S)
    if of_mask is not None:
        mask = torch.rand(of_mask, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99)))) < 0.6
        seen = seen & (mask[:, None] if mask.dim() == 3 and heads else mask)
    if causal:
        seen = seen & torch.ones(T, S, dtype=torch.bool).tril(S - T)
    got = value_and_gradients(lambda *x: tiled_attention(*x, valid_lens, mask=mask, causal=causal, tile=tile), tensors)
    want = value_and_gradients(lambda *x: formula(*x, seen), tensors) if S else [torch.zeros_like(got[0])]
    for a, b in zip(got, want, strict=bool(S)):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(got[0], scaled_dot_product_attention(*tensors, valid_lens, mask=mask, causal=causal))


@pytest.mark.parametrize("causal", [False, True])
def test_gradcheck_with_a_row_without_keys(causal):
    valid_lens = torch.tensor([0, 4])
    attend = lambda *x: tiled_attention(*x, valid_lens, causal=causal, tile=(2, 3), scale=0.7)  # noqa: E731
    tensors = inputs(3, 5)
    assert torch.autograd.gradcheck(attend, tensors)
    assert not attend(*tensors)[0].any()


def test_gradients_of_some_inputs_alone():
    q, k, v = inputs(3, 5)
    want = torch.autograd.grad(scaled_dot_product_attention(q, k, v).sum(), k)
    got = torch.autograd.grad(tiled_attention(q.detach(), k, v.detach(), tile=2).sum(), k)
    torch.testing.assert_close(got, want)
    assert not tiled_attention(q.detach(), k.detach(), v.detach()).requires_grad


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_in_the_hundreds(sign):
    """Growing and falling along the keys, in single precision, where exp of them is infinite or zero."""
    q = torch.rand(2, 4, 3) + 0.5
    k = sign * torch.linspace(-400, 400, 30)[:, None].expand(2, 30, 3) + torch.randn(2, 30, 3)
    v = torch.randn(2, 30, 5)
    for part in (1, -1):
        got = value_and_gradients(
            lambda *x: tiled_attention(*x, tile=(3, 7)), [x.requires_grad_() for x in (part * q, k, v)]
        )
        want = value_and_gradients(
            lambda *x: scaled_dot_product_attention(*x),
            [x.detach().double().requires_grad_() for x in (part * q, k, v)],
        )
        torch.testing.assert_close(got[0], want[0].float(), rtol=1e-3, atol=1e-4)


def test_what_takes_no_part_has_no_effect():
    q, k, v = (x.detach() for x in inputs(6, 7))
    valid_lens = torch.tensor([[0, 2, 3, 3, 1, 0], [4, 0, 4, 2, 1, 3]])
    seen = torch.arange(7) < valid_lens[..., None]
    idle, unseen = ~seen.any(-1)[..., None], ~seen.any(-2)[..., None]
    nan = math.nan
    dirty = [q.masked_fill(idle, nan), k.masked_fill(unseen, nan), v.masked_fill(unseen, nan)]
    dirty = [x.requires_grad_() for x in dirty]
    clean = [x.requires_grad_() for x in (q, k, v)]
    for tile in (2, (1, 9), 64):
        got = value_and_gradients(lambda *x, tile=tile: tiled_attention(*x, valid_lens, tile=tile), dirty)
        want = value_and_gradients(lambda *x: scaled_dot_product_attention(*x, valid_lens), clean)
        torch.testing.assert_close(got, want)


def test_nothing_is_changed_and_a_nan_that_comes_back_for_an_empty_row_stops_there():
    tensors = inputs(3, 4)
    before = [x.detach().clone() for x in tensors]
    valid_lens = torch.tensor([[0, 2, 4], [1, 0, 3]])
    output = tiled_attention(*tensors, valid_lens, tile=2)
    slope = torch.where((valid_lens == 0)[..., None], math.nan, torch.ones_like(output))
    slopes = torch.autograd.grad(output, tensors, slope)
    assert all(x.isfinite().all() for x in slopes) and valid_lens[0, 0] == 0
    assert all(map(torch.equal, before, tensors))


def test_half_precision_is_as_near_as_the_kernel():
    q, k, v = (x.detach() for x in inputs(40, 50, D=8, dtype=torch.float32))
    half = [x.bfloat16().requires_grad_() for x in (q, k, v)]
    exact = value_and_gradients(scaled_dot_product_attention, [x.detach().double().requires_grad_() for x in half])
    got = value_and_gradients(lambda *x: tiled_attention(*x, tile=16), half)
    assert all(x.dtype == torch.bfloat16 for x in got)
    torch.testing.assert_close(got[0].double(), exact[0], rtol=2**-8, atol=1e-3)


def test_autocast_widens():
    q, k, v = (x.detach() for x in inputs(9, 9, D=4, dtype=torch.float32))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = tiled_attention(q, k.bfloat16(), v, tile=4)
    torch.testing.assert_close(got.float(), scaled_dot_product_attention(q, k, v), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("causal", [False, True])
def test_memory_is_linear_where_the_formula_is_quadratic(causal):
    def peak(attend, T):
        tensors = inputs(T, T, 16, 16, lead=(1,), dtype=torch.float32)
        return peak_bytes(lambda: torch.autograd.grad(attend(*tensors).sum(), tensors))

    tiled = [peak(lambda *x: tiled_attention(*x, causal=causal, tile=32), T) for T in (256, 512)]
    whole = [peak(lambda q, k, v: torch.softmax(q @ k.mT, -1) @ v, T) for T in (256, 512)]
    assert tiled[1] < 2.1 * tiled[0] and whole[1] > 3.5 * whole[0] and tiled[1] < whole[1] / 5
    valid_lens = torch.randint(0, 513, (1, 512))  # a length a query: their mask would be as large as the scores
    with LargestTensor() as seen:
        tensors = inputs(512, 512, 16, 16, lead=(1,), dtype=torch.float32)
        torch.autograd.grad(tiled_attention(*tensors, valid_lens, causal=causal, tile=32).sum(), tensors)
    assert seen.numel == 512 * 16  # that of the inputs


def flops(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_work_of_tiles():
    """All of the scores forward; what is hidden tile by tile costs nothing."""
    T, D, n = 128, 8, 16
    tensors = [x.detach() for x in inputs(T, T, D, D, lead=(1,))]
    full = flops(lambda: tiled_attention(*tensors, tile=n))
    assert full == 2 * 2 * T * T * D  # two products, a multiplication and an addition each
    causal = flops(lambda: tiled_attention(*tensors, causal=True, tile=n))
    rows = T // n
    assert causal * rows * rows == full * rows * (rows + 1) / 2
    near = sliding_window_mask(T, n + 1)
    assert flops(lambda: tiled_attention(*tensors, mask=near, tile=n)) * rows * rows == full * (2 * rows - 1)
    grads = [x.requires_grad_() for x in tensors]
    both = flops(lambda: torch.autograd.grad(tiled_attention(*grads, tile=n).sum(), grads))
    assert both == full * 7 / 2  # backward: the scores again, and four products


@few
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 99))
def test_online_softmax_tile_by_tile(widths, T, seed):
    generator = torch.Generator().manual_seed(seed)
    S = sum(widths)
    scores = 20 * torch.randn(2, T, S, generator=generator, dtype=torch.float64)
    scores[torch.rand(2, T, S, generator=generator) < 0.4] = -math.inf
    values = torch.randn(2, S, 3, generator=generator, dtype=torch.float64)
    softmax, done = OnlineSoftmax(), 0
    for n in widths:
        softmax.add(scores[..., done : done + n], values[:, done : done + n])
        done += n
        so_far = scores[..., :done]
        torch.testing.assert_close(softmax.average(), so_far.softmax(-1).nan_to_num() @ values[:, :done])
        torch.testing.assert_close(softmax.log_sum_exp()[..., 0], so_far.logsumexp(-1))
        torch.testing.assert_close(softmax.top[..., 0], so_far.amax(-1))


def test_online_softmax_has_gradients():
    scores = torch.randn(2, 3, 6, dtype=torch.float64)
    scores[0, 0] = scores[1, 1, :3] = -math.inf
    scores.requires_grad_()
    values = torch.randn(2, 6, 4, dtype=torch.float64, requires_grad=True)
    softmax = OnlineSoftmax()
    for n in range(0, 6, 3):
        softmax.add(scores[..., n : n + 3], values[:, n : n + 3])
    full = scores.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0).softmax(-1)
    full = full * (scores.detach() > -math.inf).any(-1, keepdim=True)
    slope = torch.randn(2, 3, 4, dtype=torch.float64)
    got = torch.autograd.grad((softmax.average() * slope).sum(), (scores, values))
    want = torch.autograd.grad((full @ values * slope).sum(), (scores, values))
    torch.testing.assert_close(got, want)


Q, K, V = (x.detach() for x in inputs(3, 5))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tiled_attention(Q, K[..., :2], V), ValueError, "queries have 3 features and keys 2"),
        (lambda: tiled_attention(Q[..., :0], K[..., :0], V), ValueError, "at least 1"),
        (lambda: tiled_attention(Q, K, V, tile=0), ValueError, r"tile is \(0, 0\)"),
        (lambda: tiled_attention(Q, K, V, tile=(2, 3, 4)), ValueError, "tile is"),
        (lambda: tiled_attention(K, Q, V[:, :3], causal=True), ValueError, "5 queries but 3 keys"),
        (lambda: tiled_attention(Q, K, V, torch.tensor([1, 6])), ValueError, "valid_lens holds 6"),
        (lambda: tiled_attention(Q, K, V, torch.ones(2, 4).long()), ValueError, "but there are 3 queries"),
        (lambda: tiled_attention(Q, K, V, torch.ones(2)), TypeError, "expected integers"),
        (lambda: tiled_attention(Q, K, V, mask=torch.ones(3, 5)), TypeError, "expected a boolean"),
        (lambda: tiled_attention(Q, K, V.float()), ValueError, "dtype"),
    ],
)
def test_what_does_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()
