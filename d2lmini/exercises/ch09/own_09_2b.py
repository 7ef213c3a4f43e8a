"""Part b of own-09.2, "A softmax that never sees all scores": `stream_attention`."""

import math
from functools import partial, reduce

import torch
from torch.multiprocessing.reductions import StorageWeakRef

import d2lmini as d2l
from d2lmini.exercises.ch09.own_09_2a import merge
from d2lmini.exercises.engine import Code, Mutant
from d2lmini.measure import LargestTensor


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


def shares_in_a_list(queries, tiles):
    """What each tile leaves is kept, and merged at the end."""
    shares = []
    for keys, values, seen in tiles:
        scores = (queries @ keys.mT / math.sqrt(queries.shape[-1])).masked_fill(~seen[:, None], -math.inf)
        top = scores.amax(-1)
        powers = torch.exp(scores - top.nan_to_num(neginf=0.0)[..., None])
        shares.append((top, powers.sum(-1), powers @ values))
    _, total, output = reduce(merge, shares)
    return output / total.clamp(min=1e-30)[..., None]


def kept_besides(queries, tiles, keep):
    """Right, but for what is kept of each tile's scores."""
    kept = []

    def passing():
        for keys, values, seen in tiles:
            kept.append(keep(queries @ keys.mT))
            yield keys, values, seen

    return stream_attention(queries, passing())


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


class _Held(LargestTensor):
    """Within it, ``most`` is how many bytes of tensors made there were alive at once, at most; to 10 %."""

    def __init__(self):
        super().__init__()
        self.most, self._alive = 0, {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = super().__torch_dispatch__(func, types, args, kwargs)
        for x in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(x, torch.Tensor):
                storage = x.untyped_storage()
                self._alive[storage.data_ptr()] = StorageWeakRef(storage), storage.nbytes()
        if self._bytes() > 1.1 * self.most:  # what is dead is looked for only where it matters
            self._alive = {place: held for place, held in self._alive.items() if not held[0].expired()}
            self.most = max(self.most, self._bytes())
        return made

    def _bytes(self):
        return sum(size for _, size in self._alive.values())


class _Stream:
    """Tiles, made one after the other from a seed, once."""

    def __init__(self, like, seed, sizes, E, scale, hidden):
        self.like, self.seed, self.sizes, self.E, self.scale, self.hidden = like, seed, sizes, E, scale, hidden
        self.opened = 0

    def tile(self, i):
        B, _, D = self.like.shape
        n, random = self.sizes[i], torch.Generator().manual_seed(self.seed + i)
        keys = self.scale * torch.randn(B, n, D, generator=random)
        if self.scale > 1:  # scores of 10,000 or -10,000 and some hundreds, without rounding errors
            keys = keys.round()
            keys[..., 0] = 2e4
        values, seen = torch.randn(B, n, self.E, generator=random), torch.rand(B, n, generator=random) < 0.7
        seen[:, 0] |= i > 0
        if self.hidden is not None:
            seen[self.hidden] = False
        return tuple(x.to(self.like.device) for x in (keys, values, seen))

    def __iter__(self):
        self.opened += 1
        if self.opened > 1:
            raise RuntimeError("the tiles have gone by: a stream can be read once")
        for i in range(len(self.sizes)):
            yield self.tile(i)


def verify_stream(t, answer):
    B, T, D, E = t.sizes(4, 5, 10)
    for case, scale, count in (
        ("one tile", 1.0, 1),
        ("tiles of several sizes", 1.0, 5),
        ("tiles with scores about 10,000 and -10,000", 300.0, 4),
        ("tiles, where one example has no key", 1.0, 4),
    ):
        hidden = t.random.randrange(B) if "no key" in case else None
        sizes = [t.random.randint(1, 12) for _ in range(count)]
        if count > 1:
            sizes[:2] = 3, 11
        queries, seed = t.randn(B, T, D), t.random.randrange(2**30)
        if scale > 1:
            queries = t.integers(-1, 2, B, T, 4).float()  # sqrt(4) is exact
            queries[:, ::2, 0], queries[:, 1::2, 0] = 1, -1
        # tile by tile, made from the seed again
        stream = _Stream(queries.cpu(), seed, sizes, E, scale, hidden)
        keys, values, seen = (torch.cat(parts, 1) for parts in zip(*stream, strict=True))
        scores = (queries.cpu().double() @ keys.double().mT / math.sqrt(queries.shape[-1])).masked_fill(
            ~seen[:, None], -math.inf
        )
        want = scores.softmax(-1).nan_to_num() @ values.double()
        got = t.call(answer, queries, _Stream(queries, seed, sizes, E, scale, hidden))
        t.same(got, want, f"the result for {case}", tolerance=(1e-3, 1e-4))
    queries, held = t.randn(2, 3, 4), []
    for count in FEW, MANY:
        with t.watching(_Held, "most") as seen:
            t.call(answer, queries, _Stream(queries, t.random.randrange(2**30), [8] * count, 5, 1.0, None))
        held.append(seen.most)
    t.that(
        held[1] <= 1.5 * held[0],
        "memory",
        f"with {MANY} tiles in place of {FEW}, tensors of {held[1] / held[0]:.1f} times as many bytes are alive at "
        "once: what is kept must not grow with the number of tiles",
    )


FEW, MANY = 4, 150

MUTANTS = [
    Mutant("memory", all_at_once),
    Mutant("memory", kept_in_a_list),
    Mutant("memory", shares_in_a_list),
    Mutant("memory", partial(kept_besides, keep=torch.clone)),
    Mutant("memory", partial(kept_besides, keep=lambda scores: scores.amax(-1))),
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
    Mutant("hidden-top", ("new = scores.amax(", "new = (queries @ keys.mT / math.sqrt(queries.shape[-1])).amax("),
        "the largest score is that of a hidden key, beside which those that may be seen round to nothing: hide first, "
        "then take the largest"),
    Mutant("not-mended", ("mend = torch.exp(top - base)", "mend = 1.0"), "the sums so far are not mended when a larger "
        "score comes"),
    Mutant("output", ("mend * output +", "output +"), "the total is mended when a larger score comes, and the output "
        "is not"),
    Mutant("total", ("mend * total +", "total +"), "the output is mended when a larger score comes, and the total is "
        "not"),
    Mutant("nonfinite", (".clamp(min=top)", "")),  # largest of the tile
    Mutant("from-zero", ("output = -math.inf, 0.0, 0.0", "output = 0.0, 0.0, 0.0"), "queries whose scores are all far "
        "below zero get nothing: does the largest score begin at 0, or do low scores count as hidden? Begin with minus "
        "infinity"),
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


PART = Code(
    key="own-09.2b",
    prompt="Write `stream_attention(queries, tiles)`. Scores may be ten thousand, above or below zero. What is kept "
    "must not grow with the number of tiles: the check adds up the bytes of all tensors alive at once, tiles too.",
    hints=[
        "Each tile leaves a share: its scores, their largest, two sums. Merge it into what there is so far.",
        "Begin with what no key leaves: minus infinity, zero and zero.",
        "Divide once, at the end. Which queries would divide by zero?",
    ],
    answer=stream_attention,
    verify=verify_stream,
    alternatives=[by_the_package, by_merging, by_log_sums],
    without={"alone": "a stream of tiles is read once"},
    min_checks=11,
    advice={
        "nonfinite": "Three places to look at. exp(old - new) overflows unless the new largest score is at "
        "least the old one, that of all tiles so far. Minus infinity less itself is NaN: what if no key has "
        "come yet? And where an example has no key at all, the total is zero.",
        "raised": "If the tiles have gone by: a stream goes by once, so the largest score of all keys is not known "
        "before the sums begin. If shapes do not fit: `seen`, (B, n), has no axis of queries: `seen[:, None]`.",
        "values": "Try one tile of two keys, then the same keys as two tiles, beside a softmax over both. Scores are "
        "divided by the root of D, the queries' last size, and what a tile hides from one example others may see. A "
        "hidden key counts nowhere, not for the largest score either.",
        "memory": "Is there a list to which each tile adds something, be it small? Take each tile into `top`, `total` "
        "and `output`, and let go of it.",
    },
    mutants=MUTANTS,
    explanation=r"""
What is kept has T (E + 2) numbers for each example, and a tile has T n scores. The answer is exact: this is no
approximation of attention, as sparse patterns and kernels are, but another order of the same additions. The work is
that of all pairs, as before.
""",
)
