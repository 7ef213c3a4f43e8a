"""Patches in an order, their pixels, how strongly each is looked at, and what is said of two answers."""

import torch

from d2lmini.figures.translator import random_numbers


def cases():
    for N, order, seed in ((6, "own", 3), (6, "with", 0), (9, "without", 7), (49, "with", 1)):
        yield "sequenceOf", [N, {"order": order, "seed": seed}], _sequence(N, order, seed)
    for patch, columns, p in ((0, 3, 4), (5, 3, 4), (7, 4, 2)):
        image = torch.arange((columns * p) ** 2).view(columns * p, columns * p)
        patches = image.unfold(0, p, p).unfold(1, p, p).reshape(-1, p * p)
        yield "pixelsOf", [patch, columns, p], patches[patch].tolist()
    generator = torch.Generator().manual_seed(0)
    for kept in ([0, 1, 2, 3, 4, 5], [1, 5], []):
        sequence = _sequence(6, "with", 2)
        kept = [patch for patch in sequence if patch in kept]
        row = torch.rand(len(kept) + 1, generator=generator).softmax(0)
        shares = torch.zeros(6).index_put([torch.tensor(kept, dtype=torch.long)], row[1:])[sequence]
        yield "looks", [sequence, kept, row.tolist()], (shares / shares.max().clamp(min=1e-9)).tolist()
        yield "looks", [sequence, kept], [0] * 6
        now, whole = torch.rand(2, 4, generator=generator).softmax(-1)
        best = [{"k": int(one.argmax()), "share": one.max().item()} for one in (now, whole)]
        said = {"now": best[0], "before": best[1], "moved": (now - whole).abs().max().item()}
        yield "verdict", [{"probabilities": now.tolist(), "whole": whole.tolist()}], said


def _sequence(N, order, seed):
    """By Fisher and Yates from the end, with the page's numbers."""
    found = list(range(N))
    numbers = random_numbers(seed)
    for i in range(N - 1, 0, -1) if order != "own" else ():
        j = int(next(numbers) * (i + 1))
        found[i], found[j] = found[j], found[i]
    return found
