"""Chapter 08: at which depths and learning rates does each recipe train a Transformer?

Small GPTs on the characters of a text, from a few blocks to many, by Adam at rates over two decades: with norms after
or before, with warm-up or without, with queries and keys normed, without norms, and without norms but begun with care.
All see the same crops in the same order. A setting trains if it ends better than one who knows how frequent each
character is (`deep_gpts.verdict`).

What is recorded of the deepest model of each recipe before its first step: how its residual stream grows, how large
gradients are by depth and kind of matrix, and how much Adam's first step would change each.
"""

from dataclasses import dataclass, replace
from itertools import product

import torch

from d2lmini.experiments.gpt.language import text_checksums
from d2lmini.experiments.optimization.deep_gpts import BASE, DeepGPT, Form, Text, rounded, score, told, train, verdict
from d2lmini.lab.parts import Parts
from d2lmini.lab.summaries import means
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.training import WarmupLinear, gradient_sizes, residual_sizes, update_sizes

FORMS = {
    "post-norm": Form("after"),
    "post-norm, warm-up": Form("after", warmup=0.3),
    "pre-norm": Form("before"),
    "pre-norm, QK norm": Form("before", qk_norm=True),
    "no norm": Form(None),
    "no norm, small start": Form(None, small_start=True),
    "no norm, residual weight": Form(None, residual_weight=True),
}


@dataclass(frozen=True)
class Config:
    """Settings; ``forms`` are names of `FORMS`, ``model`` is that of all but its depth.

    In the last ``decay`` of the steps the rate goes down to zero. Gradients are not clipped.
    """

    text: str = "tinyshakespeare"
    forms: tuple = tuple(FORMS)
    depths: tuple = (2, 4, 8, 16, 32)
    rates: tuple = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    model: GPTConfig = BASE
    batch_size: int = 8
    steps: int = 250
    decay: float = 0.25
    betas: tuple = (0.9, 0.98)
    final_batches: int = 20
    points: int = 20
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), text="book", forms=("post-norm, warm-up", "no norm, residual weight"), depths=(1, 2),
        rates=(1e-3, 1e9), model=replace(BASE, max_len=8, num_hiddens=8, num_heads=2), batch_size=2, steps=4,
        final_batches=1, points=2,
    ),
    # deep enough for post-norm to be stuck
    "cpu": replace(
        Config(), text="book", depths=(2, 4, 8), rates=(1e-3, 3e-3), model=replace(BASE, max_len=32), steps=180,
        forms=("post-norm", "post-norm, warm-up", "pre-norm", "no norm", "no norm, residual weight"), points=18,
        final_batches=10,
    ),
    "laptop": Config(),
    # what the core of the chapter compares, with three seeds
    "seeds": replace(
        Config(), depths=(4, 16), rates=(1e-3, 3e-3, 1e-2), seeds=(0, 1, 2),
        forms=("post-norm", "post-norm, warm-up", "pre-norm", "no norm, residual weight"),
    ),
    # three seeds, longer contexts and four times the steps, in which slow ones learn, too
    "full": replace(
        Config(), depths=(2, 4, 8, 16, 32, 64), rates=(1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2), batch_size=32, steps=1_000,
        model=replace(BASE, max_len=128), seeds=(0, 1, 2),
    ),
}  # fmt: skip


def make(form, depth, config, text, device, seed):
    """The model of a form, by its name, and its Adam; the rate is still to be set."""
    torch.manual_seed(seed)
    model = DeepGPT(replace(config.model, num_blks=depth, vocab_size=text.vocab_size), FORMS[form]).to(device)
    return model, torch.optim.Adam(model.parameters(), lr=1.0, betas=config.betas)


def look(form, config, text, device):
    """The deepest model of a form before its first step, on a batch of the training.

    Returns:
        dict of ``stream`` (`residual_sizes`), ``stream_gradients``, L + 1 numbers, and ``gradients`` and ``updates``
        (a step's, per unit of learning rate), lists over the blocks for each of `deep_gpts.MATRICES`. All are RMS.
    """
    model, optimizer = make(form, max(config.depths), config, text, device, config.seeds[0])
    batch = next(text.batches(config.batch_size, config.model.max_len, device, config.seeds[0]))
    optimizer.param_groups[0]["lr"] = rate = 1e-6  # so small that the step is a straight one
    gradients = gradient_sizes(model, batch, model.blks)
    updates = update_sizes(model, optimizer, batch)
    stream = residual_sizes(model, model.blks, batch[0])
    return {
        "stream": {name: rounded(values) for name, values in stream.items()},
        "stream_gradients": _of_stream(gradients),
        "gradients": told(gradients),
        "updates": told({name: value and value / rate for name, value in updates.items()}),
    }


def _of_stream(gradients):
    return rounded(size for name, size in gradients.items() if name.startswith("stream."))


def learn(form, depth, rate, seed, config, text, device):
    """Trains one model.

    Returns:
        dict of ``loss`` on the validation text (None: not finite), the ``verdict``, ``steps`` made, the largest
        ``norm`` of the gradient, ``stream_gradients``, L + 1 RMS on a batch after the training, and ``losses`` in the
        training, means of ``config.points`` stretches.
    """
    model, optimizer = make(form, depth, config, text, device, seed)
    optimizer.param_groups[0]["lr"] = rate
    schedule = WarmupLinear(int(FORMS[form].warmup * config.steps), config.steps, int(config.decay * config.steps))
    batches = text.batches(config.batch_size, config.model.max_len, device, seed)
    history = train(model, batches, optimizer, schedule, config.steps)
    loss = score(model, text, config) if len(history["losses"]) == config.steps else None
    return {
        "loss": loss,
        "verdict": verdict(loss, next(iter(history["losses"]), None), text.unigram(config), text.uniform),
        "steps": len(history["losses"]),
        "norm": max(history["norms"], default=None),
        "stream_gradients": _of_stream(gradient_sizes(model, next(batches), model.blks)),
        "losses": means(history["losses"], max(1, config.steps // config.points)),
    }


def check(config):
    """Raises ValueError where a form is not known."""
    unknown = [name for name in config.forms if name not in FORMS]
    if unknown:
        raise ValueError(f"forms are {config.forms}: {unknown[0]!r} is none of {', '.join(map(repr, FORMS))}")


def run(config, device, parts=None):
    """Trains every form at every depth and rate; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``: ``loss[form]``, for each seed a list over depths of lists over rates, and so ``verdict``,
        ``steps``, ``norm`` and ``stream_gradients``; ``trains[form]``, the share of settings that train, and
        ``deepest[form]``, the greatest depth at which any rate does (None: none); ``unigram`` and ``uniform``, the
        losses that the verdict compares with; ``at_start[form]``, what `look` returns; with ``curves``, the losses of
        "form, depth, rate" with the first seed; and with ``data``.
    """
    check(config)
    parts, text, metrics, curves = parts or Parts(), Text.read(config.text), {}, {}
    for i, form in enumerate(config.forms):
        metrics.setdefault("at_start", {})[form] = parts(f"{i}-start", look, form, config, text, device)
        rows = {}
        for seed, depth, rate in product(config.seeds, config.depths, config.rates):
            name = f"{i}-{depth}-{rate:g}-{seed}"
            rows[seed, depth, rate] = parts(name, learn, form, depth, rate, seed, config, text, device)
        for key in ("loss", "verdict", "steps", "norm", "stream_gradients"):
            metrics.setdefault(key, {})[form] = [
                [[rows[seed, depth, rate][key] for rate in config.rates] for depth in config.depths]
                for seed in config.seeds
            ]
        good = [depth for (_, depth, _), row in rows.items() if row["verdict"] == "trains"]
        metrics.setdefault("trains", {})[form] = len(good) / len(rows)
        metrics.setdefault("deepest", {})[form] = max(good, default=None)
        curves |= {f"{form}, {d}, {r:g}": row["losses"] for (s, d, r), row in rows.items() if s == config.seeds[0]}
    metrics |= {"unigram": text.unigram(config), "uniform": text.uniform}
    settings = len(config.depths) * len(config.rates) * len(config.seeds)
    shares = "; ".join(f"{form} {round(share * settings)}" for form, share in metrics["trains"].items())
    metrics["headline"] = (
        f"of {settings} settings of depth ({config.depths[0]} to {config.depths[-1]} blocks) and rate "
        f"({config.rates[0]:g} to {config.rates[-1]:g}) train: {shares}"
    )
    return {"metrics": metrics, "curves": curves, "data": text_checksums(config.text)}
