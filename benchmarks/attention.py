"""Attention against torch's fused kernel, D2L's formula and `nn.MultiheadAttention`, in time and memory.

Sequences are as many as make about the same number of tokens in all; padding hides up to a half of a sequence. The mask
of SDPA and of `nn.MultiheadAttention` is made beforehand, also where ours is given ``valid_lens``. The longest
sequences go forward and backward alone, without a mask and with a causal one.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks._common import contest, main
from d2lmini.attention import scaled_dot_product_attention
from d2lmini.masks import causal_mask
from d2lmini.multi_head import MultiHeadAttention


@dataclass(frozen=True)
class Sizes:
    """``batches`` belong to ``lengths``."""

    lengths: tuple = (128, 512, 2048, 8192)
    batches: tuple = (16, 4, 1, 1)
    longest: int = 2048  # up to here every case is measured
    num_heads: int = 2
    head_size: int = 64
    rounds: int = 15
    turn_s: float = 0.02  # a call is repeated until its turn lasts so long
    most_s: float = 8


QUICK = replace(
    Sizes(), lengths=(3, 8, 16), batches=(2, 1, 1), longest=8, num_heads=2, head_size=4, rounds=2, turn_s=0.0
)
LONG = ("no mask", "causal")


SDPA, D2L, TORCH = "SDPA", "D2L's formula", "nn.MultiheadAttention"


def dtype_on(device):
    """bf16 on a GPU, single precision on a CPU."""
    return torch.bfloat16 if torch.device(device).type == "cuda" else torch.float32


def d2l_formula(queries, keys, values, valid_lens=None):
    """D2L 11.3.6 with its weights: (n, T, d), (n, S, d), (n, S, d), and lengths (n,) or (n, T), to (n, T, d)."""
    scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])  # (n, T, S)
    if valid_lens is not None:
        valid_lens = valid_lens.repeat_interleave(scores.shape[1]) if valid_lens.dim() == 1 else valid_lens.flatten()
        rows = scores.flatten(0, 1)  # (n * T, S)
        hidden = torch.arange(rows.shape[1], device=rows.device)[None] >= valid_lens[:, None]
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


WAYS = {forward: "forward", both: "forward and backward"}


def function_calls(sizes, T, B, device="cpu"):
    """For each case: ours and its peers, as functions of queries, keys and values (B, H, T, d)."""
    H = sizes.num_heads
    valid_lens = padding(T, B).to(device)
    mask = (torch.arange(T, device=device) < valid_lens[:, None])[:, None, None]  # (B, 1, 1, T)
    future = torch.arange(1, T + 1, device=device).repeat(
        B * H, 1
    )  # D2L's causal mask: the t-th query may attend to t keys
    ours, sdpa = scaled_dot_product_attention, F.scaled_dot_product_attention

    def d2l(valid_lens=None):
        return lambda *qkv: d2l_formula(*(x.flatten(0, 1) for x in qkv), valid_lens).unflatten(0, (B, H))

    padded = {SDPA: lambda *qkv: sdpa(*qkv, attn_mask=mask), D2L: d2l(valid_lens.repeat_interleave(H))}
    return {
        "no mask": {"ours": ours, SDPA: sdpa, D2L: d2l()},
        "causal": {
            "ours": lambda *qkv: ours(*qkv, causal=True),
            SDPA: lambda *qkv: sdpa(*qkv, is_causal=True),
            D2L: d2l(future),
        },
        "mask": {"ours": lambda *qkv: ours(*qkv, mask=mask), **padded},
        "valid_lens": {"ours": lambda *qkv: ours(*qkv, valid_lens), **padded},
    }


def module_calls(sizes, T, B, device="cpu"):
    """For each case: our module and torch's, as functions of X (B, T, h)."""
    h = sizes.num_heads * sizes.head_size
    ours, torchs = (
        MultiHeadAttention(h, sizes.num_heads).to(device, dtype_on(device)),
        nn.MultiheadAttention(h, sizes.num_heads, bias=False, batch_first=True).to(device, dtype_on(device)),
    )
    valid_lens = padding(T, B).to(device)
    hidden, future = torch.arange(T, device=device) >= valid_lens[:, None], ~causal_mask(T, device=device)
    peer = {
        "no mask": {},
        "causal": {"attn_mask": future, "is_causal": True},
        "valid_lens": {"key_padding_mask": hidden},
    }
    options = {"no mask": {}, "causal": {"causal": True}, "valid_lens": {"valid_lens": valid_lens}}
    calls = {
        case: {
            "ours": lambda X, case=case: ours(X, X, X, **options[case]),
            TORCH: lambda X, case=case: torchs(X, X, X, need_weights=False, **peer[case])[0],
        }
        for case in peer
    }
    return calls, {"ours": ours, TORCH: torchs}


def padding(T, B):
    """Lengths (B,) of T, of half of it, and between."""
    return T - torch.arange(B) % 4 * T // 6


def measure(sizes, device="cpu"):
    """Returns: dict with ``contests``, as `benchmarks._common.contest` has them."""
    torch.manual_seed(0)
    contests, dtype = [], dtype_on(device)
    H, d, h = sizes.num_heads, sizes.head_size, sizes.num_heads * sizes.head_size

    def add(subject, case, way, T, B, calls):
        what = f"{subject}, {case}, {WAYS[way]}, {T:,} tokens"
        facts = {"subject": subject, "case": case, "way": WAYS[way], "T": T, "B": B}
        contests.append(contest(what, calls, sizes, unit="tokens", work=B * T, device=device, **facts))

    for T, B in zip(sizes.lengths, sizes.batches, strict=True):
        long = sizes.longest < T
        ways = (both,) if long else WAYS
        qkv = [torch.randn(B, H, T, d, requires_grad=True, device=device, dtype=dtype) for _ in range(3)]
        for case, calls in function_calls(sizes, T, B, device).items():
            if long and case not in LONG:
                continue
            if not long and dtype is torch.float32:
                torch.testing.assert_close(calls["ours"](*qkv), calls[SDPA](*qkv))
                torch.testing.assert_close(calls[D2L](*qkv), calls[SDPA](*qkv), rtol=1e-3, atol=1e-4)
            for way in ways:
                add("attention", case, way, T, B, {n: way(c, qkv, []) for n, c in calls.items()})
        X = [torch.randn(B, T, h, requires_grad=True, device=device, dtype=dtype)]
        calls, modules = module_calls(sizes, T, B, device)
        for case, of_case in calls.items():
            if long and case not in LONG:
                continue
            for way in ways:
                runs = {n: way(c, X, list(modules[n].parameters())) for n, c in of_case.items()}
                add("multi-head attention", case, way, T, B, runs)
    return {"contests": contests}


if __name__ == "__main__":
    main("attention", measure, Sizes(), QUICK)
