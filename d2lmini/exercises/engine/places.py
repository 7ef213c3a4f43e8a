"""Where the wrong entries of a result stand: in the last column, above the diagonal, where something should be 0."""

import torch


def edge(case):
    """Right but at the first or last place along an axis."""
    for axis, length in enumerate(case.wrong.shape):
        lines = case.wrong.movedim(axis, 0).reshape(length, -1)
        least = 3 if lines.shape[1] > 1 else 4
        for word, line, rest in (("first", lines[0], lines[1:]), ("last", lines[-1], lines[:-1])):
            if length >= least and not rest.any() and line.float().mean() > 0.5:
                return f"{word}-place", f"only the {word} entry along axis {axis} is wrong"


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


def nothing(case):
    """Numbers that are wrong where nothing should be, or with nothing where something should."""
    right = ~case.wrong & (case.want != 0)
    if case.kind == torch.bool or case.wrong.sum() < 2 or right.sum() < 2:
        return None
    if not case.want[case.wrong].any():
        return "not-zero", "only those entries are wrong that should be 0: is something to be masked or left out?"
    if not case.got[case.wrong].any():
        return "left-zero", "every wrong entry is 0: is something never filled in, or masked that should not be?"


def one_way(case):
    """Flags that are all wrong in one way."""
    if case.kind != torch.bool or case.wrong.sum() < 2:
        return None
    for code, flag, one, other in (("too-many", 1, "True", "False"), ("too-few", 0, "False", "True")):
        if (case.got[case.wrong] == flag).all():
            return code, f"some entries are {one} that should be {other}, and none is the other way round"


PLACES = (triangle, edge, nothing, one_way)
