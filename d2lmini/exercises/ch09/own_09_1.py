r"""A pattern of three parts: who meets whom, at what price, after how many layers

BigBird leaves most pairs of tokens out. A query attends to its neighbours, to a few *global* tokens, and to a few keys
that were drawn for it by lot. Write its mask, count its pairs, and find out how many layers it takes until
everything has met everything.

A mask is a boolean tensor (T, T), a row a query and a column a key: True = may attend.

- Window w: a token attends to itself and to the w - 1 tokens on either side, as far as they exist.
- The first g tokens are global: they attend to all tokens, and all tokens attend to them.
- Random keys: row t of an integer tensor (T, R) says which keys query t has drawn. Some may be in the window already.
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Count, Exercise, Mutant, Option


def bigbird(window, num_global, random_keys, causal=False):
    """The mask of BigBird's pattern.

    Args:
        window: w, at least 1.
        num_global: g, from 0 to T.
        random_keys: integers (T, R), which keys each query has drawn; R may be 0.
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


def window_alone_is_causal(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    return (near & (offsets <= 0) if causal else near) | tokens | drawn


def globals_read_ahead(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    rest = near | drawn
    return (rest & (offsets <= 0) if causal else rest) | tokens


def random_keys_read_ahead(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    rest = near | tokens
    return (rest & (offsets <= 0) if causal else rest) | drawn


def looks_back_always(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    mask = (near & (offsets <= 0)) | tokens | drawn
    return mask & (offsets <= 0) if causal else mask


def drawn_by_all(window, num_global, random_keys, causal=False):
    offsets, near, tokens, _ = _parts(window, num_global, random_keys)
    mask = near | tokens
    mask[:, random_keys.flatten()] = True
    return mask & (offsets <= 0) if causal else mask


def drawn_both_ways(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    mask = near | tokens | drawn | drawn.T
    return mask & (offsets <= 0) if causal else mask


def drawn_turned_round(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    mask = near | tokens | drawn.T
    return mask & (offsets <= 0) if causal else mask


def slices_from_below_zero(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    near = torch.zeros_like(near)
    for t in range(len(near)):
        near[t, t - window + 1 : t + window] = True
    mask = near | tokens | drawn
    return mask & (offsets <= 0) if causal else mask


def all_three_at_once(window, num_global, random_keys, causal=False):
    offsets, near, tokens, drawn = _parts(window, num_global, random_keys)
    mask = near & tokens & drawn
    return mask & (offsets <= 0) if causal else mask


def verify_mask(t, answer):
    T, w, g, R = t.random.randint(13, 19), 3, 2, t.random.choice([1, 4])
    cases = {
        "a window alone": (w, 0, 0),
        "a window and global tokens": (w, g, 0),
        "a window and random keys": (w, 0, R),
        "all three": (w + 1, g, R),
        "a window of 1, global tokens and random keys": (1, 1, R),
    }
    plain = [(name, False) for name in cases]
    for name, causal in [*plain, ("all three", True), *((name, True) for name in cases if name != "all three")]:
        window, num_global, drawn = cases[name]
        random_keys = t.rand(T, T).argsort(1)[:, :drawn]
        if drawn:
            random_keys[-1, 0], random_keys[-2, 0], random_keys[3, 0] = 4, T - 3, T - 1  # far, near, and later
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


CONFIGURATIONS = (17, 3, 2), (12, 5, 0), (9, 40, 3), (11, 2, 11), (1_000_000, 257, 5)


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


def layers_to_meet(mask):
    """After how many layers everything has met everything.

    Args:
        mask: boolean (T, T), a pattern that all layers have. Each layer has a residual connection: a token keeps what
            it has, whether or not it attends to itself.

    Returns:
        The smallest number n of layers after which the output of every token depends on the input of every token (0
        for a single token); -1 where no number is enough.
    """
    ### BEGIN SOLUTION
    step = mask.float()
    met = torch.eye(len(mask), device=mask.device)  # (T, T): what has reached whom
    n = 0
    while not met.all():
        more = ((met + step @ met) > 0).float()  # 0 and 1 again, so that nothing grows
        if torch.equal(more, met):
            return -1  # one more layer brings nothing, nor will any other
        met, n = more, n + 1
    return n
    ### END SOLUTION


def by_the_package_too(mask):
    layers = d2l.layers_to_reach(mask, torch.ones_like(mask))
    return -1 if layers is None else layers


def by_search(mask):
    keys, most = [set(row.nonzero()[:, 0].tolist()) for row in mask.cpu()], 0
    for start in range(len(keys)):
        seen, edge, n = {start}, {start}, 0
        while len(seen) < len(keys):
            edge = set().union(*(keys[t] for t in edge)) - seen
            if not edge:
                return -1
            seen, n = seen | edge, n + 1
        most = max(most, n)
    return most


# mistakes


def without_residuals(mask):
    met = torch.eye(len(mask), device=mask.device) > 0
    for n in range(2 * len(mask)):
        if met.all():
            return n
        met = mask.float() @ met.float() > 0
    return -1


def squared_each_time(mask):
    met, n = mask | (torch.eye(len(mask), device=mask.device) > 0), 1
    if len(mask) == 1:
        return 0
    while not met.all():
        more = met.float() @ met.float() > 0
        if torch.equal(more, met):
            return -1
        met, n = more, n + 1
    return n


def as_many_as_it_tried(mask):
    met = torch.eye(len(mask), device=mask.device) > 0
    for n in range(len(mask)):
        if met.all():
            return n
        met = met | (mask.float() @ met.float() > 0)
    return len(mask)


def both_directions(mask):
    return by_search(mask | mask.T)


def of_the_last_token(mask):
    met = torch.eye(len(mask), device=mask.device) > 0
    for n in range(len(mask)):
        if met[-1].all():
            return n
        met = met | (mask.float() @ met.float() > 0)
    return -1


def of_the_first_token(mask):
    met = torch.eye(len(mask), device=mask.device) > 0
    for n in range(len(mask)):
        if met[0].all():
            return n
        met = met | (mask.float() @ met.float() > 0)
    return -1


def somebody_has_met_all(mask):
    met = torch.eye(len(mask), device=mask.device) > 0
    for n in range(len(mask)):
        if met.all(1).any():
            return n
        met = met | (mask.float() @ met.float() > 0)
    return -1


def from_the_reach(mask):
    """The length over the widest reach: right for a window."""
    T = len(mask)
    reach = max((abs(q - k) for q, k in mask.nonzero().tolist()), default=0)
    return -(-(T - 1) // reach) if reach else (0 if T == 1 else -1)


def _shortest(mask):
    """Floyd and Warshall."""
    T = len(mask)
    far = [[0 if q == k else 1 if mask[q][k] else T for k in range(T)] for q in range(T)]
    for via in range(T):
        for q in range(T):
            for k in range(T):
                far[q][k] = min(far[q][k], far[q][via] + far[via][k])
    longest = max(map(max, far))
    return longest if longest < T else -1


def verify_layers(t, answer):
    T = 2 * t.random.randint(6, 8) + 1
    positions = torch.arange(T)
    offsets = positions - positions[:, None]
    ring = (offsets == -1) | (offsets == T - 1)  # each hears its neighbour alone
    hub = (offsets.abs() < 2) | (positions == 0) | (positions == 0)[:, None]
    tells = (offsets == 1) | (positions == 0) | (positions[:, None] == T - 1)
    first_reads = offsets.abs() < 2
    first_reads[0] = True
    lots = (t.rand(T, T) < 1.6 / T).cpu() | (offsets == -1) | (offsets == T - 1)
    order = torch.tensor(t.random.sample(range(T), T))
    for name, mask in (
        ("a window of 2", offsets.abs() < 2),
        ("a window of 4", offsets.abs() < 4),
        ("a ring in which each attends to the one before it", ring),
        ("a window and a global token", hub),
        ("a window, where the first token reads all", first_reads),
        ("a window, where the last token reads all", first_reads.flip(0, 1)),
        ("odd tokens that attend to even ones, and even to odd", offsets % 2 == 1),
        ("a ring in another order", ring[order][:, order]),
        ("everybody hears the first token, and it the last", tells),
        ("a ring and random keys", lots[order][:, order]),
        ("a window with gaps, so that even and odd never meet", (offsets.abs() < 6) & (offsets % 2 == 0)),
        ("a causal window", (offsets <= 0) & (offsets > -3)),
        ("full attention", offsets > -T),
        ("a single token", torch.zeros(1, 1, dtype=torch.bool)),
    ):
        want = _shortest(mask.tolist())
        t.number(t.call(answer, mask.to(t.device)), want, f"the number of layers of {name}")


MUTANTS_A = [
    Mutant("wide", ("offsets.abs() < window", "offsets.abs() <= window"), "the window is one too wide on each side: a "
        "token itself and w - 1 others on either side"),
    Mutant("narrow", ("offsets.abs() < window", "2 * offsets.abs() < window"), "the window has w tokens in all: it "
        "should be w - 1 on *either* side, and the token itself"),
    Mutant("slice", slices_from_below_zero, "the first rows lack their window: a slice that begins below zero counts "
        "from the end, and is empty"),
    Mutant("not-itself", ("offsets.abs() < window", "(offsets.abs() < window) & (offsets != 0)"),
        "a token is hidden from itself: it belongs to its own window"),
    Mutant("back", looks_back_always, "the window looks back alone: both ways, unless `causal` is asked for"),
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
    Mutant("both-ways", drawn_both_ways, "random keys are joined both ways: that a query drew a key does not let that "
        "key's token attend to the query"),
    Mutant("turned", drawn_turned_round, "random keys are turned round: row t of `random_keys` names columns of row t"),
    Mutant("and", all_three_at_once, "only pairs of all three parts at once are left: one of them is enough"),
    Mutant("future", ("if causal:", "if False:"), "later positions are not hidden"),
    Mutant("past", ("mask & (offsets <= 0)", "mask & (offsets >= 0)"), "earlier positions are hidden: it should be the "
        "later ones"),
    Mutant("present", ("mask & (offsets <= 0)", "mask & (offsets < 0)"), "a token is hidden from itself where `causal` "
        "is asked for: hide later positions alone"),
    Mutant("window-causal", window_alone_is_causal, "the window is causal, and the other parts read the future: hide "
        "it from all three"),
    Mutant("globals-ahead", globals_read_ahead, "global tokens read later positions. In the next layer all others "
        "would read it from them"),
    Mutant("lots-ahead", random_keys_read_ahead, "some random keys are later than their query: hide these, too"),
]  # fmt: skip

MUTANTS_B = [
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
    Mutant("wide", ("min(window, n)", "window"), "the window is wider than the text: it has no more than the tokens "
        "that there are"),
    Mutant("half", ("causal = g * T - g * (g - 1) // 2 + n * w - w * (w - 1) // 2", "causal = both_ways // 2"),
        "this is half of the pairs of both ways: pairs of a token with itself all stay"),
    Mutant("columns", ("g * T - g * (g - 1) // 2", "g * T"), "the global columns are counted in full: a global token "
        "is hidden from global tokens before it"),
    Mutant("causal-edges", ("n * w - w * (w - 1) // 2", "n * w"), "each token is taken to have w keys: the first ones "
        "have fewer"),
    Mutant("itself", ("n * (2 * w - 1)", "n * 2 * w"), "a token's pair with itself is counted twice: the window has 2 "
        "w - 1 tokens"),
]  # fmt: skip

MUTANTS_C = [
    Mutant("no-residuals", without_residuals, "the powers of the mask alone are looked at: with a residual connection "
        "a token also keeps what it has"),
    Mutant("late", ("n = 0\n", "n = 1\n"), "one too many: before the first layer, after 0, everybody has met itself"),
    Mutant("early", ("    return n\n", "    return max(n - 1, 0)\n"), "one too few: a direct connection takes one "
        "layer"),
    Mutant("squared", squared_each_time, "the table is multiplied with itself, so that two, four, eight layers are "
        "counted as one each"),
    Mutant("never", as_many_as_it_tried, "some tokens never meet, whatever the number of layers: return -1"),
    Mutant("both-directions", both_directions, "connections are taken to go both ways: that t attends to s brings s to "
        "t, and nothing back"),
    Mutant("last", of_the_last_token, "one token has met all, the last one: everybody must have"),
    Mutant("first", of_the_first_token, "one token has met all, the first one: everybody must have"),
    Mutant("somebody", somebody_has_met_all, "somebody has met all: everybody must have"),
    Mutant("reach", from_the_reach, "this is the length over the longest connection: that holds for windows, where "
        "everybody has such a connection; follow the pattern itself"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-09.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
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
            min_checks=20,
            advice={"dtype": "A comparison gives booleans, as does `torch.zeros(T, T, dtype=torch.bool)`."},
            mutants=MUTANTS_A,
            explanation=r"""
The order matters: join first, hide last. A causal mask that is put on the window alone leaves a leak by the global
rows, and a test that looks at the last token only does not see it. A leak has a plain test (exercise own-04.1):
change a later token and see whether an earlier output moves.
""",
        ),
        Count(
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
            min_checks=10,
            advice={"raised": "If memory was short: a million tokens have a mask of 10^12 entries. Count without one."},
            mutants=MUTANTS_B,
            explanation=r"""
With n = T - g and w at most n,

$$g\,(2T - g) + n\,(2w - 1) - w\,(w - 1) \qquad\text{and}\qquad gT - \tfrac{g(g-1)}{2} + nw - \tfrac{w(w-1)}{2} .$$

Both grow as T does, with 2 (g + w) - 1 pairs for each token or g + w. (The second is half of the sum of the first and
T: all but the pairs of a token with itself have a mirror image.) BigBird adds R for each query, less what was there.
""",
        ),
        Code(
            key="own-09.1c",
            prompt="Write `layers_to_meet(mask)`. What reaches token t in a layer is what had, one layer before, "
            "reached one of the tokens to which t attends. Patterns need not be symmetric: that t attends to s does "
            "not mean that s attends to t. In one pattern of the check some tokens never meet: the loop must end "
            "there, too.",
            hints=[
                "Keep a table (T, T) of what has reached whom. Before the first layer everybody has itself.",
                r"One layer: $\mathbf C \lor \mathbf A \mathbf C$. torch multiplies no booleans: go by floats, and "
                "compare with 0 after each product.",
                "When does it end without an answer? If a layer adds nothing, so does the next.",
            ],
            answer=layers_to_meet,
            verify=verify_layers,
            alternatives=[by_the_package_too, by_search],
            min_checks=28,
            mutants=MUTANTS_C,
            explanation=r"""
The number is the *diameter* of a graph whose edges go from a token to those it attends to. For a window w it is
$\lceil (T - 1) / (w - 1) \rceil$, and with one global token it is two, whatever T: everything tells the global token in
the first layer, and it tells all in the second. What passes there has to fit into one token's vector, though.
""",
        ),
        Choice(
            key="own-09.1d",
            prompt="Now a *decoder*: 4,096 tokens, a causal window of 256 (a token itself and the 255 before it), and "
            "the first token is global. After how many layers can the last output depend on every earlier input?",
            hints=[
                "What does the first token know, in any layer, in a decoder?",
                "By how many positions does a layer bring news further? How far is it from the second token to the "
                "last?",
            ],
            options=[
                Option(
                    "Two, as in an encoder: one to the global token, one from there.",
                    "The first step fails: the first token may attend to no later one, so that nobody but itself is "
                    "ever told of by it.",
                ),
                Option(
                    "Never: what is farther than the window is lost in a decoder.",
                    "A layer hands on what it got in the one before: two layers reach 510 positions back, and so on.",
                ),
                Option(
                    "16, which is 4,096 / 256.",
                    "A window of 256 holds the token itself: news travels 255 positions a layer, and 16 layers are 14 "
                    "positions short.",
                ),
                Option(
                    "17, as many as without a global token.",
                    "All attend to the first token, but it only ever knows itself. From the second token to the last "
                    "one there are 4,094 positions, and a layer takes 255 of them: 16 layers reach 4,080, so 17. (`d2l."
                    "layers_to_reach` counts it: of a causal mask it wants the earlier positions alone.)",
                    right=True,
                ),
            ],
        ),
    ],
)
