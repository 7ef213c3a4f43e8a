"""Part a of own-09.1: `bigbird`."""

from functools import partial

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant


def bigbird(window, num_global, random_keys, causal=False):
    """The mask of BigBird's pattern.

    Args:
        window: w, at least 1.
        num_global: g, from 0 to T.
        random_keys: int64 (T, R), which keys each query has drawn; R may be 0.
        causal: whether later positions are hidden from every query.

    Returns:
        Boolean tensor (T, T), True = may attend.
    """
    ### BEGIN SOLUTION
    T = len(random_keys)
    positions = torch.arange(T, device=random_keys.device)
    offsets = positions - positions[:, None]  # (T, T): key less query
    mask = offsets.abs() < window
    mask[:num_global] = True
    mask[:, :num_global] = True
    mask = mask.scatter(1, random_keys, True)
    if causal:
        mask = mask & (offsets <= 0)  # at the end, so that it holds for all three parts
    return mask
    ### END SOLUTION


def by_the_package(window, num_global, random_keys, causal=False):
    T, on = len(random_keys), {"device": random_keys.device}
    mask = d2l.sliding_window_mask(T, window, causal=causal, **on) | d2l.global_mask(T, num_global, causal=causal, **on)
    drawn = torch.zeros(T, T, dtype=torch.bool, **on).scatter(1, random_keys, True)
    return mask | (drawn.tril() if causal else drawn)


def pair_by_pair(window, num_global, random_keys, causal=False):
    rows = []
    for t, drawn in enumerate(random_keys.tolist()):
        near = set(range(t - window + 1, t + window)) | set(range(num_global)) | set(drawn)
        rows.append([(s in near or t < num_global) and (s <= t or not causal) for s in range(len(random_keys))])
    return torch.tensor(rows, device=random_keys.device)


# mistakes


def _parts(window, num_global, random_keys):
    T = len(random_keys)
    offsets = torch.arange(T, device=random_keys.device) - torch.arange(T, device=random_keys.device)[:, None]
    tokens = torch.zeros_like(offsets, dtype=torch.bool)
    tokens[:num_global] = tokens[:, :num_global] = True
    drawn = torch.zeros_like(tokens).scatter(1, random_keys, True)
    return offsets, offsets.abs() < window, tokens, drawn


def read_ahead(window, num_global, random_keys, causal=False, which=()):
    """The window (0), global tokens (1) and random keys (2); ``which`` of them are not causal."""
    _, *parts = _parts(window, num_global, random_keys)
    window, tokens, drawn = (part.tril() if causal and i not in which else part for i, part in enumerate(parts))
    return window | tokens | drawn


def joined(window, num_global, random_keys, causal=False, join=None):
    offsets, *parts = _parts(window, num_global, random_keys)
    mask = join(*parts)
    return mask & (offsets <= 0) if causal else mask


def drawn_by_all(window, num_global, random_keys, causal=False):
    offsets, near, tokens, _ = _parts(window, num_global, random_keys)
    mask = near | tokens
    mask[:, random_keys.flatten()] = True
    return mask & (offsets <= 0) if causal else mask


def slices_from_below_zero(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    near = torch.zeros_like(near)
    for t in range(len(near)):
        near[t, t - window + 1 : t + window] = True
    mask = near | tokens | drawn
    return mask & (offsets <= 0) if causal else mask


def by_diagonals(window, num_global, random_keys, causal=False):
    """Diagonal by diagonal: past the last one there is none."""
    _, _, tokens, drawn = _parts(window, num_global, random_keys)
    mask = tokens | drawn
    for d in range(1 - window, window):
        mask = mask | torch.diag(torch.ones(len(mask) - abs(d)), d).bool()
    return mask.tril() if causal else mask


def verify_mask(t, answer):
    T, w, g, R = t.random.randint(13, 19), 3, 2, 4
    cases = {
        "a window alone": (w, 0, 0),
        "a window and global tokens": (w, g, 0),
        "a window and random keys": (w, 0, R),
        "all three": (w + 1, g, R),
        "a window of 1, a global token and a random key each": (1, 1, 1),
        "a window wider than the text": (T + 2, 0, R),
        "global tokens alone, as many as there are": (1, T, 0),
    }
    plain = [(name, False) for name in cases]
    for name, causal in [*plain, ("all three", True), *((name, True) for name in cases if name != "all three")]:
        window, num_global, drawn = cases[name]
        random_keys = t.rand(T, T).argsort(1)[:, :drawn]
        if drawn:
            random_keys[-1, 0], random_keys[-2, 0], random_keys[3, 0] = 4, T - 3, T - 1  # far, near, and later
            random_keys[5] = T - 2  # R times
        lists = random_keys.tolist()
        want = [
            [
                (abs(q - k) < window or q < num_global or k < num_global or k in lists[q]) and not (causal and k > q)
                for k in range(T)
            ]
            for q in range(T)
        ]
        inputs = (window, num_global, random_keys, True) if causal else (window, num_global, random_keys)
        t.same(t.call(answer, *inputs), torch.tensor(want), f"the {'causal ' if causal else ''}mask of {name}")


MUTANTS = [
    Mutant("wide", ("offsets.abs() < window", "offsets.abs() <= window"), "the window is one too wide on each side: a "
        "token itself and w - 1 others on either side"),
    Mutant("narrow", ("offsets.abs() < window", "2 * offsets.abs() < window"), "the window has w tokens in all: it "
        "should be w - 1 on *either* side, and the token itself"),
    Mutant("slice", slices_from_below_zero, "the first rows lack their window: a slice that begins below zero counts "
        "from the end, and is empty"),
    Mutant("not-itself", ("offsets.abs() < window", "(offsets.abs() < window) & (offsets != 0)"),
        "a token is hidden from itself: it belongs to its own window"),
    Mutant("back", partial(joined, join=lambda near, tokens, drawn: near.tril() | tokens | drawn),
        "the window looks back alone: both ways, unless `causal` is asked for"),
    Mutant("rows", ("    mask[:, :num_global] = True\n", ""), "global tokens attend to all, and not all attend to "
        "them: their columns are missing"),
    Mutant("columns", ("    mask[:num_global] = True\n", ""), "all attend to the global tokens, and these not to all: "
        "their rows are missing"),
    Mutant("each-other", ("    mask[:num_global] = True\n    mask[:, :num_global] = True\n",
        "    mask[:num_global, :num_global] = True\n"), "global tokens meet each other alone: they should have full "
        "rows and full columns"),
    Mutant("no-lots", ("mask = mask.scatter(1, random_keys, True)", "pass"), "the random keys are not there"),
    Mutant("for-all", drawn_by_all, "what one query drew is open to all queries: row t of `random_keys` is for query t "
        "alone (`mask[:, random_keys]` picks whole columns)"),
    Mutant("both-ways", partial(joined, join=lambda near, tokens, drawn: near | tokens | drawn | drawn.T), "random "
        "keys are joined both ways: that a query drew a key does not let that key's token attend to the query"),
    Mutant("turned", partial(joined, join=lambda near, tokens, drawn: near | tokens | drawn.T),
        "random keys are turned round: row t of `random_keys` names columns of row t"),
    Mutant("raised", by_diagonals),
    Mutant("raised", ("    mask = mask.scatter(1, random_keys, True)\n", "    mask = mask.scatter(1, random_keys[:, "
        ":1].expand(T, 1), True)\n")),
    Mutant("columns-of-g", ("    mask[:, :num_global] = True\n", "    mask[:, num_global - 1] = True\n"), "one global "
        "column is there: all tokens attend to each of the first g"),
    Mutant("last-global", ("    mask[:num_global] = True\n    mask[:, :num_global] = True\n",
        "    mask[T - num_global :] = True\n    mask[:, T - num_global :] = True\n"), "the rows and columns of the "
        "last g tokens are full: the first g are global"),
    Mutant("and", partial(joined, join=lambda near, tokens, drawn: near & tokens & drawn),
        "only pairs of all three parts at once are left: one of them is enough"),
    Mutant("future", ("if causal:", "if False:"), "later positions are not hidden"),
    Mutant("past", ("mask & (offsets <= 0)", "mask & (offsets >= 0)"), "earlier positions are hidden: it should be the "
        "later ones"),
    Mutant("present", ("mask & (offsets <= 0)", "mask & (offsets < 0)"), "a token is hidden from itself where `causal` "
        "is asked for: hide later positions alone"),
    Mutant("window-causal", partial(read_ahead, which=(1, 2)), "the window is causal, and the other parts read the "
        "future: hide it from all three"),
    Mutant("globals-ahead", partial(read_ahead, which=(1,)), "global tokens read later positions. In the next layer "
        "all others would read it from them"),
    Mutant("lots-ahead", partial(read_ahead, which=(2,)), "random keys later than their query are open: hide these"),
]  # fmt: skip


PART = Code(
    key="own-09.1a",
    prompt="Write `bigbird(window, num_global, random_keys, causal=False)`. In the causal version no query "
    "sees a later position, in any of the three ways.",
    hints=[
        "A table of offsets, key less query, gives the window: `positions - positions[:, None]`.",
        "Global tokens have a row *and* a column each.",
        "`mask.scatter(1, random_keys, True)` sets in row t the columns that row t of `random_keys` names.",
        "Join the three parts first. What hides the future comes last, and holds for all of them.",
    ],
    answer=bigbird,
    verify=verify_mask,
    alternatives=[by_the_package, pair_by_pair],
    min_checks=28,
    advice={
        "dtype": "A comparison gives booleans, as does `torch.zeros(T, T, dtype=torch.bool)`.",
        "values": "Print the mask of 6 tokens, and compare a row of a global token and one of another with the rules."
        " Window, first g tokens and drawn keys are joined by or.",
    },
    mutants=MUTANTS,
    explanation=r"""
The order matters: join first, hide last. A causal mask that is put on the window alone leaves a leak by the global
rows, and a test that looks at the last token only does not see it. A leak has a plain test (exercise own-04.1):
change a later token and see whether an earlier output moves.
""",
)
