"""Weights by a seed, which Python and JavaScript draw alike, so that none of them has to be stored; rounded numbers."""

import torch

from d2lmini.figures.translator import random_numbers


def drawn_weights(shapes, seed):
    """Weights of shapes, a dict: uniform, those of norms around 1. Returns: dict of float32 tensors.

    `weightsOf` of runtime.js draws the same ones.
    """
    numbers, found = random_numbers(seed), {}
    for name, shape in shapes.items():
        near, far = (0, shape[-1] ** -0.5) if len(shape) > 1 else (0 if name.endswith("bias") else 1, 0.3)
        size = torch.Size(shape).numel()
        found[name] = torch.tensor([near + far * 3**0.5 * (2 * next(numbers) - 1) for _ in range(size)]).view(*shape)
    return found


def drawn_into(module, seed):
    """Gives a module weights by a seed, in float64. Returns: the shapes of all weights, a dict."""
    shapes = {name: list(weight.shape) for name, weight in module.named_parameters()}
    module.double().load_state_dict(drawn_weights(shapes, seed), strict=False)
    return shapes


def uniform(seed, *shape):
    """Numbers from -1.5 to 1.5 in two decimals, which need little room: a tensor in float64."""
    numbers = random_numbers(seed)
    flat = [round(3 * next(numbers) - 1.5, 2) for _ in range(torch.Size(shape).numel())]
    return torch.tensor(flat, dtype=torch.float64).view(*shape)


def integers(seed, end, number):
    numbers = random_numbers(seed)
    return [int(end * next(numbers)) for _ in range(number)]


def rounded(values, digits=7):
    """A tensor as a flat list of numbers of so many digits."""
    return [float(f"{value:.{digits}g}") for value in values.detach().flatten().tolist()]
