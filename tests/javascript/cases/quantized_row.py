"""Rows of weights in few bits."""

import torch

from d2lmini.figures import QuantizedRow

N = 32
ROWS = torch.randn(2, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
ROWS[0, 5] = 8.0  # an outlier
SETTINGS = [
    (0, 4, 0, False),
    (0, 4, 16, False),
    (0, 3, 16, True),
    (1, 2, 0, True),
    (1, 8, 32, False),
    (2, 4, 16, True),
    (3, 3, 16, False),
]


def cases():
    figure = QuantizedRow({"one": ROWS[0], "other": ROWS[1], "zeros": torch.zeros(N), "halves": torch.arange(N) / 2})
    for row, bits, group, minimum in SETTINGS:
        weights = torch.tensor(figure.state["rows"][row], dtype=torch.float64)
        found, size = figure.quantized(row, bits, group, minimum), group or N
        values = torch.tensor(found["values"], dtype=torch.float64)
        given = {"bits": bits, "group": group, "minimum": minimum}
        parts = []
        for start, step in zip(range(0, N, size), found["steps"], strict=True):
            low = weights[start : start + size].min().item() if minimum else 0
            codes = ((values[start : start + size] - low) / step).round() if step else torch.zeros(size)
            parts.append({"start": start, "size": size, "low": low, "step": step, "codes": codes.int().tolist()})
        yield (
            "quantized",
            [weights.tolist(), given],
            {
                "parts": parts,
                "values": found["values"],
                "missed": (values - weights).abs().tolist(),
                "error": found["error"],
            },
        )
        yield "bytesPerWeight", [N, given], found["bytes"]
    for bits in (2, 4, 8):
        yield "codeRange", [{"bits": bits, "group": 0, "minimum": True}], [0, 2**bits - 1]
        yield "codeRange", [{"bits": bits, "group": 0, "minimum": False}], [1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1]
