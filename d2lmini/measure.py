"""What really happens in memory while an answer runs, seen by torch's dispatcher."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


class LargestTensor(TorchDispatchMode):
    """Within ``with LargestTensor() as seen:``, ``seen.numel`` is the size of the largest tensor made.

    Counted is storage, so an expanded view costs nothing.
    """

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in _tensors(out):
            self.numel = max(self.numel, x.untyped_storage().nbytes() // x.element_size())
        return out


class Traffic(TorchDispatchMode):
    """Within ``with Traffic() as seen:``, ``seen.bytes`` adds up what each operation reads and writes.

    Views move nothing and are not counted.
    """

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if not func.is_view and func._schema.name != "aten::_unsafe_view":
            self.bytes += sum(x.numel() * x.element_size() for x in (*_tensors(args), *_tensors(out)))
        return out
