"""Diagram of chapter 10: the vision Transformer.

Source: Dosovitskiy et al. 2021, figure 1 and equations 1 to 4.
"""

from .drawing import Diagram
from .transformer import stack


def vision_transformer():
    """Pictures in patches, one matrix, a class token, positions, pre-norm blocks, scores from the class token alone.

    Returns:
        A `Diagram` of `d2lmini.ViT` with learned positions and a class token, called with images.
    """
    diagram = Diagram(
        "The vision Transformer",
        "From the bottom up: images are cut into patches, and one matrix maps the pixels of each patch to a token. "
        "The tokens stand in one row, a class token is put in front of them, and learned positions are added. L blocks "
        "follow, each with a layer norm and self-attention, then a layer norm and a feed-forward network; what goes "
        "into either branch is added to what comes out. At the end the output of the class token alone goes through a "
        "layer norm and a linear layer, which gives a score for each class.",
    )
    diagram.text("images", (0, 0)).box("patch_embedding.conv", (0, 1.5), "cut into patches, × matrix", width=2.4)
    diagram.arrow("images", "patch_embedding.conv", "(B, c, y, x)", of="input 0", side="left")
    diagram.box("join", (0, 3.0), "in one row, behind the class token", width=3.0).text("class token", (-2.6, 3.0))
    diagram.arrow("patch_embedding.conv", "join", "(B, h, rows, columns)", of="patch_embedding.conv", side="left")
    diagram.arrow("class token", "join", leave="right", enter="left")
    diagram.plus("sum", (0, 4.3)).text("positions", (-2.6, 4.3))
    diagram.arrow("join", "sum", "(B, T, h)", side="left").arrow("positions", "sum", leave="right", enter="left")
    sublayers = [("attention", "multi-head attention", "blue", "ln1"), ("mlp", "GELU network", "orange", "ln2")]
    row, last = stack(diagram, "sum", 4.3, sublayers, True, of="dropout")
    diagram.box("head", (0, row + 1.8), "class token: layer norm, linear", width=2.8)
    diagram.arrow(last, "head", "(B, T, h)", side="left", at=0.7)
    diagram.text("scores", (0, row + 3.2), "scores of the classes")
    diagram.arrow("head", "scores", "(B, C)", of="head", side="left")
    return diagram.frame("L times", ["ln1", "attention", "ln2", "mlp", last], pad=(50, 24))
