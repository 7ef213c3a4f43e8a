"""Diagrams of chapter 14: T5 with a corrupted sentence on its way through it, and a layer of experts.

Source: Raffel et al. 2020, section 2.1 and figure 2; D2L figure 11.9.3; Fedus et al. 2022, figure 2, for the experts.
"""

from .drawing import Diagram


def t5(given=("I", "X", "this", "Y"), target=("X", "love", "Y", "red", "car", "Z")):
    """Encoder and decoder, text to text: an input with sentinels on the left, its target on the right.

    Args:
        given: words that the encoder reads.
        target: words that the decoder is to write.

    Returns:
        A `Diagram` of `d2lmini.T5`, which is called with inputs (B, S) and with targets shifted by one (B, T).

    Raises:
        ValueError: there is no word.
    """
    given, target = [str(word) for word in given], [str(word) for word in target]
    if not given or not target:
        raise ValueError(f"given is {given} and target {target}, expected a word or more of each")
    read = " ".join(["start", *target[:-1]])
    diagram = Diagram(
        "T5, an encoder and a decoder",
        f"Left, the encoder: the input, {' '.join(given)}, is embedded, and L blocks of self-attention and a "
        "feed-forward network read it both ways. A learned number for each distance is added to the scores. Their "
        "output, the memory, goes into the cross-attention of each of the L decoder blocks on the right. These take "
        f"{read}, the target shifted by one, embedded by the same matrix; their self-attention is causal, and has such "
        "numbers of its own. A linear layer scores every token of the vocabulary at every place; softmax and "
        f"cross-entropy compare that with the target, {' '.join(target)}.",
        "Residual connections and RMS norms are left out: the norms stand before each sublayer and after the last "
        "block.",
    )
    columns = {"encoder": -1.75, "decoder": 1.75}
    for side, words, shape in (("encoder", " ".join(given), "(B, S)"), ("decoder", read, "(B, T)")):
        x = columns[side]
        diagram.text(f"{side} tokens", (x, 0), words).box(f"{side} embedding", (x, 1.3), "embedding", width=1.8)
        source = f"input {int(side == 'decoder')}"
        diagram.arrow(f"{side} tokens", f"{side} embedding", shape, of=source, side="left")
    diagram.text("shared", (0, 1.3), "same matrix")
    x = columns["encoder"]
    diagram.box("encoder attention", (x, 3.0), "self-attention", width=1.8, accent="blue")
    diagram.box("encoder ffn", (x, 4.05), "feed-forward", width=1.8, accent="orange")
    diagram.arrow("encoder embedding", "encoder attention", "(B, S, h)", of="encoder.blks.0", side="left", at=0.3)
    diagram.arrow("encoder attention", "encoder ffn")
    diagram.text("encoder distances", (x - 1.85, 3.0), "distances")
    diagram.arrow("encoder distances", "encoder attention", leave="right", enter="left")
    x = columns["decoder"]
    diagram.box("decoder attention", (x, 3.0), "causal self-attention", width=1.8, accent="blue")
    diagram.box("cross", (x, 5.3), "cross-attention", width=1.8, accent="blue")
    diagram.box("decoder ffn", (x, 6.35), "feed-forward", width=1.8, accent="orange")
    diagram.arrow("decoder embedding", "decoder attention", "(B, T, h)", of="decoder.blks.0", side="left", at=0.3)
    diagram.arrow("decoder attention", "cross").arrow("cross", "decoder ffn")
    diagram.text("decoder distances", (x + 1.85, 3.0), "distances")
    diagram.arrow("decoder distances", "decoder attention", leave="left", enter="right")
    diagram.arrow("encoder ffn", "cross", "memory (B, S, h)", enter="left", at=0.4)
    diagram.box("dense", (x, 8.0), "linear", width=1.8).arrow("decoder ffn", "dense", side="left")
    diagram.box("loss", (x, 9.3), "softmax, cross-entropy", width=1.9)
    diagram.arrow("dense", "loss", "(B, T, V)", of="decoder.dense", side="left")
    diagram.text("target", (x, 10.6), " ".join(target)).arrow("target", "loss", leave="bottom", enter="top")
    diagram.frame("L times", ["encoder attention", "encoder ffn"], pad=(14, 24))
    return diagram.frame("L times", ["decoder attention", "decoder ffn"], pad=(14, 24))


def switch(num_experts=3):
    """A layer of experts: a router sends each token through one feed-forward network of several.

    Args:
        num_experts: how many are drawn, 2 to 4.

    Returns:
        A `Diagram` of `d2lmini.SwitchFFN`.

    Raises:
        ValueError: there are fewer than 2 or more than 4.
    """
    if not 2 <= num_experts <= 4:
        raise ValueError(f"num_experts is {num_experts}, expected 2 to 4: more do not fit")
    diagram = Diagram(
        "A feed-forward network of experts",
        f"A token goes into a router, a linear layer that gives a probability to each of {num_experts} experts, which "
        "are feed-forward networks. Only the likeliest one, here the first, gets the token; its output times its "
        "probability is the output of the layer. The others do nothing for this token.",
        "Orange: the expert that this token goes through. The next token may go through another.",
    )
    xs = [1.5 * (i - (num_experts - 1) / 2) for i in range(num_experts)]
    diagram.text("token", (0, 0)).box("router", (0, 1.2), "router, softmax", width=1.8, accent="blue")
    diagram.arrow("token", "router", "(h)", side="left")
    for i, x in enumerate(xs):
        diagram.box(f"experts.{i}", (x, 3.2), f"expert {i + 1}", width=1.3, accent=None if i else "orange")
    diagram.arrow("router", "experts.0")
    diagram.plus("times", (xs[0], 4.4), "×").arrow("experts.0", "times")
    diagram.text("gate", (xs[0] - 1.7, 4.4), "its probability").arrow("gate", "times", leave="right", enter="left")
    diagram.text("output", (xs[0], 5.6))
    return diagram.arrow("times", "output", "(h)", side="left")
