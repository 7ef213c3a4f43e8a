"""Diagram of the way from a text to the rows that a Transformer reads.

Source: UDL sections 12.5.1 and 12.5.2; D2L section 11.7 for what comes after.
"""

from .drawing import Diagram


def text_to_embeddings():
    """From a text to its embeddings: words, tokens, ids, rows of a table.

    Returns:
        A `Diagram` of what a tokenizer and an embedding do, for a module with a part called ``embedding``.
    """
    diagram = Diagram(
        "From text to embeddings",
        "From the bottom up: a text is cut into words; inside of each word pairs of neighbours are merged into "
        "tokens, in the order in which these merges were learned; each token is looked up in the vocabulary, which "
        "gives its id; and each id takes its row out of the embedding table, which has a row for each of the V "
        "tokens. The merges and the vocabulary are fixed before training; the table is learned with the model.",
        "Blue is learned by counting, once, before the model is trained; orange is learned with the model, by "
        "gradients.",
    )
    diagram.text("text", (0, 0), "“to see the toast ”")
    steps = (  # name, words, accent, what comes in from below, what it is given from the side
        ("words", "cut into words", None, "", None),
        ("tokens", "merge pairs", "blue", "to▁ see▁ the▁ toast▁", "merges, in order"),
        ("ids", "look up ids", "blue", "to▁ see▁ the▁ to as t▁", "V tokens"),
        ("embedding", "take rows", "orange", "(B, T)", "table (V, h)"),
    )
    below = "text"
    for row, (name, words, accent, incoming, given) in enumerate(steps, 1):
        diagram.box(name, (0, 1.4 * row), words, width=1.7, accent=accent)
        diagram.arrow(below, name, incoming, of="input 0" if name == "embedding" else None)
        if given:
            diagram.text(given, (-1.9, 1.4 * row)).arrow(given, name, leave="right", enter="left")
        below = name
    diagram.text("X", (0, 7.1), "X, to positions and blocks")
    return diagram.arrow("embedding", "X", "(B, T, h)", of="embedding")
