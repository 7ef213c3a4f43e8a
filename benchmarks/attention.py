"""Attention against torch's fused kernel, D2L's formula and `nn.MultiheadAttention`, in time and memory.

A ratio above 1 means that ours is slower. Sequences are as many as make about the same number of tokens in all;
padding hides up to a half of a sequence. The mask of SDPA and of `nn.MultiheadAttention` is made beforehand, also where
ours is given ``valid_lens``.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks._common import main, ratios
from d2lmini.attention import scaled_dot_product_attention
from d2lmini.masks import causal_mask
from d2lmini.measure import peak_bytes
from d2lmini.multi_head import MultiHeadAttention


@dataclass(frozen=True)
class Sizes:
    """``batches`` belong to ``lengths``; the first pair is that of D2L 11.7. At ``long`` lengths, with one sequence
    each, the causal function alone is timed, in ``long_rounds``."""

    lengths: tuple = (9, 128, 512, 2048)
    batches: tuple = (128, 16, 4, 1)
    long: tuple = (4096, 8192)
    num_heads: int = 4
    head_size: int = 64
    rounds: int = 21
    long_rounds: int = 3
    turn_s: float = 0.02  # a call is repeated until its turn lasts so long


SMOKE = replace(Sizes(), lengths=(3, 8), batches=(2, 1), long=(16,), num_heads=2, head_size=4, rounds=2, turn_s=0.0)


def d2l_formula(queries, keys, values, valid_lens=None):
    """D2L 11.3.6 with its weights: (n, T, d), (n, S, d), (n, S, d), and lengths (n,) or (n, T), to (n, T, d)."""
    scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])  # (n, T, S)
    if valid_lens is not None:
        lens = valid_lens.repeat_interleave(scores.shape[1]) if valid_lens.dim() == 1 else valid_lens.flatten()
        rows = scores.flatten(0, 1)  # (n * T, S)
        hidden = torch.arange(rows.shape[1])[None] >= lens[:, None]
        scores = rows.masked_fill(hidden, -1e6).view(scores.shape)
    return torch.bmm(scores.softmax(-1), values)


def forward(call, inputs, parameters):
    """The call without a graph."""

    def run():
        with torch.no_grad():
            return call(*inputs)

    return run


def both(call, inputs, parameters):
    """The call and its backward pass."""
    wanted = [*inputs, *parameters]

    def run():
        output = call(*inputs)
        return torch.autograd.grad(output, wanted, output.detach())

    return run


def function_calls(sizes, T, B):
    """For each case: ours and its peers, as functions of queries, keys and values (B, H, T, d)."""
    H = sizes.num_heads
    lens = padding(T, B)
    mask = (torch.arange(T) < lens[:, None])[:, None, None]  # (B, 1, 1, T)
    future = torch.arange(1, T + 1).repeat(B * H, 1)  # D2L's causal mask: the t-th query may attend to t keys
    ours, sdpa = scaled_dot_product_attention, F.scaled_dot_product_attention

    def d2l(valid_lens=None):
        return lambda *qkv: d2l_formula(*(x.flatten(0, 1) for x in qkv), valid_lens).unflatten(0, (B, H))

    padded = {"sdpa": lambda *qkv: sdpa(*qkv, attn_mask=mask), "d2l": d2l(lens.repeat_interleave(H))}
    return {
        "no mask": {"ours": ours, "sdpa": sdpa, "d2l": d2l()},
        "causal": {
            "ours": lambda *qkv: ours(*qkv, causal=True),
            "sdpa": lambda *qkv: sdpa(*qkv, is_causal=True),
            "d2l": d2l(future),
        },
        "mask": {"ours": lambda *qkv: ours(*qkv, mask=mask), **padded},
        "valid_lens": {"ours": lambda *qkv: ours(*qkv, lens), **padded},
    }


def module_calls(sizes, T, B):
    """For each case: our module and torch's, as functions of X (B, T, h)."""
    h = sizes.num_heads * sizes.head_size
    ours, torchs = (
        MultiHeadAttention(h, sizes.num_heads),
        nn.MultiheadAttention(h, sizes.num_heads, bias=False, batch_first=True),
    )
    lens = padding(T, B)
    hidden, future = torch.arange(T) >= lens[:, None], ~causal_mask(T)
    peer = {
        "no mask": {},
        "causal": {"attn_mask": future, "is_causal": True},
        "valid_lens": {"key_padding_mask": hidden},
    }
    options = {"no mask": {}, "causal": {"causal": True}, "valid_lens": {"valid_lens": lens}}
    calls = {
        case: {
            "ours": lambda X, case=case: ours(X, X, X, **options[case]),
            "nn.MultiheadAttention": lambda X, case=case: torchs(X, X, X, need_weights=False, **peer[case])[0],
        }
        for case in peer
    }
    return calls, {"ours": ours, "nn.MultiheadAttention": torchs}


def padding(T, B):
    """Lengths (B,) of T, of half of it, and between."""
    return T - torch.arange(B) % 4 * T // 6


def measure(sizes):
    """Returns: dict with ``function`` and ``module``: ratios [case][peer][forward or both], one for each length;
    ``long``: so too of the causal function at the long ones; and ``extra_bytes`` [length][name], the peak memory of a
    forward and backward pass of the causal function, of ours and of the peers."""
    torch.manual_seed(0)
    function, module = {}, {}
    H, d, h = sizes.num_heads, sizes.head_size, sizes.num_heads * sizes.head_size
    for T, B in zip(sizes.lengths, sizes.batches, strict=True):
        qkv = [torch.randn(B, H, T, d, requires_grad=True) for _ in range(3)]
        for case, calls in function_calls(sizes, T, B).items():
            torch.testing.assert_close(calls["ours"](*qkv), calls["sdpa"](*qkv))
            torch.testing.assert_close(calls["d2l"](*qkv), calls["sdpa"](*qkv), rtol=1e-3, atol=1e-4)
            for way in (forward, both):
                _add(function, case, way, ratios({n: way(c, qkv, []) for n, c in calls.items()}, sizes))
        X = [torch.randn(B, T, h, requires_grad=True)]
        calls, modules = module_calls(sizes, T, B)
        for case, of_case in calls.items():
            for way in (forward, both):
                runs = {n: way(c, X, list(modules[n].parameters())) for n, c in of_case.items()}
                _add(module, case, way, ratios(runs, sizes))
    long, fewer = {}, replace(sizes, rounds=sizes.long_rounds)
    for T in sizes.long:
        qkv = [torch.randn(1, H, T, d, requires_grad=True) for _ in range(3)]
        calls = function_calls(sizes, T, 1)["causal"]
        for way in (forward, both):
            _add(long, "causal", way, ratios({n: way(c, qkv, []) for n, c in calls.items()}, fewer))
    extra = {}
    for T in (*sizes.lengths, *sizes.long):
        qkv = [torch.randn(1, H, T, d, requires_grad=True) for _ in range(3)]
        calls = function_calls(sizes, T, 1)["causal"]
        extra[T] = {name: peak_bytes(both(call, qkv, [])) for name, call in calls.items()}
    return {"function": function, "module": module, "long": long, "extra_bytes": extra}


def _add(table, case, way, found):
    for peer, ratio in found.items():
        table.setdefault(case, {}).setdefault(peer, {}).setdefault(way.__name__, []).append(ratio)


if __name__ == "__main__":
    main("attention", measure, Sizes(), SMOKE)
