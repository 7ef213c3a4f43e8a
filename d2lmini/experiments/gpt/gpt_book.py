"""Chapter 15: a GPT on the characters of this book, a text so short that it can be learned by heart.

What is measured: see `characters`. The text ships with the package, as a frozen copy: the SHA-256 in a record says
which one it was.
"""

from dataclasses import replace

from d2lmini.experiments.gpt.characters import Config, run
from d2lmini.models.gpt_config import GPT_CONFIGS

__all__ = ["PRESETS", "Config", "run"]

_CPU = Config(
    model=replace(
        GPT_CONFIGS["modern"], max_len=64, num_hiddens=128, num_heads=4, num_blks=3, dropout=0.0
    ),
    text="book", batch_size=16, steps=600, checks=6, prompt_lengths=(8, 16, 32), recall=32, sample_length=63,
    precision="float32", final_batches=50,
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _CPU, model=replace(GPT_CONFIGS["modern-toy"], max_len=32, num_hiddens=16, num_heads=2),
        batch_size=8, steps=6, checks=2, val_batches=2, final_batches=2, prompt_lengths=(4, 8), recall=8, passages=3,
        samples=1, sample_length=20, contexts=2, context=10,
    ),
    "cpu": _CPU,
    # some 14 times through the training part (34 times through that of the record, which is older and shorter),
    # without dropout: by heart
    "laptop": replace(
        _CPU, model=replace(_CPU.model, max_len=128, num_hiddens=192, num_heads=6, num_blks=4), batch_size=16,
        steps=2_400, checks=12, prompt_lengths=(4, 8, 16, 32, 64), recall=64, sample_length=127, precision="bf16",
        final_batches=200, passages=500,
    ),
}  # fmt: skip
