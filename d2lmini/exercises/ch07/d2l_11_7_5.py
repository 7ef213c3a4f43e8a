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
and `chunk` may exceed S), returns (B, T, E), the same as plain attention up to rounding, in values and gradients, and
for small chunks makes no tensor as large as (B, T, S). Scores may be in the hundreds. The fused kernel of torch is not
allowed, nor what this package has in its place: you are writing it.
"""

import math
from functools import partial

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, LargestTensor, Mutant
from d2lmini.exercises.engine.provenance import Calls


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


def in_float32(queries, keys, values, chunk):
    return chunked_attention(*(x.float() for x in (queries, keys, values)), chunk).to(queries.dtype)


def borrowed(queries, keys, values, chunk):
    heads = (x[:, None] for x in (queries, keys, values))
    return torch.nn.functional.scaled_dot_product_attention(*heads)[:, 0]


def borrowed_here(queries, keys, values, chunk):
    return d2l.tiled_attention(queries, keys, values, tile=chunk)


def borrowed_sums(queries, keys, values, chunk):
    softmax = d2l.OnlineSoftmax()
    for k, v in zip(keys.split(chunk, 1), values.split(chunk, 1), strict=True):
        softmax.add(queries @ k.mT / math.sqrt(queries.shape[-1]), v)
    return softmax.average()


def chunks_of_queries(queries, keys, values, chunk):
    return torch.cat([all_at_once(q, keys, values, chunk) for q in queries.split(chunk, 1)], 1)


def mixed(queries, keys, values, chunk, mix):
    """Each chunk of keys has a softmax of its own."""
    pieces = zip(keys.split(chunk, 1), values.split(chunk, 1), strict=True)
    return mix(torch.stack([all_at_once(queries, k, v, chunk) for k, v in pieces]))


class _Operations(TorchDispatchMode):
    """Notes whether torch's own kernel is called, and which exponentials are taken: of S at once, or of chunk."""

    def __init__(self, S, chunk):
        super().__init__()
        self.S, self.chunk, self.seen = S, chunk, {"borrowed": False, "whole": False, "chunk": False}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        self.seen["borrowed"] |= "scaled_dot_product" in name or "_safe_softmax" in name  # without a kernel
        if ("exp" in name and "expand" not in name) or "softmax" in name:
            self.seen["whole"] |= self.S in getattr(args[0], "shape", ())
            self.seen["chunk"] |= self.chunk in getattr(args[0], "shape", ())
        return func(*args, **(kwargs or {}))


def verify(t, answer):
    B, T, D, E = t.sizes(4, 3)  # none is another's square
    S = t.random.randrange(11, 15)
    inputs = [x.requires_grad_() for x in (t.randn(B, T, D), t.randn(B, S, D), t.randn(B, S, E))]
    exact = [x.detach().cpu().double().requires_grad_() for x in inputs]
    want = _reference(*exact)
    slopes = torch.autograd.grad(want.sum(), exact)
    for chunk in (5 if S == 12 else 4, 1, S, S + 3):  # the first leaves a remainder
        got = t.call(answer, *inputs, chunk)
        t.same(got, want.detach(), f"the result for S={S}, chunk={chunk}")
        for i, (name, slope) in enumerate(zip(("queries", "keys", "values"), slopes, strict=True)):
            t.same(t.gradient(got, i), slope, f"the gradient in the {name}, chunk={chunk}", tolerance=(1e-3, 1e-4))

    got = t.call(answer, *(x.detach().to(t.device) for x in exact), 4)
    t.same(got, want.detach(), "the result in float64", tolerance=(1e-9, 1e-11))

    # scores in the hundreds, growing along the keys, then falling: exp() of them is infinite
    v = inputs[2].detach()
    for signs, name in ((1, "growing"), (-1, "falling")):
        ramp = signs * torch.linspace(-1, 1, S, device=t.device)[None, :, None].expand(B, S, D)
        queries, keys = t.rand(B, T, D, low=0.9, high=1.1), 300 / math.sqrt(D) * ramp + t.randn(B, S, D)
        want = _reference(*(x.cpu().double() for x in (queries, keys, v)))
        got = t.call(answer, queries, keys, v, 4)
        t.same(got, want, f"the result for large scores, {name} along the keys", tolerance=(1e-3, 1e-3))

    # every other query has its scores about -300, where those of its neighbours are about 300
    signs = 1 - 2 * (torch.arange(T, device=t.device) % 2)[None, :, None]
    keys = 300 / math.sqrt(D) * t.rand(B, S, D, low=0.99, high=1.01)
    want = _reference(*(x.cpu().double() for x in (signs * queries, keys, v)))
    got = t.call(answer, signs * queries, keys, v, 4)
    t.same(got, want, "the result for large scores, of some queries all negative", tolerance=(1e-3, 1e-3))

    T, S = 33, 96
    inputs = t.randn(2, T, 4), t.randn(2, S, 4), t.randn(2, S, 4)  # torch has its kernel for equal sizes
    for chunk in (S + 1, 8):  # the last is looked at below, too
        with (
            t.watching(LargestTensor, "numel") as largest,
            t.watching(partial(_Operations, S, chunk), "seen") as operations,
            t.watching(partial(Calls, "d2lmini.efficient.", "d2lmini.attention"), "names") as calls,
        ):
            t.call(answer, *inputs, chunk)
        t.that(
            not operations.seen["borrowed"],
            "borrowed",
            f"with S={S}, chunk={chunk} this calls torch's own attention; write the loop over the chunks yourself",
        )
        t.that(
            not calls.names,
            "ready",
            f"with S={S}, chunk={chunk} this calls the package's own attention, or its online softmax; write the three "
            "sums yourself",
        )
    t.that(
        largest.numel < 2 * T * S,
        "memory",
        f"with T={T}, S={S}, chunk={chunk} your code makes a tensor of {largest.numel} entries; (B, T, S) has "
        f"{2 * T * S}",
    )
    t.that(
        not operations.seen["whole"],
        "all-keys",
        f"with S={S} and chunk={chunk} your code takes the exponentials of all {S} keys of a query at once; it is the "
        "keys that come in chunks, not the queries",
    )
    t.that(
        operations.seen["chunk"],
        "chunk-ignored",
        f"with chunk={chunk} your code never takes the exponentials of {chunk} keys at once: is `chunk` used?",
    )


def _reference(queries, keys, values):
    scores = torch.einsum("btd,bsd->bts", queries, keys) / math.sqrt(queries.shape[-1])
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    return powers @ values / powers.sum(-1, keepdim=True)


MUTANTS = [
    Mutant("no-rescaling", ("shrink = torch.exp(top - higher)", "shrink = 1"), "when the maximum rises, the sums of "
        "earlier chunks must be multiplied by exp(old maximum - new)"),
    Mutant("total-not-rescaled", ("total * shrink +", "total +"), "the weighted sum is brought up to date, the total "
        "is not"),
    Mutant("output-not-rescaled", ("output * shrink +", "output +"), "the total is brought up to date, the weighted "
        "sum is not"),
    Mutant("factor-turned", ("torch.exp(top - higher)", "torch.exp(higher - top).nan_to_num(posinf=0)"),
        "the old sums are multiplied by exp(new maximum - old); it is exp(old maximum - new)"),
    Mutant("own-maxima",
        ("torch.maximum(top, scores.amax(dim=-1, keepdim=True))\n        shrink = torch.exp(top - higher)",
        "scores.amax(dim=-1, keepdim=True)\n        shrink = 1"), "each chunk is relative to its own maximum: sums of "
        "different chunks cannot be added so"),
    Mutant("unscaled", (" / math.sqrt(queries.shape[-1])", ""), "the scores are not divided by sqrt(D)"),
    Mutant("not-divided", ("return output / total", "return output"), "at the end the weighted sum must be divided by "
        "the total"),
    Mutant("divided-early", ("        top = higher\n    return output / total",
        "        top, output = higher, output / total\n    return output"), "the weighted sum is divided in every "
        "round: divide once, at the end"),
    Mutant("float32", in_float32, "all is rounded to float32 on the way: keep to the dtype of the inputs"),
    Mutant("remainder", ("range(0, keys.shape[1], chunk)", "range(0, max(keys.shape[1] - chunk + 1, 1), chunk)"),
        "the last, shorter chunk is left out"),
    Mutant("first-chunk", ("range(0, keys.shape[1], chunk)", "range(0, chunk, chunk)"), "this is the attention to the "
        "first chunk alone"),
    Mutant("last-chunk", partial(mixed, mix=lambda own: own[-1]), "this is the attention to the last chunk alone"),
    Mutant("average", partial(mixed, mix=lambda own: own.mean(0)), "each chunk has its own softmax and they are "
        "averaged: chunks with small scores count too much"),
    Mutant("sum", partial(mixed, mix=lambda own: own.sum(0)), "each chunk has its own softmax and they are added up: "
        "the weights sum to the number of chunks"),
    # no maximum
    Mutant("nonfinite", ("torch.maximum(top, scores.amax(dim=-1, keepdim=True))", "torch.zeros_like(top)")),
    Mutant("nonfinite", ("new_full((*shape, 1), -math.inf)", "new_zeros(*shape, 1)")),  # maximum from zero
    Mutant("nonfinite", ("scores.amax(dim=-1, keepdim=True)", "scores.amax()")),  # one maximum for all
    Mutant("by-d", ("math.sqrt(queries.shape[-1])", "queries.shape[-1]"), "the scores are divided by D, not by its "
        "root"),
    Mutant("by-values", ("math.sqrt(queries.shape[-1])", "math.sqrt(values.shape[-1])"), "the scores are divided by "
        "the root of E, the features of the values: it is that of D"),
    Mutant("rescaled-late", ("total = total * shrink + powers.sum(dim=-1, keepdim=True)\n        output = output * "
        "shrink + powers @ values[:, some]", "total = (total + powers.sum(dim=-1, keepdim=True)) * shrink\n        "
        "output = (output + powers @ values[:, some]) * shrink"), "the new chunk is multiplied by the factor, too: "
        "first bring the old sums up to date, then add"),
    Mutant("chunk-ignored", ("    for start", "    chunk = 4\n    for start")),  # chunks of four
    Mutant("memory", all_at_once),
    Mutant("memory", chunks_of_softmax_kept),
    Mutant("all-keys", chunks_of_queries),
    Mutant("borrowed", borrowed),
    Mutant("borrowed", ("    shape = queries.shape[:-1]  #", "    if chunk > keys.shape[1]:\n        return "
        "F.scaled_dot_product_attention(queries, keys, values)\n    shape = queries.shape[:-1]  #")),  # one chunk
    Mutant("ready", borrowed_here),
    Mutant("ready", borrowed_sums),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.7.5",
    doc=__doc__,
    source="D2L 11.7, exercise 5",
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
                "nonfinite": "exp(300) is infinite in float32: subtract the maximum before every exponential. "
                "exp(-300) is 0: it must be the maximum of each query's own scores, and of nothing else. And infinity "
                "minus infinity is NaN: look at what happens before the first chunk",
                "close": "In float64, is a sum or a maximum kept in float32? A new tensor has the dtype of the inputs.",
                "memory": "Do not collect the chunks' scores; keep the three running quantities",
                "values": "After each chunk m, l and o must be those of all keys so far: compute these at once, and "
                "compare. A mean of the chunks' outputs is not it, padding with zeros has scores, nothing is cut off, "
                "and where the gradients alone are wrong, something is detached.",
            },
            answer=chunked_attention,
            verify=verify,
            alternatives=[with_logsumexp, in_two_passes],
            min_checks=14,
            seconds=30.0,
            mutants=MUTANTS,
            explanation=r"""
The largest tensor is now (B, T, chunk): with S = 4,096 and chunks of 64, one sixty-fourth of the weights. The work is
the same, and so is the result: nothing is approximated. Cut the queries into blocks as well, keep a block's sums in the
fastest memory that the chip has, and you have the forward pass of a fused kernel.

For training, one thing is missing. Autograd keeps every chunk's exponentials for the backward pass, and together these
are (T, S) again. The fused kernels keep only $m + \log \ell$ and the output, and compute each chunk's weights once more
on the way back. `torch.utils.checkpoint` around the body of the loop computes them once more, too, but keeps every
chunk's $\mathbf o$.

The state $(m, \ell, \mathbf o)$ of two disjoint sets of keys can be merged by the same rule, in any order. So the keys
may even live on different machines.
""",
        )
    ],
)
