"""Chapter 03: what attention costs in time and memory, against the number of tokens.

Three ways to attend, forward and backward: the formula written out, the fused kernel, and additive scoring.
They take turns within one run, so that a busy machine disturbs all alike; times are medians. Memory is the
peak of what a step allocates, its gradients included and its inputs not: on a CPU the profiler counts every
allocation, on a GPU the caching allocator does.
"""

import math
from dataclasses import dataclass, replace

import torch

from d2lmini.attention import AdditiveAttention, scaled_dot_product_attention
from d2lmini.lab.parts import Parts
from d2lmini.measure import median_seconds, peak_bytes, seconds  # noqa: F401, chapter 11 has it from here


@dataclass(frozen=True)
class Config:
    """Settings; T = S = each of ``lengths``; queries, keys, values and hidden layer have ``num_features``."""

    lengths: tuple = (128, 256, 512, 1024)
    additive_up_to: int = 256  # its T * S * h hyperbolic tangents take their time
    batch_size: int = 2
    num_features: int = 64
    dtypes: tuple = ("float32",)
    repetitions: int = 5
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(Config(), lengths=(32, 64), batch_size=1, num_features=8, repetitions=1),
    "cpu": Config(),
    "laptop": replace(  # longer, and in half precision too
        Config(),
        lengths=(128, 256, 512, 1024, 2048, 4096),
        additive_up_to=1024,
        dtypes=("float32", "bfloat16"),
        repetitions=5,
    ),
}


def plain(queries, keys, values):
    """The formula as it is printed: scores and weights are (B, T, S) tensors, kept for the backward pass."""
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])  # (B, T, S)
    return torch.softmax(scores, dim=-1) @ values  # (B, T, E)


def _step(attend, inputs):
    """Forward and backward. Gradients are handed back and so freed by the caller."""
    return torch.autograd.grad(attend(*inputs).sum(), inputs)


def _measure(config, length, dtype, device):
    """Median seconds and peak bytes of each contestant at one length: a pair of dicts."""
    shape = (config.batch_size, length, config.num_features)
    dtype = getattr(torch, dtype)
    inputs = [torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for _ in range(3)]
    contestants = {"plain": plain, "fused": scaled_dot_product_attention}
    if length <= config.additive_up_to:
        h = config.num_features
        contestants["additive"] = AdditiveAttention(h, query_size=h, key_size=h).to(device, dtype)
    steps = {name: lambda attend=attend: _step(attend, inputs) for name, attend in contestants.items()}
    times = median_seconds(steps, config.repetitions, device)
    return times, {name: peak_bytes(step, device) for name, step in steps.items()}


def run(config, device, parts=None):
    """Measure all lengths in every precision; ``parts`` are those of `Parts`.

    Returns:
        dict with ``curves`` (seconds and peak bytes of each way, a value a length) and ``metrics``: for each
        way at its longest length, both as multiples of the plain formula's, and the power of the length with
        which memory grew from the length before (2 is quadratic, 1 linear, 0 constant).
    """
    device, parts = torch.device(device), parts or Parts()
    torch.manual_seed(config.seeds[0])
    curves, metrics = {"lengths": list(config.lengths)}, {}
    for dtype in config.dtypes:
        time_of, peak_of = {}, {}
        for length in config.lengths:
            times, peaks = parts(f"{dtype}-{length}", _measure, config, length, dtype, device)
            for name in times:
                time_of.setdefault(name, []).append(times[name])
                peak_of.setdefault(name, []).append(peaks[name])
        curves[dtype] = {"seconds": time_of, "peak_bytes": peak_of}
        metrics[dtype] = {
            name: {
                "length": config.lengths[last],
                "times_the_time": time_of[name][last] / time_of["plain"][last],
                "times_the_memory": peak_of[name][last] / peak_of["plain"][last],
                "memory_grows_with_power": math.log(peak_of[name][last] / peak_of[name][last - 1])
                / math.log(config.lengths[last] / config.lengths[last - 1]),
            }
            for name in time_of
            for last in [len(time_of[name]) - 1]
        }
    first = metrics[config.dtypes[0]]
    metrics["headline"] = (
        f"forward and backward, {first['fused']['length']:,} tokens, {config.dtypes[0]}: the fused kernel "
        f"takes 1/{1 / first['fused']['times_the_memory']:.0f} of the plain formula's memory and "
        f"{first['fused']['times_the_time']:.2f} of its time; additive scoring, "
        f"{first['additive']['length']:,} tokens, {first['additive']['times_the_time']:.0f} times its time"
    )
    return {"metrics": metrics, "curves": curves}
