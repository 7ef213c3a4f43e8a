"""One training inside of a part of a run: it goes on from its checkpoint, and stops when the time is up."""

from ..training import Trainer
from ..training.checkpoint import latest
from .parts import Parts


def fit_part(model, data, device, epochs, *, parts=None, name="training", after_epoch=None, **options):
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
    """Trains by a recipe whose ``checks`` are the epochs of the data, with a line after each; see `fit_part`.

    Args:
        recipe: has ``checks``, ``gradient_clip_val`` and ``precision``.
        schedule: of the `Trainer`.
        say: called as `print` is, with each line; None: silence.

    Returns:
        the trainer's history.
    """

    def after_check(trainer):
        if say:
            say(f"{name}: step {trainer.step}, loss {trainer.history['val_loss'][-1]:.4f}", flush=True)
        return {}

    options = {"gradient_clip_val": recipe.gradient_clip_val, "precision": recipe.precision}
    return fit_part(
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
