"""Model FLOP utilization of a training step of GPT-2 124M on a GPU, in bf16, with `torch.compile`.

The step's FLOPs are counted by `d2lmini.gpt_training_flops`, without what is computed again. They are put beside the
rate of large matrix products *measured* on the same card, not beside the maker's figure.
"""

import sys
import time
from dataclasses import dataclass, replace
from statistics import median

import torch
import torch.nn.functional as F

from benchmarks._common import main
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.scaling import gpt_training_flops


@dataclass(frozen=True)
class Sizes:
    """The smallest GPT-2 at its full context; ``matrix`` is the side of the products."""

    model: GPTConfig = GPTConfig(dropout=0.0)  # noqa: RUF009
    batch: int = 16
    matrix: int = 8192
    rounds: int = 20
    warmup: int = 5
    compiled: bool = True


SMOKE = replace(Sizes(), model=GPTConfig(11, 4, 8, 2, 1, dropout=0.0), batch=2, matrix=16, rounds=2, warmup=1,
                compiled=False)  # fmt: skip


def seconds(call, device, rounds, warmup):
    """Median wall time of a call, after some that are not counted, the device being waited for."""
    times = []
    for i in range(warmup + rounds):
        _wait(device)
        start = time.perf_counter()
        call()
        _wait(device)
        times += [time.perf_counter() - start] * (i >= warmup)
    return median(times)


def measure(sizes, device="cuda"):
    """Returns: dict with ``step_s``, ``tokens_per_s``, ``matrix_flops_per_s``, ``flops_per_s``, ``utilization``."""
    torch.manual_seed(0)
    config, B, n = sizes.model, sizes.batch, sizes.matrix
    A = torch.randn(n, n, device=device, dtype=torch.bfloat16)
    rate = 2 * n**3 / seconds(lambda: A @ A, device, sizes.rounds, sizes.warmup)
    model = GPT(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=torch.device(device).type == "cuda")
    forward = torch.compile(model) if sizes.compiled else model
    tokens, label = torch.randint(config.vocab_size, (2, B, config.max_len), device=device)

    def step():
        with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
            loss = F.cross_entropy(forward(tokens).flatten(0, 1), label.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    took = seconds(step, device, sizes.rounds, sizes.warmup)
    done = gpt_training_flops(config, tokens.numel()) / took
    return {
        "step_s": took,
        "tokens_per_s": tokens.numel() / took,
        "matrix_flops_per_s": rate,
        "flops_per_s": done,
        "utilization": done / rate,
    }


def _wait(device):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("not measured: there is no CUDA GPU here")
    main("utilization", measure, Sizes(), SMOKE, device="cuda")
