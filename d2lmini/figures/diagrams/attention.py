"""Diagram of chapters 01 and 02: the three steps of every attention.

Source: D2L figure 11.1.1; UDL figures 12.2 and 12.3.
"""

from ...renamed import arguments
from .drawing import Diagram


@arguments(normalise="normalize")
def compare_normalize_mix(
    compare="score a(q, k)", normalize="softmax over the keys", inputs=("queries", "keys", "values")
):
    """Queries are compared with keys, the scores are normalised into weights, and these mix the values.

    Args:
        compare: what gives a number to a query and a key.
        normalize: what makes the weights of one query sum to one.
        inputs: what the queries, the keys and the values are.

    Returns:
        A `Diagram` of a call with queries (T, D), keys (S, D) and values (S, E).
    """
    queries, keys, values = inputs
    diagram = Diagram(
        "Attention in three steps: compare, normalise, mix",
        f"The {queries}, Q, enter at the left, the {keys}, K, from below, the {values}, V, at the right. First step, "
        f"compare: {compare}, of every query with every key, gives T by S numbers. Second step, normalise: {normalize} "
        "makes T by S weights of them, which sum to one for each query. Third step, mix: the values are added up by "
        "these weights, which gives an output of E numbers for each of the T queries.",
        "T queries and S keys of D numbers each; S values of E numbers, one for each key.",
    )
    diagram.text("Q", (-2.3, 0), f"{queries} Q").text("K", (0, 0), f"{keys} K").text("V", (2.3, 0), f"{values} V")
    diagram.box("compare", (0, 1.5), f"compare: {compare}", width=2.8)
    diagram.box("normalize", (0, 3), f"normalise: {normalize}", width=2.8)
    diagram.box("mix", (0, 4.5), "mix: weighted sum", width=2.8)
    diagram.text("output", (0, 5.8), "output Y")
    diagram.arrow("Q", "compare", "(T, D)", of="input 0", enter="left", at=0.35)
    diagram.arrow("K", "compare", "(S, D)", of="input 1")
    diagram.arrow("V", "mix", "(S, E)", of="input 2", enter="right", at=0.35)
    diagram.arrow("compare", "normalize", "(T, S)", of="compare")
    diagram.arrow("normalize", "mix", "(T, S)", of="normalize")
    return diagram.arrow("mix", "output", "(T, E)", of="mix")
