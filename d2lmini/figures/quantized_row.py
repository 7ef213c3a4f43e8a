"""Figure of chapter 19: a row of weights in few bits, and what one outlier does to the others."""

import math

import torch

from ..renamed import Attribute
from .base import Figure, table

BITS = range(2, 9)
LONGEST = 128  # weights of a row: their bars would be thinner than two units
SCALE_BYTES = 2  # of a scale or a minimum: float16


class QuantizedRow(Figure):
    """Rows of real weights as bars, and the levels that few bits leave to them.

    The reader chooses the bits, how many neighbours share a scale, and whether the levels are symmetric about 0 or
    begin at the least weight. Each weight goes to its nearest level; below stands its error, and beside it what other
    groups would give, in mean squared error and in bytes. One large weight stretches the levels of all that share
    a scale with it; small groups confine that.

    Symmetric: a step is the largest absolute value of the group over 2^(bits-1) - 1, and codes go from minus that
    number to it. With a minimum: a step is the range of the group over 2^bits - 1, and codes count from the least
    weight. A scale and a minimum count as two bytes each; their rounding to float16 is not shown.

    Args:
        rows: dict from a name to a row of weights, (n,), n a multiple of 32 and at most 128.
        bits: at first, 2 to 8.
        group: how many neighbours share a scale at first: 0 (the whole row), 32 or 16.
        minimum: whether the levels begin at the least weight at first.
        row: name of the row that is shown first; None: the first one.
        weight: which weight of it is followed at first.

    Raises:
        ValueError: there is no row, a row has another length, or a setting is out of its range.

    Source: GGUF's formats Q8_0 and Q4_1; Dettmers et al. 2022 for outliers.
    """

    name = "quantized_row"
    quantised = Attribute("quantised", "quantized")
    title = "A row of weights in few bits"
    hint = (
        "Move the bits and choose who shares a scale; point at a weight (or move its slider) to follow it to its "
        "level. Which setting costs least for the error that it leaves?"
    )

    def __init__(self, rows, bits=4, group=0, minimum=False, row=None, weight=None):
        if not rows:
            raise ValueError("there is nothing to show: expected at least one row")
        rows = {str(name): torch.as_tensor(values).detach().cpu().double() for name, values in rows.items()}
        for name, values in rows.items():
            if values.dim() != 1:
                raise ValueError(f"row {name!r} is not one axis of weights")
            if not len(values) or len(values) % 32 or len(values) > LONGEST:
                raise ValueError(
                    f"row {name!r} has {len(values)} weights, expected a multiple of 32, at most {LONGEST}"
                )
            if len(values) != len(next(iter(rows.values()))):
                raise ValueError(f"row {name!r} has {len(values)} weights, the first row has another number")
        rows = {name: values.tolist() for name, values in rows.items()}
        row = next(iter(rows)) if row is None else row
        if row not in rows:
            raise ValueError(f"there is no row {row!r}, only {', '.join(map(repr, rows))}")
        if bits not in BITS:
            raise ValueError(f"bits is {bits}, expected an integer from {BITS[0]} to {BITS[-1]}")
        if group not in (0, 32, 16):
            raise ValueError(f"group is {group}, expected 0 (the whole row), 32 or 16")
        n = len(rows[row])
        if weight is None:  # an ordinary one, beside the largest
            largest = max(range(n), key=lambda i: abs(rows[row][i]))
            weight = largest + 1 if largest + 1 < n else largest - 1
        if not 0 <= weight < n:
            raise ValueError(f"weight is {weight}, expected 0 to {n - 1}")
        super().__init__(
            f"{len(rows)} times {n} weights in a row, each moved to the nearest of few levels, and the errors.",
            names=list(rows),
            rows=list(rows.values()),
            bits=int(bits),
            group=group,
            minimum=bool(minimum),
            row=list(rows).index(row),
            weight=weight,
        )

    @classmethod
    def of(cls, matrix=None, length=96, **options):
        """Two pieces of one matrix: that with the largest outlier, and that with the smallest.

        Args:
            matrix: (O, I), I at least ``length``; None: the last layer of the book's GPT on Shakespeare.
            length: how many weights a piece has, a multiple of 32.
            options: as for the class.

        Returns:
            A `QuantizedRow`.

        Raises:
            ValueError: the matrix has no such piece.
        """
        if matrix is None:
            from ..models.weights.trained import trained

            matrix = trained("gpt_shakespeare").blks[-1].ffn.dense2.weight
        matrix = torch.as_tensor(matrix).detach().cpu().double()
        if length < 32 or length % 32:
            raise ValueError(f"length is {length}, expected a multiple of 32")
        if matrix.dim() != 2 or matrix.shape[1] < length:
            raise ValueError(f"the matrix has shape {tuple(matrix.shape)}, expected (O, I) with I at least {length}")
        pieces = matrix[:, : matrix.shape[1] // length * length].unflatten(1, (-1, length))  # (O, number, length)
        spread = pieces.abs().amax(-1) / pieces.std(-1).clamp(min=1e-30)
        most, least = (divmod(int(i), pieces.shape[1]) for i in (spread.argmax(), spread.argmin()))
        rows = {f"with an outlier (row {most[0]})": pieces[most], f"without one (row {least[0]})": pieces[least]}
        return cls(rows, **options)

    def quantized(self, row=None, bits=None, group=None, minimum=None):
        """What the page computes; None: as it is shown first.

        Args:
            row: number of the row, from 0. bits, group, minimum: as for the class.

        Returns:
            dict with ``values`` (n numbers, the levels that the weights go to), ``steps`` (a number for each group),
            ``error`` (mean squared), ``largest`` (error of one weight), and ``bytes`` a weight.
        """
        state = self.state
        given = {"row": row, "bits": bits, "group": group, "minimum": minimum}
        row, bits, group, minimum = (state[key] if value is None else value for key, value in given.items())
        weights = state["rows"][row]
        size = group or len(weights)
        values, steps = [], []
        for start in range(0, len(weights), size):
            part = weights[start : start + size]
            low = min(part) if minimum else 0.0
            step = (max(part) - low) / (2**bits - 1) if minimum else max(map(abs, part)) / (2 ** (bits - 1) - 1)
            steps.append(step)
            values += [low + step * (math.floor((w - low) / step + 0.5) if step else 0) for w in part]
        errors = [abs(a - b) for a, b in zip(values, weights, strict=True)]
        return {
            "values": values,
            "steps": steps,
            "error": sum(e * e for e in errors) / len(errors),
            "largest": max(errors),
            "bytes": bits / 8 + SCALE_BYTES * (1 + minimum) / size,
        }

    def fallback(self):
        state = self.state
        n = len(state["rows"][0])
        rows = []
        for i, name in enumerate(state["names"]):
            for group in (0, 32, 16):
                found = self.quantized(row=i, group=group)
                who = f"groups of {group}" if group else f"the whole row of {n}"
                rows.append(
                    [f"{name}, {who}", f"{found['error']:.3g}", f"{found['largest']:.3f}", f"{found['bytes']:.3f}"]
                )
        kind = "with a minimum" if state["minimum"] else "symmetric"
        header = ["who shares a scale", "mean squared error", "largest error", "bytes a weight"]
        return table(header, rows, f"Rows of {n} weights in {state['bits']} bits, {kind}.")
