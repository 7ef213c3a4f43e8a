"""Part a of own-09.2, "A softmax that never sees all scores": `merge`."""

import math

import torch

from d2lmini.exercises.engine import Code, Mutant


def merge(one, other):
    """What two shares of the keys leave together.

    Args:
        one, other: (top, total, output), of shapes (B, T), (B, T) and (B, T, E).

    Returns:
        (top, total, output) of all keys of both: what they would have left as one share.
    """
    ### BEGIN SOLUTION
    top = torch.maximum(one[0], other[0])
    base = top.masked_fill(top == -math.inf, 0.0)  # no key in either: -inf less -inf would be NaN
    total, output = 0.0, 0.0
    for its_top, its_total, its_output in (one, other):
        factor = torch.exp(its_top - base)  # at most 1: nothing overflows
        total = total + factor * its_total
        output = output + factor[..., None] * its_output
    return top, total, output
    ### END SOLUTION


def one_factor(one, other):
    """The lower one alone is mended."""
    first = (one[0] >= other[0])[..., None]
    high = [torch.where(first if a.dim() == 3 else first[..., 0], a, b) for a, b in zip(one, other, strict=True)]
    low = [torch.where(first if a.dim() == 3 else first[..., 0], b, a) for a, b in zip(one, other, strict=True)]
    factor = torch.where(low[0] == -math.inf, 0, torch.exp(low[0] - high[0]))
    return high[0], high[1] + factor * low[1], high[2] + factor[..., None] * low[2]


def stacked(one, other):
    tops, totals, outputs = (torch.stack(pair) for pair in zip(one, other, strict=True))
    top = tops.amax(0)
    factors = (tops - top).nan_to_num(0.0).exp()
    return top, (factors * totals).sum(0), torch.einsum("nbt,nbte->bte", factors, outputs)


# mistakes


def both_raised(one, other):
    """Scores without their largest: exp(top) is put back."""
    top = torch.maximum(one[0], other[0])
    a, b, back = one[0].exp(), other[0].exp(), (-top).exp()
    return top, (a * one[1] + b * other[1]) * back, (a[..., None] * one[2] + b[..., None] * other[2]) * back[..., None]


def other_alone_mended(one, other):
    top, _, _ = merge(one, other)
    factor = torch.exp(other[0] - top.masked_fill(top == -math.inf, 0))
    return top, one[1] + factor * other[1], one[2] + factor[..., None] * other[2]


def one_alone_mended(one, other):
    return other_alone_mended(other, one)


def mean_of_outputs(one, other):
    top, total, _ = merge(one, other)
    return top, total, (one[2] + other[2]) / 2


def top_of_all_queries(one, other):
    """One largest score for the whole batch."""
    top = torch.maximum(one[0], other[0]).amax().expand_as(one[0])
    a, b = (one[0] - top).exp(), (other[0] - top).exp()
    return top, a * one[1] + b * other[1], a[..., None] * one[2] + b[..., None] * other[2]


def log_sum_exp(one, other):
    top, total, output = merge(one, other)
    more = torch.where(total > 0, total, 1).log()
    return top + more, total * torch.exp(-more), output * torch.exp(-more)[..., None]


def in_place(one, other):
    top = torch.maximum(one[0], other[0])
    base = top.masked_fill(top == -math.inf, 0.0)
    a, b = (one[0] - base).exp(), (other[0] - base).exp()
    one[1].mul_(a).add_(b * other[1])
    one[2].mul_(a[..., None]).add_(b[..., None] * other[2])
    return top, one[1], one[2]


def _share(scores, values):
    """What keys leave; in float64, row by row."""
    B, T, _ = scores.shape
    E = values.shape[-1]
    top, total = torch.full((B, T), -math.inf).double(), torch.zeros(B, T).double()
    output = torch.zeros(B, T, E).double()
    for i in range(B):
        for t in range(T):
            seen = scores[i, t] > -math.inf
            if seen.any():
                x = scores[i, t][seen].double()
                top[i, t] = x.max()
                powers = (x - x.max()).exp()
                total[i, t], output[i, t] = powers.sum(), powers @ values[i][seen].double()
    return top, total, output


def _given(t, scores, values):
    return tuple(x.float().to(t.device) for x in _share(scores, values))


def verify_merge(t, answer):
    B, T, E, m, n = t.sizes(5, 3, 10)

    def compare(got, scores, values, name):
        got = t.unpack(got, "top", "total", "output")
        for part, value, want in zip(("top", "total", "output"), got, _share(scores, values), strict=True):
            t.same(value, want, f"{part} of {name}")

    def drawn(count, scale, hidden=0.2):
        scores, values = t.randn(B, T, count, scale=scale).cpu(), t.randn(B, count, E).cpu()
        return scores.masked_fill(t.rand(B, T, count).cpu() < hidden, -math.inf), values

    for case, scale in (("", 1.5), (" with scores about 10,000", 1e4)):
        one, other = drawn(m, scale, 0.0), drawn(n, scale, 0.0)
        both = torch.cat([one[0], other[0]], 2), torch.cat([one[1], other[1]], 1)
        compare(t.call(answer, _given(t, *one), _given(t, *other)), *both, f"two shares{case}")
    for case in ("the first", "the second", "neither"):
        one, other = drawn(m, 1.5), drawn(n, 1.5)
        i, row = t.random.randrange(B), t.random.randrange(T)
        for name, (scores, _) in (("the first", one), ("the second", other)):
            if case in (name, "neither"):
                scores[i, row] = -math.inf
        both = torch.cat([one[0], other[0]], 2), torch.cat([one[1], other[1]], 1)
        name = "no key of either share" if case == "neither" else f"no key of {case} share"
        compare(t.call(answer, _given(t, *one), _given(t, *other)), *both, f"two shares, where a query has {name}")
    shares = [drawn(count, 30.0, 0.4) for count in (m, n, 2)]
    first, second, third = (_given(t, *share) for share in shares)
    all_of_them = torch.cat([s for s, _ in shares], 2), torch.cat([v for _, v in shares], 1)
    left = t.call(answer, t.call(answer, first, second), third)
    compare(left, *all_of_them, "three shares, the first two merged first")
    right = t.call(answer, first, t.call(answer, second, third))
    compare(right, *all_of_them, "three shares, the last two merged first")


ADDED = "the two are added as they are: each was made with another largest score, and has to be mended to the new one"


MUTANTS = [
    Mutant("added", ("torch.exp(its_top - base)", "torch.ones_like(base)"), ADDED),
    Mutant("inverse", ("torch.exp(its_top - base)", "torch.exp(base - its_top)"), "the factor is upside down: exp(old "
        "- new), which is at most 1"),
    Mutant("added", ("factor * its_total", "its_total"), ADDED),
    Mutant("added", ("factor[..., None] * its_output", "its_output"), ADDED),
    Mutant("second", other_alone_mended, "only the second share is mended: the first needs it where the second has the "
        "larger score"),
    Mutant("first", one_alone_mended, "only the first share is mended: the second needs it where the first has the "
        "larger score"),
    Mutant("mean", mean_of_outputs, "this is the mean of the two outputs: they are sums, to be mended and added"),
    Mutant("divided", ("return top, total, output\n", "return top, total, output / total[..., None]\n"),
        "the output is divided by the total: keep the sum, and divide when no more keys come"),
    Mutant("smaller", ("torch.maximum(one[0], other[0])", "torch.minimum(one[0], other[0])"), "this is the smaller of "
        "the two: the largest score of all keys is the larger one"),
    Mutant("sum", ("return top, total, output\n", "return one[0] + other[0], total, output\n"), "the tops are added: "
        "the largest score of all keys is the larger of them"),
    Mutant("log-sum", log_sum_exp, "this is the logarithm of the sum of exponentials: a good thing to keep, but `top` "
        "is the largest score here, and `total` and `output` are relative to it"),
    Mutant("one-top", top_of_all_queries, "all queries have the same: each has a largest score of its own"),
    Mutant("base", ("return top, total, output\n", "return base, total, output\n"), "a query without a key got 0: its "
        "largest score stays minus infinity, or a later share with scores below zero is merged wrongly"),
    Mutant("nonfinite", ("top.masked_fill(top == -math.inf, 0.0)", "top")),  # no base
    Mutant("nonfinite", both_raised),
    Mutant("mutates", in_place),
]  # fmt: skip


PART = Code(
    key="own-09.2a",
    prompt="Write `merge(one, other)`. Scores may be ten thousand, and a query may have no key in a share. "
    "Merging must not care about the order: ((a, b), c) and (a, (b, c)) leave what a, b and c do as one share.",
    hints=[
        "The largest of both is the larger of the two largest.",
        "exp(x - new) = exp(x - old) exp(old - new). So one factor for each share mends its sums.",
        "The factor is at most 1, since the new largest is no smaller than the old one. Which exponential "
        "could overflow?",
        "Minus infinity less minus infinity is NaN. Where both have no key, subtract something else: the sums "
        "are zero anyway.",
    ],
    answer=merge,
    verify=verify_merge,
    alternatives=[one_factor, stacked],
    min_checks=26,
    advice={
        "nonfinite": "exp of a large score overflows, and minus infinity less itself is NaN. Which differences "
        "are never above zero, and what if a share has no key?",
        "mutates": "Shares may be merged again by others: make new tensors.",
    },
    mutants=MUTANTS,
    explanation=r"""
Because the merge is associative (and commutative), keys can be cut into any shares and merged in any order: along a
loop, as FlashAttention's tiles are; in a tree, by many processors; around a ring of machines of which each has a part
of a long text (ring attention, Liu et al. 2023, arXiv:2310.01889). Rounding differs with the order, and nothing else.
""",
)
