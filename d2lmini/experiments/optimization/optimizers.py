"""Chapter 08: Adam, SGD, AdamW and Muon on one small GPT, each at its best learning rate, and what else a recipe has.

All contestants begin at the same weights and see equally many characters. Of each the best of several learning rates is
told, and whether it is the first or last of them, so that a better one may lie beyond. Contestants differ from "Adam"
in what their names say: another optimizer, no warm-up, no clipping, a rate that stays, weight decay, another batch size
(at equally many characters, so with more or fewer steps), norms after the residual connections. Every training keeps an
exponential mean of its weights, which is scored beside the last ones.
"""

from dataclasses import dataclass, replace
from statistics import mean

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from d2lmini.experiments.gpt.language import text_checksums
from d2lmini.experiments.optimization.deep_gpts import BASE, DeepGPT, Form, Text, rounded, score, told, train, verdict
from d2lmini.lab.parts import Parts
from d2lmini.lab.summaries import means
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.training import WarmupLinear, gradient_sizes, second_moments, update_sizes
from d2lmini.training.optimizers import muon_of

_MODEL = replace(BASE, num_blks=6)
_ADAM, _SGD, _MUON = (1e-3, 3e-3, 1e-2, 3e-2), (0.1, 0.3, 1.0, 3.0), (3e-3, 1e-2, 3e-2, 0.1)


@dataclass(frozen=True)
class Contestant:
    """A recipe, tried at several ``rates``; for Muon they are those of the blocks' matrices.

    ``optimizer`` is "adam", "adamw", "sgd" or "muon". ``weight_decay`` is decoupled in AdamW; in Adam it is added to
    the gradient. ``warmup`` and ``decay`` are the shares of the steps in which the rate rises and goes down to zero.
    ``times`` is how much larger its batches are than those of the others, and ``gradient_clip_val`` the largest norm of
    the gradient (0: any).
    """

    name: str
    optimizer: str = "adam"
    rates: tuple = _ADAM
    weight_decay: float = 0.0
    warmup: float = 0.1
    decay: float = 0.5
    gradient_clip_val: float = 1.0
    times: float = 1.0
    norms: str = "before"


CONTESTANTS = (
    Contestant("Adam"),
    Contestant("Adam, no warm-up", warmup=0.0),
    Contestant("Adam, no clipping", gradient_clip_val=0.0),
    Contestant("Adam, the rate stays", decay=0.0),
    Contestant("Adam, decay in the gradient", weight_decay=0.01),
    Contestant("AdamW", "adamw", weight_decay=0.1),
    Contestant("SGD with momentum", "sgd", _SGD),
    Contestant("SGD with momentum, no clipping", "sgd", _SGD, gradient_clip_val=0.0),
    Contestant("Muon", "muon", _MUON),
    Contestant("Muon, no warm-up", "muon", _MUON, warmup=0.0),
    Contestant("Adam, a quarter of the batch", times=0.25),
    Contestant("Adam, four times the batch", times=4.0),
    Contestant("Adam, post-norm", norms="after"),
    Contestant("Adam, post-norm, no warm-up", norms="after", warmup=0.0),
    Contestant("SGD with momentum, post-norm", "sgd", _SGD, norms="after"),
)


@dataclass(frozen=True)
class Config:
    """Settings; ``batch_size`` and ``steps`` are those of contestants with ``times`` 1.

    ``lr_others`` is Muon's rate for what is no matrix of a block, ``averaging`` that share of the mean of the weights
    which is kept in a step.
    """

    text: str = "tinyshakespeare"
    contestants: tuple = CONTESTANTS
    model: GPTConfig = _MODEL
    batch_size: int = 8
    steps: int = 300
    betas: tuple = (0.9, 0.98)
    momentum: float = 0.9
    lr_others: float = 3e-3
    averaging: float = 0.98
    final_batches: int = 40
    points: int = 30
    seeds: tuple = (0, 1)


def _only(*names, **changes):
    return tuple(replace(contestant, **changes) for contestant in CONTESTANTS if contestant.name in names)


PRESETS = {
    "smoke": replace(
        Config(), text="book", model=replace(BASE, max_len=8, num_hiddens=8, num_heads=2, num_blks=2), batch_size=4,
        contestants=(
            *_only("Adam, four times the batch", rates=(1e-3, 1e9)), *_only("Muon", rates=(0.01,)),
            *_only("SGD with momentum", rates=(1e12,)),
        ),
        steps=8, final_batches=1, points=2, seeds=(0,),
    ),
    # four of them, at the rates that were best with more steps
    "cpu": replace(
        Config(), text="book", model=replace(BASE, max_len=32), steps=200, final_batches=20, points=20, seeds=(0,),
        contestants=(
            *_only("Adam", "Adam, the rate stays", rates=(3e-3, 1e-2)),
            *_only("SGD with momentum", rates=(0.1, 0.3, 1.0)), *_only("Muon", rates=(1e-2, 3e-2)),
        ),
    ),
    "laptop": Config(),
    # a deeper one, forty times the characters
    "full": replace(
        Config(), model=replace(BASE, num_blks=12, num_hiddens=256, max_len=256), batch_size=16, steps=1_500,
        seeds=(0, 1, 2),
    ),
}  # fmt: skip


def make(contestant, rate, config, text, device, seed):
    """The model of a contestant and its optimizer."""
    torch.manual_seed(seed)
    model = DeepGPT(replace(config.model, vocab_size=text.vocab_size), Form(contestant.norms)).to(device)
    if contestant.optimizer == "muon":
        decay = {"weight_decay": contestant.weight_decay}
        return model, muon_of(model, model.blks, lr=rate, lr_others=config.lr_others, betas=config.betas, **decay)
    options = {"lr": rate, "weight_decay": contestant.weight_decay}
    if contestant.optimizer == "sgd":
        return model, torch.optim.SGD(model.parameters(), momentum=config.momentum, **options)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[contestant.optimizer]
    return model, kind(model.parameters(), betas=config.betas, **options)


def learn(contestant, rate, seed, config, text, device):
    """Trains one contestant at one rate.

    Returns:
        dict of ``loss`` and ``averaged``, of the last weights and of their mean, in nats a character of the validation
        text (None: not finite); ``verdict``; ``steps`` made; ``norms``, the median and the largest of the gradient
        before clipping, and ``clipped``, the share of steps in which it was; ``losses`` in the training, means of
        ``config.points`` stretches; and ``inside``, what `look` returns (None: the training came to no end).
    """
    size, steps = round(config.batch_size * contestant.times), round(config.steps / contestant.times)
    model, optimizer = make(contestant, rate, config, text, device, seed)
    # of a step that sees more characters less is kept
    mean_of_weights = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.averaging**contestant.times))
    schedule = WarmupLinear(int(contestant.warmup * steps), steps, int(contestant.decay * steps))
    batches = text.batches(size, config.model.max_len, device, seed)
    history = train(
        model, batches, optimizer, schedule, steps, contestant.gradient_clip_val,
        after_step=lambda: mean_of_weights.update_parameters(model),
    )  # fmt: skip
    whole, norms, most = len(history["losses"]) == steps, torch.tensor(history["norms"]), contestant.gradient_clip_val
    loss, averaged = (score(m, text, config) if whole else None for m in (model, mean_of_weights.module))
    return {
        "loss": loss,
        "averaged": averaged,
        "verdict": verdict(loss, next(iter(history["losses"]), None), text.unigram(config), text.uniform),
        "steps": len(history["losses"]),
        "norms": rounded([norms.median().item(), norms.max().item()]) if len(norms) else [None, None],
        "clipped": (norms > most).cpu().double().mean().item() if most and len(norms) else 0.0,
        "losses": means(history["losses"], max(1, steps // config.points)),
        "inside": look(model, optimizer, rate, next(batches), contestant) if loss is not None else None,
    }


def look(model, optimizer, rate, batch, contestant):
    """Sizes after the training, lists over the blocks for each of `deep_gpts.MATRICES`; all are RMS.

    Returns:
        dict of ``gradients``; ``updates``, a step's at the highest rate, relative to the weights; and
        ``second_moments``, what Adam divides by (of Muon's matrices and SGD: none).
    """
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"]
    updates = update_sizes(model, optimizer, batch, contestant.gradient_clip_val)
    moments = second_moments(model, optimizer)
    return {
        "gradients": told(gradient_sizes(model, batch)),
        "updates": told(updates),
        "second_moments": told(moments) if any(name.startswith("blks.0.attention.W") for name in moments) else {},
    }


def best(rows, rates, key="loss"):
    """The index of the best of several rates: that of the smallest mean loss over seeds, all of them finite.

    Args:
        rows: for each rate a list of what `learn` returned, a seed each. rates: of the rows.
        key: which loss, "loss" or "averaged".

    Returns:
        int; None where there is none.
    """
    scores = {i: [row[key] for row in rows[i]] for i in range(len(rates))}
    scores = {i: mean(losses) for i, losses in scores.items() if None not in losses}
    return min(scores, key=scores.get) if scores else None


def check(config):
    """Raises ValueError where two contestants have one name, or a batch or a number of steps is not whole."""
    names = [contestant.name for contestant in config.contestants]
    if len(set(names)) < len(names):
        raise ValueError(f"contestants are {names}, expected each name once")
    for contestant in config.contestants:
        for value, what in (
            (config.batch_size * contestant.times, "batch"),
            (config.steps / contestant.times, "number of steps"),
        ):
            if value < 1 or value != int(value):
                raise ValueError(
                    f"times is {contestant.times} for {contestant.name!r}, by which the {what} would be {value}"
                )


def run(config, device, parts=None):
    """Trains every contestant at all of its rates; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``: ``contestants[name]``, what `summary` returns, with ``behind``, its loss less that of the
        first contestant; ``unigram``, the loss of `deep_gpts.Text.unigram`; and ``characters``, how many each saw.
        With ``curves``, the losses in the training by "contestant, rate" with the first seed, and with ``data``.
    """
    check(config)
    parts, text, by_contestant, curves = parts or Parts(), Text.read(config.text), {}, {}
    for i, contestant in enumerate(config.contestants):
        rows = [
            [
                parts(f"{i:02}-{rate:g}-{seed}", learn, contestant, rate, seed, config, text, device)
                for seed in config.seeds
            ]
            for rate in contestant.rates
        ]
        by_contestant[contestant.name] = summary(rows, contestant.rates)
        curves |= {
            f"{contestant.name}, {rate:g}": row[0]["losses"] for rate, row in zip(contestant.rates, rows, strict=True)
        }
    first = next(iter(by_contestant.values()))
    for row in by_contestant.values():
        both = row["loss"] is not None and first["loss"] is not None
        row["behind"] = row["loss"] - first["loss"] if both else None
    losses = "; ".join(f"{name} " + _told(row["loss"]) for name, row in by_contestant.items())
    metrics = {
        "contestants": by_contestant,
        "unigram": text.unigram(config),
        "characters": config.batch_size * config.steps * config.model.max_len,
        "headline": f"nats a character at the best of several rates: {losses}",
    }
    return {"metrics": metrics, "curves": curves, "data": text_checksums(config.text)}


def summary(rows, rates):
    """What is recorded of a contestant.

    Args:
        rows, rates: as `best`.

    Returns:
        dict of ``rates``; ``losses``, ``averaged`` and ``verdicts``, for each rate a list over seeds; ``rate``, the
        best one, ``at_edge``, whether it is the first or last of several, ``loss``, the mean over seeds, and of the
        first seed ``norms``, ``clipped`` and ``inside``; ``averaged_rate`` and ``averaged_loss``, likewise for the mean
        of the weights, at the rate that is best for it. None where no rate was finite with all seeds.
    """
    i, j = best(rows, rates), best(rows, rates, "averaged")
    chosen = None if i is None else rows[i]
    return {
        "rates": list(rates),
        "losses": [[row["loss"] for row in of_rate] for of_rate in rows],
        "averaged": [[row["averaged"] for row in of_rate] for of_rate in rows],
        "verdicts": [[row["verdict"] for row in of_rate] for of_rate in rows],
        "rate": None if i is None else rates[i],
        "at_edge": None if i is None else len(rates) > 1 and i in (0, len(rates) - 1),
        "loss": chosen and mean(row["loss"] for row in chosen),
        **{key: chosen and chosen[0][key] for key in ("norms", "clipped", "inside")},
        "averaged_rate": None if j is None else rates[j],
        "averaged_loss": None if j is None else mean(row["averaged"] for row in rows[j]),
    }


def _told(loss):
    return "diverged" if loss is None else f"{loss:.3f}"
