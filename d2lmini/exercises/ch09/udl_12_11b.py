"""Part b of udl-12.11, "Kernels in place of the softmax": `linear_attention`."""

import math

import torch
from torch.nn import functional as F
from torch.utils import flop_counter
from torch.utils._python_dispatch import TorchDispatchMode

from d2lmini.exercises.ch09.udl_12_11a import _Features, _features
from d2lmini.exercises.engine import Code, Mutant
from d2lmini.measure import LargestTensor

LENGTHS = 192, 384


SLOPE, SPREAD = 1.3, 1.5  # one is linear, two is quadratic


class _Work(TorchDispatchMode):
    """Adds up the work: what torch's FlopCounterMode knows counts its FLOPs, all else the numbers that it makes."""

    work = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        flops = flop_counter.flop_registry.get(func._overloadpacket)
        if flops is not None:
            self.work += int(flops(*args, **kwargs, out_val=out))
        elif not func.is_view:
            made = out if isinstance(out, (list, tuple)) else [out]
            self.work += sum(x.numel() for x in made if isinstance(x, torch.Tensor))
        return out


def linear_attention(queries, keys, values, phi, mask=None):
    """Attention with the kernel of phi, in time and memory that grow linearly in T and S.

    Args:
        queries: (B, H, T, D), keys: (B, H, S, D), values: (B, H, S, E).
        phi: maps (..., D) to (..., R), positive numbers, be they tiny.
        mask: (B, S), boolean, True where a key may be attended to, in all heads; None: all of them.

    Returns:
        (B, H, T, E); zero where there is no key to attend to.
    """
    ### BEGIN SOLUTION
    to, by = phi(queries), phi(keys)  # (B, H, T, R), (B, H, S, R)
    if mask is not None:
        by = by * mask[:, None, :, None]  # after phi, for phi(0) is not 0
    state = by.mT @ values  # (B, H, R, E)
    normaliser = to @ by.sum(dim=2)[..., None]  # (B, H, T, 1)
    return torch.where(normaliser > 0, to @ state / normaliser, 0)
    ### END SOLUTION


def by_einsum(queries, keys, values, phi, mask=None):
    to, by = phi(queries), phi(keys)
    if mask is not None:
        by = by.masked_fill(~mask[:, None, :, None], 0)
    state = torch.einsum("bhsr,bhse->bhre", by, values)
    total = torch.einsum("bhtr,bhsr->bht", to, by.sum(2, keepdim=True))
    return torch.einsum("bhtr,bhre->bhte", to, state) / total.masked_fill(total == 0, 1)[..., None]


def with_ones(queries, keys, values, phi, mask=None):
    keep = torch.ones_like(keys[:, 0, :, 0]) if mask is None else mask.to(values)
    more = torch.cat([values, torch.ones_like(values[..., :1])], -1) * keep[:, None, :, None]
    sums = phi(queries) @ (phi(keys).mT @ more)
    return (sums[..., :-1] / sums[..., -1:]).nan_to_num()


def in_the_square(queries, keys, values, phi, mask=None):
    weights = phi(queries) @ phi(keys).mT
    if mask is not None:
        weights = weights * mask[:, None, None]
    return (weights @ values / weights.sum(-1, keepdim=True)).nan_to_num()


def one_query_at_a_time(queries, keys, values, phi, mask=None):
    rows = [in_the_square(query, keys, values, phi, mask) for query in queries.split(1, 2)]
    return torch.cat(rows, 2)


def over_the_queries(queries, keys, values, phi, mask=None):
    to, by = phi(queries), phi(keys)
    if mask is not None:
        by = by * mask[:, None, :, None]
    return to @ (by.mT @ (values / (by @ to.sum(2)[..., None]).clamp(min=1e-9)))


def each_for_itself(queries, keys, values, phi, mask=None):
    """Queries are normalised over the features, keys over the sequence."""
    to, by = phi(queries), phi(keys)
    if mask is not None:
        by = by * mask[:, None, :, None]
    to, by = to / to.sum(-1, keepdim=True), by / by.sum(2, keepdim=True).clamp(min=1e-9)
    return to @ (by.mT @ values)


def softmax_as_ever(queries, keys, values, phi, mask=None):
    mask = None if mask is None else mask[:, None, None]
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask).nan_to_num()


def softmax_of_features(queries, keys, values, phi, mask=None):
    scores = phi(queries) @ phi(keys).mT
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None], -torch.inf)
    return (scores.softmax(-1) @ values).nan_to_num()


def _quadratic(queries, keys, values, weight, allowed):
    """In float64, with all pairs; allowed: (B, 1, T or 1, S)."""
    phi = _Features(weight)
    table = torch.einsum("bhtr,bhsr->bhts", phi(queries), phi(keys)) * allowed
    return torch.einsum("bhts,bhse->bhte", table / table.sum(-1, keepdim=True).clamp(min=1e-300), values)


def _grows_linearly(t, run):
    """Reject an answer whose work or largest tensor grows faster than the length; ``run`` calls it at a length."""
    work, largest = [], []
    for T in LENGTHS:
        with t.watching(_Work, "work") as done, t.watching(LargestTensor, "numel") as seen:
            run(T)
        work.append(done.work)
        largest.append(seen.numel)
    doublings = math.log2(LENGTHS[1] / LENGTHS[0])
    lengths = f"from {LENGTHS[0]} to {LENGTHS[1]} tokens"
    t.that(
        math.log2(largest[1] / largest[0]) / doublings < SPREAD,
        "square",
        f"the largest tensor grows by {largest[1] / largest[0]:.1f} times {lengths}, which are twice as many: a tensor "
        "has an axis of queries and one of keys",
    )
    slope = math.log2(work[1] / work[0]) / doublings
    t.that(
        slope < SLOPE,
        "quadratic",
        f"the work grows by {work[1] / work[0]:.1f} times {lengths}, which are twice as many",
    )


def verify_linear(t, answer):
    B, S, D, E, R, heads, length = t.sizes(7, 4, 13)
    for case, H, T, size in (
        ("without a mask", heads, length, 1.0),
        ("with a mask", heads, length, 1.0),
        ("with a mask that leaves one sequence no key", 1, length, 1.0),
        ("with a mask, as many queries as keys, and tiny features", B, S, 1e-6),
    ):
        queries, keys = t.randn(B, H, T, D, scale=0.5), t.randn(B, H, S, D, scale=0.5)
        values, phi = t.randn(B, H, S, E), _Features(_features(t, D, R).weight, size)
        mask = t.rand(B, S) < 0.6
        mask[:, 0], mask[:, -2:] = True, False
        if "no key" in case:
            mask[t.random.randrange(B)] = False
        if case.startswith("without"):
            mask = None
        allowed = torch.ones(1, 1, 1, S) if mask is None else mask.cpu()[:, None, None].double()
        want = _quadratic(*(x.cpu().double() for x in (queries, keys, values, phi.weight)), allowed)
        inputs = (queries, keys, values, phi) if mask is None else (queries, keys, values, phi, mask)
        t.same(t.call(answer, *inputs), want, f"the result {case}")

    def run(length):
        queries, keys, values = (t.randn(1, 2, length, d) for d in (4, 4, 5))
        t.call(answer, queries, keys, values, _features(t, 4, 3), t.rand(1, length) < 0.6)

    _grows_linearly(t, run)


EPS = (
    "the denominator is not that of the formula: a small number added to it, or a smallest value for it, outweighs "
    "features that are tiny themselves"
)

MUTANTS = [
    Mutant("square", in_the_square),
    Mutant("quadratic", one_query_at_a_time),
    Mutant("unnormalised", ("to @ state / normaliser", "to @ state"), "this is the numerator alone: divide by phi(q_t) "
        "times the sum of the keys' features"),
    Mutant("over-queries", over_the_queries, "the weights of each key sum to one over the queries; those of each query "
        "should, over the keys"),
    Mutant("each-for-itself", each_for_itself, "features of queries and of keys are normalised each for itself: divide "
        "by their inner product, phi(q_t) times the sum of the keys' features"),
    Mutant("no-phi", ("phi(queries), phi(keys)", "queries, keys"), "queries and keys are multiplied as they are: where "
        "is phi?"),
    Mutant("eps", ("torch.where(normaliser > 0, to @ state / normaliser, 0)",
        "to @ state / normaliser.clamp(min=1e-9)"), EPS),
    Mutant("softmax", softmax_as_ever, "this is softmax attention: use the kernel of phi"),
    Mutant("softmax-features", softmax_of_features, "the products of features are put through a softmax: phi stands in "
        "place of exp"),
    Mutant("mask-ignored", ("mask is not None", "False"), "the mask is not used"),
    Mutant("mask-turned", ("by * mask[:, None, :, None]", "by * ~mask[:, None, :, None]"), "the mask is turned round: "
        "True is where a key may be attended to"),
    Mutant("masked-early", ("by = by * mask[:, None, :, None]", "by = phi(keys * mask[:, None, :, None])"),
        "keys are set to zero before phi, and phi(0) is not 0: mask the features"),
    Mutant("filled-early", ("by = by * mask[:, None, :, None]",
        "by = phi(keys.masked_fill(~mask[:, None, :, None], -1e9))"), "masked keys are filled with a large negative "
        "number before phi, as scores are before a softmax; phi makes anything of it: set the features to zero"),
    Mutant("values-masked", ("by = by * mask[:, None, :, None]", "values = values * mask[:, None, :, None]"),
        "masked keys still count in the normaliser: mask both sums"),
    Mutant("by-number", ("to @ by.sum(dim=2)[..., None]", "(to * 0 + keys.shape[2]).mean(dim=-1, keepdim=True)"),
        "divided by the number of keys: divide by phi(q_t) times the sum of the keys' features"),
    Mutant("raised", ("phi(queries), phi(keys)", "queries, phi(keys)")),  # features of queries not made
    Mutant("eps", ("to @ state / normaliser", "to @ state / (normaliser + 1e-6)"), EPS),
    Mutant("queries-masked", ("by = by * mask[:, None, :, None]", "by = by * mask[:, None, :, None]\n        to = to * "
        "mask[:, None, :, None] if to.shape == by.shape else to"), "queries are masked, too: the mask is one of keys"),
    # 0 / 0
    Mutant("nonfinite", ("torch.where(normaliser > 0, to @ state / normaliser, 0)", "to @ state / normaliser")),
    Mutant("scaled", ("phi(queries), phi(keys)", "phi(queries / math.sqrt(queries.shape[-1])), phi(keys)"),
        "the queries are divided by the root of D: phi gets them as they are"),
    Mutant("phi-of-mean", ("by.sum(dim=2)[..., None]", "phi(keys.sum(dim=2))[..., None]"), "the normaliser has phi of "
        "the sum of the keys: sum their features, for phi is not linear"),
    Mutant("values-alone", ("state = by.mT @ values", "state = by.sum(dim=2)[..., None] * values.mean(dim=2, "
        "keepdim=True)"),
        "keys and values are summed apart: sum the products phi(k_s) v_s"),
    Mutant("mask-once", ("state = by.mT @ values", "state = phi(keys).mT @ values"), "the mask is in the normaliser "
        "alone: masked keys still bring their values"),
    Mutant("heads", ("state = by.mT @ values", "state = (by.mT @ values).mean(dim=1, keepdim=True)"),
        "the heads share their sums: each head has its own"),
]  # fmt: skip


PART = Code(
    key="udl-12.11b",
    prompt=r"""
Write `linear_attention(queries, keys, values, phi, mask=None)` for a batch with several heads. No tensor may have an
axis of queries and one of keys, and no loop may bring the pairs back: the check counts operations at two
lengths (FLOPs of products of matrices, and the numbers that all else makes) and wants them to grow as the length does.
""",
    hints=[
        "Which of the two orders of part (a) never makes T times S numbers?",
        "A key that is masked must add nothing to either sum. What is phi of a key of zeros?",
        "Where no key is left, both sums are zero: 0 / 0. The output is to be zero.",
    ],
    answer=linear_attention,
    verify=verify_linear,
    alternatives=[by_einsum, with_ones],
    min_checks=12,
    advice={
        "nonfinite": "A masked key's features are zero (minus infinity is for scores before a softmax). And "
        "what becomes of 0 / 0 where a sequence has no key to attend to?",
        "values": "Two sums over the keys, of phi(k) v and of phi(k), each with the masked keys left out: multiply "
        "phi(k) by mask[:, None, :, None], for phi(0) is not 0. Read both with phi(q), nothing scaled, and divide.",
        "square": "Sum over the keys first: phi(K)ᵀ V has R rows.",
        "quadratic": "A loop over queries that goes through all keys for each is the same work as a square.",
    },
    mutants=MUTANTS,
    explanation=r"""
The work for each head is $O((T + S)\, R\, E)$ in place of $O(T\, S\, (D + E))$. That is less as soon as the
length is well above R; for short sequences, or an R in the thousands, the square is cheaper. A mask of *keys* fits in,
since it leaves keys out for all queries alike. A mask with a row of its own for each query does not, in general: then
the sums depend on t.
""",
)
