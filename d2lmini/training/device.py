"""What a run computes on, by accelerate: which device, in which precision, with how many processes."""

import os
import warnings

import torch
from torch import nn

PRECISIONS = {"float32": "no", "bf16": "bf16", "fp16": "fp16"}  # ours -> accelerate's
_said = set()


def num_processes():
    """How many processes `torchrun` or `accelerate launch` started for this run; 1 where neither did."""
    return int(os.environ.get("WORLD_SIZE", 1))


def device_named(name):
    """The device of a name, where it is here.

    Args:
        name: "cpu", "cuda", "cuda:1", "mps", ...; or a ``torch.device``.

    Returns:
        a ``torch.device``.

    Raises:
        ValueError: torch knows no such device, or it is not on this machine.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(f"there is no device {name!r}, expected 'cpu', 'cuda', 'cuda:1' or 'mps'") from None
    if device.type == "cuda":
        here = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= here:
            expected = f"'cpu' or one of cuda:0 to cuda:{here - 1}" if here else "'cpu': torch finds no GPU here"
            raise ValueError(f"the device is {name!r}, expected {expected}")
    elif device.type != "cpu":
        try:
            torch.zeros(1, device=device).item()
        except (RuntimeError, AssertionError, NotImplementedError, ImportError):
            raise ValueError(f"the device is {name!r}, expected 'cpu': torch cannot compute on it here") from None
    return device


def make_accelerator(num_gpus, precision):
    """An accelerator, and the precision that it computes in.

    Args:
        num_gpus: 0: the CPU; else the GPU of this process, or the CPU where there is none, which is said once.
        precision: a name in `PRECISIONS`, or "auto": bf16 on GPUs that have it, else float32.

    Returns:
        the accelerator, a name in `PRECISIONS`.

    Raises:
        ValueError: "fp16" on a CPU, which does not compute in it.
    """
    from accelerate import Accelerator, DistributedDataParallelKwargs
    from accelerate.state import AcceleratorState

    cuda = num_gpus > 0 and torch.cuda.is_available()
    if num_gpus > 0 and not cuda and "no GPU" not in _said:
        _said.add("no GPU")
        warnings.warn(f"num_gpus is {num_gpus}, but there is no GPU here: training on the CPU", stacklevel=3)
    if precision == "fp16" and not cuda:
        raise ValueError("precision is 'fp16', which needs a GPU: on a CPU use 'bf16' or 'float32'")
    if precision == "auto":
        # GPUs before Ampere only emulate bf16
        precision = "bf16" if cuda and torch.cuda.get_device_capability() >= (8, 0) else "float32"
    if not torch.distributed.is_initialized():
        # accelerate would keep the device and the precision of the first trainer for the life of the process
        AcceleratorState._reset_state(reset_partial_state=True)
    # a model may have parameters that a step does not use, on many processes as on one
    unused = DistributedDataParallelKwargs(find_unused_parameters=True)
    return Accelerator(mixed_precision=PRECISIONS[precision], cpu=not cuda, kwargs_handlers=[unused]), precision


def sum_over_processes(accelerator, value):
    """The sum of a number or tensor over the processes."""
    if accelerator.num_processes == 1:
        return value
    return accelerator.reduce(torch.as_tensor(value, device=accelerator.device), "sum")


class Steps(nn.Module):
    """A model's two steps behind one ``forward``, which is where accelerate attaches precision and processes."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batch, train):
        return self.model.training_step(batch) if train else self.model.validation_step(batch)
