"""Chapter 15: a GPT on the characters of Shakespeare's plays, beside nanoGPT's recipe for a CPU.

What is measured: see `characters`. nanoGPT cuts the text in the same way.
"""

from dataclasses import replace

from d2lmini.experiments.gpt.characters import Config, run
from d2lmini.experiments.gpt.language import Recipe
from d2lmini.models.gpt_config import GPT_CONFIGS

__all__ = ["PRESETS", "Config", "run"]

# 4.8 million parameters, 4,096 characters a step; it has read the text ten times in the end
_LAPTOP = Config(
    model=replace(
        GPT_CONFIGS["modern"], vocab_size=65, max_len=256, num_hiddens=256, num_heads=4, num_blks=6, dropout=0.1
    ),
    steps=2_400,
    checks=6,
    precision="bf16",
)
# what nanoGPT's README advises for a CPU: 0.8 million parameters, 1.5 million characters
_NANOGPT = Recipe(
    model=replace(
        GPT_CONFIGS["gpt2"], vocab_size=65, max_len=64, num_hiddens=128, num_heads=4, num_blks=4, dropout=0.0,
        ffn="gelu", use_bias=False,
    ),
    batch_size=12, steps=2_000, checks=4, optimizer="adamw", lr=1e-3, beta2=0.99, weight_decay=0.1, warmup=100,
    schedule="cosine", floor=0.1, precision="float32",
)  # fmt: skip

PRESETS = {
    "smoke": Config(
        model=replace(GPT_CONFIGS["modern-toy"], max_len=32, num_hiddens=16, num_heads=2),
        text="book", batch_size=8, steps=6, checks=2, val_batches=2, final_batches=2, prompt_lengths=(4, 8), recall=8,
        passages=3, samples=1, sample_length=20, contexts=2,
        context=10,
        rival=Recipe(
            model=replace(GPT_CONFIGS["toy"], max_len=16), steps=4, checks=2, batch_size=4,
            optimizer="adamw", schedule="cosine", val_batches=2, final_batches=2, order="epochs",
        ),
    ),
    "cpu": Config(
        model=replace(
            GPT_CONFIGS["modern"], vocab_size=65, max_len=64, num_hiddens=128, num_heads=4, num_blks=4, dropout=0.0
        ),
        # fewer characters than the rival, so that it takes no longer
        batch_size=24, steps=750, checks=3, rival=_NANOGPT, precision="float32", prompt_lengths=(8, 16, 32),
        recall=32,
    ),
    "laptop": _LAPTOP,
    # for the page: at most 4 MB in bytes; fewer weights than "laptop", twice as many characters
    "page": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=192, dropout=0.2), steps=4_800, checks=12
    ),
    # nanoGPT's recipe for a GPU: 10.7 million parameters, 82 million characters; today's parts see a quarter of them
    "full": replace(
        _LAPTOP, model=replace(_LAPTOP.model, num_hiddens=384, num_heads=6), batch_size=64, steps=1_250,
        rival=replace(
            _NANOGPT, model=replace(_NANOGPT.model, max_len=256, num_hiddens=384, num_heads=6, num_blks=6, dropout=0.2),
            batch_size=64, steps=5_000, checks=20, precision="bf16",
        ),
    ),
}  # fmt: skip
