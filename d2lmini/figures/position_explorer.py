"""Figure of chapter 06: position encodings, and the scores that they make of one pair of words."""

import math

import torch

from ..position import RelativePositionBias
from ..rotation import rotary
from .base import Figure, table

ENCODINGS = ("sinusoidal", "rotary", "t5", "none")
SHOWN = 5  # offsets to either side in the table


class PositionExplorer(Figure):
    """An encoding as a heat map, and the score of a query at one position with a key at every other.

    A line shows the scores from the chosen position, a band those from all positions: where the score depends on the
    offset alone, the band is as thin as the line. The reader chooses the encoding, the query's position and an offset,
    and may take the words away, so that positions alone are left.

    Args:
        query: (D,), the word at the chosen position; D even.
        key: (D,), the word everywhere else.
        bias: (num_buckets,), what T5's buckets add to the score.
        encoding: one of ``ENCODINGS``.
        num_positions: N.
        position: of the query, 0 to N - 1.
        offset: position of the key less that of the query, spelled out.
        num_hiddens: how many of the D features are used; even.
        base: of the frequencies, above 1.
        max_distance: of T5's buckets.
        words: whether query and key count, or positions alone.

    Raises:
        ValueError: wrong shapes, an unknown encoding, or a number out of range.
    """

    name = "position_explorer"
    title = "Does the score depend on the offset alone?"
    hint = (
        "If it does, the blue band of all positions is as thin as the orange line of one. Choose an encoding, move the "
        "query, and take the words away."
    )

    def __init__(
        self,
        query,
        key,
        bias,
        encoding="sinusoidal",
        *,
        num_positions=32,
        position=12,
        offset=3,
        num_hiddens=16,
        base=10000.0,
        max_distance=16,
        words=True,
    ):
        query, key, bias = (torch.as_tensor(x, dtype=torch.float64) for x in (query, key, bias))
        if query.ndim != 1 or query.shape != key.shape or len(query) % 2 or bias.ndim != 1:
            raise ValueError(
                "expected query (D,) and key (D,) with D even, and bias (num_buckets,), got "
                f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(bias.shape)}"
            )
        super().__init__(
            f"Position encodings of {num_positions} positions, and the scores they make, with controls to choose.",
            query=query,
            key=key,
            bias=bias,
            encoding=encoding,
            num_positions=int(num_positions),
            position=int(position),
            offset=int(offset),
            num_hiddens=int(num_hiddens),
            base=float(base),
            max_distance=int(max_distance),
            words=bool(words),
        )
        self.encoded()  # refuses what is out of range

    def _now(self, changes):
        now = {**self.state, **changes}
        N, D = now["num_positions"], now["num_hiddens"]
        if now["encoding"] not in ENCODINGS:
            raise ValueError(f"encoding is one of {', '.join(ENCODINGS)}, not {now['encoding']!r}")
        if not 0 <= now["position"] < N or abs(now["offset"]) >= N:
            raise ValueError(f"position {now['position']} or offset {now['offset']} is out of range for {N} positions")
        if D % 2 or not 2 <= D <= len(now["query"]):
            raise ValueError(f"num_hiddens is even and from 2 to {len(now['query'])}, not {D}")
        if not now["base"] > 1:
            raise ValueError(f"base must be above 1, not {now['base']}")
        return now

    def encoded(self, **changes):
        """The heat map, computed by the package.

        Args:
            **changes: settings, where not the figure's own.

        Returns:
            (N, D) sines and cosines for ``"sinusoidal"``, cosines and sines of the turns for ``"rotary"``, zeros for
            ``"none"``; (N, N) bucket numbers for ``"t5"``.

        Raises:
            ValueError: a setting is out of range.
        """
        now = self._now(changes)
        N, D = now["num_positions"], now["num_hiddens"]
        if now["encoding"] == "t5":
            return _bias(now).bucket(_offsets(N))
        if now["encoding"] == "none":
            return torch.zeros(N, D, dtype=torch.float64)
        turns = rotary(torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(N, D // 2), base=now["base"])
        if now["encoding"] == "rotary":
            return turns  # (N, D): cos, sin, cos, sin, ...
        return turns.view(N, D // 2, 2).flip(-1).flatten(1)  # (N, D): sin, cos, sin, cos, ...

    def scores(self, **changes):
        """Scores of the query at each position (rows) with the key at each position (columns).

        Args:
            **changes: settings, where not the figure's own.

        Returns:
            (N, N).

        Raises:
            ValueError: a setting is out of range.
        """
        now = self._now(changes)
        N, D = now["num_positions"], now["num_hiddens"]
        words = torch.tensor([now["query"][:D], now["key"][:D]], dtype=torch.float64) * now["words"]  # (2, D)
        queries, keys = words[:, None].expand(2, N, D)
        if now["encoding"] == "sinusoidal":
            P = self.encoded(**changes)
            queries, keys = queries + P, keys + P
        elif now["encoding"] == "rotary":
            queries, keys = (rotary(X, base=now["base"]) for X in (queries, keys))
        scores = queries @ keys.T / math.sqrt(D)  # (N, N)
        return scores + _bias(now)(N)[0, 0].detach() if now["encoding"] == "t5" else scores

    def by_offset(self, **changes):
        """What the scores are for each offset.

        Args:
            **changes: settings, where not the figure's own.

        Returns:
            Dict from offset, -(N - 1) to N - 1, to a triple: the score from the chosen position (None where there is no
            key), and the least and the greatest score of that offset from all positions.
        """
        scores, position = self.scores(**changes), self._now(changes)["position"]
        N = len(scores)
        by_offset = {}
        for offset in range(1 - N, N):
            alike = scores.diagonal(offset)
            there = 0 <= position + offset < N
            here = scores[position, position + offset].item() if there else None
            by_offset[offset] = (here, alike.min().item(), alike.max().item())
        return by_offset

    def fallback(self):
        state, scores = self.state, self.by_offset()
        shown = min(SHOWN, state["num_positions"] - 1)
        rows = [
            [offset, "no key" if scores[offset][0] is None else f"{scores[offset][0]:.2f}"]
            + [f"{x:.2f}" for x in scores[offset][1:]]
            for offset in range(-shown, shown + 1)
        ]
        caption = (
            f"Scores by offset, encoding {state['encoding']}, {state['num_hiddens']} features, base {state['base']:g}, "
            f"query at position {state['position']} of {state['num_positions']}. "
        )
        spread = max(greatest - least for _, least, greatest in scores.values())
        alone = f"one offset has scores up to {spread:.2f} apart" if spread > 1e-6 else "the offset alone decides"
        caption += f"From all positions, {alone}."
        return table(["offset", "score from here", "least from anywhere", "greatest from anywhere"], rows, caption)


def _bias(now):
    """T5's module with the figure's numbers in it, for one head."""
    module = RelativePositionBias(1, len(now["bias"]), now["max_distance"]).double()
    with torch.no_grad():
        module.weight.copy_(torch.tensor(now["bias"], dtype=torch.float64)[:, None])
    return module


def _offsets(N):
    return torch.arange(N) - torch.arange(N)[:, None]  # (N, N): key less query
