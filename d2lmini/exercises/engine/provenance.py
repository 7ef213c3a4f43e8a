"""Where a result comes from: was it differentiated by torch, computed by a formula, or by somebody's ready function?

An identity has two sides with the same values, so an answer that computes one side and returns it twice looks right.
Where one side is to come from autograd, the answer is run once more within `DoubledSlopes`: what was differentiated
is then another, and what was not is the same.

    left, right = t.unpack(t.call(answer, *inputs), "left", "right")  # and compared with the references
    with t.watching(DoubledSlopes, "runs"):
        again = t.unpack(t.call(answer, *inputs), "left", "right")
    t.that(differentiated(left, again[0]), "not-differentiated", ...)
    t.that(not differentiated(right, again[1]), "differentiated", ...)

A derivative may also be made of differences. Within `Noise` exponentials are a little off, and each time otherwise: a
difference over a small step makes much of that, a formula does not.

Where a reader is to write what the package or torch has, `Calls` tells whether that was called, and `Trial.refusing`
rejects the answer.
"""

import sys

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode


class DoubledSlopes:
    """Within ``with DoubledSlopes() as seen:``, each pass of torch doubles the derivative that it computes.

    A second derivative is four times what it should be. ``seen.runs`` counts the backward passes and the tangents.
    """

    runs = 0

    def __enter__(self):
        # what all of autograd.grad, .backward, functional.jacobian and torch.func end in
        self._backward, self._forward = torch.autograd._engine_run_backward, forward_ad.make_dual
        torch.autograd._engine_run_backward, forward_ad.make_dual = self._run_backward, self._make_dual
        return self

    def __exit__(self, *exception):
        torch.autograd._engine_run_backward, forward_ad.make_dual = self._backward, self._forward

    def _run_backward(self, outputs, seeds, *args, **kwargs):
        self.runs += 1
        return self._backward(outputs, tuple(s if s is None else 2 * s for s in seeds), *args, **kwargs)

    def _make_dual(self, tensor, tangent, **kwargs):
        self.runs += 1
        return self._forward(tensor, 2 * tangent, **kwargs)


def differentiated(plain, doubled) -> bool:
    """Whether ``plain`` came out of a derivative: ``doubled`` is the same computed within `DoubledSlopes`.

    Args:
        plain: a tensor, not zero throughout. doubled: whatever the answer returned.
    """
    if not isinstance(doubled, torch.Tensor) or doubled.shape != plain.shape:
        return False
    plain, doubled = plain.detach().double(), doubled.detach().double()
    return bool((plain * doubled).sum() > 1.5 * plain.square().sum())


class Noise(TorchDispatchMode):
    """Within ``with Noise() as seen:``, what torch exponentiates is off by about `SIZE` of itself, ``runs`` times."""

    SIZE = 1e-9

    def __init__(self):
        super().__init__()
        self.runs, self._generator = 0, torch.Generator().manual_seed(0)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func._schema.name
        if not isinstance(out, torch.Tensor) or "backward" in name or not _exponentiates(name):
            return out
        if not out.is_floating_point():
            return out
        self.runs += 1
        off = torch.randn(out.shape, generator=self._generator, dtype=torch.float64).to(out)
        return out * (1 + self.SIZE * off)


class Exponentials(TorchDispatchMode):
    """Within ``with Exponentials() as ran:``, ``ran.seen`` lists what torch exponentiates, be it within attention.

    Each is a pair: the name of the operation, as ``aten::_softmax``, and the shape of its first argument.
    """

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if _exponentiates(name) or "scaled_dot_product" in name:
            self.seen.append((name, tuple(getattr(args[0], "shape", ()))))
        return func(*args, **(kwargs or {}))


def _exponentiates(name):
    return "softmax" in name or ("exp" in name and "expand" not in name)


class Calls:
    """Within ``with Calls("torch.optim.") as seen:``, ``seen.names`` lists what is called whose name begins so.

    Only functions written in Python are seen, in this thread, by the name of the module where they are defined and
    their own: ``torch.optim.adamw.__init__``. What torch computes in C++ a ``TorchDispatchMode`` sees.

    Args:
        beginnings: of such names, each without its end.
    """

    def __init__(self, *beginnings):
        self.beginnings, self.names = beginnings, []

    def __enter__(self):
        self._before = sys.getprofile()
        sys.setprofile(self._hear)
        return self

    def __exit__(self, *exception):
        sys.setprofile(self._before)

    def _hear(self, frame, event, arg):
        if event == "call":
            name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
            if name.startswith(self.beginnings) and name not in self.names:
                self.names.append(name)
