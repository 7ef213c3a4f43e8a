"""What the next token is drawn from, after all filters, as `Filters` has it; and draws by a seed."""

from itertools import product

import torch

from d2lmini.decoding import Filters
from d2lmini.figures.translator import random_numbers

from ._weights import rounded, uniform

MODULE = "tests/javascript/runtime.js"
WITHIN = 1e-9


def cases():
    filters = product((1.0, 0.0, 0.3, 2.5, 1e-6), (None, 1, 5, 9), (None, 1e-9, 0.3, 0.9, 1.0), (None, 0.05, 1.0))
    for number, (temperature, top_k, top_p, min_p) in enumerate(filters):
        if number % 7 > 1:
            continue
        logits = 3 * uniform(number, 9)
        if number % 3 == 0:
            logits = logits.round()  # ties
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        yield "filtered", [rounded(logits), options], rounded(Filters(**options).probabilities(logits), 11)
    yield "ranked", [[1.0, 3.0, 2.0, 3.0, -1.0]], [1, 3, 2, 0, 4]
    for seed in (0, 7, 2**31):
        numbers, probabilities = random_numbers(seed), torch.tensor([0.0, 0.5, 0.25, 0.0, 0.25])
        drawn = [int((probabilities.cumsum(0) > next(numbers)).nonzero()[0]) for _ in range(200)]
        yield "draws", [seed, probabilities.tolist(), 200], drawn
