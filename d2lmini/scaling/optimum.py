"""How to spend a budget of compute: how many parameters, and on how many tokens."""

import math
from itertools import pairwise
from typing import NamedTuple

import torch

from .flops import training_flops


class Optimum(NamedTuple):
    """Parameters and tokens that a budget is best spent on, and the loss that is expected of them."""

    parameters: float
    tokens: float
    loss: float


def compute_optimal(law, flops, *, min_parameters=1.0, min_tokens=1.0):
    """The best split of a budget by Chinchilla's parametric form, in closed form.

    The least of E + A N^-alpha + B D^-beta with 6 N D = C is at N = G (C / 6)^(beta / (alpha + beta)), where
    G = (alpha A / (beta B))^(1 / (alpha + beta)).

    Args:
        law: a `PowerLaw` of parameters and tokens.
        flops: C, the budget.
        min_parameters, min_tokens: of the smallest model and of the shortest training that make sense.

    Returns:
        an `Optimum`.

    Raises:
        ValueError: the law is of another number of variables or does not fall with both, or the budget is too small.

    Source: Hoffmann et al. 2022, equation 4.
    """
    if len(law.factors) != 2 or min(*law.factors, *law.exponents) <= 0:
        raise ValueError(f"expected a law that falls with parameters and tokens, got {law}")
    if not flops >= training_flops(float(min_parameters), float(min_tokens)):
        raise ValueError(
            f"a budget of {flops:.3g} FLOPs is too small for any model: {min_parameters:g} parameters and "
            f"{min_tokens:g} tokens take {training_flops(float(min_parameters), float(min_tokens)):.3g}"
        )
    (A, B), (alpha, beta) = law.factors, law.exponents
    log_n = (math.log(alpha * A / (beta * B)) + beta * math.log(flops / 6)) / (alpha + beta)
    # at the edge of what makes sense the best is the edge: the loss falls towards the optimum from both sides
    log_n = min(max(log_n, math.log(min_parameters)), math.log(flops / 6 / min_tokens))
    parameters = math.exp(log_n)
    tokens = flops / 6 / parameters
    return Optimum(parameters, tokens, law(parameters, tokens))


def interpolate_log(points, x):
    """y at x between points, on straight lines in log-log: a power law from each to the next.

    Args:
        points: pairs (x, y), all above 0.
        x: where.

    Returns:
        float; None where x is not between the points.
    """
    for (low, y), (high, z) in pairwise(sorted(points)):
        if low <= x <= high and low < high:
            share = math.log(x / low) / math.log(high / low)
            return y ** (1 - share) * z**share
    return None


def isoflop_profile(parameters, tokens, losses, flops):
    """What each size of model reaches with one budget: losses between runs of a size, on straight lines in log-log.

    Args:
        parameters, tokens, losses: of the runs, a value each.
        flops: the budget, C; a size is trained on C / (6 N) tokens.

    Returns:
        parameters, tokens and losses: three lists, by size; of sizes alone whose runs have both more and fewer tokens.

    Raises:
        ValueError: the lists differ in length, or no size has runs around that budget.
    """
    profile = []
    for n in sorted(set(parameters)):
        runs = zip(parameters, tokens, losses, strict=True)
        runs = [(d, loss) for size, d, loss in runs if size == n]
        wanted = flops / (6 * n)
        loss = interpolate_log(runs, wanted)
        if loss is not None:
            profile.append((n, wanted, loss))
    if not profile:
        raise ValueError(
            f"no size was trained on both more and fewer than C / 6N tokens for a budget of {flops:.3g} FLOPs"
        )
    return tuple(map(list, zip(*profile, strict=True)))


def isoflop_optimum(parameters, losses, flops):
    """The lowest point of an isoFLOP profile: of the parabola through losses by log N.

    Args:
        parameters, losses: of three or more sizes that were trained with one budget.
        flops: that budget.

    Returns:
        an `Optimum`.

    Raises:
        ValueError: fewer than three sizes; or the least loss is at the edge of the sizes, where no parabola tells how
            far beyond it the optimum lies.

    Source: Hoffmann et al. 2022, section 3.2.
    """
    if len(set(parameters)) < 3 or len(parameters) != len(losses):
        raise ValueError(f"a parabola needs three sizes, got {len(set(parameters))} of {len(losses)} losses")
    x = torch.as_tensor(parameters, dtype=torch.float64).log()
    middle, y = x.mean(), torch.as_tensor(losses, dtype=torch.float64)
    basis = torch.stack([torch.ones_like(x), x - middle, (x - middle) ** 2], 1)
    c, b, a = torch.linalg.lstsq(basis, y[:, None]).solution[:, 0].tolist()
    best = middle.item() - b / (2 * a) if a > 0 else math.nan  # open downwards, it has no lowest point
    if not x.min() <= best <= x.max():
        smaller = y[x.argmin()] < y[x.argmax()]
        raise ValueError(
            f"the least loss of the profile of {flops:.3g} FLOPs is not between its sizes, {min(parameters):.3g} to "
            f"{max(parameters):.3g} parameters: train {'smaller' if smaller else 'larger'} ones, too"
        )
    return Optimum(math.exp(best), flops / 6 / math.exp(best), c - b * b / (4 * a))


def compute_frontier(flops, losses):
    """The runs that none with as few FLOPs beats: their places, by FLOPs. What Kaplan's law of compute is fitted to.

    Args:
        flops, losses: of the runs, a value each.

    Returns:
        list of int.
    """
    frontier, least = [], math.inf
    for _, loss, i in sorted((c, loss, i) for i, (c, loss) in enumerate(zip(flops, losses, strict=True))):
        if loss < least:
            frontier.append(i)
            least = loss
    return frontier
