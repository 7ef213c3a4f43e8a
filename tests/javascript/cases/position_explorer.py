"""Position encodings, the scores that they make, and what those are for each offset."""

import torch

from d2lmini.figures import PositionExplorer

SETTINGS = [
    {"encoding": "sinusoidal"},
    {"encoding": "sinusoidal", "words": False, "num_hiddens": 12, "base": 100.0},
    {"encoding": "rotary", "num_hiddens": 6, "base": 10.0},
    {"encoding": "rotary", "words": False},
    {"encoding": "t5", "max_distance": 5},
    {"encoding": "t5", "words": False, "num_hiddens": 4},
    {"encoding": "none", "num_hiddens": 2},
]


def cases():
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 12, generator=generator)
    bias = torch.randn(8, generator=generator)
    for settings in SETTINGS:
        figure = PositionExplorer(query, key, bias, **{"num_positions": 7, "position": 4, "num_hiddens": 8, **settings})
        encoded, found = figure.encoded().double(), figure.scores()
        if figure.state["encoding"] == "t5":
            encoded = 2 * encoded / 7 - 1
        yield "heatMap", [figure.state], encoded.tolist()
        yield "scores", [figure.state], found.tolist()
        yield "byOffset", [found.tolist()], [[least, greatest] for _, least, greatest in figure.by_offset().values()]
