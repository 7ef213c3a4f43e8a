"""Buffers that stay exact where a model changes its dtype.

Rounded to bfloat16 a table of angles turns by other angles, and a scale scales by another number; ``.float()`` does not
bring back what was lost.
"""

import torch
from torch import nn

from .utils import widest_float


class ExactBuffers(nn.Module):
    """A module some of whose buffers keep their dtype: of what moves a model, only the device counts for them.

    What computes with one casts it there.

    Attributes:
        exact: names of these buffers.
    """

    exact = ()

    def _apply(self, fn, recurse=True):
        own = {id(self._buffers.get(name)): name for name in self.exact}
        return super()._apply(lambda x: self._moved(own[id(x)], fn) if id(x) in own else fn(x), recurse)

    def _moved(self, name, fn):
        x = self._buffers[name]
        device = fn(torch.empty(0, device=x.device)).device
        x = getattr(x, "elsewhere", x)
        if x.is_meta:
            return torch.empty_like(x, device=device)
        moved = on(x, device)
        if name in self._non_persistent_buffers_set and (moved.is_meta or moved.dtype != x.dtype):
            moved.elsewhere = x  # no checkpoint brings it back
        return moved


def on(x, device):
    """A tensor on a device, in its dtype; of float64 in the widest that there is."""
    return x.to(device, widest_float(device) if x.dtype == torch.float64 else x.dtype)
