r"""Attention in chunks

The (T, S) matrix of weights need never exist. Keys and values can come in chunks: what is needed of all earlier chunks
fits into three small things for each query,

- $m$, the largest score so far,
- $\ell = \sum_i e^{a_i - m}$, over the keys so far,
- $\mathbf o = \sum_i e^{a_i - m}\, \mathbf v_i$, over the same keys.

When a chunk brings a score larger than $m$, the old sums are expressed relative to the *old* maximum; one factor, the
same for all old terms, brings them up to date. At the end, $\mathbf o / \ell$ is what softmax attention gives. This is
the *online softmax*; fused kernels are built on it.

Write `chunked_attention(queries, keys, values, chunk)` for queries (B, T, D), keys (B, S, D) and values (B, S, E), with
the usual scores $\mathbf q^\top \mathbf k / \sqrt D$. It takes `chunk` keys at a time (the last chunk may be shorter,
and `chunk` may exceed S), returns (B, T, E), the same as plain attention up to rounding, and makes no tensor as large
as (B, T, S). Scores may be in the hundreds. The fused kernel of torch is not allowed: you are writing it.
"""

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from d2lmini.exercises.engine import Code, Exercise, LargestTensor, Mutant


def chunked_attention(queries, keys, values, chunk):
    """Softmax attention, a few keys at a time.

    Args:
        queries: (B, T, D).
        keys: (B, S, D).
        values: (B, S, E).
        chunk: how many keys to look at at once, at least 1.

    Returns:
        (B, T, E).
    """
    ### BEGIN SOLUTION
    shape = queries.shape[:-1]  # (B, T)
    top = queries.new_full((*shape, 1), -math.inf)  # the largest score so far
    total = queries.new_zeros(*shape, 1)  # sum of exponentials so far, relative to top
    output = queries.new_zeros(*shape, values.shape[-1])  # the same, weighted by the values
    scaled = queries / math.sqrt(queries.shape[-1])
    for start in range(0, keys.shape[1], chunk):
        some = slice(start, start + chunk)
        scores = scaled @ keys[:, some].transpose(1, 2)  # (B, T, chunk)
        higher = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        shrink = torch.exp(top - higher)  # brings the old sums up to date; 0 the first time
        powers = torch.exp(scores - higher)
        total = total * shrink + powers.sum(dim=-1, keepdim=True)
        output = output * shrink + powers @ values[:, some]
        top = higher
    return output / total
    ### END SOLUTION


def with_logsumexp(queries, keys, values, chunk):
    """Each chunk's own softmax and log-sum-exp; the results are mixed with a sigmoid."""
    mixed = seen = None
    for k, v in zip(keys.split(chunk, 1), values.split(chunk, 1), strict=True):
        scores = queries @ k.mT * queries.shape[-1] ** -0.5
        own, size = scores.softmax(-1) @ v, scores.logsumexp(-1, keepdim=True)
        if mixed is None:
            mixed, seen = own, size
        else:
            mixed = mixed + torch.sigmoid(size - seen) * (own - mixed)
            seen = torch.logaddexp(size, seen)
    return mixed


def in_two_passes(queries, keys, values, chunk):
    """First the maximum over all chunks, then the sums."""
    scaled = queries / queries.shape[-1] ** 0.5
    top = torch.stack([(scaled @ k.mT).amax(-1) for k in keys.split(chunk, 1)]).amax(0)[..., None]
    total, output = 0, 0
    for k, v in zip(keys.split(chunk, 1), values.split(chunk, 1), strict=True):
        powers = (scaled @ k.mT - top).exp()
        total, output = total + powers.sum(-1, keepdim=True), output + powers @ v
    return output / total


def all_at_once(queries, keys, values, chunk):
    return torch.softmax(queries @ keys.mT / math.sqrt(queries.shape[-1]), -1) @ values


def chunks_of_softmax_kept(queries, keys, values, chunk):
    scores = torch.cat([queries @ k.mT for k in keys.split(chunk, 1)], -1) / math.sqrt(queries.shape[-1])
    return torch.softmax(scores, -1) @ values


def borrowed(queries, keys, values, chunk):
    heads = (x[:, None] for x in (queries, keys, values))
    return torch.nn.functional.scaled_dot_product_attention(*heads)[:, 0]


class _Names(TorchDispatchMode):
    """Within it, the names of all operations are noted."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func._schema.name)
        return func(*args, **(kwargs or {}))


def verify(t, answer):
    B, T, D, E = t.sizes(4)
    S = t.random.randrange(11, 15)
    q, k, v = t.randn(B, T, D), t.randn(B, S, D), t.randn(B, S, E)
    for chunk in (4, 1, S, S + 3):  # 11 to 14 are no multiples of 4, but for 12: then 5 is taken
        chunk = 5 if chunk == 4 and S % 4 == 0 else chunk
        queries = q.clone().requires_grad_()
        want, slope, mistakes = _reference(q, k, v, chunk)
        got = t.call(answer, queries, k, v, chunk)
        t.same(got, want, f"the result for S={S}, chunk={chunk}", mistakes=mistakes)
        t.same(t.gradient(got, 0), slope, f"the gradient in the queries for chunk={chunk}", tolerance=(1e-3, 1e-4))

    # scores in the hundreds, growing along the keys, then falling: exp() of them is infinite
    for signs, name in ((1, "growing"), (-1, "falling")):
        ramp = signs * torch.linspace(-1, 1, S, device=t.device)[None, :, None].expand(B, S, D)
        queries, keys = t.rand(B, T, D, low=0.9, high=1.1), 300 / math.sqrt(D) * ramp + t.randn(B, S, D)
        want, _, _ = _reference(queries, keys, v, 4)
        got = t.call(answer, queries, keys, v, 4)
        t.same(got, want, f"the result for large scores, {name} along the keys", tolerance=(1e-3, 1e-3))

    T, S, chunk = 33, 96, 8
    inputs = t.randn(2, T, 4), t.randn(2, S, 4), t.randn(2, S, 4)  # torch has its kernel for equal sizes
    with LargestTensor() as seen, _Names() as ops, torch.no_grad():
        t.call(answer, *inputs, chunk)
    t.that(
        not any("scaled_dot_product" in name for name in ops.names),
        "borrowed",
        "this calls torch's own fused kernel; write the loop over the chunks yourself",
    )
    t.that(
        seen.numel < 2 * T * S,
        "memory",
        f"with T={T}, S={S}, chunk={chunk} your code makes a tensor of {seen.numel} entries; (B, T, S) has {2 * T * S}",
    )


def _reference(queries, keys, values, chunk):
    """Result and gradient in the queries in float64, and what known mistakes give."""
    q, k, v = (x.detach().cpu().double() for x in (queries, keys, values))
    q.requires_grad_()
    scores = torch.einsum("btd,bsd->bts", q, k) / math.sqrt(q.shape[-1])
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    want = powers @ v / powers.sum(-1, keepdim=True)
    (slope,) = torch.autograd.grad(want.sum(), q)
    with torch.no_grad():
        pieces, parts = scores.split(chunk, -1), v.split(chunk, 1)
        own = [torch.exp(a - a.amax(-1, keepdim=True)) for a in pieces]  # each relative to its own maximum

        def attend(a):
            return torch.softmax(a, -1) @ v

        whole = chunk * (k.shape[1] // chunk)
        mistakes = {"unscaled": (attend(scores * math.sqrt(q.shape[-1])), "the scores are not divided by sqrt(D)")}
        if len(pieces) > 1:
            over_old, total, top = 0.0, 0.0, torch.full_like(scores[..., :1], -math.inf)
            updated, updated_total = 0.0, 0.0  # these are rescaled when the maximum rises, the other two are not
            for a, b in zip(pieces, parts, strict=True):
                higher = torch.maximum(top, a.amax(-1, keepdim=True))
                shrink, p = torch.exp(top - higher), torch.exp(a - higher)
                over_old, total = over_old + p @ b, total + p.sum(-1, keepdim=True)
                updated = updated * shrink + p @ b
                updated_total = updated_total * shrink + p.sum(-1, keepdim=True)
                top = higher
            local = sum(p @ b for p, b in zip(own, parts, strict=True))
            local_total = sum(p.sum(-1, keepdim=True) for p in own)
            averages = torch.stack([torch.softmax(a, -1) @ b for a, b in zip(pieces, parts, strict=True)])
            mistakes |= {
                "no-rescaling": (
                    over_old / total,
                    "when the maximum rises, the sums of earlier chunks must be multiplied by exp(old maximum - new)",
                ),
                "total-not-rescaled": (updated / total, "the weighted sum is brought up to date, the total is not"),
                "output-not-rescaled": (over_old / updated_total, "the total is brought up to date, the output is not"),
                "own-maxima": (
                    local / local_total,
                    "each chunk is relative to its own maximum: sums of different chunks cannot be added so",
                ),
                "average": (
                    averages.mean(0),
                    "each chunk has its own softmax and they are averaged: chunks with small scores count too much",
                ),
                "sum": (averages.sum(0), "each chunk has its own softmax and they are added up: this sums to many"),
                "last-chunk": (averages[-1], "this is the attention to the last chunk alone"),
                "first-chunk": (averages[0], "this is the attention to the first chunk alone"),
                "not-divided": (updated, "at the end the weighted sum must be divided by the total"),
            }
        if 0 < whole < k.shape[1]:
            mistakes["remainder"] = (
                torch.softmax(scores[..., :whole], -1) @ v[:, :whole],
                "the last, shorter chunk is left out",
            )
    return want.detach(), slope, mistakes


EXERCISE = Exercise(
    key="d2l-11.7.5",
    doc=__doc__,
    source="D2L 11.7, exercise 5",
    chapter="07",
    parts=[
        Code(
            key="d2l-11.7.5",
            hints=[
                "Start with m = minus infinity, and zeros for the other two. Loop over chunks of keys and values.",
                r"With the new maximum $m'$ the old sums are multiplied by $e^{m - m'}$, and the chunk adds "
                r"$\sum e^{a_i - m'}$.",
                "Both sums are rescaled, the total and the output, *before* the chunk is added. Divide once, at the "
                "end.",
            ],
            advice={
                "nonfinite": "exp(300) is infinite in float32: subtract the maximum before every exponential. And "
                "infinity minus infinity is NaN: look at what happens before the first chunk",
                "memory": "Do not collect the chunks' scores; keep the three running quantities",
            },
            answer=chunked_attention,
            verify=verify,
            alternatives=[with_logsumexp, in_two_passes],
            min_checks=14,
            seconds=30.0,
            mutants=[
                Mutant("not rescaled", "no-rescaling", "shrink = torch.exp(top - higher)", "shrink = 1"),
                Mutant("total not rescaled", "total-not-rescaled", "total * shrink +", "total +"),
                Mutant("output not rescaled", "output-not-rescaled", "output * shrink +", "output +"),
                Mutant(
                    "maximum of the chunk",
                    "own-maxima",
                    function=None,
                    old="torch.maximum(top, scores.amax(dim=-1, keepdim=True))\n        shrink = torch.exp(top - "
                    "higher)",
                    new="scores.amax(dim=-1, keepdim=True)\n        shrink = 1",
                ),
                Mutant("unscaled", "unscaled", " / math.sqrt(queries.shape[-1])", ""),
                Mutant("not divided", "not-divided", "return output / total", "return output"),
                Mutant(
                    "remainder left out",
                    "remainder",
                    "range(0, keys.shape[1], chunk)",
                    "range(0, max(keys.shape[1] - chunk + 1, 1), chunk)",
                ),
                Mutant("first chunk alone", "first-chunk", "range(0, keys.shape[1], chunk)", "range(0, chunk, chunk)"),
                Mutant(
                    "average of chunks",
                    "average",
                    function=lambda q, k, v, chunk: torch.stack(
                        [all_at_once(q, a, b, chunk) for a, b in zip(k.split(chunk, 1), v.split(chunk, 1), strict=True)]
                    ).mean(0),
                ),
                Mutant(
                    "no maximum",
                    "nonfinite",
                    "torch.maximum(top, scores.amax(dim=-1, keepdim=True))",
                    "torch.zeros_like(top)",
                ),
                Mutant("all at once", "memory", function=all_at_once),
                Mutant("scores collected", "memory", function=chunks_of_softmax_kept),
                Mutant("torch's kernel", "borrowed", function=borrowed),
                Mutant("transposed", "shape", "return output / total", "return (output / total).mT"),
                Mutant("detached", "grad", "scaled = queries", "scaled = queries.detach()"),
                Mutant("in double", "dtype", "return output / total", "return (output / total).double()"),
                Mutant("in place", "mutates", "scaled = queries / ", "scaled = queries.data.div_(2) / "),
            ],
            explanation=r"""
The largest tensor is now (B, T, chunk): with S = 4,096 and chunks of 64, one sixty-fourth of the weights. The work is
the same, and so is the result: nothing is approximated. Cut the queries into blocks as well, keep a block's sums in the
fastest memory that the chip has, and you have the forward pass of a fused kernel.

For training, one thing is missing. Autograd keeps every chunk's exponentials for the backward pass, and together these
are (T, S) again. The fused kernels keep only $m + \log \ell$ and the output, and compute each chunk's weights once more
on the way back. In torch, `torch.utils.checkpoint` around the body of the loop does the same.

The state $(m, \ell, \mathbf o)$ of two disjoint sets of keys can be merged by the same rule, in any order. So the keys
may even live on different machines.
""",
        )
    ],
)
