"""Fewer keys: projected and compressed ones against loops, what is hidden, what a causal query may know."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.efficient.low_rank import LinformerAttention, MemoryCompressedAttention

B, H, T, S, D, E = 2, 3, 4, 7, 5, 6


def inputs(heads=False, S=S, T=T, grad=False):
    generator = torch.Generator().manual_seed(0)
    lead = (B, H) if heads else (B,)
    sizes = (T, D), (S, D), (S, E)
    return [torch.randn(*lead, *n, generator=generator, dtype=torch.float64).requires_grad_(grad) for n in sizes]


def softmax_average(q, k, v):
    """(E,) of (D,), (R, D), (R, E)."""
    powers = torch.exp(k @ q / math.sqrt(len(q)))
    return powers @ v / powers.sum()


@pytest.mark.parametrize("heads", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_linformer_is_attention_to_weighted_sums(heads, shared):
    torch.manual_seed(0)
    layer = LinformerAttention(9, 3, shared=shared).double()
    assert sum(p.numel() for p in layer.parameters()) == (1 if shared else 2) * 9 * 3
    q, k, v = inputs(heads)
    valid_lens = torch.tensor([S, 4])
    got = layer(q, k, v, valid_lens)
    for b in range(B):
        for h in range(H) if heads else [()]:
            n = valid_lens[b]
            i = (b, h) if heads else b
            K, V = layer.P_k[:, :n] @ k[i][:n], layer.P_v[:, :n] @ v[i][:n]
            torch.testing.assert_close(got[i], torch.stack([softmax_average(x, K, V) for x in q[i]]))


def test_linformer_with_a_slot_for_each_key_can_be_plain_attention():
    layer = LinformerAttention(S, S).double()
    torch.nn.init.eye_(layer.P_k)
    torch.nn.init.eye_(layer.P_v)
    q, k, v = inputs()
    torch.testing.assert_close(layer(q, k, v), torch.softmax(q @ k.mT / math.sqrt(D), -1) @ v)


def test_linformer_keeps_dot_products_on_average():
    torch.manual_seed(0)
    draws = torch.stack([LinformerAttention(6, 4).P_k.detach() for _ in range(4000)])
    torch.testing.assert_close((draws.mT @ draws).mean(0), torch.eye(6), atol=0.06, rtol=0)


@pytest.mark.parametrize("heads", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("stride", "kernel_size"), [(3, None), (2, 3), (1, 1), (9, None)])
@pytest.mark.parametrize("length", [7, 6])
def test_compressed_attention_by_loop(heads, causal, stride, kernel_size, length):
    torch.manual_seed(0)
    layer = MemoryCompressedAttention(D, E, stride, kernel_size, bias=True).double()
    kernel_size = kernel_size or stride
    q, k, v = inputs(heads, S=length)
    valid_lens = torch.tensor([length, 4])
    got = layer(q, k, v, valid_lens, causal=causal)
    for b in range(B):
        for h in range(H) if heads else [()]:
            i = (b, h) if heads else b
            K, V, last = [], [], []
            for start in range(0, length, stride):
                window = range(start, min(start + kernel_size, length, int(valid_lens[b])))
                if not window:
                    continue
                K.append(
                    layer.compress_k.bias + sum(layer.compress_k.weight[:, :, s - start] @ k[i][s] for s in window)
                )
                V.append(
                    layer.compress_v.bias + sum(layer.compress_v.weight[:, :, s - start] @ v[i][s] for s in window)
                )
                last.append(start + kernel_size - 1)
            for t in range(T):
                seen = [r for r, end in enumerate(last) if not causal or end <= t + length - T]
                want = softmax_average(q[i][t], torch.stack([K[r] for r in seen]), torch.stack([V[r] for r in seen])) \
                    if seen else torch.zeros(E, dtype=torch.float64)  # fmt: skip
                torch.testing.assert_close(got[i][t], want)


def test_a_causal_query_knows_nothing_of_later_ones():
    layer = MemoryCompressedAttention(D, E, 3, 4).double()
    q, k, v = inputs(S=9, T=9)
    whole = layer(q, k, v, causal=True)
    assert not whole[:, :3].any() and whole[:, 3:].all()  # before the end of the first slot there is nothing
    for n in range(1, 9):
        torch.testing.assert_close(layer(q[:, :n], k[:, :n], v[:, :n], causal=True), whole[:, :n])
        torch.testing.assert_close(layer(q[:, n:], k, v, causal=True), whole[:, n:])


@pytest.mark.parametrize("heads", [False, True])
@pytest.mark.parametrize("make", [lambda: LinformerAttention(9, 3), lambda: MemoryCompressedAttention(D, E)])
def test_what_is_hidden_has_no_effect_and_rows_without_keys_are_zero(make, heads):
    torch.manual_seed(0)
    layer = make().double()
    q, k, v = inputs(heads)
    valid_lens = torch.tensor([0, 5])
    hidden = (torch.arange(S) >= valid_lens[:, None])[..., None]  # (B, S, 1)
    hidden = hidden[:, None] if heads else hidden
    dirty = [q.requires_grad_(), *(x.masked_fill(hidden, math.nan).requires_grad_() for x in (k, v))]
    output = layer(*dirty, valid_lens)
    torch.testing.assert_close(output, layer(q, k, v, valid_lens))
    assert not output[0].any() and output[1].any()
    slopes = torch.autograd.grad(output.sum(), [*dirty, *layer.parameters()])
    assert all(x.isfinite().all() for x in slopes)
    mask = (torch.arange(S) < valid_lens[:, None])[:, None]  # (B, 1, S)
    torch.testing.assert_close(layer(q, k, v, mask=mask), output)


@pytest.mark.parametrize("make", [lambda: LinformerAttention(9, 3), lambda: MemoryCompressedAttention(D, E)])
def test_gradients_sizes_of_one_and_none(make):
    torch.manual_seed(0)
    layer = make().double()
    q, k, v = inputs(grad=True)
    valid_lens = torch.tensor([0, 5])
    assert torch.autograd.gradcheck(lambda *x: layer(*x, valid_lens), (q, k, v))
    q, k, v = inputs(T=1, S=1)
    assert layer(q, k, v).shape == (B, 1, E)
    q, k, v = inputs(S=0)
    assert layer(q, k, v).shape == (B, T, E) and not layer(q, k, v).any()
    q, k, v = inputs(T=0)
    assert layer(q, k, v).shape == (B, 0, E)


def test_work_of_linformer_grows_with_the_length_and_that_of_compression_less():
    counts = {}
    for n in (256, 512):
        x = torch.randn(1, n, 8)
        layers = {"linformer": LinformerAttention(n, 16), "compressed": MemoryCompressedAttention(8, 8, 4)}
        for name, layer in layers.items():
            with FlopCounterMode(display=False) as counter:
                layer(x, x, x)
            counts[name, n] = counter.get_total_flops()
    assert counts["linformer", 512] == 2 * counts["linformer", 256]
    pairs, convolution = 4 * 8 * 512 * 128, 2 * 2 * 8 * 8 * 512  # scores and sums; each position once in each of two
    assert counts["compressed", 512] == pairs + convolution


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LinformerAttention(0, 3), "num_keys is 0"),
        (lambda: LinformerAttention(3, 0), "num_slots 0"),
        (lambda: LinformerAttention(6, 3).double()(*inputs()), "there are 7 keys, expected at most 6"),
        (lambda: MemoryCompressedAttention(D, E, 0), "stride is 0"),
        (lambda: MemoryCompressedAttention(D, E, 3, 2), "kernel_size 2"),
        (lambda: MemoryCompressedAttention(D, E).double()(*inputs(T=8), causal=True), "8 queries but 7 keys"),
        (lambda: LinformerAttention(9, 3).double()(*inputs(), torch.ones(2, 4).long()), "masks of their own"),
    ],
)
def test_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()
