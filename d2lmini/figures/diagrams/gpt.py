"""Diagrams of language models: the decoder-only stack, what it is trained on, and the loop that generates.

Source: Radford et al. 2018 and 2019 for the two places of the norms; UDL section 12.7; D2L section 11.9.3.
"""

from itertools import pairwise

from .drawing import Diagram
from .transformer import stack


def gpt(norm_first=True, tied=True):
    """A decoder-only Transformer: embeddings and positions, L causal blocks, scores of the next token at every place.

    Args:
        norm_first: whether the norms stand before the sublayers, with one more on top (GPT-2), or after the sums
            (GPT-1).
        tied: whether the last layer uses the matrix of the embeddings.

    Returns:
        A `Diagram` of a module with the parts ``embedding``, ``pos_embedding``, ``blks`` (blocks such as
        `d2lmini.TransformerEncoderBlock`), ``norm`` where ``norm_first``, and ``dense``.
    """
    where = "before each of the two, and once more after the last block" if norm_first else "after each sum"
    diagram = Diagram(
        f"GPT, {'pre' if norm_first else 'post'}-norm",
        "From the bottom up: the tokens are embedded, an embedding of their positions is added, and L blocks follow. "
        "Each block adds causal self-attention, then a feed-forward network to what goes in. A layer norm stands "
        f"{where}. A linear layer{', which uses the matrix of the embeddings,' if tied else ''} scores every token of "
        "the vocabulary at every place; a softmax and the cross-entropy compare them with the targets, which are the "
        "tokens shifted by one.",
    )
    diagram.text("tokens", (0, 0)).box("embedding", (0, 1.3), width=2.1)
    diagram.arrow("tokens", "embedding", "(B, T)", of="input 0", side="left")
    diagram.plus("+", (0, 2.4)).arrow("embedding", "+")
    diagram.box("pos_embedding", (2.0, 2.4), "positions", width=1.4)
    diagram.arrow("pos_embedding", "+", leave="left", enter="right")
    sublayers = [
        ("attention", "causal self-attention", "blue", "addnorm1"),
        ("ffn", "feed-forward network", "orange", "addnorm2"),
    ]
    row, last = stack(diagram, "+", 2.4, sublayers, norm_first, of="embedding")
    inside = [name for name in diagram.places if name.removesuffix("+") in ("attention", "ffn", "addnorm1", "addnorm2")]
    diagram.frame("L times", inside, pad=(50, 24))
    if norm_first:
        diagram.box("norm", (0, row + 1.7), "layer norm", width=2.1)
        diagram.arrow(last, "norm", "(B, T, h)", of="blks.0", side="left", at=0.75)
        row, last = row + 1.7, "norm"
    gap = 1.1 if norm_first else 1.7
    diagram.box("dense", (0, row + gap), "linear", width=2.1)
    if norm_first:
        diagram.arrow(last, "dense")
    else:
        diagram.arrow(last, "dense", "(B, T, h)", of="blks.0", side="left", at=0.75)
    row += gap
    diagram.box("loss", (0, row + 1.4), "softmax, cross-entropy", width=2.1)
    diagram.arrow("dense", "loss", "(B, T, V)", of="dense", side="left")
    diagram.text("targets", (2.7, row + 1.4), "tokens, shifted by one")
    diagram.arrow("targets", "loss", leave="left", enter="right")
    if tied:
        diagram.text("tied", (-2.4, row / 2 + 0.65), "same matrix")
        diagram.arrow("embedding", "tied", leave="left", enter="bottom")
        diagram.arrow("tied", "dense", leave="top", enter="left")
    return diagram


def shifted_targets(words=("the", "ship", "sails", "at", "dawn")):
    """What a causal language model is trained on: at every position the next token, all of them in one pass.

    Args:
        words: a short text, two words or more; the last one is a target only.

    Returns:
        A `Diagram`.

    Raises:
        ValueError: there are fewer than two words.
    """
    words = [str(word) for word in words]
    if len(words) < 2:
        raise ValueError(f"words are {words}, expected two or more: of one, nothing is left to predict")
    diagram = Diagram(
        "Targets shifted by one",
        f"Below, the tokens that go in: {', '.join(words[:-1])}. Above, the targets, each the token that comes next: "
        f"{', '.join(words[1:])}. One pass of the model serves all positions, because the causal mask lets each one "
        "read only the tokens up to its own.",
        "Every position is an example: a text of T + 1 tokens gives T of them in one pass.",
    )
    diagram.text("tokens in", (0.35, 0)).text("targets", (0.35, 4.4))
    for i, (given, target) in enumerate(pairwise(words), start=1):
        x = 0.3 + 1.15 * i
        diagram.text(f"token {i}", (x, 0), given)
        diagram.box(f"place {i}", (x, 1.5), f"reads {f'1 to {i}' if i > 1 else 1}", width=1.1, accent="blue")
        diagram.box(f"loss {i}", (x, 3.1), "loss", width=1.1, accent="orange").text(f"target {i}", (x, 4.4), target)
        diagram.arrow(f"token {i}", f"place {i}").arrow(f"place {i}", f"loss {i}")
        diagram.arrow(f"target {i}", f"loss {i}", leave="bottom", enter="top")
    return diagram.frame("causal", [f"place {i}" for i in range(1, len(words))], pad=(12, 24))


def decoding_loop():
    """How text is generated: from the scores of the next token to a draw, which goes in again.

    Returns:
        A `Diagram`.
    """
    diagram = Diagram(
        "The decoding loop",
        "The prompt goes into the model, which scores every token of the vocabulary as the next one. The scores are "
        "divided by the temperature, then only the k greatest are kept, and of these the likeliest with mass p; a "
        "softmax makes probabilities, and one token is drawn. It is appended and goes into the model again, alone: "
        "the keys and values of all tokens before it are in the cache, which grows by one. The loop ends with the "
        "token that ends a text, or when the text is long enough.",
    )
    diagram.text("prompt", (0, 0)).box("new", (0, 1.2), "new tokens", width=1.9).arrow("prompt", "new")
    diagram.box("model", (0, 2.6), width=1.9, accent="blue").arrow("new", "model", "(B, n)", side="left")
    diagram.box("cache", (2.5, 2.6), width=1.4)
    diagram.arrow("model", "cache", "keys, values", leave="right", enter="left")
    diagram.arrow("cache", "model", leave="left", enter="right")  # there and back: a line with two heads
    steps = [("temperature", "divide by temperature"), ("top k", "keep the k greatest"), ("top p", "keep mass p")]
    below, row = "model", 4.0
    for name, text in [*steps, ("softmax", "softmax"), ("draw", "draw one token")]:
        diagram.box(name, (0, row), text, width=1.9, accent="orange" if name == "draw" else None)
        diagram.arrow(below, name, "(B, V)" if below == "model" else "", side="left")
        below, row = name, row + 0.95
    diagram.text("append", (-2.0, row / 2 + 0.3))
    diagram.arrow("draw", "append", leave="left", enter="top").arrow("append", "new", leave="bottom", enter="left")
    return diagram.text("output", (0, row + 0.3), "text, when it ends").arrow("draw", "output")
