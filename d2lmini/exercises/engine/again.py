"""A passed check once more, on inputs that its author need not think of.

``verify`` runs a second time with new values in the same shapes, on copies that are not contiguous, with the first row
of a batch alone, and in float64 where a type is promised. What is to come is known: ``verify`` has its reference, and a
row alone gives what it gives among others wherever that is so for the solution, or else what the solution gives.
"""

import inspect
import random
import re
from functools import lru_cache

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from . import source
from .compare import TOLERANCE, Rejected, bare
from .guard import restored_state
from .host import Host, HostError, is_leaf
from .model import Experiment
from .trial import Trial

RELATIONS = {  # name -> what a message begins with
    "values": "once it is right, and then wrong for new values in the same shapes: is something kept from one call to "
    "the next, or right for some values alone?",
    "strided": "wrong only for inputs that are not contiguous, as a transposed tensor: is it `.view`? `.reshape` takes "
    "them all.",
    "alone": "wrong only for a batch of one, where the first axis has length 1: is it a `squeeze`?",
    "double": "wrong only in float64, though the type of the inputs is promised: is a new tensor made without dtype=?",
}
PROMISED = re.compile(r"\b(?:of|in|have|has) the (?:same )?d?type (?:of|as)\b|\bshapes? and d?type\b|\bone d?type\b")
SAME, NOT_TRIED = object(), object()
NEAR = 1e-2  # how far a row alone may be off, as a part of the largest entry: a batch is summed in another order


class Again(Trial):
    """A `Trial` whose calls are related to those of another one.

    Args:
        relations: names of `RELATIONS`.
        solved: what the solution found: number of a call -> what it gives for the first row alone, or `SAME` if that is
            the first row of what it gives for all. None: this is the solution, and ``found`` is to be filled.
        part: whose solution this is, where it is one.
    """

    def __init__(self, seed, device, host, relations, solved=None, part=None):
        super().__init__(seed + ("values" in relations), device, host)
        self.random = random.Random(seed)  # the shapes
        self.relations, self.solved, self.part = relations, solved, part
        self.calls, self.found, self.taken = 0, {}, {"values"} & set(relations)

    def call(self, answer, /, *args, **kwargs):
        for name, change in (("double", _double), ("strided", _strided)):
            if name in self.relations:
                (args, kwargs), changed = _mapped((args, kwargs), change)
                self.taken |= {name} if changed else set()
        number, few = self.calls, NOT_TRIED
        self.calls += 1
        if "alone" in self.relations and (self.solved is None or number in self.solved):
            few = self._first_row(answer, args, kwargs)
        by_itself = (
            self.solved is None
            and few is not NOT_TRIED
            and answer is self.answer
            and _has_batch(self.part, args)
            and _agree(self._first_row(answer, args, kwargs), few, first=False)  # nothing is drawn
        )
        got = super().call(answer, *args, **kwargs)  # the last one, whose arguments a gradient is asked of
        if few is NOT_TRIED:
            return got
        if self.solved is None:
            if _agree(few, got, first=True):
                self.found[number] = SAME
            elif by_itself:
                self.found[number] = few
            self.taken |= {"alone"} if number in self.found else set()
        else:
            alike = self.solved[number] is SAME
            want = got if alike else self.solved[number]
            if not _agree(few, want, first=alike):
                raise Rejected("values", _difference(few, want, alike))
        return got

    def same(self, got, want, name="the result", **options):
        if "double" in self.relations and options.get("tolerance") is None:
            options["tolerance"] = TOLERANCE[torch.float32]  # the values are those of float32, and so may the want be
        super().same(got, want, name, **options)

    def _first_row(self, answer, args, kwargs):
        """What the first row of the arguments gives alone, or `NOT_TRIED`: they have none."""
        (first, *_) = _tensors((args, kwargs)) or [torch.zeros(())]
        if not first.dim() or len(first) < 2:
            return NOT_TRIED
        if first.dim() < 2 and self.solved is None and not _has_batch(self.part, args):
            return NOT_TRIED
        n = len(first)
        (args, kwargs), _ = _mapped((args, kwargs), lambda x: x[:1] if x.dim() and len(x) == n else None)
        try:
            return self.host.call(answer, args, kwargs)[0]
        except Rejected:
            if self.solved is None:
                return NOT_TRIED
            raise


def _double(x):
    return x.detach().double().requires_grad_(x.requires_grad) if x.dtype == torch.float32 else None


def _strided(x):
    """The same values, with the last axis the outermost in memory, so that no two axes are one for `.view`."""
    if x.dim() < 2 or sum(n > 1 for n in x.shape) < 2:
        return None
    axes = tuple(reversed(range(x.dim())))
    return x.detach().permute(axes).contiguous().permute(axes).requires_grad_(x.requires_grad)


def _tensors(value):
    return [x for x in tree_leaves(value, is_leaf) if isinstance(x, torch.Tensor)]


def _has_batch(part, args):
    """Whether the docstring of an answer gives its first argument with a tensor a batch axis: ``images: (B, D)``."""
    for name, value in zip(inspect.signature(part.answer).parameters, args, strict=False):
        if _tensors(value):
            return bool(re.search(rf"\b{name}\b[^:\n]*:[^(\n]*\(B[,)]", part.answer.__doc__))
    return False


def _mapped(value, change):
    """Return ``value`` with ``change`` made of each tensor in it (None: it stays), and whether there was any."""
    leaves, form = tree_flatten(value, is_leaf)
    new = [change(x) if isinstance(x, torch.Tensor) else None for x in leaves]
    kept = [x if y is None else y for x, y in zip(leaves, new, strict=True)]
    return tree_unflatten(kept, form), any(y is not None for y in new)


def _agree(few, want, first):
    """Whether ``few``, of a row alone, is ``want``, or with ``first`` the first row of that; nothing but tensors."""
    (few, form), (want, other_form) = tree_flatten(few, is_leaf), tree_flatten(want, is_leaf)
    return bool(few) and form == other_form and all(_near(a, b, first) for a, b in zip(few, want, strict=True))


def _near(few, want, first):
    if not isinstance(few, torch.Tensor) or not isinstance(want, torch.Tensor) or (first and not want.dim()):
        return False
    few, want = bare(few), bare(want)[:1] if first else bare(want)
    if few.shape != want.shape or few.dtype != want.dtype:
        return False
    few, want = few.cpu().double(), want.cpu().double()
    finite = want[want.isfinite()]
    near = (few - want).abs() <= NEAR * finite.abs().amax() if finite.numel() else few == want
    return bool((near | (few == want) | (few.isnan() & want.isnan())).all())


def _difference(few, want, first):
    if not isinstance(few, torch.Tensor) or not isinstance(want, torch.Tensor):
        return "the first row alone gives another result than in a larger batch"
    shape = (1, *want.shape[1:]) if first else tuple(want.shape)
    if tuple(few.shape) != shape:
        return f"for the first row alone the result has shape {tuple(few.shape)}, expected {shape}"
    return "for the first row alone the result has other values than it should"


def promises_dtype(part):
    """Whether the texts of a part say which type its result has."""
    return bool(PROMISED.search(" ".join(f"{part.prompt} {part.answer.__doc__}".split())))


def asked(part):
    """Return the relations that a part is to take, if its inputs allow it."""
    if isinstance(part, Experiment):  # it trains, and returns numbers
        return set()
    return {name for name in RELATIONS if name not in part.without and (name != "double" or promises_dtype(part))}


def solved(part, seed, device="cpu"):
    """Return the `Again` of the solution: which relations the inputs of a part allow is its ``taken``.

    Raises:
        Rejected: the solution does not pass.
    """
    trial = Again(seed, device, Host(), asked(part), part=part)
    return _tried(part, source.solved(part), trial)


def _tried(part, answer, trial):
    trial.answer = answer
    with restored_state(trial.seed, quiet=True):
        part.verify(trial, answer)
    return trial


@lru_cache(maxsize=1)  # an audit judges several answers with each part and seed
def _right(part, seed, device):
    """What `solved` returns, or None where the solution fails: such a check refuses no answer so; an audit tells."""
    try:
        return solved(part, seed, device)
    except Exception:
        return None


def again(part, answer, trial):
    """Try an answer that has passed once more.

    Raises:
        Rejected: with the name of a relation as its code.
    """
    right = _right(part, trial.seed, trial.device) if asked(part) else None
    if right is None or right.taken <= {"values"}:
        return

    def fault(relations):
        try:
            _tried(part, answer, Again(trial.seed, trial.device, trial.host, relations, right.found))
        except Rejected as rejected:
            return rejected
        except HostError as error:
            if error.status == "timeout":  # the limit there is that of the first run
                return None
            raise
        except Exception:
            return None

    if fault(right.taken):
        for name, words in RELATIONS.items():
            if name in right.taken and (found := fault({name} | right.taken & {"values"})):
                raise Rejected(name, f"{words}\n  {found.message}")
