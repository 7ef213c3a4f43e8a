"""Diagram of chapter 05: multi-head attention.

Source: D2L equations 11.5.1 and 11.5.2 and figure 11.5.1; UDL equation 12.12 and figure 12.6; Vaswani et al. 2017.
"""

from .drawing import Diagram


def multi_head(num_heads="H", head_size="d"):
    """Projections, cut into heads; an attention in each; side by side, and one more matrix.

    Args:
        num_heads, head_size: numbers in place of the letters.

    Returns:
        A `Diagram` of a `d2lmini.MultiHeadAttention`, called with queries, keys and values.
    """
    diagram = Diagram(
        "Multi-head attention",
        "From below, queries, keys and values each go through a matrix of their own, W_q, W_k and W_v, and give h "
        "features for each token. These are cut into H heads of d = h / H features. In every head, apart from the "
        "others, queries and keys make scores, a softmax makes weights of them, and the weights mix the values. The "
        "outputs of the heads are laid side by side, h features again, and a last matrix, W_o, mixes them.",
        "What stands in the frame happens H times at once, in each head with features of its own.",
    )
    for i, (x, what, letter) in enumerate(((-2.2, "queries", "q"), (0, "keys", "k"), (2.2, "values", "v"))):
        length = "T" if letter == "q" else "S"
        diagram.text(what, (x, 0)).box(f"W_{letter}", (x, 1.6), width=1.2)
        diagram.arrow(what, f"W_{letter}", f"(B, {length}, h)", of=f"input {i}")
        diagram.box(f"cut {letter}", (x, 3.2), "cut into heads", width=1.7)
        diagram.arrow(f"W_{letter}", f"cut {letter}", f"(B, {length}, h)", of=f"W_{letter}")
    queries, keys, weights = (f"(B, {num_heads}, {sizes})" for sizes in (f"T, {head_size}", f"S, {head_size}", "T, S"))
    diagram.box("scores", (-2.2, 5.2), "softmax(Q Kᵀ / √d)", width=1.9)
    diagram.arrow("cut q", "scores", queries, at=0.3)
    diagram.arrow("cut k", "scores", keys, leave="top", enter="right")
    diagram.box("mix", (2.2, 6.6), "weights times values", width=1.9)
    diagram.arrow("scores", "mix", weights, leave="top", enter="left")
    diagram.arrow("cut v", "mix", keys, at=0.8)
    diagram.frame(f"in each of {num_heads} heads", ["scores", "mix"], pad=(20, 22))
    diagram.box("join", (2.2, 8.4), "heads side by side", width=1.9)
    diagram.arrow("mix", "join", queries, at=0.8)
    diagram.box("W_o", (2.2, 9.9), width=1.2)
    diagram.arrow("join", "W_o", "(B, T, h)")
    diagram.text("output", (2.2, 11.3))
    return diagram.arrow("W_o", "output", "(B, T, h)", of="W_o")
