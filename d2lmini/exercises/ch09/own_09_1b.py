"""Part b of own-09.1: `count_pairs`."""

import torch

from d2lmini.exercises.ch09.own_09_1a import by_the_package
from d2lmini.exercises.engine import Count, Mutant


def count_pairs(num_tokens, window, num_global):
    """How many pairs a window and global tokens have, without random keys.

    Args:
        num_tokens: T, at least 1.
        window: w, at least 1; it may be longer than the text.
        num_global: g, from 0 to T.

    Returns:
        dict with ``both_ways`` and ``causal``: integers.
    """
    ### BEGIN SOLUTION
    T, g = num_tokens, num_global
    n = T - g  # the others, among themselves, have a window
    w = min(window, n)  # more there are not
    both_ways = g * (2 * T - g) + n * (2 * w - 1) - w * (w - 1)
    causal = g * T - g * (g - 1) // 2 + n * w - w * (w - 1) // 2
    return {"both_ways": both_ways, "causal": causal}
    ### END SOLUTION


def distance_by_distance(num_tokens, window, num_global):
    others = num_tokens - num_global
    later = sum(others - d for d in range(1, min(window, others)))  # pairs with a later key, for each distance
    with_global = num_global * others + num_global * (num_global + 1) // 2
    both = others + 2 * later + 2 * num_global * others + num_global**2
    return {"both_ways": both, "causal": others + later + with_global}


def window_alone(num_tokens, window, num_global):
    return distance_by_distance(num_tokens, window, 0)


def globals_alone(num_tokens, window, num_global):
    T, g = num_tokens, num_global
    return {"both_ways": g * (2 * T - g), "causal": g * T - g * (g - 1) // 2}


CONFIGURATIONS = (17, 3, 2), (1, 1, 0), (12, 5, 0), (9, 40, 3), (11, 2, 11), (1_000_000, 257, 5)


def _counted(T, window, num_global):
    """Row by row, from where the window of a query begins and ends."""
    query = torch.arange(T)
    first, last = (query - window + 1).clamp(min=0), (query + window - 1).clamp(max=T - 1)
    columns = first.clamp(max=num_global)  # global keys before the window
    both = last - first + 1 + columns
    both[:num_global] = T
    causal = query - first + 1 + columns
    causal[:num_global] = query[:num_global] + 1
    return int(both.sum()), int(causal.sum())


def verify_pairs(t, answer):
    for T, window, num_global in CONFIGURATIONS:
        wants = _counted(T, window, num_global)
        if T < 100:  # as the package has it
            masks = [by_the_package(window, num_global, torch.zeros(T, 0).long(), causal) for causal in (False, True)]
            assert wants == tuple(int(mask.sum()) for mask in masks)
        case = f"for T={T}, window={window}, {num_global} global tokens"
        got = t.fields(t.call(answer, T, window, num_global), "both_ways", "causal")
        for name, value, want in zip(("both_ways", "causal"), got, wants, strict=True):
            t.number(value, want, f"{name} {case}", rtol=1e-12)
            whole = isinstance(value, int) or (isinstance(value, torch.Tensor) and not value.is_floating_point())
            t.that(
                whole,
                "type",
                f"{name} {case} is a {type(value).__name__}, expected an int: `//` halves without leaving them",
            )


MUTANTS = [
    Mutant("twice", ("g * (2 * T - g)", "g * 2 * T"), "pairs of two global tokens count twice, in their rows and in "
        "their columns"),
    Mutant("window-alone", window_alone, "the window alone is counted: the global tokens have full rows and columns"),
    Mutant("globals-alone", globals_alone, "the pairs of the global tokens alone are counted: the others have a "
        "window"),
    Mutant("edges", ("(2 * w - 1) - w * (w - 1)", "(2 * w - 1)"), "each token is taken to have a full window: at both "
        "ends a part of it does not exist"),
    Mutant("one-edge", ("(2 * w - 1) - w * (w - 1)", "(2 * w - 1) - w * (w - 1) // 2"), "the window lacks something at "
        "*both* ends of the text, w (w - 1) / 2 at each"),
    Mutant("overlap", ("n = T - g ", "n = T "), "pairs that are in the window and have a global token count twice: "
        "take the window of the other T - g tokens"),
    Mutant("wide", ("min(window, n)", "min(window, T)"), "the window is wider than what is left beside the global "
        "tokens: among T - g tokens it has no more than T - g"),
    Mutant("wide", ("min(window, n)", "window"), "the window is wider than the text: it has no more than the tokens "
        "that there are"),
    Mutant("half", ("causal = g * T - g * (g - 1) // 2 + n * w - w * (w - 1) // 2", "causal = both_ways // 2"),
        "this is half of the pairs of both ways: pairs of a token with itself all stay"),
    Mutant("columns", ("g * T - g * (g - 1) // 2", "g * T"), "the global columns are counted in full: a global token "
        "is hidden from global tokens before it"),
    Mutant("causal-edges", ("n * w - w * (w - 1) // 2", "n * w"), "each token is taken to have w keys: the first ones "
        "have fewer"),
    Mutant("type", ("w * (w - 1)\n", "2 * w * (w - 1) / 2\n")),  # right, as floats
    Mutant("type", ("w * (w - 1) // 2", "w * (w - 1) / 2")),
    Mutant("no-overlap", ("g * (2 * T - g)", "g * 2 * n"), "pairs of two global tokens are missing: g rows of T and g "
        "columns of T have g squared entries in common, which count once"),
    Mutant("rows-alone", ("g * (2 * T - g)", "g * T"), "the global tokens have their rows alone: all tokens attend to "
        "them, too, which is a column for each"),
    Mutant("one-way", ("n * (2 * w - 1) - w * (w - 1)\n", "n * w - w * (w - 1) // 2\n"), "the window looks back alone: "
        "it has w - 1 tokens on *either* side and the token itself"),
    Mutant("w-in-all", ("n * (2 * w - 1) - w * (w - 1)\n",
        "n * (2 * ((w + 1) // 2) - 1) - ((w + 1) // 2) * ((w + 1) // 2 - 1)\n"), "the window has w tokens in all: it "
        "should be w - 1 on *either* side, and the token itself"),
    Mutant("wider", ("n * (2 * w - 1) - w * (w - 1)\n", "n * (2 * w + 1) - w * (w + 1)\n"), "the window has w tokens "
        "on either side: it has w - 1 there, and the token itself"),
    Mutant("edges-wide", ("(2 * w - 1) - w * (w - 1)\n", "(2 * w - 1) - w * (w + 1)\n"), "too much is taken off at the "
        "ends: 1 + 2 + ... + (w - 1) lack at each, w (w - 1) / 2"),
    Mutant("both-masks", ("causal = g * T - g * (g - 1) // 2", "causal = g * (2 * T - g)"), "the global tokens are "
        "counted as in both directions: later keys are hidden from them as well"),
    Mutant("rows-full", ("g * T - g * (g - 1) // 2", "g * (g + 1) // 2"), "the global columns are missing: every later "
        "token attends to all g of them"),
    Mutant("causal-overlap", ("g * T - g * (g - 1) // 2 + n * w", "g * T - g * (g - 1) // 2 + T * w"), "the window is "
        "that of all T tokens: pairs with a global key are counted already, so take the window of the other T - g"),
    Mutant("causal-window", ("causal = g * T - g * (g - 1) // 2 + ", "causal = "), "the global tokens are missing: "
        "each token attends to all of them that are not later"),
    Mutant("causal-edges", ("n * w - w * (w - 1) // 2", "n * w - w * (w + 1) // 2"), "too much is taken off at the "
        "beginning: the first token lacks w - 1 keys, the next w - 2, and so on to 1"),
    Mutant("half", ("causal = g * T - g * (g - 1) // 2 + n * w - w * (w - 1) // 2", "causal = (both_ways - T) // 2"),
        "these are the pairs with an *earlier* key: a token's pair with itself stays as well"),
    Mutant("no-limit", ("w * (w - 1) // 2\n", "window * (window - 1) // 2\n"), "at the beginning of a text that is "
        "shorter than the window there are fewer keys to lack: take the smaller of window and T - g"),
    Mutant("itself", ("n * (2 * w - 1)", "n * 2 * w"), "a token's pair with itself is counted twice: the window has 2 "
        "w - 1 tokens"),
]  # fmt: skip


PART = Count(
    key="own-09.1b",
    prompt="Write `count_pairs(num_tokens, window, num_global)` for the pattern without random keys. A pair "
    "that two parts have counts once. One of the configurations of the check has a million tokens, whose mask "
    "fits into no memory: it must be a formula.",
    hints=[
        "First the pairs with a global token, as query or as key. g rows and g columns of T have g squared "
        "entries in common.",
        "What is left is a window among T - g tokens. So nothing is counted twice.",
        "A window among n tokens: n pairs at distance 0, n - 1 at distance 1, ..., n - (w - 1), each "
        "distance but 0 in both directions.",
        "With global tokens first, their causal rows lie inside of their columns. And what if the window is "
        "longer than what is left?",
    ],
    answer=count_pairs,
    verify=verify_pairs,
    alternatives=[distance_by_distance],
    min_checks=20,
    advice={
        "raised": "If memory was short: a million tokens have a mask of 10^12 entries. Count without one.",
        "values": "Draw the mask of 5 tokens with a window of 2 and one global token, and count its pairs row by row. "
        "If the million tokens alone are wrong: floats round large counts, so stay with integers.",
    },
    mutants=MUTANTS,
    explanation=r"""
With n = T - g and w at most n,

$$g\,(2T - g) + n\,(2w - 1) - w\,(w - 1) \qquad\text{and}\qquad gT - \tfrac{g(g-1)}{2} + nw - \tfrac{w(w-1)}{2} .$$

Both grow as T does, with 2 (g + w) - 1 pairs for each token or g + w. (The second is half of the sum of the first and
T: all but the pairs of a token with itself have a mirror image.) BigBird adds R for each query, less what was there.
""",
)
