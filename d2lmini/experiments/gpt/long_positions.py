"""GPTs that tell positions in ways that go on past the trained length, and what is changed of them to get there."""

from torch import nn

from d2lmini.experiments.gpt.language import Learner
from d2lmini.masks import sliding_window_mask
from d2lmini.position import alibi, sinusoidal
from d2lmini.rotation import StretchedRotary

# what the config of the GPT says of each; the others are added by `LongLearner`
POSITIONS = {"learned": "learned", "sinusoidal": None, "rotary": "rotary", "ALiBi": None, "none": None}


class LongLearner(Learner):
    """A GPT that tells positions by one of `POSITIONS`; all but learned ones go on for ever.

    ``rotary`` may be set to a `StretchedRotary`, and ``window`` to the number of last positions that may be attended to
    (None: all), also of a trained model.

    Args:
        recipe: a `language.Recipe`; of its model ``positions`` is replaced.
        positions: one of `POSITIONS`.
    """

    def __init__(self, recipe, positions):
        super().__init__(recipe)
        self.positions, self.window = positions, None
        if positions == "rotary":
            self.rotary = StretchedRotary()
        elif positions == "sinusoidal":
            self.pos_embedding = _Sines(self.config.num_hiddens)

    def _before_blocks(self, tokens, past, padding):
        X, block_inputs = super()._before_blocks(tokens, past, padding)
        T, device = tokens.shape[1], tokens.device
        if self.positions == "ALiBi":
            block_inputs["score_bias"] = alibi(self.config.num_heads, T, past + T, device=device).to(X.dtype)
        if self.window is not None:
            block_inputs["mask"] = sliding_window_mask(T, self.window, num_keys=past + T, device=device)
        return X, block_inputs


class _Sines(nn.Module):
    """`sinusoidal` vectors of successive positions (T,), of the size of an embedding at the beginning, about 1."""

    def __init__(self, num_hiddens):
        super().__init__()
        self.num_hiddens = num_hiddens

    def forward(self, places):
        first = int(places[0]) if len(places) else 0
        sines = sinusoidal(len(places), self.num_hiddens, offset=first, device=places.device)  # (T, h)
        return sines * (self.num_hiddens / 2) ** -0.5
