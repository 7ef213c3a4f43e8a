"""How much of a GPU's measured matrix rate the training of GPT-2 124M uses, in bf16 with `torch.compile`.

    python -m benchmarks.utilization --device cuda

The model's FLOPs are those of `d2lmini.gpt_training_flops`, half of attention's square left out, since it is causal;
the card's rate is that of a product of two square matrices, measured in the same process.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from benchmarks._common import contest, in_bf16, main
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.scaling import gpt_training_flops


@dataclass(frozen=True)
class Sizes:
    """GPT-2 124M; its vocabulary is filled up to a multiple of 128, which products of matrices go better with."""

    vocab: int = 50304
    max_len: int = 1024
    num_hiddens: int = 768
    num_heads: int = 12
    num_blks: int = 12
    batch: int = 32
    matrix: int = 8192
    compiled: bool = True
    rounds: int = 15
    turn_s: float = 1.0
    most_s: float = 60


QUICK = replace(
    Sizes(),
    vocab=11,
    max_len=8,
    num_hiddens=8,
    num_heads=2,
    num_blks=1,
    batch=2,
    matrix=16,
    compiled=False,
    rounds=2,
    turn_s=0.0,
)


def measure(sizes, device="cpu"):
    """Returns: dict with ``contests``, ``flops`` of a step, ``matrix_flops`` a second and their ratio."""
    torch.manual_seed(0)
    kind = {"num_hiddens": sizes.num_hiddens, "num_heads": sizes.num_heads, "num_blks": sizes.num_blks}
    config = GPTConfig(vocab_size=sizes.vocab, max_len=sizes.max_len, dropout=0.0, **kind)
    model = GPT(config).to(device)
    run = torch.compile(model) if sizes.compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    shape = (sizes.batch, sizes.max_len)
    tokens, label = (torch.randint(sizes.vocab, shape, device=device) for _ in range(2))

    def step():
        optimizer.zero_grad()
        with in_bf16(device):
            loss = F.cross_entropy(run(tokens).flatten(0, 1), label.flatten())
        loss.backward()
        optimizer.step()

    dtype = torch.bfloat16 if torch.device(device).type == "cuda" else torch.float32
    A, B = (torch.randn(sizes.matrix, sizes.matrix, device=device, dtype=dtype) for _ in range(2))
    work = tokens.numel()
    found = contest("a training step", {"ours": step}, sizes, unit="tokens", work=work, device=device)
    product = contest(
        "a product", {"ours": lambda: A @ B}, sizes, unit="FLOPs", work=2 * sizes.matrix**3, device=device
    )
    flops = gpt_training_flops(config, work, context=sizes.max_len, causal=True)
    rate = product["contestants"]["ours"]["per_second"]
    used = flops / found["contestants"]["ours"]["seconds"][1] / rate
    return {"contests": [found], "flops": flops, "matrix_flops": rate, "utilization": round(used, 3)}


if __name__ == "__main__":
    main("utilization", measure, Sizes(), QUICK, gpu="only")
