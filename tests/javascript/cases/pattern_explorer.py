"""The grid of a family of models: which pairs there are, which are seen, and how many."""

from d2lmini.figures import PatternExplorer
from d2lmini.masks import causal_mask


def cases():
    rows, columns = ["a", "b", "d"], ["c", "a"]
    figures = (
        PatternExplorer.of_families("I love this red car", 3),
        PatternExplorer({"cross": (rows, columns, causal_mask(3, 3)[:, 1:])}),
    )
    for figure in figures:
        tokens = figure.state["tokens"]
        for family in figure.state["families"]:
            name, blocks = family["name"], family["blocks"]
            pairs = {(t, s) for block in blocks for t in block["rows"] for s in block["columns"]}
            grid = [
                [key in figure.sees(name, query) if (t, s) in pairs else None for s, key in enumerate(tokens)]
                for t, query in enumerate(tokens)
            ]
            axes = {side: sorted({i for block in blocks for i in block[side]}) for side in ("rows", "columns")}
            found = {"grid": grid, **axes, "counts": list(figure.pairs(name).values())}
            yield "joined", [blocks, len(tokens)], found
