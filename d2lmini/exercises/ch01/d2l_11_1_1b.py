"""Part b of d2l-11.1.1, "A database's approximate match": `within`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.ch01.d2l_11_1_1a import AWAY, INEXACT, away, finds_itself, places
from d2lmini.exercises.engine import Code, Mutant


def within(queries, keys, radius):
    """Give equal weight to all keys within a radius.

    Args:
        queries: (B, T, D).
        keys: (B, S, D).
        radius: number; a key at exactly this distance still matches.

    Returns:
        (B, T, S); each row sums to one, and a row without any match is zero throughout.
    """
    ### BEGIN SOLUTION
    matches = ((queries[:, :, None] - keys[:, None]).norm(2, -1) <= radius).to(keys.dtype)  # (B, T, S): one or zero
    counts = matches.sum(dim=-1, keepdim=True)  # (B, T, 1)
    return matches / counts.clamp(min=1)  # no match: 0 / 1, not 0 / 0
    ### END SOLUTION


def within_by_masking(queries, keys, radius):
    matches = torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist") <= radius
    weights = torch.zeros(matches.shape, dtype=keys.dtype).masked_fill(~matches, -torch.inf).softmax(-1)
    return weights.masked_fill(~matches.any(-1, keepdim=True), 0)


def within_by_multiplying_out(queries, keys, radius):
    lengths = queries.square().sum(-1).unsqueeze(-1) + keys.square().sum(-1).unsqueeze(-2)
    matches = ((lengths - 2 * queries @ keys.mT).clamp(min=0).sqrt() <= radius).to(keys.dtype)
    return matches / matches.sum(-1, keepdim=True).clamp(min=1)


def within_masked_softmax(queries, keys, radius):
    return (0 * torch.cdist(queries, keys)).masked_fill(torch.cdist(queries, keys) > radius, -torch.inf).softmax(-1)


def within_or_nearest(queries, keys, radius):
    distances = torch.cdist(queries, keys)
    return F.normalize((distances <= distances.amin(-1, keepdim=True).clamp(min=radius)).to(keys.dtype), p=1, dim=-1)


def verify_within(t, answer):
    while True:
        queries, keys = places(t)
        d = away(queries, keys)
        middle = d.flatten().sort().values[d.numel() // 3 : d.numel() // 2]
        at = middle.diff().argmax()
        radius = float(middle[at : at + 2].mean())
        counts = (d <= radius).sum(-1, keepdim=True)
        if middle.diff().max() > 1e-3 and counts.min() > 0 and counts.max() > 1:
            break
    want = (d <= radius).double() / counts
    t.same(t.call(answer, queries, keys, radius), want, "the weight matrix")

    # whole numbers, so that distances of 5 are exactly 5; the last key is a little farther away
    shift = t.integers(-9, 9, 2).double()
    q, k = torch.tensor([[[0.0, 0], [10, 10]]]), torch.tensor([[[3.0, 4], [6, 8], [0, 5], [9, 9], [-5.0001, 0]]])
    q, k = q.to(t.device) + shift, k.to(t.device) + shift
    edge = torch.tensor([[[0.5, 0, 0.5, 0, 0], [0, 0.5, 0, 0.5, 0]]], dtype=torch.float64)
    name = "the weight matrix with keys exactly at the radius, in float64"
    t.same(t.call(answer, q, k, 5.0), edge, name, tolerance=(1e-4, 1e-5))

    lost = queries.clone()
    lost[:, 1] += 100
    want[:, 1] = 0
    t.same(t.call(answer, lost, keys, radius), want, "the weight matrix where a query matches nothing")

    k = torch.tensor([[[1.0, 2, 0], [4, 0, 1], [1, 2, 0], [7, 7, 7]]], device=t.device)
    q = torch.cat([k[:, 1:], k[:, :1] + 1], dim=1)
    want = torch.tensor([[[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1], [0, 0, 0, 0]]], dtype=torch.float64)
    t.same(t.call(answer, q, k, 0.0), want, "the weight matrix for radius 0, an exact match with two equal keys")

    exact = torch.eye(40, dtype=torch.float64).expand(4, -1, -1)
    # long, so that a product of two and a sum of squares are rounded differently; many, as in part a
    records = t.randn(4, 40, 48)
    got = t.call(answer, records, records, 0.0)
    t.that(finds_itself(got, 40), "inexact", f"with radius 0 and the keys as queries, {INEXACT}")
    t.same(got, exact, "the weight matrix for radius 0 and the keys as queries (a dictionary)")


MUTANTS = [
    Mutant("nonfinite", (".clamp(min=1)", "")),  # no match, no guard
    Mutant("nonfinite", within_masked_softmax),
    Mutant("strict", ("<= radius", "< radius"), "a key at exactly the radius matches: <=, not <"),
    Mutant("outside", ("<= radius", "> radius"), "these are the keys outside the radius: turn the comparison"),
    Mutant("squared", (AWAY, "torch.cdist(queries, keys).square()"), "the squared distance is "
        "compared with the radius: square both or neither"),
    Mutant("not-normalised", (" / counts.clamp(min=1)", ""), "each match weighs 1: divide by the number of matches to "
        "get their mean"),
    Mutant("by-S", ("counts.clamp(min=1)", "keys.shape[1]"), "divide by the number of matches, not by the number of "
        "keys"),
    Mutant("over-queries", ("dim=-1", "dim=-2"), "the columns sum to one: count the matches of each query, along the "
        "keys"),
    Mutant("softmax-of-ones", ("matches / counts.clamp(min=1)", "matches.softmax(-1)"), "a softmax of ones and zeros "
        "leaves weight on what does not match (exp(0) is 1): the scores of those must be minus infinity"),
    Mutant("soft", ("matches / counts.clamp(min=1)",
        "(-torch.cdist(queries, keys)).masked_fill(matches == 0, -torch.inf).softmax(-1)"), "the right keys, but the "
        "nearer ones weigh more: a database treats all matches alike"),
    Mutant("uniform", ("matches / counts.clamp(min=1)", "(matches / counts).nan_to_num(1 / keys.shape[1])"),
        "a query that matches nothing gets the average of everything; it should get zeros"),
    Mutant("fallback", within_or_nearest, "a query that matches nothing gets its nearest key; this part asks for "
        "zeros"),
    Mutant("soft-cut", ("matches / counts.clamp(min=1)",
        "matches * torch.softmax(-torch.cdist(queries, keys), dim=-1)"), "these are softmax weights with the rest cut "
        "off: a database treats all matches alike"),
    Mutant("manhattan", (AWAY, "torch.cdist(queries, keys, p=1)"), "the absolute differences "
        "are summed; the distance is Euclidean"),
    Mutant("dot", (f"{AWAY} <= radius", "queries @ keys.mT >= radius"), "dot products are compared "
        "with the radius; near is a small distance"),
    Mutant("tolerance", ("<= radius", "<= radius + 1e-3"), "a key just outside the radius is let in: compare with the "
        "radius itself"),
    Mutant("inexact", within_by_multiplying_out),
    Mutant("inexact", (AWAY, "torch.cdist(queries, keys)")),
    Mutant("chebyshev", (AWAY, "torch.cdist(queries, keys, p=torch.inf)"),
        "the largest difference of an entry is compared with the radius; the distance is Euclidean"),
    Mutant("over-batch", ("dim=-1", "dim=(0, -1)"), "the matches are counted over the whole batch; every query has its "
        "own"),
    Mutant("all-or-none", ("return matches / counts.clamp(min=1)",
        "return matches / counts if (counts > 0).all() else 0 * matches"), "one query without a match makes all rows "
        "zero: guard each row by itself"),
    Mutant("dtype", ("return matches / counts.clamp(min=1)", "return matches > 0")),  # booleans
    Mutant("dtype", (".to(keys.dtype)", ".float()")),  # always float32
    Mutant("radius-squared", ("<= radius", "<= radius**2"), "the radius is squared and the distance is not: square "
        "both or neither"),
    Mutant("one-more", ("counts.clamp(min=1)", "(counts + 1)"), "something is added to each count, so no row sums to "
        "one: only a count of zero needs help"),
    Mutant("over-everything", ("counts.clamp(min=1)", "matches.sum()"), "the matches of all queries are counted "
        "together; every row has its own count"),
    Mutant("distances", ("matches / counts.clamp(min=1)",
        "F.normalize(matches * torch.cdist(queries, keys), p=1, dim=-1)"), "the right keys, but the farther ones weigh "
        "more: all matches weigh the same"),
]  # fmt: skip


PART = Code(
    key="d2l-11.1.1b",
    prompt="**All within a radius.** Write `within(queries, keys, radius)`: all keys at a "
    "distance of at most `radius` share the weight equally. A query that has none gets "
    "zeros. (Radius 0 is the exact match.)",
    hints=[
        "A comparison with the radius gives ones and zeros. How many ones has each row?",
        "Divide each row by its number of matches. What if that number is zero?",
        "`count.clamp(min=1)` changes only the counts that are zero; then 0 / 1 is 0.",
    ],
    answer=within,
    verify=verify_within,
    alternatives=[within_by_masking],
    advice={
        "values": "Which keys lie at most `radius` away from a query, in Euclidean distance? How many are they? Each "
        "weighs one over that number",
        "nonfinite": "A query may have no match at all; a row of zeros divided by its sum is 0 / "
        "0, and a softmax over nothing but minus infinity is the same in disguise",
        "dtype": "A comparison gives booleans: turn them into numbers with .to(keys.dtype)",
    },
    mutants=MUTANTS,
    explanation=r"""
This is the Boxcar kernel of chapter 02. Two of its rules are the package's own. A query that may attend to
nothing gets zeros, never NaN and never a uniform average: an average of all records is the worst answer to
"is there anything near me?", for it looks like one. And the count is taken for each query along the keys.
""",
)
