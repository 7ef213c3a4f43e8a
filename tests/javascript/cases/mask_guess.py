"""Guesses of masked words, as they travel to the page."""

import torch

from d2lmini.figures import MaskGuess
from d2lmini.figures.packing import unpack

TOKENS = ["I", "love", "##ly", "cars"]
GUESSES = [
    [["I", 0.5], ["we", 0.25], ["you", 0.125]],
    [["hate", 0.125], ["like", 0.75]],
    [["##ly", 0.04]],
    [],
]
LEFT = {"guesses": [None, [["am", 0.19], ["love", 0.12]], GUESSES[0], [["dogs", 0.3]]]}


def cases():
    passage = {"tokens": TOKENS, "guesses": GUESSES, "truth_probability": [0.5, 0.06, 0.04, 0.01], "from_left": LEFT}
    figure = MaskGuess([passage])
    for left, packed in enumerate(figure.state["passages"][0]["views"]):
        view = {key: unpack(text, -1, kind="<u2").tolist() for key, text in packed.items()}
        for t, token in enumerate(TOKENS):
            guesses, p = figure.guesses(0, t, left), figure.truth_probability(0, t, left)
            names = [name for name, _ in guesses]
            look = {"list": [list(pair) for pair in guesses], "place": _place(names, token), "p": p}
            of = {"names": figure.state["names"].split("\n"), "top": 3, "tokens": TOKENS, "position": t}
            yield "looked", [view, of], look
            most = torch.tensor([p or 0, *(share for _, share in guesses)]).max().item()
            yield "scaleEnd", [[look]], next(end for end in (0.05, 0.1, 0.2, 0.5, 1) if end >= most)
    yield "scaleEnd", [[{"list": [["a", 0.04]], "p": None}, {"list": [["a", 0.01]], "p": 0.1}]], 0.1
    yield "scaleEnd", [[{"list": [["a", 0.5]], "p": 0}, {"list": [["a", 0.501]], "p": None}]], 1
    words = [[name, 0.1] for name in ("Like", "##ly", "▁Sea", "Ġa b")]
    for guess, at in ((" like ", 0), ("LY", 1), ("##ly", 1), ("sea", 2), ("a b", 3), ("lik", -1), (" ", None)):
        yield "placeOf", [words, guess], at
    yield "placeOf", [[["", 1]], "##"], None  # a mark alone is no word


def _place(names, token):
    return names.index(token) if token in names else -1
