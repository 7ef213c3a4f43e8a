"""What a `Trainer` is given has to be: its arguments, the model and the data, and what these return."""

import math
import os
from numbers import Integral, Real

import torch

from .device import PRECISIONS
from .module import Module

_COUNTS = ("max_epochs", "accumulate", "checkpoint_every", "max_steps")
_MAY_BE_NONE = {"checkpoint_every", "max_steps", "max_seconds", "schedule", "seed", "checkpoint"}


def check_options(trainer):
    """Raises where an argument of a trainer is not what it has to be.

    Raises:
        TypeError: it is of another type.
        ValueError: it is outside of its range.
    """
    kinds = {
        **dict.fromkeys((*_COUNTS, "num_gpus", "seed"), (Integral, "an integer")),
        **dict.fromkeys(("gradient_clip_val", "max_seconds"), (Real, "a number")),
        "checkpoint": ((str, os.PathLike), "the path of a folder"),
        "compile": ((bool, dict), "True, False or a dict of arguments"),
    }
    for name, (kind, what) in kinds.items():
        value = getattr(trainer, name)
        no_number = isinstance(value, bool) and kind in (Integral, Real)
        if (no_number or not isinstance(value, kind)) and not (value is None and name in _MAY_BE_NONE):
            raise TypeError(f"{name} is {value!r}, expected {what}")
    for name in _COUNTS:
        value = getattr(trainer, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}, expected at least 1")
    for name in ("num_gpus", "gradient_clip_val", "max_seconds"):
        value = getattr(trainer, name)
        if value is not None and (value < 0 or math.isnan(value)):
            raise ValueError(f"{name} is {value}, expected 0 or more")
    if trainer.seed is not None and not 0 <= trainer.seed < 2**32:  # numpy takes no other
        raise ValueError(f"seed is {trainer.seed}, expected an integer from 0 to 2**32 - 1")
    if trainer.precision not in ("auto", *PRECISIONS):
        raise ValueError(f"precision is {trainer.precision!r}, expected 'auto', {', '.join(map(repr, PRECISIONS))}")
    if trainer.checkpoint is None and (trainer.resume or trainer.checkpoint_every):
        raise ValueError("resume and checkpoint_every need a folder: checkpoint='...'")
    if trainer.schedule is not None and not callable(trainer.schedule):
        raise TypeError(f"schedule is {trainer.schedule!r}, expected a function from the step to a factor")
    if not isinstance(trainer.callbacks, (list, tuple)) or not all(map(callable, trainer.callbacks)):
        raise TypeError(f"callbacks is {trainer.callbacks!r}, expected a list of functions")


def check_loader(loader, kind):
    """Raises where a loader does not give batches whose number is known; ``kind`` says which data it loads.

    Raises:
        TypeError: it is no loader, or the number of its batches is not known.
        ValueError: it has no batches.
    """
    try:
        num_batches = len(loader)
    except TypeError:  # a DataLoader has a `__len__`, but its data set may have none
        raise TypeError(
            f"the {kind} data are a {type(loader).__name__} without a length, expected a DataLoader over a data set "
            "that can be indexed"
        ) from None
    if num_batches == 0:
        raise ValueError(f"the {kind} data have no batches: no examples, or fewer than a batch with drop_last=True?")


def check_fit(model, data):
    """Raises where there is nothing to fit.

    Raises:
        TypeError: these are no `Module` and no `DataModule`.
        ValueError: all parameters of the model are frozen.
    """
    if not isinstance(model, Module):
        raise TypeError(f"the model is a {type(model).__name__}, expected a d2lmini.Module")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(
            f"{type(model).__name__} has no parameter to train: expected one with requires_grad at least. Were all of "
            "them frozen?"
        )
    if not (hasattr(data, "train_dataloader") and hasattr(data, "val_dataloader")):
        raise TypeError(f"the data are a {type(data).__name__}, expected a d2lmini.DataModule")


def check_optimizer(optimizer, model):
    """Raises TypeError where what a model configured is no optimizer."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"{type(model).__name__}.configure_optimizers returned a {type(optimizer).__name__}, "
            "expected a torch.optim.Optimizer"
        )


def check_loss(loss, model):
    """The loss that a model's training step returned, of shape ().

    Raises:
        TypeError: it is not one number.
        ValueError: it has no gradient.
    """
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else repr(loss)
        raise TypeError(f"{type(model).__name__}.training_step returned {what}, expected a scalar loss")
    if not loss.requires_grad:
        raise ValueError(
            f"{type(model).__name__}.training_step returned a loss without a gradient: does it depend on no parameter "
            "that is trained, or was it detached or computed under torch.no_grad()?"
        )
    return loss.reshape(())
