"""Diagram of chapter 04: a recurrent encoder-decoder, with one vector and with attention.

Sources: D2L sections 10.7 and 11.4; Cho et al. 2014; Bahdanau et al. 2015.
"""

from .drawing import Diagram


def sequence_to_sequence():
    """The encoder-decoder with one context vector beside the one that attends to all outputs of the encoder.

    Returns:
        A `Diagram` of a module with the parts ``encoder``, ``plain`` and ``attention`` (a `Seq2SeqDecoder` and a
        `Seq2SeqAttentionDecoder`), called with source and target tokens.
    """
    diagram = Diagram(
        "an encoder-decoder without and with attention",
        "Left, S source words of each of B sentences go through the encoder, a GRU. Only its final state, one "
        "vector of h numbers, goes on to the decoder, which reads the target words, too, shifted by one place, and "
        "gives logits of all V words for each of T places. Right, all outputs of the encoder, one for each source "
        "word, go to the attention as keys and values. Its query is the state that the decoder had after the step "
        "before; what it gives back, the context, is made anew for each target word.",
        "Blue: what reads the source. Orange: what writes the target. On both sides the decoder also starts from the "
        "encoder's final state (right, not drawn). Shapes are those of the package, time first.",
    )
    diagram.text("source", (0, 0)).box("encoder", (0, 1.4), "encoder: GRU", accent="blue")
    diagram.arrow("source", "encoder", "(B, S)", of="input 0")
    diagram.box("plain", (0, 5.2), "decoder: GRU", accent="orange").text("logits", (0, 6.8))
    diagram.arrow("encoder", "plain", "(B, h)", at=0.45).text("target, shifted", (1.5, 3.8))
    diagram.arrow("target, shifted", "plain", enter="right").arrow("plain", "logits", "(B, T, V)", of="plain")
    diagram.text("source of the right", (4.2, 0), "source")
    diagram.box("encoder of the right", (4.2, 1.4), "encoder: GRU", accent="blue")
    diagram.arrow("source of the right", "encoder of the right", "(B, S)", of="input 0")
    diagram.box("attention.attention", (4.2, 3.2), "attention", accent="blue")
    diagram.arrow("encoder of the right", "attention.attention", "(S, B, h)", of="encoder")
    diagram.box("attention", (4.2, 5.2), "decoder: GRU", accent="orange").text("scores", (4.2, 6.8), "logits")
    diagram.arrow("attention.attention", "attention", "(B, 1, h)", of="attention.attention", at=0.4)
    diagram.text("query", (2.9, 4.2), "query").arrow("attention", "query", leave="left", enter="top")
    diagram.arrow("query", "attention.attention", leave="bottom", enter="left")
    diagram.text("target of the right", (5.7, 3.8), "target, shifted")
    diagram.arrow("target of the right", "attention", enter="right")
    diagram.arrow("attention", "scores", "(B, T, V)", of="attention")
    diagram.frame("one vector", ["source", "plain", "target, shifted", "logits"], pad=(16, 18))
    return diagram.frame("attention", ["source of the right", "scores", "query", "target of the right"], pad=(16, 18))
