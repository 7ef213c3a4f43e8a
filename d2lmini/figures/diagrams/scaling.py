"""Diagram of chapter 17: where a budget of compute goes.

Source: Kaplan et al. 2020; Hoffmann et al. 2022, section 3.
"""

from .drawing import Diagram


def budget():
    """A budget of compute, split into parameters and tokens; the three terms of the loss that comes of it.

    Returns:
        A `Diagram`.
    """
    diagram = Diagram(
        "Where a budget of compute goes",
        "From the bottom up: a budget of C floating-point operations, about 6 N D, is split into the N parameters of a "
        "model and the D tokens that it is trained on; more of the one leaves less of the other. N lowers one term of "
        "the loss, A over N to the power alpha, and D another, B over D to the power beta. A third term, E, is there "
        "whatever is spent. The loss is the sum of the three.",
        "Few parameters: the blue term stays high. Few tokens: the orange one. E is what no budget lowers.",
    )
    diagram.box("C", (0, 0), "budget, C FLOPs", width=1.9)
    diagram.box("N", (-1.6, 1.8), "N parameters", width=1.7, accent="blue")
    diagram.box("D", (1.6, 1.8), "D tokens", width=1.7, accent="orange")
    diagram.arrow("C", "N", leave="left", enter="bottom").arrow("C", "D", leave="right", enter="bottom")
    diagram.text("together", (0, 1.8), "6 N D = C")
    diagram.box("A", (-1.6, 3.4), "A / N^α", width=1.7, accent="blue").arrow("N", "A")
    diagram.box("B", (1.6, 3.4), "B / D^β", width=1.7, accent="orange").arrow("D", "B")
    diagram.box("E", (0, 3.4), "E", width=0.8)
    diagram.plus("+", (0, 4.6)).arrow("E", "+")
    diagram.arrow("A", "+", leave="top", enter="left").arrow("B", "+", leave="top", enter="right")
    return diagram.text("loss", (0, 5.7), "loss L(N, D), nats a token").arrow("+", "loss")
