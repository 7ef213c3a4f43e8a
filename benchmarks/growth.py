"""With which powers of its sizes the cost of attention and of a model grows, measured, beside the formulas.

A forward and backward pass is timed while one size doubles and the others stay. The power is the slope between the two
largest in log-log. The formulas count multiplications, as chapters 06 and 09 do, and so does the column ``work``, which
torch's counter of FLOPs gives.
"""

import math
from dataclasses import dataclass, replace
from statistics import median

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks._common import in_turns, main
from d2lmini.attention import scaled_dot_product_attention
from d2lmini.efficient import linear_attention, tiled_attention
from d2lmini.masks import sliding_window_mask
from d2lmini.measure import peak_bytes
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig


@dataclass(frozen=True)
class Sizes:
    """Each tuple doubles; the rest stays at ``tokens``, ``features`` and ``blocks``."""

    lengths: tuple = (512, 1024, 2048, 4096)
    widths: tuple = (32, 64, 128, 256)
    depths: tuple = (2, 4, 8)
    tokens: int = 1024
    features: int = 64
    window: int = 128
    model: tuple = (256, 500, 128, 4)  # T, V, h, heads
    rounds: int = 5
    turn_s: float = 0.1


SMOKE = replace(
    Sizes(), lengths=(8, 16), widths=(4, 8), depths=(1, 2), tokens=8, features=4, window=2, model=(4, 11, 8, 2),
    rounds=2, turn_s=0.0,
)  # fmt: skip

# multiplications that grow fastest, by what doubles: the powers that the formulas give
FORMULAS = {
    ("formula", "length"): ("2 T² D", 2),
    ("fused", "length"): ("2 T² D", 2),
    ("window in tiles", "length"): ("2 T w D", 1),
    ("linear", "length"): ("2 T D²", 1),
    ("formula", "width"): ("2 T² D", 1),
    ("fused", "width"): ("2 T² D", 1),
    ("linear", "width"): ("2 T D²", 2),
    ("GPT", "depth"): ("L (12 T h² + 2 T² h)", 1),
}


def plain(queries, keys, values):
    """The formula, with its matrix of weights."""
    return torch.softmax(queries @ keys.mT / math.sqrt(queries.shape[-1]), -1) @ values


def attention_ways(T, window):
    """Functions of queries, keys and values (1, T, D)."""
    mask = sliding_window_mask(T, window)[None]
    return {
        "formula": plain,
        "fused": scaled_dot_product_attention,
        "window in tiles": lambda *qkv: tiled_attention(*qkv, mask=mask, tile=window),
        "linear": linear_attention,
    }


def attention_step(attend, T, D):
    """Forward and backward of one way at one size."""
    inputs = [torch.randn(1, T, D, requires_grad=True) for _ in range(3)]
    return lambda: torch.autograd.grad(attend(*inputs).sum(), inputs)


def model_step(depth, sizes):
    """Forward and backward of a GPT of so many blocks."""
    T, V, h, heads = sizes.model
    model, tokens = GPT(GPTConfig(V, T, h, heads, depth, dropout=0.0)), torch.randint(V, (1, T))
    return lambda: torch.autograd.grad(model(tokens).square().mean(), list(model.parameters()))


def measure(sizes):
    """Returns: dict with ``growth``: a list of what grew, with its formula and the powers of work, time and memory."""
    torch.manual_seed(0)
    found = []
    for (way, what), (formula, power) in FORMULAS.items():
        if what == "depth":
            at, steps = sizes.depths, {n: model_step(n, sizes) for n in sizes.depths}
        elif what == "length":
            at = sizes.lengths
            steps = {T: attention_step(attention_ways(T, sizes.window)[way], T, sizes.features) for T in at}
        else:
            at = sizes.widths
            steps = {D: attention_step(attention_ways(sizes.tokens, sizes.window)[way], sizes.tokens, D) for D in at}
        seconds = {n: median(of) for n, of in in_turns(steps, sizes.rounds, sizes.turn_s).items()}
        quantities = {
            "work": {n: flops(step) for n, step in steps.items()},
            "time": seconds,
            "memory": {n: peak_bytes(step) for n, step in steps.items()},
        }
        powers = {name: _power([of[n] for n in at], at) for name, of in quantities.items()}
        found.append({"way": way, "grows": what, "at": at, "formula": formula, "power": power, **powers,
                      "ms": [round(1e3 * seconds[n], 3) for n in at]})  # fmt: skip
    return {"growth": found}


def flops(step):
    """Floating-point operations of a call, by torch's counter."""
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


def _power(ys, xs):
    return round(math.log(max(ys[-1], 1e-12) / max(ys[-2], 1e-12)) / math.log(xs[-1] / xs[-2]), 2)


if __name__ == "__main__":
    main("growth", measure, Sizes(), SMOKE)
