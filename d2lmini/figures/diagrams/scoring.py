"""Diagram of chapter 03: scoring, masked and in batches.

Source: D2L sections 11.3.1 to 11.3.3; UDL section 12.3.
"""

from .drawing import Diagram


def masked_scoring():
    """From queries, keys, values and lengths to the output: scores, mask, softmax, weighted sum.

    Returns:
        A `Diagram`; `Diagram.on` an attention layer, called with queries, keys, values and valid lengths, gives the
        sizes of that call.
    """
    diagram = Diagram(
        "Scoring, masked and in batches",
        "From the bottom up: queries of shape (B, T, D) and keys of shape (B, S, D) meet in a score for each pair, "
        "(B, T, S). From the left comes a mask, made of the valid lengths: where it is false the score becomes minus "
        "infinity. A softmax along the keys turns each row of scores into weights, (B, T, S), which sum to one and are "
        "zero where the mask is false. The weights mix the values, (B, S, E), which come from the right. "
        "The output has a row for each query, (B, T, E).",
        "B sentences, T queries and S keys in each; a query and a key have D entries, a value E. "
        "Blue: the step that other scores replace. Orange: hiding padding.",
    )
    diagram.text("queries", (-2, 0)).text("keys", (2, 0)).text("values", (3.5, 0)).text("lengths", (-3.5, 0))
    diagram.box("score", (0, 2.2), "score each pair", width=1.9, accent="blue")
    diagram.arrow("queries", "score", "(B, T, D)", of="input 0", leave="top", enter="left")
    diagram.arrow("keys", "score", "(B, S, D)", of="input 1", leave="top", enter="right", side="left")
    diagram.box("mask", (0, 4.2), "−∞ where not allowed", width=1.9, accent="orange").arrow(
        "score", "mask", "(B, T, S)"
    )
    diagram.box("key < length", (-3.5, 2.2), width=1.5, accent="orange")
    diagram.arrow("lengths", "key < length", "(B)", of="input 3")
    diagram.arrow("key < length", "mask", "true: may attend", leave="top", enter="left")
    diagram.box("softmax", (0, 6.2), "softmax along the keys", width=1.9).arrow("mask", "softmax", "(B, T, S)")
    diagram.box("mix", (0, 8.2), "weights times values", width=1.9).arrow("softmax", "mix", "weights (B, T, S)")
    diagram.arrow("values", "mix", "(B, S, E)", of="input 2", leave="top", enter="right", at=0.2)
    return diagram.text("output", (0, 9.8)).arrow("mix", "output", "(B, T, E)", of="")
