"""From scores to weights, by every control, and the entropy of a row."""

import math

import torch

from d2lmini.figures import ScoreMatrix


def cases():
    queries, keys = torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(0))
    figure = ScoreMatrix(["we", "saw", "it", "rain"], queries, keys)
    for scaled, causal, valid_len, temperature in (
        (False, False, 4, 1.0),
        (True, False, 4, 1.0),
        (False, True, 3, 3.0),
        (True, True, 0, 1.0),
        (True, True, 2, 0.1),
    ):
        changes = {"scaled": scaled, "causal": causal, "valid_len": valid_len, "temperature": temperature}
        state, weights = figure.state | changes, figure.weights(**changes)
        mask = torch.ones(4, 4).tril() if causal else torch.ones(4, 4)
        mask[:, valid_len:] = 0
        scores = torch.tensor(figure.state["scores"], dtype=torch.float64) / (math.sqrt(16) if scaled else 1)
        seen = [
            [score if shown else None for score, shown in zip(*rows, strict=True)]
            for rows in zip(scores.tolist(), mask.bool().tolist(), strict=True)
        ]
        rows = zip(seen, weights.tolist(), strict=True)
        yield "rowsOf", [state], [{"scores": row, "weights": shares} for row, shares in rows]
        yield "entropy", [weights[-1].tolist()], torch.special.entr(weights[-1]).sum().item() / math.log(2)
