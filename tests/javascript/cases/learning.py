"""Losses, gradients and steps of what learns in the page, beside torch's in float64."""

import itertools

import torch
import torch.nn.functional as F

from benchmarks._equality import FIFTY, batch_of, losses_of, optimizer_of
from d2lmini.figures.translator import random_numbers
from d2lmini.models.tiny import TinyConfig, TinyTransformer

from ._weights import drawn_into, integers, rounded, uniform

MODULE = "tests/javascript/runtime.js"
WITHIN = 1e-4
SIZES = {"vocab_size": 7, "max_len": 6, "num_hiddens": 8, "num_blks": 2, "ffn_num_hiddens": 12}
CHOICES = {
    "positions": [None, "learned", "sines", "rotary", "alibi"],
    "norm": ["layer", "rms"],
    "norm_place": ["before", "after", None],
    "residual": [True, False],
    "ffn": ["relu", "gelu", "gelu_tanh", "squared_relu", None],
    "causal": [True, False],
    "num_heads": [1, 2, 4],
}
OPTIMIZERS = [optimizer for _, optimizer in FIFTY]
STEPS = 9


def cases():
    for scores, targets in ((4 * uniform(0, 4, 5), [1, 4, -100, 0]), (uniform(1, 2, 3).round(), [-100, 2])):
        yield "loss", [rounded(scores), scores.shape[1], targets], of_loss(scores, targets)
    yield from optimized()
    for number, changes in enumerate(pairwise(CHOICES)):
        yield learned(number, changes, OPTIMIZERS[number % len(OPTIMIZERS)])


def pairwise(choices):
    """Settings in which each two choices of two keys meet, few of them."""
    keys = list(choices)
    left = {
        frozenset({(a, x), (b, y)}) for a, b in itertools.combinations(keys, 2) for x in choices[a] for y in choices[b]
    }
    while left:
        row = dict(min(left, key=lambda pair: sorted(map(str, pair))))
        for key in keys:
            if key not in row:
                gain = {x: sum(frozenset({(key, x), one}) in left for one in row.items()) for x in choices[key]}
                row[key] = max(gain, key=gain.get)
        left -= {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}
        yield {key: row[key] for key in keys}


def of_loss(scores, targets):
    X, count = scores.clone().requires_grad_(), sum(target >= 0 for target in targets)
    loss = F.cross_entropy(X, torch.tensor(targets))
    loss.backward()
    best = X.argmax(-1).tolist()
    return {"best": best, "loss": rounded(loss)[0], "count": count, "gradient": rounded(X.grad)}


def optimized():
    shapes = [[3, 4], [5]]
    for number, options in enumerate(OPTIMIZERS):
        weights = [uniform(2 * i, *shape) for i, shape in enumerate(shapes)]
        gradients = [[uniform(10 * step + i, *shape) for i, shape in enumerate(shapes)] for step in range(5)]
        given = {"weights": list(map(rounded, weights)), "shapes": shapes, "rate": options["rate"], "clip": number % 2}
        given["gradients"] = [list(map(rounded, step)) for step in gradients]
        own = {key: options[key] for key in ("betas", "momentum", "weight_decay") if key in options}
        optimizer = optimizer_of(options, weights)
        for step in gradients:
            for weight, gradient in zip(weights, step, strict=True):
                weight.grad = gradient.clone()
            if number % 2:
                torch.nn.utils.clip_grad_norm_(weights, 1)
            optimizer.step()
        yield "optimized", [options["name"], own, given], list(map(rounded, weights))


def learned(seed, changes, options):
    model = TinyTransformer(TinyConfig(**{**SIZES, **changes}))
    drawn_into(model, seed)
    tokens, targets = (torch.tensor(integers(seed + i, 7, 10)).view(2, 5) for i in (1, 2))
    targets[torch.tensor(integers(seed + 3, 10, 10)).view(2, 5) < 3] = -100
    loss = model.loss(model(tokens), targets)
    loss.backward()
    numbers, gradients = random_numbers(seed + 1), []
    for weight in model.parameters():
        towards = [2 * next(numbers) - 1 for _ in range(weight.numel())]
        along = weight.grad.flatten() @ torch.tensor(towards, dtype=torch.float64)
        gradients.append(rounded(torch.stack([weight.grad.norm(), along])))
    losses = losses_of(model, options, *([batch] * STEPS for batch in (tokens, targets)))
    wanted = {"loss": rounded(loss)[0], "gradients": gradients, "losses": rounded(torch.tensor(losses))}
    return "learned", [vars(model.config), seed, batch_of(tokens, targets), options, STEPS], wanted
