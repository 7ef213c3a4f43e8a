"""Why a loss or a gradient is not finite: what was looked at, from the most certain cause to the least."""

import math
import statistics

import torch

from .batches import epoch_batches

_MOST_SKIPPED = 25  # steps in a row that fp16 may leave out while it looks for a scale


def refuse_step(trainer, group, loss, norm, lr, weight):
    """Raises where the parameters would be spoilt by a step; the other arguments are those of `explain`.

    Raises:
        FloatingPointError: the loss or the norm of the gradient is not finite.
    """
    finite_loss, finite_norm = torch.tensor([loss, norm]).isfinite().tolist()
    # fp16 leaves out a step with too large gradients by itself, and scales the next one less
    before = trainer.history["grad_norm"][-_MOST_SKIPPED:]
    skips = trainer.used_precision == "fp16" and before.count(None) < _MOST_SKIPPED
    if finite_loss and (finite_norm or skips):
        return
    trainer.optim.zero_grad()
    what = f"the norm of the gradient is {norm}" if finite_loss else f"the loss is {loss}"
    cause = explain(group, trainer.model, trainer.history, trainer.used_precision, lr, weight)
    raise FloatingPointError(f"{what} in step {trainer.step + 1} (epoch {trainer.epoch + 1}): {cause}")


def refuse_validation(trainer, values):
    """Raises where a mean over the validation data, by its name in a dict, is not finite.

    Raises:
        FloatingPointError: it is not.
    """
    for name, value in values.items():
        if not math.isfinite(value):
            batches = epoch_batches(trainer.val_dataloader, trainer.data_seed, trainer.epoch)
            cause = explain_validation(batches, trainer.model, trainer.used_precision)
            where = f"after step {trainer.step} (epoch {trainer.epoch + 1})"
            raise FloatingPointError(f"{name} is {value} {where}: {cause}")


def explain(batches, model, history, precision, lr, weight):
    """The likely cause of a loss or a gradient that is not finite.

    Args:
        batches: the batches of the step.
        model: a module whose parameters have not been changed since.
        history: of the trainer; its gradient norms of the steps before are read.
        precision: "float32", "bf16" or "fp16".
        lr: learning rate of the step.
        weight: number of terms that the loss is the mean of.

    Returns:
        str, a clause.
    """
    for number, batch in enumerate(batches, start=1):
        if cause := _in_inputs(batch, f" of batch {number} of {len(batches)}" if len(batches) > 1 else ""):
            return cause
    if name := _in_parameters(model):
        return f"the parameter {name} was not finite before this step: look at what initialised or set it"
    if not weight:
        return "the batch has nothing to take the mean over (its weight is 0, as where all labels are padding)"
    norms = [norm for norm in history["grad_norm"] if norm is not None]
    grown = norms[-1] / statistics.median(norms) if len(norms) > 1 and statistics.median(norms) else 1.0
    if norms and (grown > 10 or norms[-1] > 1e4):
        return (
            f"training diverged, the gradient norm was {norms[-1]:.3g} in the step before, {grown:.3g} times its "
            f"median: the learning rate {lr:.3g} is probably too high (lower it, warm up, or clip gradients)"
        )
    if precision == "fp16":
        return _FP16
    return (
        "inputs and parameters are finite and the gradient norm had not grown: look for log(0), 0/0 or the square root "
        f"of 0 in the model and its loss, or lower the learning rate ({lr:.3g})"
    )


def explain_validation(batches, model, precision):
    """The likely cause of a mean over the validation data that is not finite.

    Args:
        batches: all batches of the validation data, once more.
        model: the module that was validated.
        precision: "float32", "bf16" or "fp16".

    Returns:
        str, a clause.
    """
    weighty = False
    for number, batch in enumerate(batches, start=1):
        if cause := _in_inputs(batch, f" of batch {number}"):
            return cause
        weighty = weighty or bool(model.batch_weight(batch))
    if name := _in_parameters(model):
        return f"the parameter {name} is not finite: look at what set it"
    if not weighty:
        return "no batch has anything to take the mean over (their weights are 0, as where all labels are padding)"
    if precision == "fp16":
        return _FP16
    return (
        "inputs and parameters are finite: look for log(0), 0/0 or an overflow in the model, its loss and its "
        "validation_step; a batch with nothing to take the mean over needs a batch_weight of 0"
    )


_FP16 = "fp16 holds nothing above 65504, and something overflowed: use precision='bf16' or 'float32'"


def _in_inputs(batch, which):
    """A clause about the first tensor of a batch that is not finite; None where all are."""
    for path, tensor in _tensors(batch, "batch"):
        if tensor.is_floating_point() and not tensor.isfinite().all():
            bad = (~tensor.isfinite()).sum().item()
            return f"the inputs are not finite, {bad} of {tensor.numel()} values in {path}{which}: look at the data"
    return None


def _in_parameters(model):
    """Name of the first parameter that is not finite; None where all are."""
    return next((name for name, parameter in model.named_parameters() if not parameter.isfinite().all()), None)


def _tensors(batch, path):
    if isinstance(batch, torch.Tensor):
        yield path, batch
    elif isinstance(batch, dict):
        for key, part in batch.items():
            yield from _tensors(part, f"{path}[{key!r}]")
    elif isinstance(batch, (list, tuple)):
        for index, part in enumerate(batch):
            yield from _tensors(part, f"{path}[{index}]")
