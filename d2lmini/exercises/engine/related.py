"""A wrong value beside the right one, as relations between the two look at it."""

import numbers
from dataclasses import dataclass

import torch

from .compare import LOOSE, TOLERANCE, bare, differ

MARGIN = 20  # an explanation must be this many times nearer to the answer than the reference is


@dataclass(frozen=True)
class Case:
    """An answer's value and the reference, both in float64 on the CPU and of one shape.

    Args:
        got: the answer's. want: the reference. kind: dtype that the answer's had.
        tolerance: (rtol, atol) within which two values are equal.
        given: the arguments of the call.
    """

    got: torch.Tensor
    want: torch.Tensor
    kind: torch.dtype
    tolerance: tuple
    given: tuple = ()

    @classmethod
    def of(cls, compared, given):
        """Return the case of a `Compared`, or None where there is nothing to relate."""
        got, want, tolerance = compared.got, compared.want, compared.tolerance
        if isinstance(want, numbers.Real):
            whole = float(got).is_integer() and float(want).is_integer()
            kind = torch.int64 if whole else torch.float64
            got, want = (torch.tensor(float(x), dtype=torch.float64) for x in (got, want))
        else:
            got, want = bare(got).cpu(), want.detach().cpu()
            kind = got.dtype
            tolerance = tolerance or (TOLERANCE.get(kind, LOOSE) if kind.is_floating_point else (0.0, 0.0))
        if got.shape != want.shape or not want.numel():
            return None
        return cls(got.double(), want.double(), kind, tolerance, given)

    @property
    def each(self):
        return "every entry" if self.want.numel() > 1 else "it"

    @property
    def wrong(self):
        return differ(self.got, self.want, *self.tolerance)

    @property
    def finite(self):
        return self.got.isfinite() & self.want.isfinite()

    @property
    def slack(self):
        """How far a factor may lie from the one that is named."""
        return min(max(self.tolerance[0], 1e-9), 5e-3)

    @property
    def sizes(self):
        """Lengths of axes of the result and of the arguments, and the whole numbers among these, below 100."""
        tensors = [self.want, *(x for x in self.given if isinstance(x, torch.Tensor))]
        whole = {x for x in self.given if type(x) is int}
        return {n for n in whole.union(*(x.shape for x in tensors)) if 1 < n < 100}

    def different(self):
        """How many values there are that a relation could get wrong: different ones; of booleans all, if of both."""
        values = self.want[self.want.isfinite()].unique()
        if self.kind == torch.bool:
            return self.want.numel() if values.numel() == 2 else 1
        return int((values != 0).sum())

    def ratio(self):
        """The factor between the two that fits best; None where the reference is 0."""
        got, want = self.got[self.finite], self.want[self.finite]
        size = want.square().sum()
        return ((got * want).sum() / size).item() if size > 0 and torch.isfinite(size) else None

    def equals(self, other):
        """Whether the answer is ``other``, and nearer to it than chance would have it."""
        if other.shape != self.got.shape or differ(self.got, other, *self.tolerance).any():
            return False
        rest = (self.got - other)[self.got.isfinite() & other.isfinite()].abs()
        error = (self.got - self.want).abs().nan_to_num(nan=0.0).max()
        return not rest.numel() or bool(rest.max() * MARGIN <= error)
