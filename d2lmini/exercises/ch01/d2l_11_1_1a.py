"""Part a of d2l-11.1.1, "A database's approximate match": `nearest`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Code, Mutant


def nearest(queries, keys, k):
    """Give equal weight to the k nearest keys.

    Args:
        queries: (B, T, D).
        keys: (B, S, D); no two are equally far from a query.
        k: how many keys match a query, 1 <= k <= S.

    Returns:
        (B, T, S); each row has k equal entries that sum to one, and zeros.
    """
    ### BEGIN SOLUTION
    distances = (queries[:, :, None] - keys[:, None]).norm(2, -1)  # (B, T, S)
    matches = distances.topk(k, dim=-1, largest=False).indices  # (B, T, k): positions among the keys
    return torch.zeros_like(distances).scatter(-1, matches, 1 / k)
    ### END SOLUTION


# other right answers


def nearest_by_rank(queries, keys, k):
    distances = (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(-1)
    return (distances.argsort(-1).argsort(-1) < k).to(keys.dtype) / k


def nearest_by_radius(queries, keys, k):
    distances = torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")
    return F.normalize((distances <= distances.kthvalue(k, -1, keepdim=True).values).to(keys.dtype), p=1, dim=-1)


# wrong answers


def nearest_in_length(queries, keys, k):
    lengths = queries.norm(dim=-1).unsqueeze(-1) - keys.norm(dim=-1).unsqueeze(-2)
    return torch.zeros_like(lengths).scatter(-1, lengths.abs().topk(k, dim=-1, largest=False).indices, 1 / k)


# checks

AWAY = "(queries[:, :, None] - keys[:, None]).norm(2, -1)"  # the solution's distances


def away(queries, keys):
    """Return the distances in float64, (B, T, S), from the differences themselves."""
    q, k = queries.detach().cpu().double(), keys.detach().cpu().double()
    return (q[:, :, None, :] - k[:, None, :, :]).square().sum(-1).sqrt()


def places(t, gap=1e-4):
    """Return queries and keys; no query has two keys whose distances differ by less than ``gap``."""
    B, D, S, T = sorted(t.sizes(4, 3, 10))
    while True:
        keys = t.randn(B, S, D)
        queries = keys[:, t.integers(0, S, T)] + t.randn(B, T, D, scale=0.4)
        if away(queries, keys).sort(-1).values.diff().min() > gap:
            return queries, keys


def chosen(scores, k, dim=-1):
    """Return weights 1/k on the k largest scores, found by sorting."""
    order = scores.argsort(dim, descending=True).argsort(dim)
    return (order < k).double() / k


INEXACT = (
    "some keys do not match themselves: their distance has come out a little above 0, or another's below. Subtract the "
    "vectors first and square then; a square that is multiplied out is rounded (beyond 25 rows torch.cdist multiplies "
    "out as well, unless its compute_mode forbids it)"
)


def finds_itself(weights, S):
    """Whether each of S queries that are the keys has weight on itself; a check of values sees to other shapes."""
    right = isinstance(weights, torch.Tensor) and weights.shape[1:] == (S, S)
    return not right or bool(weights.diagonal(0, 1, 2).all())


def verify_nearest(t, answer):
    queries, keys = places(t)
    S = keys.shape[1]
    for k in (t.random.randint(3, S - 2), 1, S):
        want = chosen(-away(queries, keys), k)
        t.same(t.call(answer, queries, keys, k), want, f"the weight matrix for k = {k} of S = {S} keys")
    name = "the weight matrix for k = 1 and one sequence whose keys are the queries (a dictionary), in float64"
    records = keys[:1].double()
    t.same(t.call(answer, records, records, 1), torch.eye(S, dtype=torch.float64)[None], name)
    want = chosen(-away(records, records), 3)
    name = "the weight matrix for k = 3 and one sequence whose keys are the queries, in float64"
    t.same(t.call(answer, records, records, 3), want, name)
    # so far from the origin that squares of 1e18 hide distances of one, and enough of them for cdist to take a product
    records = t.randn(1, 40, keys.shape[2], dtype=torch.float64) + 1e9
    t.that(finds_itself(t.call(answer, records, records, 1), 40), "inexact", f"with keys around 1e9, {INEXACT}")
    records[:, ::2] -= 2e9  # no shift brings all of them near the origin
    got = t.call(answer, records, records, 1)
    t.that(finds_itself(got, 40), "inexact", f"with half of the keys around 1e9 and half around -1e9, {INEXACT}")


MUTANTS = [
    Mutant("inexact", (AWAY,
        "queries.square().sum(-1)[..., None] - 2 * queries @ keys.mT + keys.square().sum(-1)[:, None]")),
    Mutant("inexact", (AWAY, "torch.cdist(queries, keys)")),
    Mutant("farthest", ("largest=False", "largest=True"), "these are the farthest keys: a small distance is a good "
        "match"),
    Mutant("dot", (AWAY, "-(queries @ keys.mT)"), "these keys have the largest dot products, "
        "and long keys win those; near is a small distance"),
    Mutant("cosine", (AWAY, "-F.cosine_similarity(queries[:, :, None], keys[:, None], dim=-1)"),
        "these keys have the best direction; near is a small distance"),
    Mutant("manhattan", (AWAY, "torch.cdist(queries, keys, p=1)"), "the absolute differences "
        "are summed; the distance is Euclidean"),
    Mutant("only-nearest", ("distances.topk(k, dim=-1, largest=False).indices",
        "distances.argmin(dim=-1, keepdim=True); k = 1"), "only the one nearest key has weight: k is not used"),
    Mutant("not-normalised", ("1 / k", "1.0"), "each match weighs 1, so a row sums to k: we want the mean of the k "
        "values"),
    Mutant("by-S", ("1 / k", "1 / keys.shape[1]"), "the matches share 1/S each; there are k of them, not S"),
    Mutant("soft", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return torch.full_like(distances, -torch.inf).scatter(-1, matches, -distances.gather(-1, "
        "matches)).softmax(-1)"), "the right keys, but the nearer ones weigh more: a database treats all matches "
        "alike"),
    Mutant("soft-cut", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return torch.softmax(-distances, -1) * torch.zeros_like(distances).scatter(-1, matches, 1.0)"),
        "these are softmax weights with the rest cut off: a database treats all matches alike"),
    Mutant("over-queries", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return torch.zeros_like(distances).scatter(-2, distances.topk(k, -2, False).indices, 1 / k)"),
        "k queries are picked for each key; pick k keys for each query"),
    Mutant("one-argsort", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return (distances.argsort(dim=-1) < k).to(keys.dtype) / k"), "`argsort` says which key stands at each place, "
        "not at which place each key stands: that is the argsort of the argsort"),
    Mutant("one-less", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return (distances < distances.gather(-1, matches).amax(-1, True)).float() / max(k - 1, 1)"),
        "one match is missing: should < be <= somewhere?"),
    Mutant("too-few", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return (distances < distances.gather(-1, matches).amax(-1, True)).float() / k"), "one match is missing, so "
        "the rows do not sum to one"),
    Mutant("one-more", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return (distances.argsort(-1).argsort(-1) <= k).to(keys.dtype) / k"), "there is one match too many: ranks "
        "begin at 0"),
    Mutant("softmax-of-ones", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return torch.zeros_like(distances).scatter(-1, matches, 1.0).softmax(dim=-1)"), "a softmax of ones and zeros "
        "leaves weight on what does not match, for exp(0) is 1: divide the ones by k"),
    Mutant("one-more-shared", ("distances.topk(k,", "distances.topk(k := min(k + 1, keys.shape[1]),"),
        "k + 1 keys share the weight, one too many"),
    Mutant("whole-division", ("1 / k", "1 // k"), "all zero where k is more than 1: `//` rounds down"),
    Mutant("not-itself", (AWAY,
        "torch.cdist(queries, keys); distances = distances.masked_fill(distances == 0, torch.inf)"),
        "a key at distance 0 is left out; a query that is in the database must find itself"),
    Mutant("itself-alone", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "found, weights = distances == 0, torch.zeros_like(distances).scatter(-1, matches, 1 / k)\n    return "
        "torch.where(found.any(-1, keepdim=True), found.to(keys.dtype), weights)"), "a query that is in the database "
        "finds that record alone: with k = 1 so it should; with a larger k the k nearest share the weight there, too"),
    Mutant("chebyshev", (AWAY, "torch.cdist(queries, keys, p=torch.inf)"),
        "the largest difference of an entry is taken; the distance is Euclidean"),
    Mutant("lengths", nearest_in_length, "these keys are nearest in length; the distance is the length of the "
        "difference, not the difference of the lengths"),
    Mutant("first-of-batch", (AWAY, "torch.cdist(queries, keys[:1].expand_as(keys))"),
        "the keys of the first batch entry are used for all"),
    Mutant("shape", (AWAY, "torch.cdist(queries, keys).squeeze()")),  # a batch of one squeezed
    Mutant("dtype", ("return torch.zeros_like(distances)", "return matches; (distances)")),  # positions
    Mutant("dtype", (".scatter(-1, matches, 1 / k)", ".scatter(-1, matches, 1 / k) > 0")),  # a mask
    Mutant("dtype", ("torch.zeros_like(distances)", "torch.zeros(distances.shape)")),  # always float32
    Mutant("soft-all", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "return torch.softmax(-distances, dim=-1)"), "these are softmax weights of all keys; a database gives 1/k to k "
        "of them, and nothing to the rest"),
    Mutant("one-list", ("return torch.zeros_like(distances).scatter(-1, matches, 1 / k)",
        "weights = torch.zeros_like(distances)\n    weights[..., matches] = 1 / k\n    return weights"), "the matches "
        "of all queries are filled in for each of them: `weights[..., positions] =` takes the positions as one list, "
        "`scatter` takes each row's own"),
    Mutant("first-keys", ("largest=False).indices", "largest=False).indices.argsort(-1)"), "the first k keys are "
        "taken: the places among the k nearest are no positions among the keys"),
]  # fmt: skip


PART = Code(
    key="d2l-11.1.1a",
    prompt="**The k nearest.** Write `nearest(queries, keys, k)`: the k keys nearest to a query "
    "weigh 1/k each, all others nothing. With k = 1 and a query that is in the database "
    "this is the ordinary dictionary, also where the keys are far from the origin (around 1e9, in "
    "float64): a query finds itself there, too. With k = S it is the average.",
    hints=[
        "Three steps, as always: compare, turn the comparison into weights, mix. Only the second is new.",
        "`(queries[:, :, None] - keys[:, None]).norm(dim=-1)` gives all distances, (B, T, S), and subtracts first, "
        "where `torch.cdist` may multiply out; `topk` finds the smallest with `largest=False`.",
        "`topk` also returns the positions. `torch.zeros_like(distances).scatter(-1, positions, "
        "1 / k)` writes the weights there.",
    ],
    answer=nearest,
    verify=verify_nearest,
    alternatives=[nearest_by_rank, nearest_by_radius],
    advice={
        "values": "Euclidean distances of every query to every key; in each row the positions of the k smallest; 1/k "
        "there and 0 elsewhere",
        "raised": "If shapes do not fit: the axis of the keys is the last one of the distances, (B, T, S).",
    },
    mutants=MUTANTS,
    explanation=r"""
Compare, normalise, mix: the comparison is a distance, and "normalise" is a rule instead of a softmax. The
rule looks at all keys of a query at once, as a softmax does, so k-nearest is a genuine attention weight: not
negative, summing to one. What it lacks is a slope. Move a query a little and either nothing changes or a
neighbour is exchanged whole.
""",
)
