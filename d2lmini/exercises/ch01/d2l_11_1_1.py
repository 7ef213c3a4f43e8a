r"""A database's approximate match

A database can do more than find the one record whose key equals yours. "The three shops nearest to me" and
"every shop within a mile" are approximate matches. Both are attention: only the rule that gives the weights
is unusual, and the answer is the mean of the values that match.

Queries have shape (B, T, D), keys (B, S, D). Near means the Euclidean distance $\lVert \mathbf q - \mathbf
k_i\rVert$. Each of the three functions below returns the weights, (B, T, S), of the dtype of the keys, so
that `weights @ values` is the database's answer.
"""

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Code, Exercise, Mutant


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
    distances = torch.cdist(queries, keys)  # (B, T, S)
    matches = distances.topk(k, dim=-1, largest=False).indices  # (B, T, k): positions among the keys
    return torch.zeros_like(distances).scatter(-1, matches, 1 / k)
    ### END SOLUTION


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
    matches = (torch.cdist(queries, keys) <= radius).to(keys.dtype)  # (B, T, S): one or zero
    found = matches.sum(dim=-1, keepdim=True)  # (B, T, 1)
    return matches / found.clamp(min=1)  # nothing found: 0 / 1, not 0 / 0
    ### END SOLUTION


def soft_within(queries, keys, radius, temperature):
    """Let keys in by degrees.

    Args:
        queries: (B, T, D).
        keys: (B, S, D).
        radius: number, or a tensor of shape (B, T, 1) with a radius for each query.
        temperature: positive number, perhaps tiny.

    Returns:
        (B, T, S); each row sums to one.
    """
    ### BEGIN SOLUTION
    room = radius - torch.cdist(queries, keys)  # (B, T, S): positive inside, negative outside
    scores = F.logsigmoid(room / temperature)  # the logarithm: exact where the sigmoid itself is 0
    return torch.softmax(scores, dim=-1)
    ### END SOLUTION


# other right answers


def nearest_by_rank(queries, keys, k):
    distances = (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(-1)
    return (distances.argsort(-1).argsort(-1) < k).to(keys.dtype) / k


def nearest_by_radius(queries, keys, k):
    distances = torch.cdist(queries, keys)
    return F.normalize((distances <= distances.kthvalue(k, -1, keepdim=True).values).to(keys.dtype), p=1, dim=-1)


def within_by_masking(queries, keys, radius):
    matches = torch.cdist(queries, keys) <= radius
    weights = torch.zeros(matches.shape, dtype=keys.dtype).masked_fill(~matches, -torch.inf).softmax(-1)
    return weights.masked_fill(~matches.any(-1, keepdim=True), 0)


def soft_by_exponentials(queries, keys, radius, temperature):
    x = (radius - torch.cdist(queries, keys)) / temperature
    logs = torch.minimum(x, x * 0) - torch.log1p(torch.exp(-x.abs()))
    return torch.exp(logs - logs.logsumexp(-1, keepdim=True))


# wrong answers


def nearest_in_length(queries, keys, k):
    lengths = queries.norm(dim=-1).unsqueeze(-1) - keys.norm(dim=-1).unsqueeze(-2)
    return torch.zeros_like(lengths).scatter(-1, lengths.abs().topk(k, dim=-1, largest=False).indices, 1 / k)


def within_by_multiplying_out(queries, keys, radius):
    lengths = queries.square().sum(-1).unsqueeze(-1) + keys.square().sum(-1).unsqueeze(-2)
    matches = ((lengths - 2 * queries @ keys.mT).clamp(min=0).sqrt() <= radius).to(keys.dtype)
    return matches / matches.sum(-1, keepdim=True).clamp(min=1)


def within_masked_softmax(queries, keys, radius):
    return (0 * torch.cdist(queries, keys)).masked_fill(torch.cdist(queries, keys) > radius, -torch.inf).softmax(-1)


def within_or_nearest(queries, keys, radius):
    distances = torch.cdist(queries, keys)
    return F.normalize((distances <= distances.amin(-1, keepdim=True).clamp(min=radius)).to(keys.dtype), p=1, dim=-1)


def soft_by_division(queries, keys, radius, temperature, least=0):
    degrees = torch.sigmoid((radius - torch.cdist(queries, keys)) / temperature)
    return degrees / (degrees.sum(-1, keepdim=True) + least)


def soft_by_safe_division(queries, keys, radius, temperature):
    return soft_by_division(queries, keys, radius, temperature, least=1e-9)


def soft_or_nearest(queries, keys, radius, temperature):
    distances = torch.cdist(queries, keys)
    degrees = torch.sigmoid((radius - distances) / temperature)
    nearest_alone = F.one_hot(distances.argmin(-1), distances.shape[-1]).to(keys.dtype)
    degrees = torch.where(degrees.sum(-1, keepdim=True) > 0, degrees, nearest_alone)
    return degrees / degrees.sum(-1, keepdim=True)


def soft_with_bare_root(queries, keys, radius, temperature):
    distances = (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(-1).sqrt()
    return F.logsigmoid((radius - distances) / temperature).softmax(-1)


# checks


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


def verify_nearest(t, answer):
    queries, keys = places(t)
    S = keys.shape[1]
    for k in (t.random.randint(3, S - 2), 1, S):
        want = chosen(-away(queries, keys), k)
        t.same(t.call(answer, queries, keys, k), want, f"the weight matrix for k = {k} of S = {S} keys")
    exact = torch.eye(S, dtype=torch.float64).expand(keys.shape[0], S, S)
    name = "the weight matrix for k = 1 and the keys as queries (a dictionary), in float64"
    t.same(t.call(answer, keys.double(), keys.double(), 1), exact, name)


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

    exact = torch.eye(20, dtype=torch.float64).expand(4, -1, -1)
    records = t.randn(4, 20, 48)  # long, so that a product of two and a sum of squares are rounded differently
    got = t.call(answer, records, records, 0.0)
    found = not isinstance(got, torch.Tensor) or got.shape != exact.shape or bool(got.diagonal(0, 1, 2).all())
    t.that(
        found,
        "inexact",
        "with radius 0 and the keys as queries, some keys do not match themselves: their distance has come out a "
        "little above 0. Subtract the vectors first and square then; a square that is multiplied out is rounded",
    )
    t.same(got, exact, "the weight matrix for radius 0 and the keys as queries (a dictionary)")


def verify_soft(t, answer):
    queries, keys = places(t)
    queries.requires_grad_()
    d = away(queries, keys)
    of_its_own = d.sort(-1).values[:, :, 1:2] + 0.1  # a radius for each query
    for radius, temperature, dtype in (
        (1.3, 0.7, torch.float32),
        (of_its_own, 0.4, torch.float32),
        (0.8, 3.0, torch.float64),
    ):
        shown = radius.float().to(t.device) if isinstance(radius, torch.Tensor) else radius
        degrees = torch.sigmoid((radius - d) / temperature)
        want = degrees / degrees.sum(-1, keepdim=True)
        got = t.call(answer, queries.to(dtype), keys.to(dtype), shown, temperature)
        name = f"the weight matrix at temperature {temperature}, in {str(dtype)[6:]}"
        t.same(got, want, name, tolerance=(1e-4, 1e-5))

    coefficients = t.randn(*d.shape)
    q = queries.detach().cpu().double().requires_grad_()
    pairs = (q[:, :, None, :] - keys.cpu().double()[:, None, :, :]).square().sum(-1).sqrt()
    exact = torch.softmax(F.logsigmoid((1.3 - pairs) / 0.7), -1)
    (slope,) = torch.autograd.grad((exact * coefficients.cpu().double()).sum(), q)
    got = t.call(answer, queries, keys, 1.3, 0.7)
    slopes = t.gradient(got, 0, weights=coefficients)
    t.same(slopes, slope, "the gradient in the queries", tolerance=(1e-3, 1e-4))

    # cold, with room between the k-th distance and the next: the hard search of the k nearest
    ordered = d.sort(-1).values
    k = 1 + int(ordered.diff()[:, :, :-1].amin((0, 1)).argmax())
    gap = float(ordered.diff()[:, :, k - 1].min())
    radius = ordered[:, :, k - 1 : k + 1].mean(-1, keepdim=True).float().to(t.device)
    cold = t.call(answer, queries, keys, radius, gap / 40)
    name = f"the cold weight matrix with a radius that holds {k} keys"
    t.same(cold, chosen(-d, k), name, tolerance=(1e-3, 1e-3))

    # far from all keys every degree underflows; the limit is the nearest key
    gap = 0
    while gap < 1e-3:
        lost = 9 * t.randn(*queries.shape).sign() + queries.detach()
        gap = float(away(lost, keys).sort(-1).values.diff()[:, :, 0].min())
    nearby = chosen(-away(lost, keys), 1)
    cold = t.call(answer, lost, keys, 0.5, min(gap / 20, 1e-2))
    t.same(cold, nearby, "the cold weight matrix of queries far from all keys", tolerance=(1e-3, 1e-3))

    # farther still and not so cold: every degree underflows, but several keys share the weight
    lost = 200 * F.normalize(t.randn(*queries.shape), dim=-1)
    want = torch.softmax(F.logsigmoid((0.5 - away(lost, keys)) / 0.25), -1)
    name = "the weight matrix of queries far from all keys, at temperature 0.25"
    t.same(t.call(answer, lost, keys, 0.5, 0.25), want, name, tolerance=(1e-2, 1e-3))

    on_key = keys[:, :2].clone().requires_grad_()
    others = torch.ones(len(keys), 2, keys.shape[1], device=t.device)
    others[:, :, 0] = 0
    slope = t.gradient(t.call(answer, on_key, keys, 1.0, 0.5), 0, weights=others)
    t.that(
        bool(torch.isfinite(slope).all()),
        "cusp",
        "the gradient is not finite for a query that sits on a key: the derivative of a square root at "
        "zero is infinite",
    )


MUTANTS_A = [
    Mutant("farthest", ("largest=False", "largest=True"), "these are the farthest keys: a small distance is a good "
        "match"),
    Mutant("dot", ("torch.cdist(queries, keys)", "-(queries @ keys.mT)"), "these keys have the largest dot products, "
        "and long keys win those; near is a small distance"),
    Mutant("cosine", ("torch.cdist(queries, keys)", "-F.cosine_similarity(queries[:, :, None], keys[:, None], dim=-1)"),
        "these keys have the best direction; near is a small distance"),
    Mutant("manhattan", ("torch.cdist(queries, keys)", "torch.cdist(queries, keys, p=1)"), "the absolute differences "
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
    Mutant("not-itself", ("torch.cdist(queries, keys)",
        "torch.cdist(queries, keys); distances = distances.masked_fill(distances == 0, torch.inf)"),
        "a key at distance 0 is left out; a query that is in the database must find itself"),
    Mutant("chebyshev", ("torch.cdist(queries, keys)", "torch.cdist(queries, keys, p=torch.inf)"),
        "the largest difference of an entry is taken; the distance is Euclidean"),
    Mutant("lengths", nearest_in_length, "these keys are nearest in length; the distance is the length of the "
        "difference, not the difference of the lengths"),
    Mutant("first-of-batch", ("torch.cdist(queries, keys)", "torch.cdist(queries, keys[:1].expand_as(keys))"),
        "the keys of the first batch entry are used for all"),
    Mutant("dtype", ("return torch.zeros_like(distances)", "return matches; (distances)")),  # positions
    Mutant("dtype", (".scatter(-1, matches, 1 / k)", ".scatter(-1, matches, 1 / k) > 0")),  # a mask
    Mutant("dtype", ("torch.zeros_like(distances)", "torch.zeros(distances.shape)")),  # always float32
]  # fmt: skip

MUTANTS_B = [
    Mutant("nonfinite", (".clamp(min=1)", "")),  # no match, no guard
    Mutant("nonfinite", within_masked_softmax),
    Mutant("strict", ("<= radius", "< radius"), "a key at exactly the radius matches: <=, not <"),
    Mutant("outside", ("<= radius", "> radius"), "these are the keys outside the radius: turn the comparison"),
    Mutant("squared", ("torch.cdist(queries, keys)", "torch.cdist(queries, keys).square()"), "the squared distance is "
        "compared with the radius: square both or neither"),
    Mutant("not-normalised", (" / found.clamp(min=1)", ""), "each match weighs 1: divide by the number of matches to "
        "get their mean"),
    Mutant("by-S", ("found.clamp(min=1)", "keys.shape[1]"), "divide by the number of matches, not by the number of "
        "keys"),
    Mutant("over-queries", ("dim=-1", "dim=-2"), "the columns sum to one: count the matches of each query, along the "
        "keys"),
    Mutant("softmax-of-ones", ("matches / found.clamp(min=1)", "matches.softmax(-1)"), "a softmax of ones and zeros "
        "leaves weight on what does not match (exp(0) is 1): the scores of those must be minus infinity"),
    Mutant("soft", ("matches / found.clamp(min=1)",
        "(-torch.cdist(queries, keys)).masked_fill(matches == 0, -torch.inf).softmax(-1)"), "the right keys, but the "
        "nearer ones weigh more: a database treats all matches alike"),
    Mutant("uniform", ("matches / found.clamp(min=1)", "(matches / found).nan_to_num(1 / keys.shape[1])"),
        "a query that matches nothing gets the average of everything; it should get zeros"),
    Mutant("fallback", within_or_nearest, "a query that matches nothing gets its nearest key; this part asks for "
        "zeros"),
    Mutant("soft-cut", ("matches / found.clamp(min=1)", "matches * torch.softmax(-torch.cdist(queries, keys), dim=-1)"),
        "these are softmax weights with the rest cut off: a database treats all matches alike"),
    Mutant("manhattan", ("torch.cdist(queries, keys)", "torch.cdist(queries, keys, p=1)"), "the absolute differences "
        "are summed; the distance is Euclidean"),
    Mutant("dot", ("torch.cdist(queries, keys) <= radius", "queries @ keys.mT >= radius"), "dot products are compared "
        "with the radius; near is a small distance"),
    Mutant("tolerance", ("<= radius", "<= radius + 1e-3"), "a key just outside the radius is let in: compare with the "
        "radius itself"),
    Mutant("inexact", within_by_multiplying_out),
    Mutant("chebyshev", ("torch.cdist(queries, keys)", "torch.cdist(queries, keys, p=torch.inf)"),
        "the largest difference of an entry is compared with the radius; the distance is Euclidean"),
    Mutant("over-batch", ("dim=-1", "dim=(0, -1)"), "the matches are counted over the whole batch; every query has its "
        "own"),
    Mutant("all-or-none", ("return matches / found.clamp(min=1)",
        "return matches / found if (found > 0).all() else 0 * matches"), "one query without a match makes all rows "
        "zero: guard each row by itself"),
    Mutant("dtype", ("return matches / found.clamp(min=1)", "return matches > 0")),  # booleans
    Mutant("dtype", (".to(keys.dtype)", ".float()")),  # always float32
]  # fmt: skip

MUTANTS_C = [
    Mutant("no-temperature", ("room / temperature", "room"), "the temperature is not used"),
    Mutant("times-temperature", ("room / temperature", "room * temperature"), "multiplied by the temperature: a "
        "falling temperature must sharpen, so divide by it"),
    Mutant("outside", ("room / temperature", "-room / temperature"), "far keys get the large weights: check the sign"),
    Mutant("radius-cancels", ("F.logsigmoid(room / temperature)", "room / temperature"), "this is the softmax of "
        "(radius - distance) / temperature, in which the radius cancels: it is the same for every key"),
    Mutant("softmax-of-degrees", ("F.logsigmoid(", "torch.sigmoid("), "a softmax exponentiates: give it the logarithm "
        "of the degrees, or divide the degrees by their sum"),
    Mutant("squared", ("torch.cdist(queries, keys)", "torch.cdist(queries, keys).square()"), "the distance is squared"),
    Mutant("hard", ("torch.softmax(scores, dim=-1)", "F.normalize((room >= 0).to(keys.dtype), p=1, dim=-1)"),
        "a key is in or out, whatever the temperature: where is the sigmoid?"),
    Mutant("over-queries", ("softmax(scores, dim=-1)", "softmax(scores, dim=-2)"), "the columns sum to one; normalise "
        "along the keys"),
    Mutant("not-normalised", ("torch.softmax(scores, dim=-1)", "scores.exp()"), "these are the degrees themselves: "
        "divide each row by its sum"),
    Mutant("logs-divided", ("torch.softmax(scores, dim=-1)", "scores / scores.sum(dim=-1, keepdim=True)"),
        "the logarithms of the degrees are divided by their sum; it is the degrees that must sum to one"),
    Mutant("distance-alone", ("room = radius - torch.cdist(queries, keys)",
        "room = radius * temperature - torch.cdist(queries, keys)"), "the distance alone is divided by the "
        "temperature: the radius must be, too"),
    Mutant("temperature-outside", ("F.logsigmoid(room / temperature)", "F.logsigmoid(room) / temperature"),
        "the logarithm of the degree is divided by the temperature; the temperature belongs into the sigmoid"),
    Mutant("temperature-twice", ("torch.softmax(scores, dim=-1)", "torch.softmax(scores / temperature, dim=-1)"),
        "the softmax is divided by the temperature once more; it belongs into the sigmoid alone"),
    Mutant("bent", ("F.logsigmoid(room / temperature)", "-F.relu(-room / temperature)"), "all keys inside the radius "
        "have degree 1, as with a ReLU; the degree is a sigmoid"),
    Mutant("by-largest", ("torch.softmax(scores, dim=-1)", "(scores - scores.amax(dim=-1, keepdim=True)).exp()"),
        "the degrees are divided by the largest of a row; divide by their sum"),
    Mutant("one-radius", ("room = radius -", "room = torch.as_tensor(radius).flatten()[0] -"), "all queries use the "
        "radius of the first one; the radius may be a tensor with one for each"),
    Mutant("one-radius", ("room = radius -", "room = torch.as_tensor(radius).mean() -"), "all queries use the mean "
        "radius; the radius may be a tensor with one for each"),
    Mutant("nonfinite", soft_by_division),
    Mutant("fallback", soft_or_nearest, "where all degrees are too small for float32, the nearest key gets everything. "
        "Their ratios are well defined, and at this temperature several keys share: work with the logarithms"),
    Mutant("vanishes", soft_by_safe_division, "all zero. Every degree is too small for float32, but their ratios are "
        "not: work with the logarithms of the degrees"),
    Mutant("even", ("F.logsigmoid(room / temperature)", "torch.log(torch.sigmoid(room / temperature) + 1e-9)"),
        "all keys weigh the same. Is there a small number inside a logarithm? It drowns degrees that are smaller "
        "still"),
    Mutant("cusp", soft_with_bare_root),
    Mutant("dtype", ("torch.softmax(scores, dim=-1)", "torch.softmax(scores.float(), dim=-1)")),  # always float32
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.1.1",
    doc=__doc__,
    source="D2L 11.1, exercise 1",
    parts=[
        Code(
            key="d2l-11.1.1a",
            prompt="**The k nearest.** Write `nearest(queries, keys, k)`: the k keys nearest to a query "
            "weigh 1/k each, all others nothing. With k = 1 and a query that is in the database "
            "this is the ordinary dictionary; with k = S it is the average.",
            hints=[
                "Three steps, as always: compare, turn the comparison into weights, mix. Only the second is new.",
                "`torch.cdist` gives all distances at once, (B, T, S); `topk` finds the smallest with `largest=False`.",
                "`topk` also returns the positions. `torch.zeros_like(distances).scatter(-1, positions, "
                "1 / k)` writes the weights there.",
            ],
            answer=nearest,
            verify=verify_nearest,
            alternatives=[nearest_by_rank, nearest_by_radius],
            advice={"raised": "The axis of the keys is the last one of the distances, (B, T, S)"},
            mutants=MUTANTS_A,
            explanation=r"""
Compare, normalise, mix: the comparison is a distance, and "normalise" is a rule instead of a softmax. The
rule looks at all keys of a query at once, as a softmax does, so k-nearest is a genuine attention weight: not
negative, summing to one. What it lacks is a slope. Move a query a little and either nothing changes or a
neighbour is exchanged whole.
""",
        ),
        Code(
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
                "nonfinite": "A query may have no match at all; a row of zeros divided by its sum is 0 / "
                "0, and a softmax over nothing but minus infinity is the same in disguise",
                "dtype": "A comparison gives booleans: turn them into numbers with .to(keys.dtype)",
            },
            mutants=MUTANTS_B,
            explanation=r"""
This is the Boxcar kernel of chapter 02. Two of its rules are the package's own. A query that may attend to
nothing gets zeros, never NaN and never a uniform average: an average of all records is the worst answer to
"is there anything near me?", for it looks like one. And the count is taken for each query along the keys.
""",
        ),
        Code(
            key="d2l-11.1.1c",
            prompt=r"""
**The same with a slope.** A network cannot learn through a step. Write `soft_within(queries, keys, radius,
temperature)`, in which a key is let in to the *degree*

$$g_i = \sigma\!\left(\frac{r - \lVert \mathbf q - \mathbf k_i\rVert}{\tau}\right), \qquad
\alpha_i = \frac{g_i}{\sum_j g_j},$$

with $\sigma$ the sigmoid. As $\tau$ falls, this must tend to `within`; and with a radius for each query
that holds just k keys, to `nearest`. A query far from all keys is the hard case: all its degrees are too
small for float32, but the weights above are still well defined (as $\tau$ falls they tend to the nearest
key), and yours must be right there too, at any temperature. A gradient must reach the queries, and it must
be finite even for a query that sits exactly on a key.
""",
            hints=[
                "First write it as it stands. Then ask what float32 makes of a sigmoid of -200.",
                r"$g_i / \sum_j g_j$ is a softmax of $\log g_i$.",
                "`F.logsigmoid` computes the logarithm of a sigmoid without computing the sigmoid; "
                "`torch.cdist` has a finite gradient at distance zero.",
            ],
            answer=soft_within,
            verify=verify_soft,
            alternatives=[soft_by_exponentials],
            advice={
                "nonfinite": "A sigmoid of -200 is zero in float32, and zero divided by a sum of zeros "
                "is NaN: what is the softmax of log g?",
                "grad": "A comparison has no gradient, and .detach() or .item() cut it off",
                "cusp": "torch.cdist and torch.linalg.vector_norm take zero there",
            },
            mutants=MUTANTS_C,
            explanation=r"""
For a match, $g_i \to 1$; for any other key, $g_i \to 0$; so with $m$ matches the weights go to $1/m$
and 0, which is `within`. Without a match $g_i \approx e^{(r - d_i)/\tau}$: now the radius cancels and a
plain softmax of $-d_i/\tau$ is left, which goes to the nearest key. So the soft version never says "nothing
here". If you want it to, add one key more that always has degree $\epsilon$ and value zero.

The way to `nearest`: let each query have its own radius, halfway between its k-th distance and the next.
""",
        ),
    ],
)
