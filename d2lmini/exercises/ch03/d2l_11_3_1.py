r"""Distance attention at the price of a dot product

Section 11.2 of D2L weights each stored value by a Gaussian of the distance between its key and the query; its section
11.3 goes over to dot products because they are cheaper. But the distance can be had at the same price. Write
`distance_attention(queries, keys, values)` with

$$\alpha(\mathbf q, \mathbf k_i) = \frac{\exp\left(-\tfrac12 \lVert \mathbf q - \mathbf k_i\rVert^2\right)}
{\sum_j \exp\left(-\tfrac12 \lVert \mathbf q - \mathbf k_j\rVert^2\right)}$$

starting from the code of dot-product attention. Queries have shape (B, T, D), keys (B, S, D), values (B, S,
E); the result has shape (B, T, E). No tensor of shape (T, S, D) may be made on the way: the differences
$\mathbf q - \mathbf k_i$ themselves are never needed.
"""

import torch

from d2lmini.exercises.engine import Code, Exercise, LargestTensor, Mutant


def distance_attention(queries, keys, values):
    """Attend with the softmax of minus half the squared distance.

    Args:
        queries: (B, T, D).
        keys: (B, S, D).
        values: (B, S, E).

    Returns:
        (B, T, E).
    """
    ### BEGIN SOLUTION
    # |q - k|^2 = |q|^2 - 2 q.k + |k|^2, and what does not depend on the key cancels in the softmax
    half_norms = keys.square().sum(dim=-1) / 2  # (B, S)
    scores = queries @ keys.transpose(-2, -1)  # (B, T, S)
    scores = scores - half_norms.unsqueeze(-2)  # (B, 1, S) against (B, T, S)
    weights = torch.softmax(scores, dim=-1)
    return weights @ values
    ### END SOLUTION


def with_cdist(queries, keys, values):
    return torch.softmax(-torch.cdist(queries, keys).square() / 2, dim=-1) @ values


def with_one_feature_more(queries, keys, values):
    queries = torch.cat([queries, queries.new_ones(*queries.shape[:-1], 1)], dim=-1)
    keys = torch.cat([keys, -keys.square().sum(dim=-1, keepdim=True) / 2], dim=-1)
    return torch.nn.functional.scaled_dot_product_attention(queries, keys, values, scale=1.0)


def with_all_differences(queries, keys, values):
    differences = queries.unsqueeze(-2) - keys.unsqueeze(-3)
    return torch.softmax(-differences.square().sum(dim=-1) / 2, dim=-1) @ values


def with_unsquared_distances(queries, keys, values):
    return torch.softmax(-torch.cdist(queries, keys) / 2, dim=-1) @ values


def without_any_half(queries, keys, values):
    return torch.softmax(-torch.cdist(queries, keys).square(), dim=-1) @ values


def with_the_usual_scores(queries, keys, values):
    return torch.nn.functional.scaled_dot_product_attention(queries, keys, values)


def without_the_denominator(queries, keys, values):
    return torch.exp(-torch.cdist(queries, keys).square() / 2) @ values


def by_hand(queries, keys, values):
    powers = torch.exp(-torch.cdist(queries, keys).square() / 2)
    return powers / powers.sum(dim=-1, keepdim=True) @ values


def by_hand_with_a_small_number(queries, keys, values):
    powers = torch.exp(-torch.cdist(queries, keys).square() / 2)
    return powers / (powers.sum(dim=-1, keepdim=True) + 1e-9) @ values


def verify(t, answer):
    B, T, S, D, E = t.sizes(5)
    queries, keys, values = t.randn(B, T, D, scale=0.7), t.randn(B, S, D, scale=0.7), t.randn(B, S, E)
    inputs = [x.requires_grad_() for x in (queries, keys, values)]
    q, k, v = leaves = [x.detach().cpu().double().requires_grad_() for x in inputs]
    squared = (q[:, :, None, :] - k[:, None, :, :]).square().sum(-1)  # (B, T, S)
    want = torch.softmax(-squared / 2, dim=-1) @ v
    slopes = torch.autograd.grad(want.sum(), leaves)
    got = t.call(answer, queries, keys, values)
    t.same(got, want.detach(), "distance_attention(queries, keys, values)")
    for i, (name, slope) in enumerate(zip(("queries", "keys", "values"), slopes, strict=True)):
        t.same(t.gradient(got, i), slope, f"the gradient in the {name}", tolerance=(1e-3, 1e-4))

    # a key at the query itself and all others far away: its value comes back
    spread = 30 * torch.eye(7, 5, device=t.device).unsqueeze(0)[:, :5]
    spread, picked = spread.double(), t.randn(1, 5, 3, dtype=torch.float64)
    t.same(t.call(answer, spread, spread, picked), picked.cpu(), "the result for keys far apart, in float64")

    # a query so far from all keys that every exponential is zero, the half norms of the keys cancelled or not; what the
    # keys differ in is at right angles to that
    far, keys, values = t.randn(1, 1, 4), t.randn(1, 6, 4, scale=0.7), t.randn(1, 6, 3)
    far[..., 0], keys[..., 0] = -1.0, 18.0
    weights = torch.softmax(-(far - keys).cpu().double().square().sum(-1) / 2, dim=-1)  # (1, 6)
    want = weights[:, None] @ values.cpu().double()
    name = "the result for a query far from all keys"
    t.same(t.call(answer, far, keys, values), want, name, tolerance=(1e-3, 1e-3))

    T, S, D = t.sizes(3, 23, 41)
    inputs = t.randn(2, T, D), t.randn(2, S, D), t.randn(2, S, 3)
    with t.watching(LargestTensor, "numel") as seen:
        t.call(answer, *inputs)
    t.that(
        seen.numel < T * S * D,
        "memory",
        f"with T={T}, S={S}, D={D} your code makes a tensor of {seen.numel} entries; (T, S, D) has {T * S * D}",
    )


MUTANTS = [
    Mutant("plain-dot", (" - half_norms.unsqueeze(-2)", ""), "this is plain dot-product attention: the norm of the "
        "keys is missing"),
    Mutant("norm-sign", ("scores - half_norms", "scores + half_norms"), "the norm of the keys has the wrong sign"),
    Mutant("no-half", (".sum(dim=-1) / 2", ".sum(dim=-1)"), "the norm of the keys counts twice: where is the 1/2?"),
    Mutant("norm-not-squared", ("keys.square().sum(dim=-1)", "keys.norm(dim=-1)"), "the norm of the keys is not "
        "squared"),
    Mutant("over-queries", ("softmax(scores, dim=-1)", "softmax(scores, dim=-2)"), "the weights sum to one over the "
        "queries, not over the keys"),
    Mutant("scaled", ("softmax(scores", "softmax(scores / keys.shape[-1] ** 0.5"), "the Gaussian has width 1: nothing "
        "is divided by sqrt(D)"),
    Mutant("farthest", ("softmax(scores", "softmax(-scores"), "far keys get the large weights: check the sign"),
    Mutant("not-squared", with_unsquared_distances, "the distance is not squared"),
    Mutant("no-half-at-all", without_any_half, "the squared distance lacks its factor 1/2"),
    Mutant("memory", with_all_differences),
    Mutant("scaled-dot", with_the_usual_scores, "this is scaled dot-product attention: the norm of the keys is "
        "missing, and nothing is divided by sqrt(D)"),
    Mutant("product-scaled", ("queries @ keys.transpose(-2, -1)",
        "queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5"), "the product of query and key is divided by "
        "sqrt(D), and should not be"),
    Mutant("mean-norm", (".sum(dim=-1) / 2", ".mean(dim=-1) / 2"), "the squared norm of a key is the sum of its "
        "squares, not their mean"),
    Mutant("not-normalised", without_the_denominator, "the weights do not sum to one: where is the denominator?"),
    Mutant("over-batch", ("softmax(scores, dim=-1)", "softmax(scores, dim=0)"), "the softmax runs over the batch, not "
        "over the keys: give it dim=-1"),
    Mutant("norm-detached", ("keys.square()", "keys.detach().square()"), "the norm of the keys is detached: they get a "
        "part of their gradient only"),
    Mutant("dtype", ("return weights @ values", "return weights.float() @ values.float()")),  # always float32
    Mutant("nonfinite", by_hand),
    Mutant("underflow", by_hand_with_a_small_number, "every exponential is zero here, and a small number in the "
        "denominator does not bring the weights back: use torch.softmax"),
    Mutant("product-twice", ("scores = queries @", "scores = 2 * queries @"), "the product of query and key counts "
        "twice: with the 1/2 before the squared distance its factor is 1"),
    Mutant("cosines", ("scores = queries @ keys.transpose(-2, -1)",
        "scores = nn.functional.normalize(queries, dim=-1) @ nn.functional.normalize(keys, dim=-1).mT"), "queries and "
        "keys are divided by their lengths; the distance is between the vectors as they are"),
    Mutant("square-of-sum", ("keys.square().sum(dim=-1)", "keys.sum(dim=-1).square()"), "the sum of a key's entries is "
        "squared; its squared norm is the sum of their squares"),
    Mutant("sigmoid", ("torch.softmax(scores, dim=-1)", "torch.sigmoid(scores)"), "each key gets a sigmoid of its own: "
        "the weights of a query sum to one, by a softmax"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.3.1",
    doc=__doc__,
    source="D2L 11.3, exercise 1",
    parts=[
        Code(
            key="d2l-11.3.1",
            hints=[
                "Multiply out the squared distance. Which of its three terms are dot products?",
                "Softmax does not change when every score of a query grows by the same amount.",
                r"Only $\mathbf q^\top \mathbf k_i - \tfrac12 \lVert \mathbf k_i \rVert^2$ is left: the "
                r"scores of "
                "dot-product attention (unscaled) and one number for each key, of shape (B, 1, S).",
            ],
            answer=distance_attention,
            verify=verify,
            alternatives=[with_cdist, with_one_feature_more],
            advice={
                "values": "The score of a key is q.k - |k|^2/2, the weights of a query are the softmax of its scores "
                "over the keys, the result is weights @ values",
                "nonfinite": "exp gives 0 or infinity where the scores are far from 0; torch.softmax does not mind",
            },
            mutants=MUTANTS,
            explanation=r"""
Multiply out: $-\tfrac12\lVert\mathbf q-\mathbf k_i\rVert^2 = -\tfrac12\lVert\mathbf q\rVert^2 + \mathbf
q^\top \mathbf k_i - \tfrac12\lVert\mathbf k_i\rVert^2$. The first term is the same for every key of a query,
so it cancels in the softmax. The last is one number for each key. What is left costs one matrix product, as
dot-product attention does.

The same trick in another dress: give every query one feature more, a constant 1, and every key the feature
$-\tfrac12\lVert\mathbf k_i\rVert^2$. Then distance attention *is* dot-product attention, and the fused kernel computes
it. If all keys have the same norm, as when each is divided by its own, even this feature cancels.
""",
        )
    ],
)
