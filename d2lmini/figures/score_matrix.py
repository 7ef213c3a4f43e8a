"""Figure of chapter 03: what scale, mask and temperature do to a small score matrix."""

import torch

from ..masks import causal_mask
from ..scoring import masked_softmax
from .base import Figure, table


class ScoreMatrix(Figure):
    """The attention weights of N tokens among themselves, as a shaded table.

    The reader scales the scores, hides keys and turns the temperature; one row is shown in detail: its bars,
    its sum and its entropy.

    Args:
        tokens: N different words.
        queries: (N, D), one query a token.
        keys: (N, D), one key a token.
        scaled: whether the scores are divided by sqrt(D).
        causal: whether a token may attend to itself and to earlier ones only.
        valid_len: how many of the first keys count, 0 to N; None: all.
        temperature: positive; the scores are divided by it.

    Raises:
        ValueError: wrong shapes, words that repeat, a length out of range, a temperature that is not positive
            or a score that is not finite.
    """

    name = "score_matrix"
    title = "From scores to weights"
    hint = (
        "Change scale, masks and temperature; point at a row of the table to see it in detail. By keyboard: "
        "arrow keys go from row to row."
    )

    def __init__(self, tokens, queries, keys, scaled=False, causal=False, valid_len=None, temperature=1.0):
        queries, keys = (torch.as_tensor(x, dtype=torch.float64) for x in (queries, keys))
        tokens = [str(token) for token in tokens]
        if not tokens:
            raise ValueError("there are no tokens: expected at least one")
        if len(set(tokens)) != len(tokens):
            raise ValueError(f"tokens name the rows and columns, so they must differ: {tokens}")
        if queries.ndim != 2 or len(queries) != len(tokens) or queries.shape != keys.shape:
            raise ValueError(
                f"expected queries and keys of shape ({len(tokens)}, D) for {len(tokens)} tokens, "
                f"got {tuple(queries.shape)} and {tuple(keys.shape)}"
            )
        valid_len = len(tokens) if valid_len is None else valid_len
        if not 0 <= valid_len <= len(tokens):
            raise ValueError(f"valid_len is from 0 to {len(tokens)}, not {valid_len}")
        super().__init__(
            f"Attention weights of {len(tokens)} words, with scale, masks and temperature to choose.",
            tokens=tokens,
            scores=queries @ keys.T,  # (N, N)
            num_features=queries.shape[1],
            scaled=bool(scaled),
            causal=bool(causal),
            valid_len=int(valid_len),
            temperature=float(temperature),
        )
        self.weights()  # refuses a temperature that is not positive

    def weights(self, **changes):
        """The weights that the page shows, computed by the package.

        Args:
            **changes: ``scaled``, ``causal``, ``valid_len`` or ``temperature``, where not the figure's own.

        Returns:
            (N, N), a row for each query.

        Raises:
            ValueError: a length out of range or a temperature that is not positive.
        """
        now = {**self.state, **changes}
        if not now["temperature"] > 0:
            raise ValueError(f"temperature must be positive, not {now['temperature']}")
        scores = torch.tensor(now["scores"], dtype=torch.float64) / now["temperature"]  # (N, N)
        if now["scaled"]:
            scores = scores / now["num_features"] ** 0.5
        mask = causal_mask(len(scores)) if now["causal"] else None
        return masked_softmax(scores[None], torch.tensor([now["valid_len"]]), mask=mask)[0]

    def fallback(self):
        state = self.state
        rows = [
            [token, *(f"{weight:.2f}" for weight in row)]
            for token, row in zip(state["tokens"], self.weights().tolist(), strict=True)
        ]
        caption = (
            f"Attention weights, a row for each query. Vectors of {state['num_features']} numbers, scores "
            f"{'' if state['scaled'] else 'not '}divided by the root of that, "
            f"{'' if state['causal'] else 'no '}causal mask, valid length {state['valid_len']}, "
            f"temperature {state['temperature']:g}."
        )
        return table(["query", *state["tokens"]], rows, caption)
