"""Ids on their way back to text: integers of the vocabulary, and nothing that only rounds to one."""

import operator


def checked_ids(ids, size, unit="tokens"):
    """Ids as a list of int.

    Args:
        ids: list or tensor (T,) of integers from 0 to ``size`` - 1.
        size: V.
        unit: what the vocabulary counts, for messages.

    Raises:
        TypeError: an id is no integer.
        ValueError: an id is outside the vocabulary.
    """
    integers = []
    for index in ids:
        try:
            index = operator.index(index)
        except TypeError:
            raise TypeError(f"an id is a {type(index).__name__}, expected an integer") from None
        if not 0 <= index < size:
            raise ValueError(f"id {index} is outside the vocabulary of {size} {unit}")
        integers.append(index)
    return integers
