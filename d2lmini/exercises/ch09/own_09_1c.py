"""Part c of own-09.1: `layers_to_meet`."""

from functools import partial

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant


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


def paths_counted(mask):
    """How many paths there are, in 32 bits."""
    paths = torch.eye(len(mask), device=mask.device)
    step, paths = mask.float().maximum(paths).cpu().int(), paths.cpu().int()
    for n in range(len(mask)):
        if (paths > 0).all():
            return n
        paths = step @ paths
    return -1


def paths_in_half(mask):
    """The same in 16 bits, and given up when they overflow."""
    paths = torch.eye(len(mask), device=mask.device).half()
    step = mask.half().maximum(paths)
    for n in range(len(mask)):
        if (paths > 0).all():
            return n
        paths = step @ paths
        if paths.isinf().any():
            return -1
    return -1


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


def both_directions(mask):
    return by_search(mask | mask.T)


def until(mask, enough):
    """Until ``enough`` of who has met all, a boolean for each token."""
    met = torch.eye(len(mask), device=mask.device) > 0
    for n in range(len(mask)):
        if enough(met.all(1)):
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
    far = torch.where(mask, 1, T).fill_diagonal_(0)
    for via in range(T):
        far = torch.minimum(far, far[:, via, None] + far[via])
    longest = int(far.max())
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
    far = torch.arange(90) - torch.arange(90)[:, None]
    for name, mask in (
        ("a window of 2", offsets.abs() < 2),
        ("a window of 4", offsets.abs() < 4),
        ("full attention, but to oneself", offsets != 0),
        ("a ring in which each attends to the one before it", ring),
        ("a window and a global token", hub),
        ("a window, where the first token reads all", first_reads),
        ("a window, where the last token reads all", first_reads.flip(0, 1)),
        ("odd tokens that attend to even ones, and even to odd", offsets % 2 == 1),
        ("a ring in another order", ring[order][:, order]),
        ("all hear the first and the next, the last hears all", tells),
        ("a ring and random keys", lots[order][:, order]),
        ("a window with gaps, so that even and odd never meet", (offsets.abs() < 6) & (offsets % 2 == 0)),
        ("a causal window", (offsets <= 0) & (offsets > -3)),
        ("a window of 2 in a text of 90 tokens", far.abs() < 2),
        ("a single token", torch.zeros(1, 1, dtype=torch.bool)),
    ):
        want = _shortest(mask)
        name += f" (T = {len(mask)})"
        got = t.call(answer, mask.to(t.device))
        t.number(got, want, f"the number of layers of {name}")
        whole = isinstance(got, int) or (isinstance(got, torch.Tensor) and not got.is_floating_point())
        t.that(
            whole,
            "type",
            f"the number of layers of {name} is a {type(got).__name__}, expected an int: layers are counted",
        )


OVERFLOW = (
    "all do meet here, after many layers: is there a limit to the layers, or are paths counted, until their number "
    "overflows? Go back to True and False after each layer"
)


MUTANTS = [
    Mutant("no-residuals", without_residuals, "all do meet here. With a residual connection a token keeps what it "
        "has, and the powers of the mask alone leave that out"),
    Mutant("no-end", ("return -1  #", "return n if mask.any(1).all() else -1  #"), "-1 is wanted here: another layer "
        "brings nothing new, and some tokens have not met"),
    Mutant("late", ("n = 0\n", "n = 1\n"), "one too many: before the first layer, after 0, everybody has met itself"),
    Mutant("early", ("    return n\n", "    return max(n - 1, 0)\n"), "one too few: a direct connection takes one "
        "layer"),
    Mutant("overflow", paths_counted, OVERFLOW),
    Mutant("overflow", paths_in_half, OVERFLOW),
    Mutant("one-row", ("if torch.equal(more, met)", "if torch.equal(more[0], met[0])"), "-1 comes too early: one "
        "token may have met all that it can while others have not"),
    Mutant("squared", squared_each_time, "the table is multiplied with itself, so that two, four, eight layers are "
        "counted as one each"),
    Mutant("both-directions", both_directions, "connections are taken to go both ways: that t attends to s brings s to "
        "t, and nothing back"),
    Mutant("last", partial(until, enough=lambda met_all: met_all[-1]), "one token has met all, the last one: "
        "everybody must have"),
    Mutant("first", partial(until, enough=lambda met_all: met_all[0]), "one token has met all, the first one: "
        "everybody must have"),
    Mutant("somebody", partial(until, enough=torch.any), "somebody has met all: everybody must have"),
    Mutant("type", ("    return n\n", "    return float(n)\n")),
    Mutant("nonfinite", ("return -1 ", "return math.inf ")),
    Mutant("never", ("return -1 ", "return len(mask) "), "some tokens never meet, whatever the number of layers: "
        "return -1"),
    Mutant("reach", from_the_reach, "this is the length over the longest connection: that holds for windows, where "
        "everybody has such a connection; follow the pattern itself"),
]  # fmt: skip


PART = Code(
    key="own-09.1c",
    prompt="Write `layers_to_meet(mask)`. What reaches token t in a layer is what had, one layer before, reached one "
    "of the tokens to which t attends. Patterns need not be symmetric: that t attends to s does not mean that s "
    "attends to t. In two patterns of the check some tokens never meet: the loop must end there, too. One has 90 "
    "tokens.",
    hints=[
        "Keep a table (T, T) of what has reached whom. Before the first layer everybody has itself.",
        r"One layer: $\mathbf C \lor \mathbf A \mathbf C$. torch multiplies no booleans: go by floats, and "
        "compare with 0 after each product.",
        "When does it end without an answer? If a layer adds nothing, so does the next.",
    ],
    answer=layers_to_meet,
    verify=verify_layers,
    alternatives=[by_the_package_too, by_search],
    min_checks=45,
    seconds=20.0,
    advice={
        "nonfinite": "Where no number of layers is enough, return -1.",
        "values": "Draw an arrow from each token to those it attends to. The number is the longest of all shortest "
        "ways along the arrows; print yours for 3, 4, 5, 6 and 16 tokens with a window of 2, where it is T - 1.",
    },
    mutants=MUTANTS,
    explanation=r"""
The number is the *diameter* of a graph whose edges go from a token to those it attends to. For a window w it is $\lceil
(T - 1) / (w - 1) \rceil$, and with one global token at most two: everything tells the global token in the first layer,
and it tells all in the second. What passes there has to fit into one token's vector, though.
""",
)
