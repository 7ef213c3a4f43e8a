"""How wrong values are related to the right ones: twice them, reversed, their logarithm, ...

Where values are wrong and no foreseen mistake of the exercise gives them, `explain` tries the relations one after
another. Each is a function of a `Case` that returns a code and a sentence, or None. A sentence says how the answer
relates to the reference, and never a value of the reference.
"""

import itertools
import math
from dataclasses import replace

import torch

from .places import PLACES
from .related import Case

FEW = 4  # different values: fewer may be related by chance
MOST = 2**18  # entries: a larger result is not searched
CONSTANTS = {"2": 2, "1/2": 1 / 2, "log 2": math.log(2), "1/log 2": 1 / math.log(2)}


def explain(compared, given=()):
    """Return (code, sentence) for a wrong value, or None where no relation holds.

    Args:
        compared: a `Compared`, wrong. given: the arguments of the call that gave it.
    """
    case = Case.of(compared, given)
    if case is None or case.want.numel() > MOST or not case.wrong.any():
        return None
    if case.kind == torch.bool and case.want.shape[:1] in ((), (1,)):
        return None  # in a single row of flags much is true by chance
    for relation in RELATIONS:
        if explained := relation(case):
            code, sentence = explained
            return code, sentence if case.different() >= FEW else f"it looks as if {sentence}"
    return None


def negated(case):
    if case.kind == torch.bool and case.equals(1 - case.want):
        return "not", f"{case.each} is True where it should be False, and the reverse: a `not` too many or too few?"


def argument(case):
    for number, value in enumerate(case.given, 1):
        if not isinstance(value, torch.Tensor) or value.numel() < 2 or not case.equals(value.detach().cpu().double()):
            continue
        if value.unique().numel() > 1:  # what is one number throughout may be equal by chance
            return "argument", f"this is argument number {number}, unchanged"


def one_off(case):
    """For counts and places: what is wrong is off by one, and by the same one."""
    if case.kind.is_floating_point or case.kind == torch.bool:
        return None
    gaps = (case.got - case.want)[case.wrong].unique().tolist()
    if gaps not in ([1], [-1]):
        return None
    large = "large", "counted too often, or from 1, not 0"
    size, cause = large if gaps == [1] else ("small", "left out, or from 0, not 1")
    if case.wrong.all():
        return "off-by-one", f"{case.each} is one too {size}: is something {cause}?"
    return "off-by-one", f"each wrong entry is one too {size}"  # rounded otherwise, as likely as counted


def factor(case):
    ratio = case.ratio()
    if ratio is None or not case.equals(ratio * case.want):
        return None
    if abs(ratio) < 1e-6:
        nothing = "False" if case.kind == torch.bool else "0"
        return ("zero", f"{case.each} is {nothing}") if case.different() >= 2 else None
    if abs(ratio + 1) <= case.slack:
        return "sign", f"{case.each} has the right size and the wrong sign"
    if case.want.numel() == 1:
        return None  # of one number, some factor fits by chance
    sign = ", with the wrong sign" if ratio < 0 else ""
    for name, value, cause in _factors(case):
        if abs(value / abs(ratio) - 1) <= case.slack:
            return "factor", f"{case.each} is {name} times what it should be{sign}{cause}"
    if case.different() >= FEW:
        return "factor", f"{case.each} is off by one and the same factor{sign}"


def _factors(case):
    """Triples (name, value, what may have caused it): only of these a number is told, since no reference is in them."""
    for n in sorted(case.sizes):
        yield f"{n}", n, f", and {n} is a size here: a sum for a mean, or something counted {n} times?"
        yield f"1/{n}", 1 / n, f", and {n} is a size here: a mean for a sum, or one counted where there are {n}?"
    for name, value in CONSTANTS.items():
        yield name, value, ": a logarithm to another base?" if "log" in name else ""


def sizes_alone(case):
    """Right but for signs."""
    if case.kind.is_floating_point and case.different() >= FEW and case.equals(case.want.abs().copysign(case.got)):
        return "signs", "the sizes are right, and some of the signs are wrong"


FUNCTIONS = {  # code -> (what was done to the reference, what is said)
    "log": (torch.log, "the logarithm of what it should be"),
    "exp": (torch.exp, "the exponential of what it should be"),
    "square": (torch.square, "the square of what it should be"),
    "root": (torch.sqrt, "the square root of what it should be"),
    "inverse": (torch.reciprocal, "one divided by what it should be"),
    "complement": (lambda x: 1 - x, "one minus what it should be"),
}


def function(case):
    alone = case.want.numel() == 1  # two whole numbers are related by chance, and so is another one's root
    if case.kind == torch.bool or not case.different() or (alone and not case.kind.is_floating_point):
        return None
    for code, (change, words) in FUNCTIONS.items():
        if not (alone and code in ("square", "root")) and case.equals(change(case.want)):
            return code, f"{case.each} is {words}"


def order(case):
    """The right entries in another order, along an axis or among two."""
    want = case.want
    for i, j in itertools.combinations(range(want.dim()), 2):
        if want.shape[i] == want.shape[j] and case.equals(want.transpose(i, j)):
            return "transposed", f"axes {i} and {j} are exchanged"
    for axis in range(want.dim()):
        if case.equals(want.flip(axis)):
            return "reversed", f"the entries along axis {axis} stand in reverse order"
    if case.kind != torch.bool and case.different() >= FEW and case.equals(_in_order_of(case.got, want)):
        where = "look at axes and reshapes" if case.kind.is_floating_point else "in which order do they belong?"
        return "order", f"the entries are the right ones, but in other places: {where}"


def _in_order_of(got, want):
    """The entries of the reference, sorted as the answer's are."""
    ranks = got.flatten().argsort().argsort()
    return want.flatten().sort().values[ranks].view_as(want)


def normalised(case):
    """For what sums to one along an axis."""
    sums = [axis for axis in range(case.want.dim()) if _sums_to_one(case.want, axis)]
    if not sums or not case.kind.is_floating_point or any(_near_one(case.got.sum(axis)) for axis in sums):
        return None
    axis = sums[-1]
    if not replace(case, got=torch.softmax(case.got, axis)).wrong.any():
        return "before-softmax", f"these are the values before the softmax along axis {axis}"
    for other in range(case.got.dim()):
        if other not in sums and _sums_to_one(case.got, other):
            return "softmax-axis", f"the entries sum to one along axis {other}, but should along axis {axis}"
    if (case.got >= 0).all() and case.got.sum(axis).all() and case.equals(case.got.sum(axis, keepdim=True) * case.want):
        return "not-normalised", f"along axis {axis} the entries are not divided by their sum: they should sum to one"
    return "sums", f"the entries along axis {axis} should sum to one, and do not"


def _sums_to_one(x, axis):
    if x.shape[axis] < 2 or not (x >= 0).all() or (x == x.round()).all():
        return False
    return _near_one(x.sum(axis))


def _near_one(sums):
    return torch.allclose(sums, torch.ones((), dtype=sums.dtype), atol=1e-3)


def rows(case):
    """A factor or an offset of its own for each line along an axis."""
    if not case.kind.is_floating_point or not case.finite.all() or case.different() < FEW:
        return None
    for axis in range(case.want.dim() if case.want.dim() > 1 else 0):
        if case.want.shape[axis] < 3:
            continue
        scale = (case.got * case.want).sum(axis, keepdim=True) / case.want.square().sum(axis, keepdim=True)
        if scale.isfinite().all() and (scale.abs() > 1e-6).all() and case.equals(scale * case.want):
            return "line-factor", f"{case.each} is off by a factor that is the same along axis {axis}: {_LOOK}"
        if case.equals(case.want + (case.got - case.want).mean(axis, keepdim=True)):
            return "line-offset", f"{case.each} is off by an amount that is the same along axis {axis}: {_LOOK}"


_LOOK = "look at what has no such axis, or sums over it"


def close(case):
    if not case.kind.is_floating_point or case.different() < FEW or not case.finite.all():
        return None
    if (case.got - case.want).abs().max() <= 1e-2 * case.want.abs().max():
        return "close", "every entry is nearly right: is a small term missing or too much, or something rounded?"


RELATIONS = (
    *(negated, argument, one_off, factor, function, order, sizes_alone),
    *PLACES,
    *(normalised, rows, close),
)
