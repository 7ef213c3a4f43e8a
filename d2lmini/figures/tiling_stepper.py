"""Figure of chapter 09: exact attention tile by tile, with the softmax rescaled as larger scores come."""

import math
import numbers

import torch

from ..efficient.tiles import OnlineSoftmax
from ..masks import causal_mask
from .base import Figure, table

LARGEST = 8  # queries, keys: the cells would grow too small


class TilingStepper(Figure):
    """Attention in tiles, one tile a step: which scores there are now, and what is known of each query so far.

    The page does what `d2lmini.tiled_attention` does: it takes some queries, goes through the keys tile by tile, and
    keeps of each query the largest score, the sum of exponentials and the same sum with the values as factors. A larger
    score rescales both sums by one factor. It also counts the scores that exist at
    once and the numbers that were moved.

    Args:
        queries: (T, D), T from 2 to 8.
        keys: (S, D), S from 2 to 8. Any scores (T, S) are those of ``queries=scores, keys=torch.eye(S), scale=1``.
        values: (S, E), E from 1 to 3.
        tiles: what to choose from: queries and keys of a tile, an integer or a pair each.
        tile: the one shown first; None: the first of ``tiles``.
        causal: whether later positions are hidden at first; the queries are the last T of S positions.
        scale: factor on the dot products; None: 1/sqrt(D).
        step: which one is shown first, from 0: nothing was read yet. None: the first one after the first row of tiles
            at which a larger score corrects what is known of a query.
        query: the one whose numbers are spelled out, from 0. None: the one that is corrected at this step, else the
            first of its tile.

    Raises:
        ValueError: shapes do not fit or are out of range, there is no such tile, step or query, or more queries than
            keys are causal.

    Source: Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, algorithm 1.
    """

    name = "tiling_stepper"
    title = "Exact attention without the whole matrix"
    hint = (
        "Go tile by tile. Only the orange scores exist. A larger score corrects the sums of its query, and after a "
        "query's last tile its error is 0. Choose a query by its name to read its sums."
    )

    def __init__(
        self, queries, keys, values, tiles=(2, 3, 4), tile=None, *, causal=False, scale=None, step=None, query=None
    ):
        queries, keys, values = (
            torch.as_tensor(x, dtype=torch.float64).detach().cpu() for x in (queries, keys, values)
        )
        for name, x in (("queries", queries), ("keys", keys), ("values", values)):
            if x.dim() != 2 or not x.numel():
                raise ValueError(f"{name} have shape {tuple(x.shape)}, expected two dimensions, none of them 0")
        (T, D), (S, E) = queries.shape, values.shape
        if keys.shape != (S, D):
            raise ValueError(
                f"keys have shape {tuple(keys.shape)}, expected ({S}, {D}): one for each value, features as queries"
            )
        if not (2 <= T <= LARGEST and 2 <= S <= LARGEST and E <= 3):
            raise ValueError(
                f"there are {T} queries, {S} keys and {E} features of a value, expected 2 to {LARGEST}, 2 to {LARGEST} "
                "and at most 3"
            )
        if T > S and causal:
            raise ValueError(f"there are {T} queries but {S} keys: causal queries are the last positions of the keys")
        tiles = list(dict.fromkeys(_pair(size, T, S) for size in tiles))  # those too large become the same
        if not tiles:
            raise ValueError("there are no tiles: expected at least one")
        tile = tiles[0] if tile is None else _pair(tile, T, S)
        if tile not in tiles:
            raise ValueError(f"there is no tile {tile}, only {tiles}")
        scale = 1 / math.sqrt(D) if scale is None else scale
        super().__init__(
            f"Attention of {T} queries to {S} keys tile by tile: the largest score, the sums and the output so far.",
            scores=scale * (queries @ keys.T),
            values=values,
            num_features=D,
            tiles=tiles,
            tile=tiles.index(tile),
            causal=bool(causal),
            step=step,
            query=query,
        )
        self._start(tile, causal)
        for key, last in (("step", len(self.steps(tile, causal))), ("query", T - 1)):
            if not 0 <= self.state[key] <= last:
                raise ValueError(f"{key} is {self.state[key]}, expected 0 to {last}")

    def steps(self, tile, causal=False):
        """The tiles in their order: queries by queries, and for these the keys. Those that hide all are left out.

        Args:
            tile: queries and keys of a tile, an integer or a pair.
            causal: whether later positions are hidden.

        Returns:
            list of pairs of slices: of queries, of keys.
        """
        T, S = len(self.state["scores"]), len(self.state["values"])
        height, width = _pair(tile, T, S)
        seen = self._seen(causal)
        cuts = [(slice(t, t + height), slice(s, s + width)) for t in range(0, T, height) for s in range(0, S, width)]
        return [(rows, columns) for rows, columns in cuts if seen[rows, columns].any()]

    def known(self, step, tile, causal=False):
        """What is known after some tiles, by `OnlineSoftmax`.

        Args:
            step: how many tiles were done.
            tile, causal: as for ``steps``.

        Returns:
            dict of float64 tensors: ``top`` and ``total`` (T, 1); ``output`` (T, E), the sum with values as factors,
            and ``average`` (T, E); -inf, 0, 0 and 0 of queries whose turn has not come.
        """
        T, E = len(self.state["scores"]), len(self.state["values"][0])
        scores = torch.tensor(self.state["scores"], dtype=torch.float64)  # as the page has them
        scores = scores.masked_fill(~self._seen(causal), -math.inf)
        values = torch.tensor(self.state["values"], dtype=torch.float64)
        known = {"top": torch.full((T, 1), -math.inf).double(), "total": torch.zeros(T, 1).double()}
        known |= {name: torch.zeros(T, E).double() for name in ("output", "average")}
        done = self.steps(tile, causal)[:step]
        for start in sorted({rows.start for rows, _ in done}):
            softmax = OnlineSoftmax()
            for rows, columns in done:
                if rows.start == start:
                    here = rows
                    softmax.add(scores[rows, columns], values[columns])
            for name in ("top", "total", "output"):
                known[name][here] = getattr(softmax, name)
            known["average"][here] = softmax.average()
        return known

    def _start(self, tile, causal):
        """Fills in the step and the query that were not given."""
        steps, (step, query) = self.steps(tile, causal), (self.state[key] for key in ("step", "query"))
        later = [i for i, (rows, _) in enumerate(steps, start=1) if rows.start] or range(1, len(steps) + 1)
        corrected = {i: self._corrected(i, tile, causal) for i in (later if step is None else [step])}
        if step is None:
            step = next((i for i, queries in corrected.items() if queries), later[-1])
        if query is None:
            first = steps[step - 1][0].start if 0 < step <= len(steps) else 0
            query = (corrected[step] or [first])[0]
        self.state.update(step=step, query=query)

    def _corrected(self, step, tile, causal):
        """The queries whose sums one step corrects."""
        if not 0 < step <= len(self.steps(tile, causal)):
            return []
        before, after = (self.known(i, tile, causal)["top"].flatten() for i in (step - 1, step))
        return torch.nonzero((before > -math.inf) & (after > before)).flatten().tolist()

    def memory(self, step, tile, causal=False):
        """Scores that exist at once, and numbers moved between fast and slow memory, in tiles and in the plain form.

        Tiled, queries are read once, keys and values once for each tile of queries, and of each query the output and
        one more number, the logarithm of its sum, are written. The plain form writes the scores, reads them, writes the
        weights and reads them.

        Args:
            step, tile, causal: as for ``known``.

        Returns:
            dict of integers: ``scores`` of the largest tile and ``moved``, both so far; ``plain``, what the plain form
            moves.
        """
        T, S, D = len(self.state["scores"]), len(self.state["values"]), self.state["num_features"]
        E, steps = len(self.state["values"][0]), self.steps(tile, causal)
        scores = moved = 0
        for i, (rows, columns) in enumerate(steps[:step]):
            t, s = len(range(T)[rows]), len(range(S)[columns])
            scores = max(scores, t * s)
            fresh = i == 0 or steps[i - 1][0] != rows
            last = i + 1 == len(steps) or steps[i + 1][0] != rows
            moved += fresh * t * D + s * (D + E) + last * t * (E + 1)
        return {"scores": scores, "moved": moved, "plain": T * D + S * D + 4 * T * S + S * E + T * E}

    def fallback(self):
        tile, causal = self.state["tiles"][self.state["tile"]], self.state["causal"]
        T, S, rows = len(self.state["scores"]), len(self.state["values"]), []
        for i, (queries, keys) in enumerate(self.steps(tile, causal), start=1):
            known = self.known(i, tile, causal)
            cells = (_vectors(known[name][queries]) for name in ("top", "total", "average"))
            rows.append([i, _span(queries, T), _span(keys, S), *cells])
        caption = (
            f"Attention in tiles of {tile[0]} queries and {tile[1]} keys: what is known of these queries after each. "
            "The average is that of attention once all keys were there."
        )
        return table(["tile", "queries", "keys", "largest score", "sum", "average of the values"], rows, caption)

    def _seen(self, causal):
        T, S = len(self.state["scores"]), len(self.state["values"])
        return causal_mask(T, S) if causal else torch.ones(T, S, dtype=torch.bool)


def _pair(tile, T, S):
    """Queries and keys of a tile, checked and no more than there are."""
    height, width = (tile, tile) if isinstance(tile, numbers.Integral) else tile
    if min(height, width) < 1:
        raise ValueError(f"tile is {tile}, expected an integer or a pair, at least 1")
    return min(int(height), T), min(int(width), S)


def _span(part, length):
    places = range(length)[part]
    return f"{places[0]} to {places[-1]}" if len(places) > 1 else str(places[0])


def _vectors(x):
    """(t, n) as text, a vector for each query."""
    rows = (", ".join(f"{number:.2f}" for number in row) for row in x.tolist())
    return "; ".join(f"({row})" if x.shape[1] > 1 else row for row in rows)
