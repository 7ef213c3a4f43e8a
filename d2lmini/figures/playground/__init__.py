"""The playground: a small Transformer that learns in the page while the reader watches, and changes it.

challenges.py  what to try there, and what a reader should find
"""

import math

from ...renamed import arguments
from ..base import Figure, table
from ..live.page import runtime_script, text_script

TEXTS = "shakespeare", "names"
_SWITCHED = [False, True]
# what can be set: what it is at first, its choices or (least, most), and words for them. As live/playground_settings.js
SETTINGS = {
    "task": ("reverse", ["copy", "reverse", "sort", "look up", "recall", "add", "text"], "what is learned"),
    "size": (6, (1, 64), "letters, pairs, digits, or characters at a time"),
    "letters": (10, (2, 26), "letters of the alphabet"),
    "backwards": (False, _SWITCHED, "a sum is written from its last digit on"),
    "text": ("shakespeare", [*TEXTS, "own"], "the text whose next letter is learned"),
    "examples": (0, (0, 100_000), "examples to train on, not of a text; 0 for all"),
    "longer": (0, (0, 128), "another size that is scored; 0 for none"),
    "causal": (True, _SWITCHED, "each position sees only earlier ones and itself"),
    "blocks": (2, (1, 4), "Transformer blocks"),
    "heads": (2, [1, 2, 4, 8], "heads of each block"),
    "width": (32, [16, 32, 64], "features of a token"),
    "positions": ("learned", ["none", "learned", "sines", "rotary", "alibi"], "how a position is told"),
    "norm": ("before", ["before", "after", "none"], "where the layer norm stands"),
    "residual": (True, _SWITCHED, "residual connections"),
    "ffn": (True, _SWITCHED, "feed-forward networks"),
    "optimizer": ("adamw", ["sgd", "adam", "adamw"], "optimiser"),
    "rate": (0.003, (1e-5, 10.0), "learning rate"),
    "warmup": (0, (0, 1000), "steps of warm-up"),
    "decay": (0.01, (0.0, 10.0), "weight decay of AdamW"),
    "clip": (0.0, (0.0, 100.0), "largest norm of the gradients; 0 for any"),
    "batch": (16, [4, 8, 16, 32, 64], "examples of a step"),
    "seed": (1, (1, 50), "seed"),
}


class Playground(Figure):
    """A small Transformer that is trained in the page: the reader sets it, starts it and sees what becomes of it.

    Its tasks have held-out examples, which are scored while it learns. Nothing is loaded before the reader starts it.

    Args:
        address: whether the page's address follows the settings, and they follow it: for a page with one playground.
        settings: at first, by the names of `SETTINGS`, in which each has its choices.

    Raises:
        ValueError: there is no such setting, or its value is none of its choices.
    """

    name = "playground"
    title = "A Transformer that learns while you watch"
    hint = "Choose a task and a model, and press Train. Changes under Training hold at once; others begin anew."

    @arguments(optimiser="optimizer")
    def __init__(self, address=False, **settings):
        chosen = {key: first for key, (first, _, _) in SETTINGS.items()}
        for key, value in settings.items():
            chosen[key] = _checked(key, value)
        super().__init__(
            "A small Transformer that is trained in the page: its loss, its heads and its answers while it learns.",
            settings=chosen,
            address=bool(address),
        )

    def brought(self):
        return runtime_script() + "".join(map(text_script, TEXTS))

    def fallback(self):
        rows = [[key, words, _said(kept), str(first)] for key, (first, kept, words) in SETTINGS.items()]
        said = "Here a small Transformer learns in the page, which needs JavaScript. This is what a reader can set."
        return f"<p>{said}</p>" + table(["setting", "what it is", "choices", "at first"], rows, "Settings")


def _said(kept):
    return f"{kept[0]:g} to {kept[1]:g}" if isinstance(kept, tuple) else ", ".join(map(str, kept))


def _checked(key, value):
    if key not in SETTINGS:
        raise ValueError(f"there is no setting {key!r}, expected of {', '.join(SETTINGS)}")
    first, kept, _ = SETTINGS[key]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(kept, list):
        fits = any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in kept)
    else:
        fits = number and kept[0] <= value <= kept[1] and (isinstance(first, float) or value == math.floor(value))
    if not fits:
        whole = "a whole number from " if isinstance(kept, tuple) and isinstance(first, int) else ""
        raise ValueError(f"{key} is {value!r}, expected {whole or 'of '}{_said(kept)}".replace("of 1e", "1e"))
    return int(value) if isinstance(first, int) and number else value
