"""Wrong answers that can be made of any right one, so that no author has to write them: the audit tries them all.

Each breaks a rule of the engine: the result is in another precision, has an axis too many or two exchanged, is a list
or lacks an item; an argument is changed in place, or gets no gradient.
"""

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

ARGUMENTS = 6  # of an answer, at most: each is cut off from its gradient
MOST_VALUES = 5_000  # of a list: longer ones do not come back from another process


class Fault:
    """A right answer with something done to its arguments or its result.

    ``applied`` counts how often there was something to do, which depends on what the answer takes and returns.

    Args:
        solution: a right answer.
        name: what is wrong.
        diagnosis: what it must get, if it was ever applied.
    """

    def __init__(self, solution, name, diagnosis):
        self.solution, self.__name__, self.diagnosis, self.applied = solution, name, diagnosis, 0


class FaultyResult(Fault):
    """Gives ``change`` of the result, or with ``each`` of every tensor in it; None: it stays as it is."""

    def __init__(self, solution, name, diagnosis, change, each=False):
        super().__init__(solution, name, diagnosis)
        self.change, self.each = change, each

    def __call__(self, *args, **kwargs):
        got = self.solution(*args, **kwargs)
        return tree_map_only(torch.Tensor, self._changed, got) if self.each else self._changed(got)

    def _changed(self, value):
        new = self.change(value)
        self.applied += new is not None
        return value if new is None else new


class ChangesInPlace(Fault):
    """Adds one to the first argument that is a tensor."""

    def __call__(self, *args, **kwargs):
        got = self.solution(*args, **kwargs)
        for value in args:
            if isinstance(value, torch.Tensor) and value.numel():
                self.applied += 1
                value.data.copy_(~value if value.dtype == torch.bool else value + 1)
                break
        return got


class Detached(Fault):
    """Lets no gradient reach the argument number ``index``."""

    def __init__(self, solution, index):
        super().__init__(solution, f"argument {index + 1} detached", "grad")
        self.index = index

    def __call__(self, *args, **kwargs):
        value = args[self.index] if self.index < len(args) else None
        if isinstance(value, torch.Tensor) and value.requires_grad:
            self.applied += 1
            args = (*args[: self.index], value.detach(), *args[self.index + 1 :])
        return self.solution(*args, **kwargs)


class Aliased(Fault):
    """Gives an argument itself, or a tensor in one, where a tensor of the result equals it."""

    def __call__(self, *args, **kwargs):
        given = [x for x in tree_leaves(args) if isinstance(x, torch.Tensor)]

        def swapped(value):
            same = [x for x in given if x.dtype == value.dtype and torch.equal(x, value)]
            self.applied += bool(same)
            return same[0] if same else value

        return tree_map_only(torch.Tensor, swapped, self.solution(*args, **kwargs))


def _double(x):
    return x.double() if x.is_floating_point() and x.dtype != torch.float64 else None


def _turned(x):
    return x.mT if x.dim() > 1 and x.shape[-1] != x.shape[-2] else None


def _listed(x):
    return x.tolist() if x.numel() <= MOST_VALUES else None


def _one_less(got):
    if type(got) is tuple and len(got) > 1:
        return got[:-1]
    return dict(list(got.items())[:-1]) if type(got) is dict and got else None


def _first(got):
    return got[0] if type(got) is tuple and isinstance(got[0], torch.Tensor) else None


def faults(solution):
    """Return the wrong answers of this file that are made of a solution."""
    return [
        FaultyResult(solution, "in double", "dtype", _double, each=True),
        FaultyResult(solution, "one axis more", "shape", lambda x: x[None], each=True),
        FaultyResult(solution, "turned", "shape", _turned, each=True),
        FaultyResult(solution, "one item less", "type", _one_less),
        FaultyResult(solution, "first item alone", "type", _first),
        FaultyResult(solution, "lists", "type", _listed, each=True),
        ChangesInPlace(solution, "in place", "mutates"),
        *(Detached(solution, index) for index in range(ARGUMENTS)),
    ]
