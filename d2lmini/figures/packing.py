"""Numbers on their way into a page: bytes as text. `unpack` in base.js is the other end."""

import base64

import numpy
import torch


def pack(numbers, what="numbers"):
    """Base64 of numbers.

    Args:
        numbers: floats from 0 to 1, which travel as one byte each and so arrive right to 1/510; or a NumPy array of
            integers, which travel as they are.
        what: their name in the error, in the plural.

    Returns:
        str.

    Raises:
        ValueError: a float is outside of 0 to 1 by more than 0.001.
    """
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.double()
        if not (numbers.min() >= -1e-3 and numbers.max() <= 1 + 1e-3):
            raise ValueError(
                f"{what} are outside of 0 to 1, they go from {numbers.min():.3g} to {numbers.max():.3g}: are they "
                "scores before the softmax, or pixels from 0 to 255?"
            )
        numbers = (numbers * 255).round().clamp(0, 255).to(torch.uint8).cpu().numpy()
    return base64.b64encode(numbers.tobytes()).decode()


def unpack(text, *shape, kind="u1"):
    """Integers that `pack` packed; floats from 0 to 1 come as 0 to 255.

    Args:
        text: str.
        shape: of the result; none: (number of integers,).
        kind: NumPy's name of their type, by default a byte.

    Returns:
        (shape), int64.
    """
    numbers = torch.from_numpy(numpy.frombuffer(base64.b64decode(text), kind).astype(numpy.int64))
    return numbers.view(shape) if shape else numbers
