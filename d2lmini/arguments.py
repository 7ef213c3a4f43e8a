"""What arguments have to be: numbers that are numbers, ids that are integers, tensors where tensors are expected.

A bool is no number, a float no integer (not even 2.0), and a str neither a number nor a sequence of ids. Numbers of
NumPy, and of a tensor that holds but one, are numbers.
"""

import math
import operator


def check_integer(name, value, least=None, most=None, *, why=""):
    """The value as an int.

    Args:
        name: what the caller calls it.
        value: anything.
        least, most: between which it has to be; None: any.
        why: a clause for the message.

    Raises:
        ValueError: it is no integer, or out of range.
    """
    integer = _integer(value)
    if integer is None or not (least is None or least <= integer) or not (most is None or integer <= most):
        bound = "" if least is None else f", at least {least}" if most is None else f" from {least} to {most}"
        raise ValueError(f"{name} is {value!r}, expected an integer{bound}{why}")
    return integer


def check_number(name, value, least=0, most=None, *, above=False, why=""):
    """The value as a float.

    Args:
        name, value, why: as in `check_integer`.
        least, most: between which it has to be; ``most`` of None: it has to be finite.
        above: whether ``least`` itself is too small.

    Raises:
        ValueError: it is no number, or out of range.
    """
    number = _number(value)
    if not (least < number if above else least <= number) or not (
        math.isfinite(number) and (most is None or number <= most)
    ):
        low = f"above {least}" if above else f"from {least}" if most is not None else f"{least} or more"
        high = ", and finite" if most is None else f", up to {most}" if above else f" to {most}"
        raise ValueError(f"{name} is {value!r}, expected a number {low}{high}{why}")
    return number


def checked_ids(ids, size=None, unit="tokens"):
    """Ids as a list of int.

    Args:
        ids: list or tensor (T,) of integers from 0.
        size: V; None: any number of them.
        unit: what the vocabulary counts, for messages.

    Raises:
        TypeError: ids are no sequence, or an id is no integer.
        ValueError: an id is outside the vocabulary.
    """
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__") or getattr(ids, "ndim", 1) != 1:
        kind = f"of shape {tuple(ids.shape)}" if getattr(ids, "ndim", 1) != 1 else f"a {type(ids).__name__}"
        raise TypeError(f"ids are {kind}, expected a list or a tensor (T,) of integers: a text is encoded first")
    integers = []
    for index in ids:
        integer = _integer(index)
        if integer is None:
            raise TypeError(f"an id is a {type(index).__name__}, expected an integer")
        if integer < 0 or (size is not None and integer >= size):
            among = "below 0" if size is None else f"outside the vocabulary of {size} {unit}"
            raise ValueError(f"id {integer} is {among}")
        integers.append(integer)
    return integers


def _integer(value):
    """An int; None of what is none."""
    try:
        return None if _is_bool(value) else operator.index(value)
    except TypeError:
        return None


def _number(value):
    """A float; NaN of what is none."""
    if _is_bool(value) or isinstance(value, (str, bytes)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return math.nan


def _is_bool(value):
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")
