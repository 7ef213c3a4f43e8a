"""Figure of chapter 01: a query moved among keys in the plane."""

import torch

from .base import Figure, table


class QueryPlane(Figure):
    """Keys and a query in one plane, values and the attention output in another.

    The reader drags the query or a key and sees softmax weights and the output follow.

    Args:
        query: (2,) position of the query, in [-2, 2].
        keys: (S, 2) positions of the keys, in [-2, 2].
        values: (S, 2) values, in [-2, 2].
        temperature: positive; the scores are divided by it.
        score: ``"dot"`` for the dot product, ``"distance"`` for minus half the squared distance.

    Raises:
        ValueError: wrong shapes, an unknown score or a temperature that is not positive.
    """

    name = "query_plane"
    title = "A query among keys"
    hint = (
        "Drag the query q or a key and change the temperature; watch the weights and the output. By "
        "keyboard: arrow keys move q, Page Up and Page Down go to the keys."
    )

    def __init__(self, query, keys, values, temperature=1.0, score="dot"):
        query, keys, values = (torch.as_tensor(x, dtype=torch.float64) for x in (query, keys, values))
        if query.shape != (2,) or keys.ndim != 2 or keys.shape[1] != 2 or keys.shape != values.shape:
            raise ValueError(
                "expected query (2,), keys (S, 2) and values (S, 2), got "
                f"{tuple(query.shape)}, {tuple(keys.shape)} and {tuple(values.shape)}"
            )
        if score not in ("dot", "distance"):
            raise ValueError(f"score is 'dot' or 'distance', not {score!r}")
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, not {temperature}")
        scores = keys @ query if score == "dot" else -((keys - query) ** 2).sum(1) / 2
        self.weights = torch.softmax(scores / temperature, dim=0)  # (S,)
        self.output = self.weights @ values  # (2,)
        super().__init__(
            f"A query among {len(keys)} keys in the plane, how much weight each gets, and the output among the values.",
            query=query,
            key_points=keys,
            values=values,
            temperature=float(temperature),
            score=score,
        )

    def fallback(self):
        rows = [
            [i + 1, *(f"({x:.2f}, {y:.2f})" for x, y in (key, value)), f"{weight:.3f}"]
            for i, (key, value, weight) in enumerate(
                zip(self.state["key_points"], self.state["values"], self.weights.tolist(), strict=True)
            )
        ]
        x, y = self.state["query"]
        caption = (
            f"Query ({x:.2f}, {y:.2f}), temperature {self.state['temperature']:g}: "
            f"the output is ({self.output[0]:.2f}, {self.output[1]:.2f})."
        )
        return table(["key", "position", "value", "weight"], rows, caption)
