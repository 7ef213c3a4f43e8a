"""A real language model in the page: SmolLM2, which a reader loads, asks and looks into."""

import html
import json
from functools import cache
from importlib.resources import files

from ..base import Figure, table

RECORDED = "recorded.json"  # written by tools/real_model_answers.py
IN_PANEL = 3  # recorded answers


class RealModel(Figure):
    """SmolLM2-135M-Instruct, at work in the page once a reader has loaded its pieces.

    With it a reader writes, sees what comes next and goes on with another token, looks into any head and behind any
    block, switches them off, and asks for the losses of a text and for two answers side by side. Before it is loaded,
    and where it cannot be (a notebook, a book that was built without the weights, an old browser), the figure shows
    what was recorded of the same model.

    Args:
        panel: only what a chapter needs: writing, next tokens and heads.
        missing: why the pieces are not in this book, a sentence; "": they are, or the page will see.
    """

    name = "real_model"
    title = "A real language model"
    hint = "Load it, ask it something, and choose a token of the text to see what the model goes by."

    def __init__(self, panel=False, missing=""):
        recorded = _recorded()
        shown = {key: value for key, value in recorded.items() if key != "model"}
        if panel:
            shown = {"answers": recorded["answers"][:IN_PANEL], "heads": recorded["heads"]}
        super().__init__(
            "SmolLM2-135M-Instruct writes on from a prompt, with the probabilities of the next token and every head.",
            told={**recorded["model"], "missing": missing},
            recorded=shown,
            panel=bool(panel),
        )

    def fallback(self):
        answers = self.state["recorded"]["answers"]
        rows = [[one["prompt"], "".join(one["tokens"][one["given"] :])] for one in answers]
        said = "What SmolLM2-135M-Instruct writes, always with the likeliest next token. Loading it needs JavaScript."
        notice = html.escape(self.state["told"]["notice"])
        return table(["prompt", "written"], rows, said) + f"<p>{notice}</p>"


@cache
def _recorded():
    return json.loads(files(__name__).joinpath(RECORDED).read_text(encoding="utf-8"))
