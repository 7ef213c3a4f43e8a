"""Attention of a translator over chosen heads, heads that are off, and what is said of experiments."""

import torch

B, H, S = 2, 3, 4


def cases():
    weights = torch.randn(B, H, S, generator=torch.Generator().manual_seed(0)).softmax(-1)
    rows = weights.flatten(1).tolist()
    yield "meanLooks", [rows, S, "all", "all"], weights.mean((0, 1)).tolist()
    yield "meanLooks", [rows, S, 1, "all"], weights[1].mean(0).tolist()
    yield "meanLooks", [rows, S, "all", 2], weights[:, 2].mean(0).tolist()
    yield "meanLooks", [rows, S, 1, 0], weights[1, 0].tolist()

    yield "factorsOf", [[], B, H], None
    factors = {kind: torch.ones(B, H).int() for kind in ("encoder", "own", "cross")}
    factors["cross"][1, 2] = factors["encoder"][0, 1] = 0
    yield (
        "factorsOf",
        [["cross 1 2", "encoder 0 1"], B, H],
        {kind: of.tolist() for kind, of in factors.items()},
    )
    grid = torch.arange(B * 3 * H).reshape(B, -1)  # (blocks, heads of all kinds)
    for i, (down, right), want in (
        (2, (0, 1), grid[0, 3]),
        (8, (0, 1), -1),
        (9, (0, -1), -1),
        (4, (1, 0), grid[1, 4]),
        (13, (-1, 0), grid[0, 4]),
    ):
        yield "switchBeside", [i, down, right, grid.shape[1]], int(want)

    words = ["▁le", "▁ch", "at", "▁", "<eos>"]
    for piece, text, joined in zip(words, ["le", "ch", "at", "▁", "<eos>"], [0, 0, 1, 0, 0], strict=True):
        yield "pieceText", [piece], text
        yield "goesOn", [piece, words], bool(joined)
    yield "goesOn", ["at", ["le", "at"]], False  # whole words, which have no mark

    yield "unknownWords", [0], ""
    yield "unknownWords", [1], "The model does not know one of these words: it reads <unk> there."
    yield "unknownWords", [3], "The model does not know 3 of these words: it reads <unk> there."
    yield "scoreText", [7, "exact", 50], "7 of 50 exact"
    yield "scoreText", [31.449, "bleu", 20], "BLEU 31.4, 20 sentences"
    beam = "The log-probability of the best of a beam of 4 {} of the greedy one.".format
    yield "beamText", [-1.25, -2.0, 4], beam("is 0.75 above that")
    yield "beamText", [-2.5, -2.0, 4], beam("is 0.50 below that")
    yield "beamText", [-2.0, -2.00001, 4], beam("equals that")
    for change, text in ((0, "0"), (3.2e-7, "3e-7"), (0.0123, "0.01"), (1.5, "1.50")):
        yield "changeText", [change], text
    later = "From word {0} on, all words are other ones. The scores that choose words 1 to {0} move by {1} at most{2}"
    yield "laterText", [1, [0, 2e-6, 0.5, 3]], later.format(2, "2e-6", ", those of later words by up to 3.00.")
    yield "laterText", [3, [0, 2e-6, 0.5, 3]], later.format(4, "3.00", ".")
