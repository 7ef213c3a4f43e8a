"""Bets of pictures and texts, and their loss, by temperature."""

import torch

from d2lmini.figures import SimilarityMatrix


def cases():
    generator = torch.Generator().manual_seed(0)
    for B, temperature in ((2, 1.0), (3, 0.07), (5, 0.3)):
        cosines = (2 * torch.rand(B, B, generator=generator, dtype=torch.float64) - 1 + torch.eye(B)).clamp(-1, 1)
        figure = SimilarityMatrix(torch.rand(B, 4, 4), [f"text {n}" for n in range(B)], cosines, temperature)
        shown = torch.tensor(figure.state["cosines"], dtype=torch.float64)
        for side, lines in (("picture", shown), ("text", shown.T)):
            state = {"cosines": shown.tolist(), "side": side, "chosen": B - 1, "temperature": temperature}
            yield "bets", [state], (lines[B - 1] / temperature).softmax(0).tolist()
        told = figure.reckon(temperature)
        want = {"loss": told["loss"], "right": [round(B * share) for share in told["right"]]}
        yield "reckon", [shown.tolist(), temperature], want
