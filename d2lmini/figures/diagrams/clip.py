"""Diagram of chapter 18: CLIP.

Source: Radford et al. 2021, figure 1 and section 2.3.
"""

from .drawing import Diagram


def clip():
    """Pictures and texts through an encoder each, into one space; cosines; who belongs to whom.

    Returns:
        A `Diagram` of a module with the parts ``image_encoder`` and ``text_encoder``, called with images and tokens.
    """
    diagram = Diagram(
        "CLIP",
        "Left, B pictures go through an encoder of pictures, and right, their B texts through an encoder of texts. "
        "Each gives one vector of D features for each picture and each text, which are scaled to length 1. Cosines of "
        "all pictures with all texts, divided by the temperature, make a square of scores, B by B. Two "
        "cross-entropies are taken: along the rows each picture chooses its text, along the columns each text its "
        "picture; right are the places on the diagonal. The loss is their mean.",
        "For zero-shot classification the texts are the names of classes, and each picture takes its largest score.",
    )
    for x, what, part, letters, accent in (
        (-1.6, "images", "image_encoder", "(B, c, y, x)", "blue"),
        (1.6, "texts", "text_encoder", "(B, T)", "orange"),
    ):
        side = "left" if x < 0 else "right"
        diagram.text(what, (x, 0)).box(part, (x, 1.6), part.replace("_", " "), width=1.9, accent=accent)
        diagram.arrow(what, part, letters, of=f"input {int(x > 0)}", side=side)
        diagram.box(f"unit {what}", (x, 3.2), "scale to length 1", width=1.9)
        diagram.arrow(part, f"unit {what}", "(B, D)", of=part, side=side)
    diagram.box("scores", (0, 4.6), "cosines / temperature", width=2.1)
    diagram.arrow("unit images", "scores", leave="top", enter="left")
    diagram.arrow("unit texts", "scores", leave="top", enter="right")
    diagram.box("loss", (0, 6.3), "cross-entropy of rows and of columns", width=3.4)
    return diagram.arrow("scores", "loss", "(B, B)", side="right")
