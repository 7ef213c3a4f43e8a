"""GPTs that tell positions in ways that go on past the trained length, and what is changed of them to get there.

`long_context` and `long_recall` share it: the models, how one is read at several lengths, and trained further.
"""

from dataclasses import replace

from torch import nn

from d2lmini.experiments.gpt.language import Learner
from d2lmini.masks import sliding_window_mask
from d2lmini.position import alibi, sinusoidal
from d2lmini.rotation import ROTATIONS, StretchedRotary

# what the config of the GPT says of each; the others are added by `LongLearner`
POSITIONS = {"learned": "learned", "sinusoidal": None, "rotary": "rotary", "ALiBi": None, "none": None}
WHOLE, WINDOW = "all before", "window"  # what may be attended to


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


def check_lengths(config):
    """Raises ValueError: the first length of the test is not that of the training, or ``longer`` is none of them."""
    if config.lengths[0] != config.model.max_len:
        raise ValueError(
            f"lengths begin with {config.lengths[0]}, expected that of the training, {config.model.max_len}"
        )
    if config.longer not in config.lengths:
        raise ValueError(f"longer is {config.longer}, expected one of the lengths of the test, {config.lengths}")


def at_lengths(model, lengths, read, rotation=None, factor=None):
    """What ``read(length)`` returns with a model at each length, the first of which is that of its training.

    Args:
        model: a `LongLearner`; as it was afterwards.
        lengths: of tokens.
        read: function of a length.
        rotation: None, or one of `ROTATIONS`: how rotary positions are stretched at lengths above the first.
        factor: by how much; None: by length over the first.

    Returns:
        list, None where the model refuses a length, and why it first did, a str or None.
    """
    before, results, refused = model.rotary, [], None
    try:
        for length in lengths:
            if rotation is not None:
                model.rotary = StretchedRotary(factor or max(1.0, length / lengths[0]), rotation)
            try:
                results.append(read(length))
            except ValueError as error:
                if model.pos_embedding is None:  # others know no longest length
                    raise
                results.append(None)
                refused = refused or str(error)
    finally:
        model.rotary = before
    return results, refused


def tuning(config, length, **changes):
    """The recipe of a short training at a length, with as many tokens a step as before."""
    batch_size = max(1, config.batch_size * config.model.max_len // length)
    return replace(
        config, model=replace(config.model, max_len=length), batch_size=batch_size, steps=config.tune_steps, checks=1,
        lr=config.lr * config.tune_lr, lr_matrices=config.lr_matrices * config.tune_lr, **changes,
    )  # fmt: skip


def tunings(config):
    """(length, rotation) of each short training: at the longer one every way, and as trained at the old one."""
    return [(config.longer, rotation) for rotation in ROTATIONS] + [(config.model.max_len, ROTATIONS[0])]
