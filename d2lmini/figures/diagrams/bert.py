"""Diagrams of BERT: the stack with its two heads for pretraining, what it is trained on, and its heads for tasks.

Source: Devlin et al. 2019, section 3 and figures 1, 2 and 4; UDL section 12.6; D2L section 11.9.1.
"""

from .drawing import Diagram
from .transformer import stack

SUBLAYERS = [
    ("attention", "self-attention, both ways", "blue", "addnorm1"),
    ("ffn", "feed-forward network", "orange", "addnorm2"),
]


def bert():
    """BERT while it is pretrained: three embeddings, L blocks in which all tokens see all, and two heads.

    Returns:
        A `Diagram` of `d2lmini.BERTForPretraining` with ``next_sentence``, called with ``chosen``, M tokens.
    """
    diagram = Diagram(
        "BERT, while it is pretrained",
        "From the bottom up: the tokens, some of them masked, are embedded; an embedding of the segment, which tells "
        "the first text from the second, and one of the position are added, and a layer norm follows. Then L blocks: "
        "each adds self-attention, in which every token sees every other, then a feed-forward network to what goes "
        "in, with a layer norm after each sum. Two heads stand on top. Left, at the M chosen tokens alone: a linear "
        "layer, a GELU and a layer norm, then a linear layer that uses the matrix of the embeddings and scores every "
        "token of the vocabulary; the target is the token that stood there. Right, at the class token: a linear layer "
        "and a tanh, then two scores, of whether the second text follows the first.",
    )
    diagram.text("tokens", (0, 0), "tokens, some masked").box("bert.embedding", (0, 1.3), "embedding", width=2.1)
    diagram.arrow("tokens", "bert.embedding", "(B, T)", of="input 0", side="left")
    below = "bert.embedding"
    for row, name, words in ((2.35, "segment", "segments"), (3.15, "pos", "positions")):
        diagram.plus(f"{name} +", (0, row)).arrow(below, f"{name} +")
        diagram.box(f"bert.{name}_embedding", (2.0, row), words, width=1.4)
        diagram.arrow(f"bert.{name}_embedding", f"{name} +", leave="left", enter="right")
        below = f"{name} +"
    diagram.box("bert.norm", (0, 4.0), "layer norm", width=2.1).arrow(below, "bert.norm")
    row, last = stack(diagram, "bert.norm", 4.0, SUBLAYERS, False, of="bert.norm")
    inside = [name for name in diagram.places if name.removesuffix("+") in ("attention", "ffn", "addnorm1", "addnorm2")]
    diagram.frame("L times", inside, pad=(50, 24))
    left, right = -1.7, 1.7
    diagram.box("mlm.dense", (left, row + 2.2), "linear, GELU, layer norm", width=2.1)
    diagram.arrow(last, "mlm.dense", "(M, h)", of="mlm.dense", side="left")
    diagram.box("mlm.decoder", (left, row + 3.3), "linear", width=2.1).arrow("mlm.dense", "mlm.decoder")
    diagram.box("bert.pooler", (right, row + 2.2), "linear, tanh", width=2.1)
    diagram.arrow(last, "bert.pooler", "(B, h)", of="bert.pooler")
    diagram.box("nsp", (right, row + 3.3), "linear", width=2.1).arrow("bert.pooler", "nsp")
    for name, x, words, letters in (
        ("mlm", left, "what was it?", "(M, V)"),
        ("nsp", right, "does it follow?", "(B, 2)"),
    ):
        head = "mlm.decoder" if name == "mlm" else "nsp"
        diagram.box(f"{name} loss", (x, row + 4.7), "softmax, cross-entropy", width=2.1)
        diagram.arrow(head, f"{name} loss", letters, of=head, side="left" if name == "mlm" else "right")
        diagram.text(f"{name} target", (x, row + 5.8), words).arrow(
            f"{name} target", f"{name} loss", leave="bottom", enter="top"
        )
    diagram.text("tied", (-3.5, row / 2 + 2.0), "same matrix")
    diagram.arrow("bert.embedding", "tied", leave="left", enter="bottom")
    return diagram.arrow("tied", "mlm.decoder", leave="top", enter="left")


def masked_targets(words=("the", "ship", "sails", "at", "dawn"), hidden=(2,)):
    """What a masked language model is trained on: the places that were hidden, each with all that is not.

    Args:
        words: a short text.
        hidden: which of them are hidden, counted from 1.

    Returns:
        A `Diagram`.

    Raises:
        ValueError: nothing is hidden, or what is no place of the text.
    """
    words, hidden = [str(word) for word in words], sorted(set(hidden))
    if not hidden or not all(1 <= place <= len(words) for place in hidden):
        raise ValueError(f"hidden is {hidden}, expected one place or more from 1 to {len(words)}")
    given = ["[MASK]" if i in hidden else word for i, word in enumerate(words, start=1)]
    diagram = Diagram(
        "Targets of a masked language model",
        f"Below, the tokens that go in: {', '.join(given)}. Every place reads all of them. Only the hidden places have "
        f"a loss, and their targets are the words that stood there: {', '.join(words[i - 1] for i in hidden)}.",
        "Every place sees both sides, and only the hidden ones are examples.",
    )
    diagram.text("tokens in", (0.35, 0)).text("targets", (0.35, 4.4))
    for i, word in enumerate(given, start=1):
        x = 0.3 + 1.15 * i
        diagram.text(f"token {i}", (x, 0), word)
        diagram.box(f"place {i}", (x, 1.5), f"reads 1 to {len(words)}", width=1.1, accent="blue")
        diagram.arrow(f"token {i}", f"place {i}")
        if i in hidden:
            diagram.box(f"loss {i}", (x, 3.1), "loss", width=1.1, accent="orange")
            diagram.text(f"target {i}", (x, 4.4), words[i - 1]).arrow(f"place {i}", f"loss {i}")
            diagram.arrow(f"target {i}", f"loss {i}", leave="bottom", enter="top")
    return diagram.frame("both ways", [f"place {i}" for i in range(1, len(words) + 1)], pad=(12, 24))


def task_heads():
    """One body, four heads: a class of a text, of a pair of texts, of every token; the two ends of an answer.

    Returns:
        A `Diagram` of `d2lmini.TextHead`, `PairHead`, `TaggingHead` and `SpanHead` over a `BERT`.
    """
    diagram = Diagram(
        "Four heads over one body",
        "The same body reads one text, two texts, words, or a question and a passage. For a class of a text or of a "
        "pair the vector of the class token goes through one linear layer, and a softmax over the classes follows. "
        "For tagging the vector of every token does. For the answer to a question every token gets two scores, and two "
        "softmaxes over the places of the passage tell where the answer begins and where it ends.",
        "The linear layer is new for each task; the body is not.",
    )
    tasks = [  # what goes in, what the head is given and gives, over what the softmax is, what comes out
        ("text", "one text", "(B, h)", "(B, C)", "classes", "a class"),
        ("pair", "two texts", "(B, h)", "(B, C)", "classes", "a class"),
        ("tagging", "words", "(B, T, h)", "(B, T, C)", "classes", "a class each"),
        ("span", "question, passage", "(B, T, h)", "(B, T, 2)", "places", "first and last"),
    ]
    for i, (name, given, vectors, scores, over, outcome) in enumerate(tasks):
        x = 1.98 * i
        diagram.text(f"{name} in", (x, 0), given).box(f"{name} body", (x, 1.9), "BERT", width=1.9, accent="blue")
        diagram.box(f"{name} head", (x, 3.7), "linear", width=1.9, accent="orange")
        diagram.box(f"{name} softmax", (x, 5.1), f"softmax over {over}", width=1.9)
        diagram.text(f"{name} out", (x, 6.2), outcome).arrow(f"{name} in", f"{name} body", "(B, T)", at=0.25)
        diagram.arrow(f"{name} body", f"{name} head", vectors, at=0.6).arrow(f"{name} head", f"{name} softmax", scores)
        diagram.arrow(f"{name} softmax", f"{name} out")
    return diagram.frame("one body", [f"{name} body" for name, *_ in tasks], pad=(10, 24))
