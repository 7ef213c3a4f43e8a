"""Bets of pictures and texts, and their loss, by temperature."""

import torch

from d2lmini.figures import SimilarityMatrix


def cases():
    generator = torch.Generator().manual_seed(0)
    # picture 0 would rather have text 2; each text chooses its picture
    given = [(torch.tensor([[0.5, 0.1, 0.7], [0.0, 0.7, 0.2], [-0.3, 0.4, 0.8]]), 0.07)]
    given += [((2 * torch.rand(B, B, generator=generator) - 1 + torch.eye(B)).clamp(-1, 1), 1 / B) for B in (2, 5)]
    for cosines, temperature in given:
        B = len(cosines)
        figure = SimilarityMatrix(torch.rand(B, 4, 4), [f"text {n}" for n in range(B)], cosines, temperature)
        shown = torch.tensor(figure.state["cosines"], dtype=torch.float64)
        for side, lines in (("picture", shown), ("text", shown.T)):
            state = {"cosines": shown.tolist(), "side": side, "chosen": B - 1, "temperature": temperature}
            yield "bets", [state], (lines[B - 1] / temperature).softmax(0).tolist()
        told = figure.reckon(temperature)
        want = {"loss": told["loss"], "right": [round(B * share) for share in told["right"]]}
        yield "reckon", [shown.tolist(), temperature], want
