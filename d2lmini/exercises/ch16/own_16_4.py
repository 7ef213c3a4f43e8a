r"""A trap for a beam

Beam search is no exhaustive search: what leaves the beam does not come back. Build a model that punishes it, as simple
as a model can be: the next token depends on the last one alone. Token 0 begins every text and 1 ends it, so the model
is a table of probabilities (V, V), with V up to you, whose row i says what follows token i.

A text may have up to five tokens after the 0, the 1 counted; what has no 1 by then is cut off, and counts with the
probability of its five tokens. There is no length penalty. Build the table such that

- a beam of K hypotheses finds a text, and the likeliest text is at least `ratio` times as probable as that;
- a beam of K + 1 finds the likeliest text.
"""

import math

import torch

from d2lmini.decoding import beam_search
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def trap(K, ratio):
    """A model on which a beam of K fails, and one of K + 1 does not.

    Args:
        K: size of the beam, 1 or more; 1 is greedy search.
        ratio: how many times as probable the likeliest text must be as what the beam finds, 2 or more.

    Returns:
        Probabilities (V, V), float32; each row sums to 1. No two texts that compete should be so close that rounding
        decides.
    """
    ### BEGIN SOLUTION
    n = math.ceil(2 * ratio)  # tokens that a bait spreads its probability over
    V = 3 + K + n
    table = torch.zeros(V, V)
    prize, baits, spread = 2, slice(3, 3 + K), slice(3 + K, V)
    table[0, baits] = 1.2
    table[0, prize] = 1.0  # place K + 1 at the first step
    table[prize, 1] = 1.0  # and certain from there on
    table[baits, spread] = 1.0
    table[spread, 1] = 1.0
    table[1, 1] = 1.0  # after the end anything may stand
    return table / table.sum(dim=1, keepdim=True)
    ### END SOLUTION


def with_steps_that_cost(K, ratio):
    """Baits that go on among themselves: five tokens, one of many each time."""
    n = max(K + 1, math.ceil((4 * ratio) ** 0.25) + 1)
    table = torch.zeros(n + 3, n + 3)
    table[0, 3 : 3 + K] = torch.linspace(1.5, 1.4, K)
    table[0, 2] = 1.1
    table[2, 1] = table[1, 1] = 1
    table[3:, 3:] = 1 + 0.01 * torch.rand(n, n, generator=torch.Generator().manual_seed(0))
    return table / table.sum(1, keepdim=True)


def in_logarithms(K, ratio):
    return torch.log(trap(K, ratio).clamp(min=1e-9))


def hardly_likelier(K, ratio):
    table = trap(K, ratio)
    table[0, 2 : 3 + K] = table[0, 2 : 3 + K].mean()
    table[0, 2] *= 1 - 3e-7
    return table


def for_greedy_alone(K, ratio):
    return trap(1, ratio)


def one_bait_too_many(K, ratio):
    return trap(K + 1, ratio)


MAX_LEN = 5


def _best(table):
    """The probability of the likeliest text, by the best way to each token."""
    reached = table[0]
    best = reached[1]
    for _ in range(MAX_LEN - 1):
        reached = reached.clone()
        reached[1] = 0  # what has ended does not go on
        reached = (reached[:, None] * table).amax(0)
        best = torch.maximum(best, reached[1])
    return max(best, reached.max()).item()


def _by_beam(table, K):
    """The probability of what a beam of K finds."""
    logs = table.clamp(min=1e-300).log()
    search = beam_search(
        lambda tokens, state: (logs[tokens], state), None, torch.zeros(1, dtype=torch.long), 1, MAX_LEN, K
    )
    return search.scores.exp().item()


def _shaken(t, table):
    """The table with errors larger than those of rounding."""
    table = table * (1 + 1e-4 * t.rand(*table.shape, low=-1.0, high=1.0).cpu().double())
    return table / table.sum(1, keepdim=True)


def _holds(table, K):
    """Whether a beam of K fails and one of K + 1 does not."""
    best = _best(table)
    return best > 1.001 * _by_beam(table, K) and _by_beam(table, K + 1) > 0.999 * best


def verify(t, answer):
    cases = (1, 2.0), (2, 10.0), (t.random.randint(3, 6), float(t.random.randint(3, 30)))
    for K, ratio in cases:
        got = t.call(answer, K, ratio)
        case = f"the table for a beam of {K} and a ratio of {ratio:g}"
        t.that(isinstance(got, torch.Tensor), "type", f"{case} is no tensor")
        square = got.dim() == 2 and got.shape[0] == got.shape[1] >= 3
        t.that(square, "shape", f"{case} has shape {tuple(got.shape)}, expected (V, V) with V of 3 or more")
        t.that(got.dtype == torch.float32, "dtype", f"{case} is {got.dtype}, expected torch.float32")
        table = got.detach().cpu().double()
        t.that(bool(table.isfinite().all()), "nonfinite", f"{case} has entries that are NaN or infinite")
        t.that(bool((table >= 0).all()), "negative", f"{case} has entries below 0: probabilities, not logarithms")
        rows = bool(((table.sum(1) - 1).abs() < 1e-5).all())
        t.that(rows, "rows", f"{case} has rows that do not sum to 1: row i says what follows token i")
        best, narrow, wide = _best(table), _by_beam(table, K), _by_beam(table, K + 1)
        t.that(
            best > 1.001 * narrow,
            "no-trap",
            f"{case}: a beam of {K} finds the likeliest text. Is it the one that you meant? That one must be more "
            f"probable than all others, and after some step not among the {K} likeliest beginnings",
        )
        message = (
            f"{case}: the beam finds a text that is too probable beside the likeliest one: let what follows the baits "
            "be less certain, or what follows the beginning of the best text more"
        )
        t.that(best >= 0.999 * ratio * narrow, "ratio", message)
        message = f"{case}: a beam of {K + 1} misses the likeliest text, too: it must be next in line when it is lost"
        t.that(wide > 0.999 * best, "too-deep", message)
        message = (
            f"{case}: what the beam keeps hangs on differences of rounding. Let each bait be clearly likelier than the "
            "beginning of the best text, by a per cent or so"
        )
        t.that(all(_holds(_shaken(t, table), K) for _ in range(6)), "close", message)


MUTANTS = [
    Mutant("rows", (" / table.sum(dim=1, keepdim=True)", "")),  # rows not scaled
    Mutant("rows", ("table.sum(dim=1, keepdim=True)", "table.sum(dim=0).clamp(min=1e-9)")),  # columns scaled
    Mutant("negative", in_logarithms),
    Mutant("no-trap", ("= 1.2", "= 0.8")),  # the prize is likeliest
    Mutant("no-trap", for_greedy_alone),
    Mutant("ratio", ("n = math.ceil(2 * ratio)", "n = 1 + int(ratio) // 2")),  # too little spread
    Mutant("too-deep", one_bait_too_many),
    Mutant("close", hardly_likelier),
    Mutant("nonfinite", ("table[1, 1] = 1.0", "table[1, 1] = 0.0")),  # no row for the end
    Mutant("no-trap", ("table[baits, spread] = 1.0", "table[baits, 1] = 1.0")),  # baits end, too
    Mutant("shape", ("return table / table.sum(dim=1, keepdim=True)", "return table.flatten()")),  # a flat list
]  # fmt: skip


EXERCISE = Exercise(
    key="own-16.4",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-16.4a",
            prompt="Write `trap(K, ratio)`, which returns the table.",
            hints=[
                "Start with K = 1. Greedy search takes the likeliest first token: give it one that leads nowhere good.",
                "Nowhere good: a token after which many others are equally likely. Whatever is chosen, the probability "
                "is divided by their number.",
                "For a beam of K take K such baits, each a little likelier than the token that begins the best text, "
                "after which the end is certain.",
            ],
            answer=trap,
            verify=verify,
            alternatives=[with_steps_that_cost],
            mutants=MUTANTS,
            explanation=r"""
The first step decides, and it looks at first tokens alone: the prize is at place K + 1 and is gone for good. Since the
baits spread what they have over $n$ tokens, the ratio is about $n$, as large as you like. So no finite beam is safe on
all models, and a wider beam helps only in so far as the beginnings of good texts are likely themselves.
""",
        ),
        Choice(
            key="own-16.4b",
            prompt="A beam of K looks through a model with V tokens for texts of up to T tokens. Which K is sure to "
            "find the likeliest text, whatever the model is?",
            hints=["How many different beginnings are there of t tokens, none of them the end?"],
            options=[
                Option(
                    "K = T: then there is one hypothesis for each of the steps.",
                    "Step and width are two things: all K may go wrong at once.",
                ),
                Option(
                    "K = V: then all of the tokens are in the beam at each step.",
                    "All *first* tokens are. After two steps there are V times as many.",
                ),
                Option(
                    "About $V^{T-1}$: then all unfinished beginnings are in it.",
                    "Then it is exhaustive search. A beginning of T - 1 tokens that has not ended is one of "
                    "$(V-1)^{T-1}$, and with a trap as above any of them may be the one that counts. A beam is used "
                    "since it is cheap, not since it is sure.",
                    right=True,
                ),
                Option(
                    "None: whatever K is, beam search fails on some of the models.",
                    "With every beginning in the beam nothing is ever lost.",
                ),
            ],
        ),
    ],
)
