"""Chapter 15: which of today's parts brings how much to a GPT on the characters of Shakespeare.

Every contestant differs from the base in what its name says (AdamW: with decay and warm-up): the same text, steps and
tokens a step, and nearly as many parameters. The base with another seed tells how much is chance. What is scored is
said in `characters`.
"""

from dataclasses import dataclass, replace

from d2lmini.experiments.gpt import characters, language
from d2lmini.experiments.gpt.gpt_shakespeare import PRESETS as SHAKESPEARE
from d2lmini.experiments.gpt.language import Recipe
from d2lmini.lab.parts import Parts
from d2lmini.models.gpt_config import GPT_CONFIGS

AGAIN = "base, another seed"


_BASE = Recipe(
    model=replace(SHAKESPEARE["laptop"].model, dropout=0.2), steps=400, checks=2, precision="bf16", final_batches=100
)


@dataclass(frozen=True)
class Config:
    """``base`` is what all are compared with; ``left_out`` are contestants that do not take part."""

    base: Recipe = _BASE
    text: str = "tinyshakespeare"
    left_out: tuple = ()
    seeds: tuple = (0,)


_TINY = replace(GPT_CONFIGS["modern-toy"], max_len=16, num_hiddens=16, num_heads=2)

PRESETS = {
    "smoke": Config(
        replace(
            _BASE, model=_TINY, steps=2, checks=1, batch_size=4, val_batches=1, final_batches=1, precision="float32"
        ),
        text="book", left_out=(
            "AdamW, 1e-3", "layer norm", "queries and keys not normed", "no positions", "GELU", "begun as GPT-2",
            "tied", "wider", "no dropout",
        ),
    ),
    "cpu": Config(
        replace(_BASE, model=replace(GPT_CONFIGS["modern-toy"], max_len=64), steps=100, precision="float32"),
        text="book",
    ),
    # thirteen of them, six to thirty minutes each on a core
    "laptop": Config(_BASE, left_out=("gated (SwiGLU)", "begun as GPT-2", "tied", "wider")),
    # sixteen times through the text
    "full": Config(replace(_BASE, batch_size=64, steps=1_000)),
}  # fmt: skip


def contestants(base):
    """The base, and what differs from it in one thing: a dict from names to recipes."""

    def model(**changes):
        return replace(base, model=replace(base.model, **changes))

    h, heads, blks = base.model.num_hiddens, base.model.num_heads, base.model.num_blks
    adamw = replace(base, optimizer="adamw", weight_decay=0.1, warmup=base.steps // 10)
    step = 2 * heads  # heads have an even number of features
    gpt2 = replace(
        adamw.model, positions="learned", norm="layer", ffn="gelu", use_bias=True, qk_norm=False, tie_weights=True,
        init="gpt2",
    )  # fmt: skip
    return {
        "base": base,
        AGAIN: base,
        "AdamW, 3e-3": adamw,
        "AdamW, 1e-3": replace(adamw, lr=1e-3),
        "layer norm": model(norm="layer"),
        "queries and keys not normed": model(qk_norm=False),
        "learned positions": model(positions="learned"),
        "no positions": model(positions=None),
        "GELU": model(ffn="gelu"),
        "gated (SwiGLU)": model(ffn="swiglu", ffn_num_hiddens=8 * h // 3),
        "begun as GPT-2": model(init="gpt2"),
        "tied": model(tie_weights=True),
        "wider": model(num_blks=blks // 2, num_hiddens=round(h * 2**0.5 / step) * step),
        "deeper": model(num_blks=2 * blks, num_hiddens=round(h / 2**0.5 / step) * step),
        "no dropout": model(dropout=0.0),
        "once through the text, then again": replace(base, order="epochs"),
        "GPT-2 with AdamW": replace(adamw, model=gpt2),
    }


def run(config, device, parts=None):
    """Trains every contestant; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (for each contestant ``crops`` and ``whole``, losses in nats a character, ``parameters``,
        times, and ``behind``: its ``whole`` less that of the base), ``curves`` (checks of each) and ``data``.
    """
    parts = parts or Parts()
    tokenizer, *ids = characters.read(config.text)

    def work(recipe, seed, name):
        recipe = replace(recipe, model=replace(recipe.model, vocab_size=len(tokenizer)))
        return characters.learn(recipe, ids, device, seed, parts, name)[1]

    taking_part = {name: recipe for name, recipe in contestants(config.base).items() if name not in config.left_out}
    records = {}
    for i, (name, recipe) in enumerate(taking_part.items()):
        folder = f"{i:02}"
        records[name] = parts(folder, work, recipe, config.seeds[0] + (name == AGAIN), folder)
    metrics = {name: record["metrics"] for name, record in records.items()}
    for losses in metrics.values():
        losses["behind"] = losses["whole"] - metrics["base"]["whole"]
    others = {name: losses["behind"] for name, losses in metrics.items() if name not in ("base", AGAIN)}
    worst = max(others, key=others.get)
    metrics["headline"] = (
        f"of {len(others)} changes to a GPT of today's parts {sum(b > 0 for b in others.values())} make it worse, most "
        f"of all {worst!r}, by {others[worst]:.3f} nats (another seed: {metrics[AGAIN]['behind']:+.3f})"
    )
    curves = {name: {key: record["curves"][key] for key in language.CURVES} for name, record in records.items()}
    return {"metrics": metrics, "curves": curves, "data": language.text_checksums(config.text)}
