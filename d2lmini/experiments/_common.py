"""What experiments share: to train a model in a part of a run, and to write down curves and several seeds."""

import math
from statistics import mean, stdev

from d2lmini.experiments._parts import Parts
from d2lmini.training import Trainer
from d2lmini.training.checkpoint import latest


def fit(model, data, device, epochs, *, parts=None, name="training", after_epoch=None, **options):
    """Trains a model in place; in a run whose parts are kept it goes on from its checkpoint.

    Args:
        model, data: as `Trainer.fit` takes them.
        device: ``torch.device``.
        epochs: passes over the training data.
        parts: the `Parts` of the run; None: nothing is kept.
        name: of the part that the training belongs to.
        after_epoch: function of the trainer that returns a dict; its values are appended to lists of these names in the
            history.
        options: of the `Trainer`.

    Returns:
        the trainer's history.

    Raises:
        Unfinished: the time is up.
    """
    parts = parts or Parts()

    def add(trainer):
        for key, value in after_epoch(trainer).items():
            trainer.history.setdefault(key, []).append(value)

    folder = parts.folder_of(name)
    trainer = Trainer(
        epochs,
        num_gpus=int(device.type == "cuda"),
        checkpoint=folder,
        resume=folder is not None,
        max_seconds=parts.seconds_left,
        callbacks=[add] if after_epoch else [],
        **options,
    )
    before = folder and latest(folder)
    trainer.fit(model, data)
    parts.worked |= bool(folder) and latest(folder) != before
    if trainer.epoch < epochs and trainer.step != trainer.max_steps:
        parts.check_time()
    return trainer.history


def fit_in_checks(model, data, device, recipe, schedule, *, seed=0, parts=None, name="training", say=print):
    """Trains by a recipe whose ``checks`` are the epochs of the data, with a line after each; see `fit`.

    Args:
        recipe: has ``checks``, ``gradient_clip_val`` and ``precision``.
        schedule: of the `Trainer`.
        say: called with each line; None: silence.

    Returns:
        the trainer's history.
    """

    def after_check(trainer):
        if say:
            say(f"{name}: step {trainer.step}, loss {trainer.history['val_loss'][-1]:.4f}", flush=True)
        return {}

    options = {"gradient_clip_val": recipe.gradient_clip_val, "precision": recipe.precision}
    return fit(
        model,
        data,
        device,
        recipe.checks,
        parts=parts,
        name=name,
        after_epoch=after_check,
        schedule=schedule,
        seed=seed,
        **options,
    )


def curves(history, *names):
    """Curves of a training: ``step`` and ``train_loss`` in at most 200 points, and of the history what is named.

    Args:
        history: of a `Trainer`.
        names: lists of the history; those with a value a step are thinned, too.
    """
    steps = len(history["step"])
    width = max(1, -(-steps // 200))
    found = {"step": [history["step"][min(i + width, steps) - 1] for i in range(0, steps, width)]}
    for name in ("train_loss", *names):
        values = history[name]
        found[name] = means(values, width) if len(values) == steps and not name.startswith("val_") else values
    return found


def means(values, width):
    """Means of ``width`` consecutive values, the last one of what is left, to six decimals."""
    return [round(mean(values[i : i + width]), 6) for i in range(0, len(values), width)]


def columns(rows):
    """A list of dicts with the same keys, one of each seed, as a dict of lists."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def summary(scores):
    """``mean`` and ``spread``, the standard deviation, of the scores of several seeds; of one, a spread of None."""
    return {"mean": mean(scores), "spread": stdev(scores) if len(scores) > 1 else None}


def share(hits):
    """``accuracy``, the share of booleans that are true, and its standard ``error``, sqrt(p (1 - p) / n)."""
    p = mean(map(float, hits))
    return {"accuracy": p, "error": math.sqrt(p * (1 - p) / len(hits))}


def standard_error(values):
    """Of the mean of values of independent examples; None where there is but one."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
