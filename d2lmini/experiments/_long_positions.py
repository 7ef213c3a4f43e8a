"""GPTs that tell positions in ways that go on past the trained length, and what is changed of them to get there."""

import torch
from torch import nn

from d2lmini.experiments._language import Learner
from d2lmini.masks import position_offsets, sliding_window_mask
from d2lmini.position import position_angles, sinusoidal, turn_pairs

# what the config of the GPT says of each; the others are added by `LongLearner`
POSITIONS = {"learned": "learned", "sinusoidal": None, "rotary": "rotary", "ALiBi": None, "none": None}
BASE = 10_000.0
ROTATIONS = "as trained", "interpolated", "base changed"


class StretchedRotary(nn.Module):
    """Rotary positions for sequences that are longer than those of the training by a factor.

    Args:
        factor: s, from 1. 1: as trained.
        way: one of `ROTATIONS`. "interpolated": each position is divided by s, and with it every angle, so that none
            is larger than it was in training. "base changed": the base is multiplied by s^(d / (d - 2)), so that the
            slowest pair turns s times as slowly and the fastest as before. "as trained": neither.
        base: of the training.

    Raises:
        ValueError: the way is none of these, or the factor is below 1.

    Source: Chen et al. 2023, section 2.3; Peng et al. 2024, section 3.1, for the base.
    """

    def __init__(self, factor=1.0, way="as trained", *, base=BASE):
        super().__init__()
        if way not in ROTATIONS or factor < 1:
            raise ValueError(f"way is {way!r} and factor {factor}, expected one of {ROTATIONS} and at least 1")
        self.factor, self.way, self.base = factor, way, base

    def angles(self, num, offset, head_size, device=None):
        """Angles of positions from ``offset`` on, (num, d / 2)."""
        if self.way == "base changed":
            # of two features there is one pair, which turns by 1 whatever the base
            base = self.base * self.factor ** (head_size / max(1, head_size - 2))
            return position_angles(num, offset, head_size, base, device)
        angles = position_angles(num, offset, head_size, self.base, device)
        return angles / self.factor if self.way == "interpolated" else angles

    def forward(self, X, offset=0):
        """Turned heads, as `d2lmini.rotary`: (..., n, d) to (..., n, d)."""
        angles = self.angles(X.shape[-2], offset, X.shape[-1], X.device)
        return turn_pairs(X, angles.cos(), angles.sin())


def alibi(num_heads, num_queries, num_keys=None, *, device=None):
    """What ALiBi adds to the scores: minus the distance times the slope of the head, 2^(-8 i / H) for head i = 1 ... H.

    Args:
        num_heads: H; the published code has another rule where it is no power of two.
        num_queries: T.
        num_keys: S, at least T; None: T.
        device: where to make it.

    Returns:
        float32 tensor (1, H, T, S); 0 at later positions, which a causal mask hides.

    Source: Press et al. 2022, section 3.
    """
    slopes = 2.0 ** (-8 / num_heads * torch.arange(1, num_heads + 1, device=device))  # (H,)
    offsets = position_offsets(num_queries, num_keys, device=device).clamp(max=0)  # (T, S)
    return (slopes[:, None, None] * offsets)[None]  # (1, H, T, S)


class LongLearner(Learner):
    """A GPT that tells positions by one of `POSITIONS`; all but learned ones go on for ever.

    ``rotary`` may be set to a `StretchedRotary`, and ``window`` to the number of last positions that may be attended to
    (None: all), also of a trained model.

    Args:
        recipe: a `_language.Recipe`; of its model ``positions`` is replaced.
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
        X, told = super()._before_blocks(tokens, past, padding)
        T, device = tokens.shape[1], tokens.device
        if self.positions == "ALiBi":
            told["score_bias"] = alibi(self.config.num_heads, T, past + T, device=device).to(X.dtype)
        if self.window is not None:
            told["mask"] = sliding_window_mask(T, self.window, num_keys=past + T, device=device)
        return X, told


class _Sines(nn.Module):
    """`sinusoidal` vectors of successive positions (T,), of the size of an embedding at the beginning, about 1."""

    def __init__(self, num_hiddens):
        super().__init__()
        self.num_hiddens = num_hiddens

    def forward(self, places):
        first = int(places[0]) if len(places) else 0
        sines = sinusoidal(len(places), self.num_hiddens, offset=first, device=places.device)  # (T, h)
        return sines * (self.num_hiddens / 2) ** -0.5
