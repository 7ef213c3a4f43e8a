r"""A softmax that never sees all scores

A query needs $\sum_s e^{x_s} \mathbf v_s \,/ \sum_s e^{x_s}$, with its scores x. Large scores overflow, so the largest
is subtracted first. But what if the keys come a few at a time, as tiles of a fused kernel do, or lie on several
machines, so that nobody ever sees all of them? Then each works on its own share, and shares are *merged*.

A share of the keys leaves three things, for each of T queries:

- `top`, (B, T): the largest of its scores; minus infinity where it has no key that the query may attend to;
- `total`, (B, T): the sum of exp(x - top) over its keys; 0 where there are none;
- `output`, (B, T, E): the sum of exp(x - top) times the value, over the same keys; not divided by anything.
"""

import math
import weakref

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option
from d2lmini.measure import LargestTensor


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


def stream_attention(queries, tiles):
    """Scaled dot-product attention to keys that come a few at a time, and that nobody could keep.

    Args:
        queries: (B, T, D).
        tiles: gives (keys, values, seen) in a loop, ``for keys, values, seen in tiles``, and once only. Shapes
            (B, n, D), (B, n, E) and (B, n), n from tile to tile another, at least 1. ``seen`` is boolean, True where
            a key may be attended to. There is at least one tile.

    Returns:
        (B, T, E); zeros for the queries of an example without a key.
    """
    ### BEGIN SOLUTION
    top, total, output = -math.inf, 0.0, 0.0
    for keys, values, seen in tiles:
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])  # (B, T, n)
        scores = scores.masked_fill(~seen[:, None, :], -math.inf)
        new = scores.amax(dim=-1, keepdim=True).clamp(min=top)  # (B, T, 1)
        base = new.masked_fill(new == -math.inf, 0.0)
        powers = torch.exp(scores - base)
        mend = torch.exp(top - base)
        total = mend * total + powers.sum(dim=-1, keepdim=True)
        output = mend * output + powers @ values
        top = new
    return output / total.masked_fill(total == 0, 1.0)
    ### END SOLUTION


def by_the_package(queries, tiles):
    softmax = d2l.OnlineSoftmax()
    for keys, values, seen in tiles:
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        softmax.add(scores.masked_fill(~seen[:, None], -math.inf), values)
    return softmax.average()


def by_merging(queries, tiles):
    so_far = None
    for keys, values, seen in tiles:
        scores = torch.einsum("btd,bnd->btn", queries, keys) * queries.shape[-1] ** -0.5
        scores = scores.masked_fill(~seen[:, None], -math.inf)
        top = scores.amax(-1)
        powers = torch.exp(scores - top.nan_to_num(neginf=0.0)[..., None])
        share = top, powers.sum(-1), powers @ values
        so_far = share if so_far is None else merge(so_far, share)
    return so_far[2] / so_far[1].clamp(min=1e-30)[..., None]


def by_log_sums(queries, tiles):
    """Averages and logarithms of sums of exponentials."""
    average, log_sum = 0.0, None
    for keys, values, seen in tiles:
        scores = (queries @ keys.mT / math.sqrt(queries.shape[-1])).masked_fill(~seen[:, None], -math.inf)
        its = scores.logsumexp(-1, keepdim=True)
        log_sum = torch.full_like(its, -math.inf) if log_sum is None else log_sum
        both = torch.logaddexp(log_sum, its).nan_to_num(neginf=0.0)
        average = average * (log_sum - both).exp() + (scores - both).exp() @ values
        log_sum = torch.logaddexp(log_sum, its)
    return average


# mistakes


def all_at_once(queries, tiles):
    keys, values, seen = (torch.cat(parts, 1) for parts in zip(*tiles, strict=True))
    scores = (queries @ keys.mT / math.sqrt(queries.shape[-1])).masked_fill(~seen[:, None], -math.inf)
    return scores.softmax(-1).nan_to_num() @ values


def kept_in_a_list(queries, tiles):
    """No large tensor, but all tiles."""
    return stream_attention(queries, list(tiles))


def twice(queries, tiles):
    """The largest score first."""
    root = math.sqrt(queries.shape[-1])
    tops = [(queries @ k.mT / root).masked_fill(~s[:, None], -math.inf).amax(-1, keepdim=True) for k, _, s in tiles]
    top, total, output = torch.stack(tops).amax(0), 0.0, 0.0
    for keys, values, seen in tiles:
        scores = (queries @ keys.mT / root).masked_fill(~seen[:, None], -math.inf)
        powers = torch.exp(scores - top.nan_to_num(neginf=0.0))
        total, output = total + powers.sum(-1, keepdim=True), output + powers @ values
    return output / total.clamp(min=1e-30)


def bare_powers(queries, tiles):
    total, output = 0.0, 0.0
    for keys, values, seen in tiles:
        powers = torch.exp(queries @ keys.mT / math.sqrt(queries.shape[-1])) * seen[:, None]
        total, output = total + powers.sum(-1, keepdim=True), output + powers @ values
    return output / torch.where(total == 0, 1, total)


def _each_tile(queries, tiles):
    for keys, values, seen in tiles:
        scores = (queries @ keys.mT / math.sqrt(queries.shape[-1])).masked_fill(~seen[:, None], -math.inf)
        yield scores.softmax(-1).nan_to_num() @ values, scores.shape[-1]


def mean_of_tiles(queries, tiles):
    outputs = [output for output, _ in _each_tile(queries, tiles)]
    return sum(outputs) / len(outputs)


def mean_by_size(queries, tiles):
    outputs = list(_each_tile(queries, tiles))
    return sum(n * output for output, n in outputs) / sum(n for _, n in outputs)


def the_last_tile(queries, tiles):
    return list(_each_tile(queries, tiles))[-1][0]


class _Stream:
    """Tiles, made one after the other from a seed, once; sees how many of its keys are kept."""

    def __init__(self, like, seed, sizes, E, scale, hidden):
        self.like, self.seed, self.sizes, self.E, self.scale, self.hidden = like, seed, sizes, E, scale, hidden
        self.opened, self.most = 0, 0

    def tile(self, i):
        B, _, D = self.like.shape
        n, random = self.sizes[i], torch.Generator().manual_seed(self.seed + i)
        keys = self.scale * torch.randn(B, n, D, generator=random)
        keys = keys.round() if self.scale > 1 else keys  # large scores without rounding errors
        values, seen = torch.randn(B, n, self.E, generator=random), torch.rand(B, n, generator=random) < 0.7
        seen[:, 0] |= i > 0
        if self.hidden is not None:
            seen[self.hidden] = False
        return tuple(x.to(self.like.device) for x in (keys, values, seen))

    def __iter__(self):
        self.opened += 1
        if self.opened > 1:
            raise RuntimeError("the tiles have gone by: a stream can be read once")
        kept = []
        for i in range(len(self.sizes)):
            tile = self.tile(i)
            kept = [one for one in kept if one() is not None] + [weakref.ref(tile[0])]
            self.most = max(self.most, len(kept))
            yield tile
            del tile


def _read(given):
    return given[1].most


def verify_stream(t, answer):
    B, T, D, E = t.sizes(4, 5, 10)
    for case, scale, count in (
        ("one tile", 1.0, 1),
        ("tiles of several sizes", 1.0, 5),
        ("tiles with scores in the thousands", 3e3, 4),
        ("tiles, where one example has no key", 1.0, 4),
    ):
        hidden = t.random.randrange(B) if "no key" in case else None
        sizes = [t.random.randint(1, 12) for _ in range(count)]
        if count > 1:
            sizes[:2] = 3, 11
        queries, seed = t.randn(B, T, D), t.random.randrange(2**30)
        if scale > 1:
            queries = 2 * queries[..., :1].expand(-1, -1, 4).sign() + t.integers(-1, 2, B, T, 4)  # sqrt(4) is exact
        # tile by tile, made from the seed again
        stream = _Stream(queries.cpu(), seed, sizes, E, scale, hidden)
        keys, values, seen = (torch.cat(parts, 1) for parts in zip(*stream, strict=True))
        scores = (queries.cpu().double() @ keys.double().mT / math.sqrt(queries.shape[-1])).masked_fill(
            ~seen[:, None], -math.inf
        )
        want = scores.softmax(-1).nan_to_num() @ values.double()
        got = t.call(answer, queries, _Stream(queries, seed, sizes, E, scale, hidden))
        t.same(got, want, f"the result for {case}", tolerance=(1e-3, 1e-4))
    queries, largest = t.randn(2, 3, 4), []
    for count in (4, 64):
        with t.watching(LargestTensor, "numel") as seen:
            t.call(answer, queries, _Stream(queries, t.random.randrange(2**30), [8] * count, 5, 1.0, None))
        largest.append(seen.numel)
    t.that(
        largest[1] <= largest[0],
        "memory",
        f"with 16 times as many tiles the largest tensor is {largest[1] / largest[0]:.0f} times as large: what is kept "
        "must not grow with the number of keys",
    )
    kept = t.look(_read)
    t.that(kept <= 3, "kept", f"{kept} tiles of {count} were held at once: let go of each before the next comes")


ADDED = "the two are added as they are: each was made with another largest score, and has to be mended to the new one"

MUTANTS_A = [
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

MUTANTS_B = [
    Mutant("memory", all_at_once),
    Mutant("kept", kept_in_a_list),
    Mutant("raised", twice),
    Mutant("nonfinite", bare_powers),
    Mutant("unscaled", (" / math.sqrt(queries.shape[-1])", ""), "the scores are not divided by sqrt(D)"),
    Mutant("mask-ignored", ("scores.masked_fill(~seen[:, None, :], -math.inf)", "scores"), "`seen` is not used: hidden "
        "keys count"),
    Mutant("mask-turned", ("masked_fill(~seen[", "masked_fill(seen["), "`seen` is turned round: True is where a key "
        "may be attended to"),
    Mutant("finite", ("seen[:, None, :], -math.inf)", "seen[:, None, :], -1e9)"), "queries without a key get the mean "
        "of all values: with a large negative number in place of minus infinity all hidden keys are alike, and exp(0) "
        "is 1"),
    Mutant("zero-scores", ("seen[:, None, :], -math.inf)", "seen[:, None, :], 0.0)"), "hidden keys have a score of "
        "zero, and exp(0) is 1: minus infinity hides"),
    Mutant("not-mended", ("mend = torch.exp(top - base)", "mend = 1.0"), "the sums so far are not mended when a larger "
        "score comes"),
    Mutant("output", ("mend * output +", "output +"), "the total is mended when a larger score comes, and the output "
        "is not"),
    Mutant("total", ("mend * total +", "total +"), "the output is mended when a larger score comes, and the total is "
        "not"),
    Mutant("nonfinite", (".clamp(min=top)", "")),  # largest of the tile
    Mutant("tile-mean", mean_of_tiles, "each tile has a softmax of its own, and their outputs are averaged: a tile "
        "with larger scores must count more"),
    Mutant("size-mean", mean_by_size, "tiles are averaged by their number of keys: they count by their sums of "
        "exponentials"),
    Mutant("last-tile", the_last_tile, "this is attention to the last tile alone"),
    Mutant("undivided", ("output / total.masked_fill(total == 0, 1.0)", "output"), "this is the numerator alone: "
        "divide by the total at the end"),
    Mutant("nonfinite", ("total.masked_fill(total == 0, 1.0)", "total")),  # divided by nothing
    Mutant("nonfinite", ("new.masked_fill(new == -math.inf, 0.0)", "new")),  # no base
]  # fmt: skip


EXERCISE = Exercise(
    key="own-09.2",
    doc=__doc__,
    source="own",
    parts=[
        Code(
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
            mutants=MUTANTS_A,
            explanation=r"""
Because the merge is associative (and commutative), keys can be cut into any shares and merged in any order: along a
loop, as FlashAttention's tiles are; in a tree, by many processors; around a ring of machines of which each has a part
of a long text (ring attention, Liu et al. 2023, arXiv:2310.01889). Rounding differs with the order, and nothing else.
""",
        ),
        Code(
            key="own-09.2b",
            prompt="Write `stream_attention(queries, tiles)`. What is kept must not grow with the number of tiles: the "
            "check looks at the largest tensor that is made, and at how many tiles are alive at once.",
            hints=[
                "Each tile leaves a share: its scores, their largest, two sums. Merge it into what there is so far.",
                "Begin with what no key leaves: minus infinity, zero and zero.",
                "Divide once, at the end. Which queries would divide by zero?",
            ],
            answer=stream_attention,
            verify=verify_stream,
            alternatives=[by_the_package, by_merging, by_log_sums],
            min_checks=12,
            advice={
                "nonfinite": "Three places to look at. exp(old - new) overflows unless the new largest score is at "
                "least the old one, that of all tiles so far. Minus infinity less itself is NaN: what if no key has "
                "come yet? And where an example has no key at all, the total is zero.",
                "raised": "A stream goes by once: the largest score of all keys cannot be known before the sums begin.",
                "memory": "Take each tile into `top`, `total` and `output`.",
            },
            mutants=MUTANTS_B,
            explanation=r"""
What is kept has T (E + 2) numbers for each example, and a tile has T n scores. The answer is exact: this is no
approximation of attention, as sparse patterns and kernels are, but another order of the same additions. The work is
that of all pairs, as before.
""",
        ),
        Choice(
            key="own-09.2c",
            prompt="Somebody keeps for each share the *average* of its values and the logarithm L of its sum of "
            "exponentials, two things in place of three. Can averages be merged?",
            hints=[
                "With which weights are two averages the average of all?",
                "A share's sum of exponentials is exp(L). What is the sum of both?",
            ],
            options=[
                Option(
                    "No: what was divided cannot be mended any more.",
                    "It can be multiplied again, with exp(L). L has what the division took away.",
                ),
                Option(
                    "Yes, with weights by the numbers of keys.",
                    "That is right where all scores are equal. A share with larger scores must count more.",
                ),
                Option(
                    "Yes, with weights exp(L₁ - L) and exp(L₂ - L), where L = log(exp L₁ + exp L₂).",
                    "Each average is worth its sum of exponentials, and these weights sum to one. No weight is above "
                    "one, and `torch.logaddexp` does not overflow. What is kept from such an attention for its "
                    "backward pass is L, too.",
                    right=True,
                ),
                Option(
                    "Yes, but scores must be small, since exp(L) overflows.",
                    "exp(L) is never formed: differences L₁ - L are at most zero.",
                ),
            ],
        ),
    ],
)
