"""Diagram of chapter 09: three ways out of a cost that grows with the square of the length.

Source: UDL section 12.9; Katharopoulos et al. 2020; Dao et al. 2022.
"""

from itertools import pairwise

from .drawing import Diagram

_WAYS = {  # what is done, what is made on the way, what it costs beyond the features, what comes out
    "meet fewer": ("blue", "scores of a pattern's pairs", "pairs ~ T w", "other weights"),
    "meet through a summary": ("orange", "sums over the keys", "state (M, E + 1)", "a kernel's weights"),
    "meet all, in tiles": (None, "an online softmax", "pairs ~ T S, a tile at a time", "the same weights"),
}


def long_sequences():
    """Queries, keys and values at the bottom, and three ways from them to the output.

    Returns:
        A `Diagram`: sparse patterns, summaries of the keys, and exact attention in tiles.
    """
    diagram = Diagram(
        "Three ways to attend in a long sequence",
        "From queries, keys and values three ways lead up to an output for each query. Left, meet fewer: scores are "
        "computed only for the pairs of a pattern, w keys for each query, and the weights differ from those of full "
        "attention. Middle, meet through a summary: the keys and values are summed up before a query comes, in a state "
        "of M by E + 1 numbers, and the weights are those of a kernel. Right, meet all, in tiles: an online softmax "
        "goes over tiles of keys; all T S pairs are computed and never held together, and the weights are the same.",
        "T queries, S keys, E features of a value, w keys for each query, M features of the kernel. Left and middle "
        "change what is computed; right, the tiles, only how.",
    )
    diagram.text("inputs", (0, 0), "Q (T, D), K (S, D), V (S, E)")
    diagram.text("output", (0, 6.6), "output (T, E)")
    for (pattern, (accent, inside, cost, weights)), x in zip(_WAYS.items(), (-2.6, 0, 2.6), strict=True):
        diagram.box(pattern, (x, 1.5), width=2.3, accent=accent)
        diagram.text(f"{pattern}: inside", (x, 2.8), inside).text(f"{pattern}: cost", (x, 3.9), cost)
        diagram.text(f"{pattern}: weights", (x, 5.1), weights)
        diagram.arrow("inputs", pattern)
        for start, end in pairwise(
            (pattern, f"{pattern}: inside", f"{pattern}: cost", f"{pattern}: weights", "output")
        ):
            diagram.arrow(start, end)
    return diagram
