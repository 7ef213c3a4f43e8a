"""How the time of a layer grows with the length, the width and the depth, beside what the formulas say.

An exponent is the slope of a straight line through logarithms of time. The formulas count multiplications and
additions: of self-attention as in chapter 06, of attention to a window and in linear time as in chapter 09. The same
line is drawn through the formula's values, so that its terms of lower order count alike.
"""

import math
from dataclasses import dataclass, replace
from statistics import median

import torch

from benchmarks._common import in_turns, main
from benchmarks.attention import both, dtype_on
from d2lmini.attention import scaled_dot_product_attention
from d2lmini.efficient import block_local_mask, linear_attention
from d2lmini.multi_head import MultiHeadAttention
from d2lmini.transformer import TransformerEncoderBlock


@dataclass(frozen=True)
class Sizes:
    """What one of them is while another grows is its second value."""

    lengths: tuple = (512, 1024, 2048, 4096)
    widths: tuple = (64, 128, 256, 512)
    depths: tuple = (1, 2, 4, 8)
    heads: int = 2
    window: int = 128
    rounds: int = 9
    turn_s: float = 0.02
    most_s: float = 12


QUICK = replace(Sizes(), lengths=(8, 16), widths=(8, 16), depths=(1, 2), window=4, rounds=2, turn_s=0.0)


def window_attention(queries, keys, values, window):
    """Attention inside of blocks of ``window`` positions, (B, H, T, d) to the same, without the other pairs."""
    blocks = [x.unflatten(2, (-1, window)).transpose(1, 2).flatten(0, 1) for x in (queries, keys, values)]
    output = scaled_dot_product_attention(*blocks)  # (B * T / w, H, w, d)
    return output.unflatten(0, (len(queries), -1)).transpose(1, 2).flatten(2, 3)


def kernels(sizes):
    """Of each kind: a function of queries, keys and values, and its FLOPs forward at T tokens of D features in all."""
    w = sizes.window
    return {
        "attention": (scaled_dot_product_attention, lambda T, D: 4 * T * T * D),
        "window": (lambda q, k, v: window_attention(q, k, v, w), lambda T, D: 4 * T * w * D),
        "linear attention": (linear_attention, lambda T, D: 4 * T * D * D / sizes.heads),
    }


FORMULAS = {
    "attention": "4 T² D",
    "window": "4 T w D",
    "linear attention": "4 T D² / H",
    "self-attention layer": "8 T D² + 4 T² D",
    "encoder blocks": "L (24 T D² + 4 T² D)",
}


def slope(xs, ys):
    """Of the straight line of least squares through the logarithms, to two digits after the point."""
    xs, ys = [math.log(x) for x in xs], [math.log(y) for y in ys]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return round(covariance / sum((x - x_mean) ** 2 for x in xs), 2)


def curve(kind, variable, values, make, flops, sizes, device):
    """Forward and backward at each value, in turns."""
    seconds = in_turns({n: make(n) for n in values}, sizes.rounds, sizes.turn_s, device, sizes.most_s)
    found = [float(f"{median(seconds[n]):.4g}") for n in values]
    counted = [flops(n) for n in values]
    print(f"  {kind} in {variable}: {slope(values, found)}, formula {slope(values, counted)}", flush=True)
    return {
        "kind": kind,
        "variable": variable,
        "values": list(values),
        "seconds": found,
        "formula": FORMULAS[kind],
        "measured_exponent": slope(values, found),
        "formula_exponent": slope(values, counted),
    }


def measure(sizes, device="cpu"):
    """Returns: dict with ``curves``: exponents of the time in T, D and depth, measured and by the formula."""
    torch.manual_seed(0)
    H, T_0, D_0, dtype = sizes.heads, sizes.lengths[1], sizes.widths[1], dtype_on(device)
    curves = []

    def qkv(T, D):
        return [torch.randn(1, H, T, D // H, requires_grad=True, device=device, dtype=dtype) for _ in range(3)]

    mask = block_local_mask(T_0, sizes.window, device=device)
    inputs = qkv(T_0, D_0)
    tolerance = {} if dtype is torch.float32 else {"rtol": 0.05, "atol": 0.05}
    wanted = scaled_dot_product_attention(*inputs, mask=mask)
    torch.testing.assert_close(window_attention(*inputs, sizes.window), wanted, **tolerance)

    for kind, (call, flops) in kernels(sizes).items():
        for variable, values, shape in (
            ("T", sizes.lengths, lambda n: (n, D_0)),
            ("D", sizes.widths, lambda n: (T_0, n)),
        ):
            curves.append(
                curve(
                    kind,
                    variable,
                    values,
                    lambda n, call=call, shape=shape: both(call, qkv(*shape(n)), []),
                    lambda n, flops=flops, shape=shape: flops(*shape(n)),
                    sizes,
                    device,
                )
            )

    def layer(T, D):
        module = MultiHeadAttention(D, H).to(device, dtype)
        X = [torch.randn(1, T, D, requires_grad=True, device=device, dtype=dtype)]
        return both(lambda X: module(X, X, X), X, list(module.parameters()))

    def blocks(L):
        made = torch.nn.Sequential(*(TransformerEncoderBlock(D_0, 4 * D_0, H, 0.0) for _ in range(L))).to(device, dtype)
        X = [torch.randn(1, T_0, D_0, requires_grad=True, device=device, dtype=dtype)]
        return both(made, X, list(made.parameters()))

    def of_layer(T, D):
        return 8 * T * D * D + 4 * T * T * D

    name = "self-attention layer"
    in_T, in_D = (lambda n: of_layer(n, D_0)), (lambda n: of_layer(T_0, n))
    curves.append(curve(name, "T", sizes.lengths, lambda n: layer(n, D_0), in_T, sizes, device))
    curves.append(curve(name, "D", sizes.widths, lambda n: layer(T_0, n), in_D, sizes, device))
    of_block = of_layer(T_0, D_0) + 16 * T_0 * D_0 * D_0
    curves.append(curve("encoder blocks", "L", sizes.depths, blocks, lambda n: n * of_block, sizes, device))
    return {"curves": curves}


if __name__ == "__main__":
    main("cost", measure, Sizes(), QUICK)
