"""Part a of own-09.2, "A softmax that never sees all scores": `merge`."""

import math

import torch

from d2lmini.exercises.engine import Code, Mutant


def merge(first, second):
    """What two shares of the keys leave together.

    Args:
        first, second: (top, total, output), of shapes (B, T), (B, T) and (B, T, E).

    Returns:
        (top, total, output) of all keys of both: what they would have left as one share.
    """
    ### BEGIN SOLUTION
    top = torch.maximum(first[0], second[0])
    base = top.masked_fill(top == -math.inf, 0.0)  # no key in either: -inf less -inf would be NaN
    total, output = 0.0, 0.0
    for its_top, its_total, its_output in (first, second):
        factor = torch.exp(its_top - base)  # at most 1: nothing overflows
        total = total + factor * its_total
        output = output + factor[..., None] * its_output
    return top, total, output
    ### END SOLUTION


def one_factor(first, second):
    """The lower one alone is mended."""
    higher = (first[0] >= second[0])[..., None]
    high = [torch.where(higher if a.dim() == 3 else higher[..., 0], a, b) for a, b in zip(first, second, strict=True)]
    low = [torch.where(higher if a.dim() == 3 else higher[..., 0], b, a) for a, b in zip(first, second, strict=True)]
    factor = torch.where(low[0] == -math.inf, 0, torch.exp(low[0] - high[0]))
    return high[0], high[1] + factor * low[1], high[2] + factor[..., None] * low[2]


def stacked(first, second):
    tops, totals, outputs = (torch.stack(pair) for pair in zip(first, second, strict=True))
    top = tops.amax(0)
    factors = (tops - top).nan_to_num(0.0).exp()
    return top, (factors * totals).sum(0), torch.einsum("nbt,nbte->bte", factors, outputs)


# mistakes


def both_raised(first, second):
    """Scores without their largest: exp(top) is put back."""
    top = torch.maximum(first[0], second[0])
    a, b, back = first[0].exp(), second[0].exp(), (-top).exp()
    return (
        top,
        (a * first[1] + b * second[1]) * back,
        (a[..., None] * first[2] + b[..., None] * second[2]) * back[..., None],
    )


def second_alone_mended(first, second):
    top, _, _ = merge(first, second)
    factor = torch.exp(second[0] - top.masked_fill(top == -math.inf, 0))
    return top, first[1] + factor * second[1], first[2] + factor[..., None] * second[2]


def first_alone_mended(first, second):
    return second_alone_mended(second, first)


def mean_of_outputs(first, second):
    top, total, _ = merge(first, second)
    return top, total, (first[2] + second[2]) / 2


def top_of_all_queries(first, second):
    """One largest score for the whole batch."""
    top = torch.maximum(first[0], second[0]).amax().expand_as(first[0])
    a, b = (first[0] - top).exp(), (second[0] - top).exp()
    return top, a * first[1] + b * second[1], a[..., None] * first[2] + b[..., None] * second[2]


def log_sum_exp(first, second):
    top, total, output = merge(first, second)
    more = torch.where(total > 0, total, 1).log()
    return top + more, total * torch.exp(-more), output * torch.exp(-more)[..., None]


def in_place(first, second):
    top = torch.maximum(first[0], second[0])
    base = top.masked_fill(top == -math.inf, 0.0)
    a, b = (first[0] - base).exp(), (second[0] - base).exp()
    first[1].mul_(a).add_(b * second[1])
    first[2].mul_(a[..., None]).add_(b[..., None] * second[2])
    return top, first[1], first[2]


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

    def drawn(count, scale, hidden=0.2, size=0.0):
        scores, values = t.randn(B, T, count, scale=scale).cpu(), t.randn(B, count, E).cpu()
        scores[:, ::2] += size
        scores[:, 1::2] -= size
        return scores.masked_fill(t.rand(B, T, count).cpu() < hidden, -math.inf), values

    for case, size in (("", 0.0), (" with scores about 10,000 and -10,000", 1e4)):
        first, second = drawn(m, 1.5, 0.0, size), drawn(n, 1.5, 0.0, size)
        both = torch.cat([first[0], second[0]], 2), torch.cat([first[1], second[1]], 1)
        compare(t.call(answer, _given(t, *first), _given(t, *second)), *both, f"two shares{case}")
    for case in ("the first", "the second", "neither"):
        first, second = drawn(m, 1.5), drawn(n, 1.5)
        i, row = t.random.randrange(B), t.random.randrange(T)
        for name, (scores, _) in (("the first", first), ("the second", second)):
            if case in (name, "neither"):
                scores[i, row] = -math.inf
        both = torch.cat([first[0], second[0]], 2), torch.cat([first[1], second[1]], 1)
        name = "no key of either share" if case == "neither" else f"no key of {case} share"
        compare(t.call(answer, _given(t, *first), _given(t, *second)), *both, f"two shares, where a query has {name}")
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
    Mutant("second", second_alone_mended, "only the second share is mended: the first needs it where the second has "
        "the larger score"),
    Mutant("first", first_alone_mended, "only the first share is mended: the second needs it where the first has the "
        "larger score"),
    Mutant("mean", mean_of_outputs, "this is the mean of the two outputs: they are sums, to be mended and added"),
    Mutant("divided", ("return top, total, output\n", "return top, total, output / total[..., None]\n"),
        "the output is divided by the total: keep the sum, and divide when no more keys come"),
    Mutant("smaller", ("torch.maximum(first[0], second[0])", "torch.minimum(first[0], second[0])"), "this is the "
        "smaller of the two: the largest score of all keys is the larger one"),
    Mutant("absolute", ("torch.maximum(first[0], second[0])", "torch.where((first[0].abs() > second[0].abs()) & "
        "first[0].isfinite() | second[0].isinf(), first[0], second[0])"), "this is the larger of the two in absolute "
        "value: below zero the larger score is the one nearer to 0"),
    Mutant("stand-in", ("top.masked_fill(top == -math.inf, 0.0)", "top.clamp(min=-1000.0)"), "a score may lie below "
        "the number that stands in for minus infinity: ask for minus infinity itself (`top == -math.inf`)"),
    Mutant("sum", ("return top, total, output\n", "return first[0] + second[0], total, output\n"), "the tops are "
        "added: the largest score of all keys is the larger of them"),
    Mutant("log-sum", log_sum_exp, "this is the logarithm of the sum of exponentials: a good thing to keep, but `top` "
        "is the largest score here, and `total` and `output` are relative to it"),
    Mutant("one-top", top_of_all_queries, "all queries have the same: each has a largest score of its own"),
    Mutant("base", ("return top, total, output\n", "return base, total, output\n"), "a query without a key got 0: its "
        "largest score stays minus infinity, or a later share with scores below zero is merged wrongly"),
    Mutant("finite", ("return top, total, output\n", "return top.clamp(min=-1e9), total, output\n"), "a query without "
        "a key got a large negative number: its largest score stays minus infinity, which no score is below"),
    Mutant("one-less", ("return top, total, output\n", "return top, total + (total == 0), output\n"), "it is not 0 "
        "where a query has no key: whoever divides at the end takes care of that, and a later share would be merged "
        "wrongly"),
    Mutant("averages", ("output = output + factor[..., None] * its_output",
        "output = output + (factor * its_total)[..., None] * its_output"), "each output is multiplied by its total, "
        "as an average would have to be: these are sums already"),
    Mutant("larger-alone", ("torch.exp(its_top - base)", "(its_top == top).float()"), "the share with the smaller "
        "score is dropped: it counts with exp(old - new), less than 1 but not 0"),
    Mutant("nonfinite", ("top.masked_fill(top == -math.inf, 0.0)", "top")),  # no base
    Mutant("nonfinite", both_raised),
    Mutant("mutates", in_place),
]  # fmt: skip


PART = Code(
    key="own-09.2a",
    prompt="Write `merge(first, second)`. Scores may be ten thousand, above or below zero, and a query may have "
    "no key in a share. The order of merging must not matter: ((a, b), c) and (a, (b, c)) leave what all leave as one.",
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
        "values": "Take two shares of one key each, with scores 1 and 3, and work the three results out by hand; then "
        "one that has no key (minus infinity, 0, 0): it changes nothing, and two such shares leave the same again.",
        "mutates": "Shares may be merged again by others: make new tensors.",
    },
    mutants=MUTANTS,
    explanation=r"""
Because the merge is associative (and commutative), keys can be cut into any shares and merged in any order: along a
loop, as FlashAttention's tiles are; in a tree, by many processors; around a ring of machines of which each has a part
of a long text (ring attention, Liu et al. 2023, arXiv:2310.01889). Rounding differs with the order, and nothing else.
""",
)
