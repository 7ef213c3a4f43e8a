"""Figure of chapter 09: a sparse pattern put together from its parts, how far it reaches, and what it costs."""

import numpy
import torch

from ..efficient.patterns import (
    block_local_mask,
    count_pairs,
    global_mask,
    layers_to_reach,
    random_mask,
)
from ..masks import sliding_window_mask
from .base import Figure, table
from .packing import pack

# window: None is all, 0 none; block_size, num_global, every, num_random: 0 is none
OFF = {
    "window": 0,
    "dilation": 1,
    "block_size": 0,
    "num_global": 0,
    "every": 0,
    "num_random": 0,
    "causal": False,
}
# the nine of d2lmini.interaction_matrices, in its order, and two of blocks
PRESETS = {
    "encoder": {"window": None},
    "decoder": {"window": None, "causal": True},
    "local, encoder": {"window": 2},
    "local, decoder": {"window": 2, "causal": True},
    "dilation 2, decoder": {"window": 2, "dilation": 2, "causal": True},
    "dilation 3, decoder": {"window": 2, "dilation": 3, "causal": True},
    "chosen tokens, decoder": {"window": 2, "every": 4, "causal": True},
    "global tokens, encoder": {"window": 2, "num_global": 2},
    "BigBird, encoder": {"window": 2, "num_global": 2, "num_random": 2},
    "blocks, encoder": {"block_size": 5},
    "blocks and strides, encoder": {"window": None, "dilation": 5, "block_size": 5},
}


class PatternDesigner(Figure):
    """A pattern of sparse attention, joined from parts that the reader sets: which pairs meet, and what follows.

    The page shows the pattern as a matrix, a row for each query; which pairs have met after n layers of it, with
    residual connections; through which positions one output depends on the inputs; the pairs that are computed, here
    and by the same pattern in longer sequences.

    Args:
        num_tokens: T, from 8 to 32.
        preset: a name of ``PRESETS``: the pattern shown first.
        layers: how many are shown first, from 1 to T - 1, which is enough for any pattern that ever is.
        query: the position that is followed, from 0; None: the middle one.
        draw: which draw of random keys is shown first, from 0.
        seeds: a draw of random keys for each.
        lengths: of the longer sequences.
        changes: parts of the first pattern in place of the preset's: ``window`` and ``dilation``, as of
            `d2lmini.sliding_window_mask` (0: no window, None: all positions); ``block_size``, of `block_local_mask`;
            ``num_global``, first tokens that attend to all and to which all attend; ``every``, tokens that far apart
            attend to all; ``num_random``, keys for each query; of these 0 is none; ``causal``.

    Raises:
        TypeError: there is no such part.
        ValueError: there is no such preset, or a number is out of range.

    Source: UDL figure 12.15; Zaheer et al. 2020, figure 1.
    """

    name = "pattern_designer"
    title = "Design a pattern"
    hint = (
        "Choose a pattern, then change its parts. Add layers until everything has met everything. Point at a row to "
        "follow that query, or use its slider."
    )

    def __init__(
        self,
        num_tokens=24,
        preset="local, encoder",
        *,
        layers=1,
        query=None,
        draw=0,
        seeds=range(4),
        lengths=(1024, 8192, 65536),
        **changes,
    ):
        T, self.seeds = num_tokens, list(seeds)
        if not 8 <= T <= 32:
            raise ValueError(f"num_tokens is {T}, expected 8 to 32")
        if preset not in PRESETS:
            raise ValueError(f"there is no preset {preset!r}, only {'; '.join(PRESETS)}")
        if unknown := set(changes) - set(OFF):
            raise TypeError(f"a pattern has no part {sorted(unknown)[0]!r}, only {', '.join(OFF)}")
        if not self.seeds:
            raise ValueError("there are no seeds, expected at least one draw of random keys")
        if not lengths or min(lengths) < 1:
            raise ValueError(f"lengths are {list(lengths)}, expected positive numbers")
        limits = {"window": [0, T], "dilation": [1, 8], "block_size": [0, min(12, T)], "num_global": [0, 6],
                  "every": [0, 8], "num_random": [0, 6]}  # fmt: skip
        presets = {name: _settings(T, parts) for name, parts in PRESETS.items()}
        first = _settings(T, {**PRESETS[preset], **changes})
        query = T // 2 if query is None else query
        shown = {"layers": layers, "query": query, "draw": draw}
        ranges = {**limits, "layers": [1, T - 1], "query": [0, T - 1], "draw": [0, len(self.seeds) - 1]}
        for key, (low, high) in ranges.items():
            value = {**first, **shown}[key]
            if not low <= value <= high:
                raise ValueError(f"{key} is {value}, expected {low} to {high}")
        orders = [_order(T, limits["num_random"][1], causal, seed) for causal in (False, True) for seed in self.seeds]
        super().__init__(
            f"A pattern of attention among {T} tokens: its pairs, how far it reaches layer by layer, and its cost.",
            num_tokens=T,
            limits=limits,
            presets=presets,
            orders=pack(numpy.stack(orders)),
            draws=len(self.seeds),
            lengths=list(lengths),
            **first,
            **shown,
        )

    def mask(self, **changes):
        """The pattern, by the masks of the package.

        Args:
            changes: parts in place of the first ones, and ``draw``.

        Returns:
            booleans (T, T), a row a query, True = may attend.
        """
        T, parts = self.state["num_tokens"], self._parts(changes)
        on = {"causal": parts["causal"]}
        joined = torch.zeros(T, T, dtype=torch.bool)
        if parts["window"]:
            joined |= sliding_window_mask(T, parts["window"], dilation=parts["dilation"], **on)
        if parts["block_size"]:
            joined |= block_local_mask(T, parts["block_size"], **on)
        if parts["num_global"]:
            joined |= global_mask(T, parts["num_global"], **on)
        if parts["every"]:
            joined |= global_mask(T, range(0, T, parts["every"]), columns=False, **on)
        if parts["num_random"]:
            generator = torch.Generator().manual_seed(self.seeds[parts["draw"]])
            joined |= random_mask(T, parts["num_random"], generator=generator, **on)
        return joined

    def pairs(self, num_tokens, **changes):
        """How many pairs the same pattern has in a sequence of any length; of random keys, on average over draws.

        The parts keep their numbers: a window of 2 stays one of 2; one of all, and tokens that see all every so far,
        grow with the sequence. Counted without a mask, in time linear in the length.

        Args:
            num_tokens: length of the sequence.
            changes: as for ``mask``.

        Returns:
            float.
        """
        parts, T = self._parts(changes), num_tokens
        window = T if parts["window"] == self.state["num_tokens"] else parts["window"]
        d = parts["dilation"]
        t = torch.arange(T)
        end = t + 1 if parts["causal"] else torch.full((T,), T)  # keys below it may be seen
        far = (window - 1) * d

        def near(low, high):  # keys of the window from low to high - 1: multiples of d away
            low, high = torch.maximum(low, t - far), torch.minimum(high, t + far + 1)
            return ((high - 1 - t).div(d, rounding_mode="floor") - (low - 1 - t).div(d, rounding_mode="floor")).clamp(0)

        zero, global_keys = torch.zeros_like(t), end.clamp(max=parts["num_global"])
        start = t // max(parts["block_size"], 1) * parts["block_size"]
        stop = torch.minimum(start + parts["block_size"], end)
        both = torch.minimum(stop, global_keys).clamp(min=start)  # up to there the block is among the global tokens
        seen = stop - start + global_keys - (both - start)
        seen = seen + near(zero, end) - near(start, stop) - near(zero, global_keys) + near(start, both)
        if parts["every"]:
            seen = torch.where(t % parts["every"] == 0, end, seen)
        seen = torch.where(t < parts["num_global"], end, seen).double()
        drawn = end.clamp(max=parts["num_random"])
        return float((seen + drawn * (end - seen) / end).sum())

    def fallback(self):
        T, lengths = self.state["num_tokens"], self.state["lengths"]
        rows = []
        for name, parts in self.state["presets"].items():
            mask = self.mask(**parts)
            wanted = torch.ones(T, T, dtype=torch.bool)
            layers = layers_to_reach(mask, wanted.tril() if parts["causal"] else wanted)
            rows.append(
                [name, count_pairs(mask), f"{count_pairs(mask) / T**2:.1%}", "never" if layers is None else layers,
                 *(f"{self.pairs(length, **parts) / length:,.1f}" for length in lengths)]
            )  # fmt: skip
        header = ["pattern", "pairs", f"of {T * T}", "layers until all has met"]
        caption = (
            f"Patterns of attention among {T} tokens; and how many keys a query has on average in longer sequences. Of "
            "causal ones, all that came before has to be met."
        )
        return table([*header, *(f"keys a query, T = {length:,}" for length in lengths)], rows, caption)

    def _parts(self, changes):
        parts = {**{key: self.state[key] for key in (*OFF, "draw")}, **changes}
        return {**parts, **_settings(self.state["num_tokens"], {key: parts[key] for key in OFF})}


def _settings(T, parts):
    """All parts of a pattern as the page has them: T is a window of all."""
    parts = {**OFF, **parts}
    return {**parts, "window": T if parts["window"] is None else parts["window"], "causal": bool(parts["causal"])}


def _order(T, most, causal, seed):
    """The keys that `random_mask` draws for each query, one after the other, bytes (T, most); 255: there is none."""
    order, before = numpy.full((T, most), 255, "u1"), torch.zeros(T, T, dtype=torch.bool)
    for n in range(most):
        drawn = random_mask(T, n + 1, causal=causal, generator=torch.Generator().manual_seed(seed))
        for t, s in (drawn & ~before).nonzero().tolist():
            order[t, n] = s
        before = drawn
    return order
