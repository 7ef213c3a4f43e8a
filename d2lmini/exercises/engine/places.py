"""Where the wrong entries of a result stand: in the last column, where something is masked, outside the first batch."""

import torch

_WORDS = {0: "first", -1: "last"}
_LOOP = {"first": "does a loop end there?", "last": "does each step of a loop overwrite the one before?"}


def one_alone(case):
    """Only the first, or the last, is right along an axis, and the others are all alike: a loop that ends too early.

    Where the others differ it may be a mask as well: the last of all tokens sees what none but it may see.
    """
    if case.want.dim() < 2:
        return None
    least = 1 if case.kind.is_floating_point else 10  # entries: fewer flags are right by chance
    for axis, by_place in _lines(case.wrong):
        for place, word in _WORDS.items() if by_place.shape[1] >= least else ():
            others = by_place[1:] if place == 0 else by_place[:-1]
            got = case.got.movedim(axis, 0)
            got = got[1:] if place == 0 else got[:-1]
            empty = torch.equal(got, got[:1].expand_as(got)) and (len(got) > 1 or not got.any())
            if empty and not by_place[place].any() and others.any(-1).all() and others.float().mean() > 0.5:
                cause = f", and all others are alike: {_LOOP[word]}" if axis == 0 else ", and all others are alike"
                return f"{word}-alone", f"along axis {axis} the {word} entry alone is right{cause}"


def edge(case):
    """Right but at the first or last place along an axis."""
    for axis, by_place in _lines(case.wrong):
        for place, word in _WORDS.items():
            rest = by_place[1:] if place == 0 else by_place[:-1]
            least = 3 if by_place.shape[1] > 1 else 4
            if len(by_place) >= least and not rest.any() and by_place[place].float().mean() > 0.5:
                return f"{word}-place", f"only the {word} entry along axis {axis} is wrong"


def _lines(wrong):
    """Pairs of an axis and the flags as (places along it, all other axes)."""
    for axis in range(wrong.dim()):
        if wrong.shape[axis] > 1:
            yield axis, wrong.movedim(axis, 0).flatten(1) if wrong.dim() > 1 else wrong[:, None]


def triangle(case):
    """Wrong on one side of the diagonal of the last two axes, or on it."""
    whole_numbers = not case.kind.is_floating_point and case.kind != torch.bool
    if case.want.dim() < 2 or min(case.want.shape[-2:]) < 3 or whole_numbers:
        return None
    wrong = case.wrong.flatten(0, -3).any(0) if case.want.dim() > 2 else case.wrong
    whole = torch.ones_like(wrong)
    sides = {  # code -> (where, how many are no chance, what is said)
        "diagonal": (whole.triu() & whole.tril(), 3, "on the diagonal"),
        "above-diagonal": (whole.triu(1), 6, "above the diagonal"),
        "below-diagonal": (whole.tril(-1), 6, "below the diagonal"),
    }
    for code, (side, least, words) in sides.items():
        if wrong.sum() >= least and not (wrong & ~side).any():
            return code, f"the entries are wrong only {words} of the last two axes"


def masked(case):
    """Wrong only where a boolean argument is True, or False."""
    for number, value in enumerate(case.given, 1):
        flags = _spread(value, case.want.shape)
        if flags is None or flags.all() or not flags.any() or case.wrong.sum() < 2:
            continue
        for side, word in ((flags, "True"), (~flags, "False")):
            if not (case.wrong & ~side).any():
                return "masked", f"the entries are wrong only where argument number {number} is {word}"


def _spread(value, shape):
    """A mask over all entries of a result: its axes are the first of these, or the last, or the first and the last."""
    if not isinstance(value, torch.Tensor) or value.dtype != torch.bool or not 1 <= value.dim() <= len(shape):
        return None
    value = value.detach().cpu()
    lacking = (1,) * (len(shape) - value.dim())
    for tried in (value.shape, (*value.shape, *lacking), (value.shape[0], *lacking, *value.shape[1:])):
        if all(n in (1, m) for n, m in zip(reversed(tried), reversed(shape), strict=False)):
            return value.reshape(tried).expand(shape)
    return None


def nothing(case):
    """Wrong where nothing should be, or with nothing where something should."""
    wrong, want, got = case.wrong, case.want, case.got
    right = ~wrong & (want != 0)
    if wrong.sum() < 2 or right.sum() < 2:
        return None
    if case.kind == torch.bool:
        if (got[wrong] == 1).all():
            return "too-many", "some entries are True that should be False, and none is the other way round"
        return None
    if (want[wrong] == 0).all():
        return "not-zero", "only those entries are wrong that should be 0: is something to be masked or left out?"
    if want[wrong].isinf().all():
        return "not-infinite", "only those entries are wrong that should be infinite: is something to be masked?"
    if (got[wrong] == 0).all():
        return "left-zero", "every wrong entry is 0: is something never filled in, or masked that should not be?"


def too_few(case):
    if case.kind == torch.bool and case.wrong.sum() > 1 and not case.got[case.wrong].any():
        return "too-few", "some entries are False that should be True, and none is the other way round"


PLACES = (triangle, masked, one_alone, edge, nothing, too_few)
