"""Bits of completions, the strongest weights, and the pixel that is told of."""

import math

import torch


def cases():
    generator = torch.Generator().manual_seed(0)
    for n in (1, 4, 30):
        shares = torch.randn(n, 5, generator=generator).double().softmax(-1)
        values = torch.multinomial(shares, 1, generator=generator)
        bits = torch.nn.functional.nll_loss(shares.log(), values[:, 0]).item() / math.log(2)
        yield "bitsPerPixel", [{"values": values[:, 0].tolist(), "probabilities": shares.tolist()}], bits
        weights, places = shares.flatten().sort(descending=True)
        pairs = [[at, weight] for at, weight in zip(places.tolist(), weights.tolist(), strict=True)]
        yield "strongest", [shares.flatten().tolist()], pairs
    yield "bitsPerPixel", [{"values": [1, 0], "probabilities": [[0, 1], [1, 0]]}], 0
    for wanted, written, shown in (
        ([None, None], 3, 12),
        ([None, None], 0, 9),  # the last that is given
        ([11, 10], 3, 11),
        ([14, 10], 3, 10),  # pointed at what is not written yet
        ([None, 13], 3, 12),
    ):
        yield "shownPixel", [wanted, 10, written], shown
