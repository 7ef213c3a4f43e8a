"""What a trainer's checkpoint holds: the state of everything, and what it was made with.

Not by accelerate's `save_state`: its files are neither verified nor one whole, and random numbers that it cannot read
back are left as they are, without an error.
"""

import dataclasses
import inspect
import math
from contextlib import ExitStack, contextmanager
from functools import partial

import torch

from . import checkpoint
from .batches import random_state, set_random_state

_PROGRESS = ("epoch", "step", "batch", "train_batch_idx", "val_batch_idx", "data_seed", "should_stop")
# what may change from one start to the next
_FREE = {"root", "num_workers", "plot_train_per_epoch", "plot_valid_per_epoch"}


def configuration(trainer, optimizer):
    """What has to be equal for a run to go on from a checkpoint, as plain values."""
    model, data = trainer.model, trainer.data
    return {
        "model": _described(model),
        "parameters": {name: str(tuple(value.shape)) for name, value in model.state_dict().items()},
        "optimizer": {"class": type(optimizer).__name__, **_plain(optimizer.defaults)},
        "data": {**_described(data), "batches": trainer.num_train_batches},
        "trainer": {
            "gradient_clip_val": trainer.gradient_clip_val,
            "precision": trainer.used_precision,
            "accumulate": trainer.accumulate,
            "schedule": _plain(trainer.schedule),
            "seed": trainer.seed,
            "processes": trainer.accelerator.num_processes,
        },
    }


def save(trainer):
    """Writes a checkpoint of a trainer, one process for all; nothing where there is no folder, or this one is there."""
    from accelerate.utils import gather_object

    if trainer.checkpoint is None or checkpoint.is_of_step(trainer.checkpoint, trainer.step):
        return
    accelerator = trainer.accelerator
    weights, optimizer = _states(trainer)
    state = {
        "optimizer": optimizer,
        "scheduler": trainer.scheduler.state_dict(),
        "scaler": accelerator.scaler.state_dict() if accelerator.scaler else None,
        "random": gather_object([random_state()]),
    }
    manifest = {
        "progress": {name: getattr(trainer, name) for name in _PROGRESS},
        "seconds": (trainer.history["seconds"] or [0.0])[-1],
        "history": trainer.history,
        "board": trainer.model.board.points,
        "config": trainer.config,
        "digests": trainer.data_digests,
    }
    write_weights = partial(_write_weights, trainer.model, weights)
    _in_main_process(
        accelerator, lambda: checkpoint.write(trainer.checkpoint, trainer.step, write_weights, state, manifest)
    )


@contextmanager
def claimed_folder(trainer):
    """Keeps the folder of checkpoints, if there is one, for this run, one process for all.

    Raises:
        CheckpointError: as `checkpoint.claim`.
    """
    with ExitStack() as stack:
        if trainer.checkpoint is not None:
            _in_main_process(trainer.accelerator, lambda: stack.enter_context(checkpoint.claim(trainer.checkpoint)))
        yield


def _in_main_process(accelerator, action):
    """Does something in one process; all wait for its end, and where it failed none goes on alone."""
    from accelerate.utils import broadcast_object_list

    failed = [None]
    if accelerator.is_main_process:
        try:
            action()
        except checkpoint.CheckpointError as error:
            failed = [error]
    broadcast_object_list(failed)
    if failed[0] is not None:
        raise failed[0]


def restore(trainer):
    """Puts a trainer to where its checkpoint left it, if there is one.

    Returns:
        The seconds trained before.

    Raises:
        ValueError: there is one, but the trainer was not told to resume.
        CheckpointError: as `checkpoint.read`, or it was made with another configuration.
    """
    path = checkpoint.latest(trainer.checkpoint) if trainer.checkpoint is not None else None
    if path is None:
        return 0.0
    if not trainer.resume:
        raise ValueError(
            f"{path} is the checkpoint of another run: resume=True goes on from it, another folder starts anew"
        )
    weights, state, manifest = checkpoint.read(path)
    lines = checkpoint.difference(manifest["config"], trainer.config)
    if lines:
        more = [f"and {len(lines) - 10} more"] if len(lines) > 10 else []
        raise checkpoint.CheckpointError(
            f"{path} was made with another configuration:\n  " + "\n  ".join([*lines[:10], *more])
        )
    digests = manifest.get("digests", trainer.data_digests)  # older ones have none
    others = [kind for kind, digest in trainer.data_digests.items() if digests[kind] != digest]
    if others:
        raise checkpoint.CheckpointError(
            f"{path} was made with other {' and '.join(others)} data of the same size: go on with those, or train anew "
            "in another folder"
        )
    try:
        _put(trainer, weights, state, manifest)
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # of a foreign file nearly all may come
        raise checkpoint.foreign(path, error) from error
    return manifest["seconds"]


def _put(trainer, weights, state, manifest):
    _set_states(trainer, weights, state["optimizer"])
    trainer.scheduler.load_state_dict(state["scheduler"])
    if state["scaler"]:
        trainer.accelerator.scaler.load_state_dict(state["scaler"])
    for name in _PROGRESS:
        setattr(trainer, name, manifest["progress"][name])
    trainer.history, trainer.model.board.points = manifest["history"], manifest["board"]
    set_random_state(state["random"][trainer.accelerator.process_index])


def _sharded(trainer):
    from accelerate.utils import DistributedType

    return trainer.accelerator.distributed_type == DistributedType.FSDP


def _states(trainer):
    """State of the parameters, None where the model itself is written, and of the optimizer.

    torch's functions would serve whole parameters too, but take a step of the optimizer to read its state back, and
    want every parameter of it to be one of the model's.
    """
    if not _sharded(trainer):
        return None, trainer.optim.state_dict()
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return get_state_dict(trainer.prepared_model, trainer.optim.optimizer, options=options)


def _set_states(trainer, path, optimizer):
    """Reads the parameters from a file, and sets the optimizer's state."""
    from safetensors.torch import load_file, load_model

    if not _sharded(trainer):
        load_model(trainer.model, str(path))
        trainer.optim.load_state_dict(optimizer)
        return
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_state_dict

    weights = {f"model.{name}": value for name, value in load_file(path).items()}
    options = StateDictOptions(full_state_dict=True)
    set_state_dict(
        trainer.prepared_model,
        trainer.optim.optimizer,
        model_state_dict=weights,
        optim_state_dict=optimizer,
        options=options,
    )


def _write_weights(model, sharded, path):
    from safetensors.torch import save_file, save_model

    if sharded is None:
        save_model(model, str(path))  # tied parameters once
    else:
        save_file({name.removeprefix("model."): value.clone() for name, value in sharded.items()}, str(path))


def _described(thing):
    hparams = {name: value for name, value in getattr(thing, "hparams", {}).items() if name not in _FREE}
    return {"class": type(thing).__name__, **_plain(hparams)}


def _plain(value):
    """A value as JSON has it after a round trip; of what JSON cannot hold, its name."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__name__, **_plain(dataclasses.asdict(value))}
    if isinstance(value, (torch.device, torch.dtype)):
        return str(value)
    if inspect.isroutine(value) or isinstance(value, type):
        return value.__qualname__
    return type(value).__name__
