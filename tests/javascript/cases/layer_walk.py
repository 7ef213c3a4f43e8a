"""Stages of an encoder block: their rows, and what a row is made from."""

import torch

import d2lmini as d2l
from d2lmini.figures import LayerWalk

TOKENS = ["le", "chat", "noir"]


def cases():
    for norm_first in (False, True):
        torch.manual_seed(0)
        walk = LayerWalk(d2l.TransformerEncoderBlock(4, 6, 2, norm_first=norm_first), TOKENS, torch.randn(3, 4))
        stages = walk.state["stages"]
        titles = [{"title": stage["title"], "uses": stage["uses"], "numbers": []} for stage in stages]
        for number in (1, 6 + norm_first, 12):
            head, uses = 2, dict(stages[number - 1]["uses"])
            rows = walk.numbers(number, head)
            want = {"rows": rows.tolist(), "perHead": number == 6 + norm_first, "top": rows.abs().max().item()}
            yield "shownOf", [stages[number - 1], head], want
            for other in (5, 11):
                for t in range(3):
                    made = uses.get(other) == "all rows" or (other in uses and t == 1)
                    yield "makes", [titles[number - 1], other, 1, t], made
        yield "madeFrom", [titles, 1, "le"], "The row of “le” is what came in."
        meeting = "its own row of weights and all rows of values: here tokens meet."
        yield "madeFrom", [titles, 7 + norm_first, "chat"], f"The row of “chat” is made from {meeting}"
        alone = "its own row of input and its own row of after W_o: no other row."
        yield "madeFrom", [titles, 9 + norm_first, "noir"], f"The row of “noir” is made from {alone}"
