r"""Queries and keys of different length

A dot product needs a query and a key of the same length. Where they differ, a matrix can mediate between
them. Write `bilinear_attention(queries, keys, values, matrix)` for queries of shape (B, T, P), keys (B, S,
D), values (B, S, E) and a matrix $\mathbf M$ of shape (P, D), with the score

$$a(\mathbf q, \mathbf k) = \frac{\mathbf q^\top \mathbf M\, \mathbf k}{\sqrt D}$$

and a softmax over the keys. The chapter's table has this score without the root, because a learned matrix can take
the factor in; here the root belongs to the score, as in the dot product. The result has shape (B, T, E), and a
gradient must reach the matrix, which is to be learned.
"""

import math

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Code, Exercise, Mutant


def bilinear_attention(queries, keys, values, matrix):
    """Attend with bilinear scores.

    Args:
        queries: (B, T, P).
        keys: (B, S, D).
        values: (B, S, E).
        matrix: (P, D).

    Returns:
        (B, T, E).
    """
    ### BEGIN SOLUTION
    projected = queries @ matrix  # (B, T, D): now they are as long as the keys
    scores = projected @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])  # (B, T, S)
    weights = torch.softmax(scores, dim=-1)
    return weights @ values
    ### END SOLUTION


def by_einsum(queries, keys, values, matrix):
    scores = torch.einsum("btp,pd,bsd->bts", queries, matrix, keys) / math.sqrt(keys.shape[-1])
    return torch.einsum("bts,bse->bte", scores.softmax(-1), values)


def with_the_fused_kernel(queries, keys, values, matrix):
    return F.scaled_dot_product_attention(queries @ matrix, keys, values)


def scaled_after_the_softmax(queries, keys, values, matrix):
    return torch.softmax(queries @ matrix @ keys.mT, dim=-1) / math.sqrt(keys.shape[-1]) @ values


def by_hand(queries, keys, values, matrix):
    powers = torch.exp(queries @ matrix @ keys.mT / math.sqrt(keys.shape[-1]))
    return powers / powers.sum(dim=-1, keepdim=True) @ values


def verify(t, answer):
    B, T, S, D, E = t.sizes(5)
    # square first: only there does a turned matrix give wrong numbers instead of an error
    for P, name in (
        (D, "the result for a square matrix"),
        (D + 3, "the result"),
        (1, "the result for P = 1 and a batch of one"),
    ):
        B = 1 if P == 1 else B
        inputs = [t.randn(*shape).requires_grad_() for shape in ((B, T, P), (B, S, D), (B, S, E), (P, D))]
        q, k, v, m = leaves = [x.detach().cpu().double().requires_grad_() for x in inputs]
        scores = torch.stack([torch.stack([(k[b] @ (m.T @ q[b, i])) for i in range(T)]) for b in range(B)])
        want = torch.softmax(scores / D**0.5, dim=-1) @ v
        slopes = torch.autograd.grad(want.sum(), leaves)
        got = t.call(answer, *inputs)
        t.same(got, want.detach(), name)
        for i, kind in enumerate(("queries", "keys", "values", "matrix")):
            t.same(t.gradient(got, i), slopes[i], f"the gradient in the {kind}", tolerance=(1e-3, 1e-4))

    # scores of some hundreds, of whole numbers: nothing is rounded
    queries, keys, matrix = (t.integers(-9, 10, *shape).double() for shape in ((2, 3, 5), (2, 7, 4), (5, 4)))
    values = t.randn(2, 7, 3, dtype=torch.float64)
    q, k, v, m = (x.cpu().double() for x in (queries, keys, values, matrix))
    want = torch.softmax(torch.einsum("btp,pd,bsd->bts", q, m, k) / 2, dim=-1) @ v
    t.same(t.call(answer, queries, keys, values, matrix), want, "the result for large scores, in float64")


MUTANTS = [
    Mutant("unscaled", (" / math.sqrt(keys.shape[-1])", ""), "the scores are not divided by sqrt(D)"),
    Mutant("scaled-by-D", ("math.sqrt(keys.shape[-1])", "keys.shape[-1]"), "the scores are divided by D: divide by "
        "sqrt(D), and once only"),
    Mutant("scaled-by-P", ("math.sqrt(keys.shape[-1])", "math.sqrt(queries.shape[-1])"), "the scores are divided by "
        "sqrt(P): in the formula it is sqrt(D), of the keys"),
    Mutant("scaled-by-S", ("math.sqrt(keys.shape[-1])", "math.sqrt(keys.shape[-2])"), "the scores are divided by the "
        "root of the number of keys; it is their length D that counts"),
    Mutant("turned", ("queries @ matrix", "queries @ matrix.T"), "the matrix is transposed: the score is q^T M k, so "
        "the rows of `queries` are multiplied by M"),
    Mutant("no-matrix", ("queries @ matrix", "queries"), "the matrix is not used"),
    Mutant("over-queries", ("scores, dim=-1", "scores, dim=-2"), "the softmax runs over the queries, not over the "
        "keys"),
    Mutant("over-batch", ("scores, dim=-1", "scores, dim=0"), "the softmax runs over the batch, not over the keys: "
        "give it dim=-1"),
    Mutant("no-softmax", ("torch.softmax(scores, dim=-1)", "scores"), "the scores themselves weight the values: where "
        "is the softmax?"),
    Mutant("grad", ("queries @ matrix", "queries @ torch.tensor(matrix.tolist())")),  # matrix rebuilt
    Mutant("shape", ("return weights @ values", "return (weights @ values)[:, 0]")),  # first query only
    Mutant("multiplied", (" / math.sqrt(keys.shape[-1])", " * math.sqrt(keys.shape[-1])"), "the scores are multiplied "
        "by sqrt(D): divide"),
    Mutant("scaled-by-E", ("math.sqrt(keys.shape[-1])", "math.sqrt(values.shape[-1])"), "the scores are divided by "
        "sqrt(E); it is the length D of the keys that counts"),
    Mutant("scaled-late", scaled_after_the_softmax, "the weights are divided by sqrt(D), and do not sum to one: divide "
        "the scores"),
    Mutant("dtype", ("return weights @ values", "return (weights @ values).float()")),  # always float32
    Mutant("nonfinite", by_hand),
    Mutant("sigmoid", ("torch.softmax(scores, dim=-1)", "torch.sigmoid(scores)"), "each key gets a sigmoid of its own: "
        "the weights of a query sum to one, by a softmax"),
    Mutant("nearness-turned", ("torch.softmax(scores, dim=-1)", "torch.softmax(-scores, dim=-1)"), "large scores get "
        "small weights: check the sign"),
    Mutant("matrix-bent", ("queries @ matrix", "torch.relu(queries @ matrix)"), "a nonlinear function stands between "
        "the matrix and the keys: the score is bilinear"),
    Mutant("by-batch", ("math.sqrt(keys.shape[-1])", "math.sqrt(len(keys))"), "the scores are divided by the root of "
        "the batch size; it is the length D of the keys that counts"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.3.2",
    doc=__doc__,
    source="D2L 11.3, exercise 2",
    parts=[
        Code(
            key="d2l-11.3.2",
            hints=[
                "Bring one side to the length of the other; the rest is dot-product attention.",
                "`queries @ matrix` has shape (B, T, D).",
                "The dot product then runs over D terms, so its standard deviation grows with the root of D.",
            ],
            advice={
                "values": "The score is (q M) . k over sqrt(D), the weights of a query are the softmax of its scores "
                "over the keys, the result is weights @ values",
                "raised": "If shapes do not fit: write down that of every product. (P, D) fits queries from the "
                "right, not keys.",
                "grad": "Do not wrap the computation in no_grad and do not copy an argument with .detach() or .data",
                "nonfinite": "The exponential of a large score overflows; torch.softmax does not mind",
            },
            answer=bilinear_attention,
            verify=verify,
            alternatives=[by_einsum, with_the_fused_kernel],
            mutants=MUTANTS,
            explanation=r"""
$\mathbf q^\top \mathbf M \mathbf k = (\mathbf M^\top \mathbf q)^\top \mathbf k$: the matrix turns a query
into something as long as a key. A Transformer does this to both sides. Its score is $(\mathbf W_q \mathbf
q)^\top (\mathbf W_k \mathbf k)$, so $\mathbf M = \mathbf W_q^\top \mathbf W_k$, a matrix whose rank is at
most the size of a head.
""",
        )
    ],
)
