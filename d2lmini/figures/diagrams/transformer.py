"""Diagrams of the Transformer: its two blocks, with the norm on either side, and the whole model.

Source: Vaswani et al. 2017, section 3; Xiong et al. 2020 for the norm before each sublayer.
"""

from .drawing import ROW, Diagram

COLOURS = "Blue: attention, where tokens meet. Orange: the network, which reads each token alone."


def stack(diagram, below, row, sublayers, norm_first, *, of=None, length="T"):
    """Draws sublayers, one over the other, each with its residual connection and its norm.

    Args:
        diagram: where to.
        below: name of what the first one stands on.
        row: the row of that.
        sublayers: list of (name, text, accent, name of its AddNorm), named as in the module.
        norm_first: whether the norm comes before the sublayer.
        of: part of the module whose output goes into the first one.
        length: the letter of the number of tokens.

    Returns:
        The row and the name of the last thing.
    """
    last = below
    for sublayer, text, accent, norm in sublayers:
        parts = [(sublayer, text, accent)]
        if norm_first:
            parts.insert(0, (norm, "layer norm", None))
        bottom = last
        for part, words, colour in parts:
            first = part == parts[0][0]
            row += 1.0 if not first else 1.7 if bottom == below else 1.45
            diagram.box(part, (0, row), words, width=2.1, accent=colour)
            if first:
                given, at = (of, 0.3) if bottom == below else (None, 0.4)
                diagram.arrow(bottom, part, f"(B, {length}, h)", of=given, side="left", at=at)
            else:
                diagram.arrow(parts[0][0], part)
        row, last = row + 0.85, f"{norm}+"
        diagram.plus(last, (0, row)).arrow(sublayer, last).arrow(bottom, last, around=1.3)
        if not norm_first:
            row, last = row + 0.85, norm
            diagram.box(norm, (0, row), "layer norm", width=2.1).arrow(f"{norm}+", norm)
    return row, last


def _block(name, description, caption, sublayers, norm_first, length):
    """A stack of sublayers from the input ``X`` up, each with its residual connection and its norm.

    Args:
        name: of the block.
        description: of the diagram, but for where the norms are.
        caption: what follows the sentence on the norms; "": nothing.
        sublayers: list of (name, text, accent, name of its AddNorm), named as in the module.
        norm_first: whether the norm comes before the sublayer.
        length: the letter of the number of tokens.

    Returns:
        A `Diagram`.
    """
    where = "before the sublayer in each branch" if norm_first else "after each sum"
    norms = (
        "Pre-norm: a norm before each sublayer, a sum after it." if norm_first else "Post-norm: a norm after each sum."
    )
    diagram = Diagram(
        f"Transformer {name} block, {'pre' if norm_first else 'post'}-norm",
        f"From the bottom up: {description} A layer norm comes {where}.",
        " ".join(filter(None, (norms, caption, COLOURS))),
    )
    diagram.text("X", (0, 0))
    row, last = stack(diagram, "X", 0.0, sublayers, norm_first, of="input 0", length=length)
    diagram.text("output", (0, row + 1.5)).arrow(last, "output", f"(B, {length}, h)", of="", side="left", at=0.7)
    return diagram.frame(
        "L times", [norm for *_, norm in sublayers] + [name for name, *_ in sublayers] + [last], pad=(50, 24)
    )


def encoder_block(norm_first=False):
    """The encoder block: self-attention and feed-forward network, each with a residual connection and a layer norm.

    Args:
        norm_first: whether the norm comes before the sublayer in each branch (pre-norm); else after the sum.

    Returns:
        A `Diagram` of `d2lmini.TransformerEncoderBlock`.
    """
    sublayers = [
        ("attention", "multi-head attention", "blue", "addnorm1"),
        ("ffn", "feed-forward network", "orange", "addnorm2"),
    ]
    description = (
        "the tokens X go through multi-head self-attention, and X is added to what comes out; the sum goes through a "
        "feed-forward network and is added to what comes out of that."
    )
    return _block("encoder", description, "", sublayers, norm_first, "S")


def decoder_block(norm_first=False):
    """The decoder block: causal self-attention, attention to the encoder's output, and the feed-forward network.

    Args:
        norm_first: as for `encoder_block`.

    Returns:
        A `Diagram` of `d2lmini.TransformerDecoderBlock`.
    """
    sublayers = [
        ("attention1", "causal self-attention", "blue", "addnorm1"),
        ("attention2", "cross-attention", "blue", "addnorm2"),
        ("ffn", "feed-forward network", "orange", "addnorm3"),
    ]
    description = (
        "the tokens X of the target go through causal multi-head self-attention; cross-attention takes its queries "
        "from them, and its keys and values from the memory, the output of the encoder; a feed-forward network "
        "follows. Each of the three is added to what went in."
    )
    caption = "Cross-attention comes between the causal self-attention and the network."
    diagram = _block("decoder", description, caption, sublayers, norm_first, "T")
    row = -diagram.places["attention2"].y / ROW
    diagram.text("memory", (-2.65, row))
    return diagram.arrow("memory", "attention2", "(B, S, h)", leave="right", enter="left", at=0.4)


def transformer():
    """The whole model: embeddings and positions, L encoder blocks, L decoder blocks, scores for every word.

    Narrow enough for a phone.

    Returns:
        A `Diagram` of `d2lmini.Transformer`.
    """
    diagram = Diagram(
        "The Transformer",
        "Left, the encoder: source tokens are embedded, positions are added, L encoder blocks and a layer norm follow. "
        "Their output, the memory, goes into the cross-attention of every one of the L decoder blocks on the right. "
        "These take the target so far, embedded, with positions; a layer norm, a linear layer and a softmax at the end "
        "give, for every position, probabilities of the next token. In both kinds of blocks a residual connection "
        "leads around each attention and each network to a sum.",
        "B sentences of a batch, S source and T target tokens, h numbers a token, L blocks, V different tokens. "
        f"{COLOURS} Left out: the norms in the blocks.",
    )
    columns, width = {"encoder": -0.92, "decoder": 0.92}, 1.52
    for side, x in columns.items():
        tokens, length = ("source tokens", "S") if side == "encoder" else ("target so far", "T")
        diagram.text(f"{side} tokens", (x, 0), tokens)
        diagram.box(f"{side} embedding", (x, 1.15), "embedding × √h", width=width)
        given = "input 0" if side == "encoder" else "input 1"
        diagram.arrow(f"{side} tokens", f"{side} embedding", f"(B, {length})", of=given, side="left")
        diagram.box(f"{side} positions", (x, 2.3), "+ positions", width=width)
        diagram.arrow(f"{side} embedding", f"{side} positions", f"(B, {length}, h)", side="left")
    sublayers = [
        ("encoder attention", 3.9, "self-attention", "blue"),
        ("encoder ffn", 6.05, "feed-forward", "orange"),
        ("decoder attention", 3.9, "causal self-attention", "blue"),
        ("cross", 9.2, "cross-attention", "blue"),
        ("decoder ffn", 11.35, "feed-forward", "orange"),
    ]
    last = {side: f"{side} positions" for side in columns}
    for name, row, text, accent in sublayers:
        side = "encoder" if name.startswith("encoder") else "decoder"
        below, last[side] = last[side], f"{name} +"
        diagram.box(name, (columns[side], row), text, width=width, accent=accent)
        diagram.plus(last[side], (columns[side], row + 0.85))
        diagram.arrow(below, name).arrow(name, last[side])
        diagram.arrow(below, last[side], around=-0.78 if side == "encoder" else 0.78)
    x = columns["encoder"]
    diagram.box("encoder.norm", (x, 8.25), "layer norm", width=width).arrow(last["encoder"], "encoder.norm")
    diagram.arrow("encoder.norm", "cross", "memory (B, S, h)", enter="left", at=0.27)
    x = columns["decoder"]
    diagram.box("decoder.norm", (x, 13.55), "layer norm", width=width).arrow(last["decoder"], "decoder.norm")
    diagram.box("dense", (x, 14.7), "linear, softmax", width=width).arrow(
        "decoder.norm", "dense", "(B, T, h)", of="decoder.norm", side="left"
    )
    diagram.text("output", (x, 15.85), "probabilities").arrow("dense", "output", "(B, T, V)", of="", side="left")
    for side in columns:
        inside = [name for name, *_ in sublayers if (name.startswith("encoder")) == (side == "encoder")]
        diagram.frame("L times", [*inside, last[side]], pad=(16, 24))
    return diagram
