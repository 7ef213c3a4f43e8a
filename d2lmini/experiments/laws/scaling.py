"""Chapter 17: how the loss of small GPTs falls with size, data and compute, and whether it foretells a larger one.

Every size is trained for every number of steps, on tokens of novels that it sees once at most where the text is long
enough; each run's rate falls to zero at its own end. Rates are chosen for each size, by a sweep. Then a run that is
larger than all others is predicted, and only then trained: its part is given the finished prediction.

Source: Kaplan et al. 2020; Hoffmann et al. 2022; on why their exponents differ Pearce and Song 2024 and Porian et al.
2024.
"""

import math
from dataclasses import dataclass, replace

import torch

from d2lmini.experiments.gpt import language
from d2lmini.experiments.gpt.gpt_gutenberg import encoded, read
from d2lmini.experiments.gpt.language import Recipe
from d2lmini.experiments.laws import power_laws
from d2lmini.lab.parts import Parts
from d2lmini.models.gpt_config import GPT_CONFIGS
from d2lmini.scaling import gpt_training_flops, matrix_parameters


@dataclass(frozen=True)
class Size:
    """A GPT of ``num_blks`` blocks, ``num_hiddens`` wide."""

    num_hiddens: int
    num_heads: int
    num_blks: int


@dataclass(frozen=True)
class Config(Recipe):
    """Settings beside those of the recipe, whose ``steps`` are those of the sweep.

    ``sizes`` and ``all_steps`` make the grid; ``held_back`` and ``held_back_steps`` the run that is predicted, larger
    than all of it. Rates are those of the recipe times one of ``rate_factors``, the best for each size after ``steps``;
    the held-back run takes that of the largest size. ``draws`` resamples give intervals that hold ``level``.
    """

    text: str = "gutenberg"
    val_share: float = 0.05
    vocab_size: int = 512
    sizes: tuple = (Size(32, 2, 2), Size(48, 3, 2), Size(64, 4, 3), Size(80, 5, 4), Size(112, 7, 4))
    all_steps: tuple = (100, 200, 400, 800)
    held_back: Size = Size(144, 9, 5)
    held_back_steps: int = 1200
    rate_factors: tuple = (1.0, 2.0, 4.0, 8.0)
    draws: int = 500
    level: float = 0.9
    seeds: tuple = (0,)


def check(config):
    """Raises ValueError unless the held-back run is larger than all of the grid, which holds the sweep's steps."""
    largest, longest = max(_matrices(config, size) for size in config.sizes), max(config.all_steps)
    if _matrices(config, config.held_back) <= largest or config.held_back_steps <= longest:
        raise ValueError(
            f"the held-back run is {config.held_back} with {config.held_back_steps} steps, expected more parameters "
            f"and more steps than any of the grid, {largest} and {longest}"
        )
    if config.steps not in config.all_steps:
        raise ValueError(f"steps, of the sweep, is {config.steps}, expected one of all_steps {config.all_steps}")


def _matrices(config, size):
    return matrix_parameters(_model(config, size))


def _model(config, size, vocab_size=None):
    return replace(
        config.model, num_hiddens=size.num_hiddens, num_heads=size.num_heads, num_blks=size.num_blks,
        vocab_size=vocab_size or config.vocab_size,
    )  # fmt: skip


_LAPTOP = Config(
    model=replace(GPT_CONFIGS["modern"], max_len=128, dropout=0.0),
    batch_size=32, steps=200, checks=1, order="epochs", val_batches=1, final_batches=20, precision="bf16",
)  # fmt: skip

PRESETS = {
    "smoke": replace(
        _LAPTOP, model=replace(_LAPTOP.model, max_len=16), text="book", batch_size=4, steps=4, precision="float32",
        final_batches=2, val_share=0.02, vocab_size=280, sizes=(Size(8, 1, 1), Size(16, 2, 1), Size(24, 2, 1)),
        all_steps=(2, 4, 8), held_back=Size(32, 2, 1), held_back_steps=10, rate_factors=(0.5, 1.0), draws=10,
    ),
    # the book's own text, some of which the held-back run sees twice
    "cpu": replace(
        _LAPTOP, model=replace(_LAPTOP.model, max_len=64), text="book", batch_size=16, steps=40, precision="float32",
        val_share=0.1, vocab_size=384, sizes=_LAPTOP.sizes[:3], all_steps=(20, 40, 80, 160), final_batches=8,
        held_back=Size(80, 5, 4), held_back_steps=200, rate_factors=(2.0, 4.0, 8.0), draws=200,
    ),
    "laptop": _LAPTOP,
    # larger models; not more tokens, of which the novels have 6 million
    "full": replace(
        _LAPTOP, model=replace(_LAPTOP.model, max_len=256), steps=128, final_batches=50,
        sizes=(*_LAPTOP.sizes, Size(144, 9, 5), Size(192, 12, 6), Size(256, 16, 7)),
        all_steps=(32, 64, 128, 256, 512), held_back=Size(320, 20, 9), held_back_steps=720, seeds=(0, 1, 2),
    ),
}  # fmt: skip


def label(size):
    """A size in words, for parts and curves."""
    return f"{size.num_blks} blocks of {size.num_hiddens}"


def learn(config, size, steps, factor, tokenizer, ids, device, seed, parts, name):
    """Trains one GPT to the end of its own schedule: a dict for JSON. A run that diverged has a loss of None."""
    model = _model(config, size, len(tokenizer))
    recipe = replace(config, model=model, steps=steps, lr=config.lr * factor, lr_matrices=config.lr_matrices * factor)
    try:
        learner, history = language.train(recipe, *ids, device, seed, parts=parts, name=name)
        loss = language.loss_by_place(learner, ids[1], recipe).mean().item()  # the same crops for every run
        train_s = round(history["seconds"][-1], 3)
    except FloatingPointError as error:  # what diverges so soon is one rate too many, and no reason to stop the sweep
        print(f"{name}: {error}", flush=True)
        loss, train_s = math.nan, None
    tokens = steps * config.batch_size * model.max_len
    return {
        "size": label(size),
        "steps": steps,
        "rate_factor": factor,
        "seed": seed,
        "parameters": _counts(recipe),
        "tokens": tokens,
        "passes": tokens / len(ids[0]),
        "flops": gpt_training_flops(model, tokens),
        "loss": loss if math.isfinite(loss) else None,
        "train_s": train_s,
    }


def _counts(recipe):
    """Parameters of the GPT of a recipe, by `power_laws.COUNTS`."""
    with torch.device("meta"):
        learner = language.Learner(recipe)
    outside = learner.embedding.weight.numel() + learner.dense.weight.numel()
    return {
        "matrices": matrix_parameters(recipe.model),
        "all": learner.num_parameters,
        "blocks": learner.num_parameters - outside,
    }


def best_factor(runs):
    """Of runs that differ in rate alone the factor of the best; those that diverged do not count.

    Raises:
        ValueError: all diverged.
    """
    there = [run for run in runs if run["loss"] is not None]
    if not there:
        raise ValueError(f"all {len(runs)} runs of the sweep diverged: lower lr and lr_matrices, or rate_factors")
    return min(there, key=lambda run: run["loss"])["rate_factor"]


def run(config, device, parts=None):
    """Sweeps, trains the grid, predicts, and trains what was predicted; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``sweep`` and ``runs``, lists of what `learn` tells; ``factors`` by size; ``prediction``
        as `power_laws.foretell`; ``held_back`` as `learn`; ``outcome``, by each prediction how far it was off) and
        ``curves``: of each size ``tokens`` and ``loss`` over its runs of the first seed; and ``data``.
    """
    check(config)
    parts = parts or Parts()
    made = []

    def text():  # only if a part is not finished yet
        if not made:
            made.extend(encoded(read(config.text, config.val_share), config.vocab_size))
            if len(made[0]) != config.vocab_size:  # what is predicted would be another model
                raise ValueError(f"the text gives {len(made[0])} tokens, expected vocab_size {config.vocab_size}")
        return made[0], made[1:]

    def work(size, steps, factor, seed, name, prediction=None):
        tokenizer, ids = text()
        return learn(config, size, steps, factor, tokenizer, ids, device, seed, parts, name)

    sweep, factors, runs = [], {}, []
    for size in config.sizes:
        for factor in config.rate_factors:
            name = f"sweep, {label(size)}, rate x {factor:g}"
            sweep.append(parts(name, work, size, config.steps, factor, config.seeds[0], name))
        factors[label(size)] = best_factor([run for run in sweep if run["size"] == label(size)])
    for seed in config.seeds:
        for size in config.sizes:
            factor = factors[label(size)]
            for steps in config.all_steps:
                if seed == config.seeds[0] and steps == config.steps:  # the sweep has it
                    keys = {"size": label(size), "rate_factor": factor}
                    runs += [run for run in sweep if run.items() >= keys.items()]
                    continue
                name = f"{label(size)}, {steps} steps, seed {seed}"
                runs.append(parts(name, work, size, steps, factor, seed, name))

    at = _held_back(config)
    prediction = parts("prediction", power_laws.foretell, runs, at, config.draws, config.level)
    joint = prediction["losses"]["joint"]
    print(
        f"prediction: {at['parameters']['matrices']:,} parameters, {at['tokens']:,} tokens: "
        f"{joint['loss']:.4f} nats a token, {joint['low']:.4f} to {joint['high']:.4f}", flush=True,
    )  # fmt: skip
    factor = factors[label(config.sizes[-1])]
    arguments = (config.held_back, config.held_back_steps, factor, config.seeds[0], "held back", prediction)
    held_back = parts("held back", work, *arguments)
    outcome = power_laws.compare(prediction, held_back["loss"])
    print(f"held back: {held_back['loss']:.4f} nats a token", flush=True)
    metrics = {
        "sweep": sweep,
        "factors": factors,
        "runs": runs,
        "prediction": prediction,
        "held_back": held_back,
        "outcome": outcome,
    }
    metrics["headline"] = headline(metrics, config)
    curves = {}
    for size in map(label, config.sizes):
        own = [run for run in runs if run["size"] == size and run["seed"] == config.seeds[0]]
        curves[size] = {key: [run[key] for run in own] for key in ("tokens", "loss")}
    return {"metrics": metrics, "curves": curves, "data": language.text_checksums(config.text)}


def _held_back(config):
    """What is known of the held-back run before it is trained: its parameters, tokens and FLOPs."""
    model = _model(config, config.held_back)
    tokens = config.held_back_steps * config.batch_size * model.max_len
    counts = _counts(replace(config, model=model))
    return {"parameters": counts, "tokens": tokens, "flops": gpt_training_flops(model, tokens)}


def headline(metrics, config):
    """The prediction beside the result, and how the best size grows with compute, in a sentence."""
    joint, held_back = metrics["prediction"]["losses"]["joint"], metrics["held_back"]
    fitted = metrics["prediction"]["laws"]["joint, matrices"]
    low, high = fitted["best_parameters"]["interval"]
    return (
        f"{len(metrics['runs'])} GPTs foretold {joint['loss']:.3f} nats a token ({joint['low']:.3f} to "
        f"{joint['high']:.3f}) for one of {held_back['parameters']['matrices']:,} parameters and "
        f"{held_back['tokens']:,} tokens, larger than all of them; trained afterwards it had {held_back['loss']:.3f}. "
        f"The best size grows as compute to the power of {fitted['best_parameters']['value']:.2f} ({low:.2f} to "
        f"{high:.2f})"
    )
