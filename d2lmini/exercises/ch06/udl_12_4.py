r"""What self-attention does with a shuffled sequence

Let $\operatorname{Sa}(\mathbf X) = \operatorname{softmax}(\mathbf Q\mathbf K^\top / \sqrt{D})\,\mathbf V$ be
self-attention with one token in each row of $\mathbf X$, shape (N, D), and $\mathbf Q = \mathbf X \mathbf W_q$,
$\mathbf K = \mathbf X \mathbf W_k$, $\mathbf V = \mathbf X \mathbf W_v$. A permutation matrix $\mathbf P$ has a
single one in each row and each column; $\mathbf P \mathbf X$ has the same rows in another order. (UDL keeps tokens in
columns, so there the permutation multiplies from the right.) Show that

$$\operatorname{Sa}(\mathbf P \mathbf X) = \mathbf P \operatorname{Sa}(\mathbf X) ,$$

and see what becomes of it when positions $\mathbf E$, shape (N, D), are added to the tokens.
"""

import math

import torch

from d2lmini.exercises.engine import Choice, Exercise, Identity, Mutant, Option


def shuffled(X, P, E, W_q, W_k, W_v):
    """Compute both sides of the identity, and by how much positions break it.

    Args:
        X: (N, D), a token in each row.
        P: (N, N), a single one in each row: a permutation matrix, unless two rows are alike.
        E: (N, D), position encodings; row i belongs to place i, whatever token stands there.
        W_q, W_k, W_v: (D, D) each.

    Returns:
        (left, right, gap), each (N, D). left: Sa(P X). right: P Sa(X). gap: left less right of the same
        identity for tokens with positions added.
    """
    ### BEGIN SOLUTION

    def attend(tokens):
        queries, keys, values = tokens @ W_q, tokens @ W_k, tokens @ W_v  # (N, D) each
        scores = queries @ keys.mT / math.sqrt(X.shape[-1])  # (N, N)
        return torch.softmax(scores, dim=-1) @ values

    left = attend(P @ X)
    right = P @ attend(X)
    gap = attend(P @ X + E) - P @ attend(X + E)  # places keep their encoding, tokens move
    return left, right, gap
    ### END SOLUTION


def by_indexing(X, P, E, W_q, W_k, W_v):
    order = P.argmax(dim=-1)

    def attend(tokens):
        q, k, v = (tokens[None] @ W for W in (W_q, W_k, W_v))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)[0]

    return attend(X[order]), attend(X)[order], attend(X[order] + E) - attend(X + E)[order]


def verify(t, answer):
    for kind in ("a permutation", "another permutation", "two rows of P alike"):
        N, D = t.sizes(2, 4, 9)
        order = list(range(N))
        while all(order[order[i]] == i for i in range(N)):  # P must not be its own inverse
            t.random.shuffle(order)
        if kind.startswith("two"):  # here the identity does not hold, so that no side can stand for the other
            order[0] = order[1]
        _one(t, answer, N, D, order, f"for N={N}, D={D}, {kind}", large=kind.startswith("another"))


def _one(t, answer, N, D, order, case, large):
    X, E = t.randn(N, D, dtype=torch.float64), t.randn(N, D, dtype=torch.float64)
    matrices = [t.randn(D, D, scale=D**-0.5, dtype=torch.float64) for _ in range(3)]
    if large:  # all scores are 800 higher, which changes no weight, but their exponentials are infinite
        X[:, 0], E[:, 0], matrices[1][:, 0] = 1, 0, 0
        matrices[0][0, 0], matrices[1][0, 0] = 800 * D**0.5, 1
    x, e, w_q, w_k, w_v = (y.cpu() for y in (X, E, *matrices))

    def attend(tokens):
        scores = torch.einsum("ia,ab,sc,cb->is", tokens, w_q, tokens, w_k) / D**0.5
        return torch.einsum("is,sa,ab->ib", torch.softmax(scores, 1), tokens, w_v)

    left, right = attend(x[order]), attend(x)[order]
    gap = attend(x[order] + e) - attend(x + e)[order]
    P = torch.eye(N, dtype=torch.float64, device=t.device)[order]
    got = t.unpack(t.call(answer, X, P, E, *matrices), "left", "right", "gap")
    for name, value, want in zip(("left side", "right side", "gap"), got, (left, right, gap), strict=True):
        t.same(value, want, f"the {name} {case}")


MUTANTS = [
    Mutant("invariant", ("right = P @ attend(X)", "right = attend(X)"), "this is Sa(X) itself: the claim would be "
        "invariance, and it is false"),
    Mutant("inverse", ("right = P @ attend(X)", "right = P.mT @ attend(X)"), "the outputs go back to their old places "
        "here: is P transposed?"),
    Mutant("inverse", ("left = attend(P @ X)", "left = attend(P.mT @ X)"), "shuffled by the inverse: is P transposed?"),
    Mutant("not-shuffled", ("left = attend(P @ X)", "left = attend(X)"), "nothing is shuffled here"),
    Mutant("both", ("right = P @ attend(X)", "right = P @ left"), "shuffled twice: once before the layer and once "
        "after it"),
    Mutant("raised", ("left = attend(P @ X)", "left = attend(X @ P)")),  # features shuffled
    Mutant("unscaled", (" / math.sqrt(X.shape[-1])", ""), "the scores are not divided by the root of D"),
    Mutant("over-queries", ("dim=-1", "dim=0"), "the weights sum to one over the queries, not over the keys"),
    Mutant("swapped", ("queries @ keys.mT", "keys @ queries.mT"), "queries and keys have changed places"),
    Mutant("no-values", ("tokens @ W_v", "tokens"), "the tokens themselves are mixed: where is W_v?"),
    Mutant("positions-moved", ("attend(P @ X + E)", "attend(P @ (X + E))"), "no gap at all: E is to be added to the "
        "tokens before the layer, and after P has moved them, for row i of E belongs to place i"),
    Mutant("one-side", ("attend(X + E)", "attend(X)"), "positions are added on the left side only"),
    Mutant("one-side", ("attend(P @ X + E)", "attend(P @ X)"), "positions are added on the right side only"),
    Mutant("left-twice", ("return left, right, gap", "return left, left, gap"), "this is the left side again: compute "
        "P Sa(X) for itself"),
    Mutant("right-twice", ("return left, right, gap", "return right, right, gap"), "this is the right side: compute "
        "Sa(P X) for itself"),
    Mutant("turned", ("return left, right, gap", "return left, right, -gap"), "the sign is turned: left less right"),
    Mutant("root-N", ("math.sqrt(X.shape[-1])", "math.sqrt(len(X))"), "the scores are divided by the root of N; it "
        "should be that of D"),
    Mutant("transposed", ("tokens @ W_q, tokens @ W_k, tokens @ W_v",
        "tokens @ W_q.mT, tokens @ W_k.mT, tokens @ W_v.mT"), "the matrices are transposed: Q = X W_q"),
    Mutant("gap-not-shuffled", ("- P @ attend(X + E)", "- attend(X + E)"), "what is subtracted is not shuffled: it is "
        "P Sa(X + E)"),
    Mutant("positions-late", ("attend(P @ X + E) - P @ attend(X + E)", "attend(P @ X) + E - P @ (attend(X) + E)"),
        "the positions are added to the outputs; add them to the tokens"),
    Mutant("positions-late", ("- P @ attend(X + E)", "- P @ (attend(X) + E)"), "the positions are added to the outputs "
        "on the right; add them to the tokens"),
    Mutant("positions-both", ("attend(P @ X + E) - P @ attend(X + E)", "attend(P @ X + P @ E) - P @ attend(X + P @ E)"),
        "places keep their encoding: E is not shuffled"),
    Mutant("absolute", ("return left, right, gap", "return left, right, gap.abs()"), "the gap has a sign: take no "
        "absolute value"),
    Mutant("gap-left", ("attend(P @ X + E) - P @ attend(X + E)", "attend(P @ X + E)"), "this is the left side alone: "
        "subtract the right one"),
    Mutant("places-moved", ("attend(X + E)", "attend(X + P @ E)"), "on the right side E is shuffled: places keep "
        "their encoding on both sides"),
    Mutant("squared", ("return left, right, gap", "return left, right, gap.square()"), "the gap is squared: it is "
        "the plain difference"),
    Mutant("no-keys", ("tokens @ W_k", "tokens"), "the tokens themselves are the keys: where is W_k?"),
    Mutant("no-queries", ("tokens @ W_q", "tokens"), "the tokens themselves are the queries: where is W_q?"),
    Mutant("scaled-by-D", ("math.sqrt(X.shape[-1])", "X.shape[-1]"), "the scores are divided by D, not by its root"),
    Mutant("gap-back", ("- P @ attend(X + E)", "- P.mT @ attend(X + E)"), "the outputs that are subtracted go back "
        "by the inverse: is P transposed?"),
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.4",
    doc=__doc__,
    source="UDL problem 12.4",
    parts=[
        Identity(
            key="udl-12.4a",
            prompt=r"""
Write `shuffled(X, P, E, W_q, W_k, W_v)`. It returns both sides of the identity, and the gap
$\operatorname{Sa}(\mathbf P \mathbf X + \mathbf E) - \mathbf P \operatorname{Sa}(\mathbf X + \mathbf E)$: tokens
change places, places keep their encoding. Compute each side for itself: the check also tries a P with a single one in
each row, but two rows alike. That is no permutation, and the two sides differ. Then prove the identity on paper,
compare with the model proof, and call `review("udl-12.4a", "agrees")`.
""",
            hints=[
                "What does P do to queries, to keys, to values? Then to the matrix of scores?",
                r"The scores of the shuffled tokens are $\mathbf P \mathbf S \mathbf P^\top$: rows and columns move.",
                r"A softmax over each row does not mind where the row stands or in which order it is written. And "
                r"$\mathbf P^\top \mathbf P = \mathbf I$.",
            ],
            answer=shuffled,
            verify=verify,
            alternatives=[by_indexing],
            advice={
                "values": "left: P before the layer. right: P after it. gap: the same two with E added to what enters "
                "the layer, so that queries, keys and values all have it. Here P need not have an inverse",
                "nonfinite": "Scores may be large: by hand, subtract the largest of a row before the exponential",
            },
            mutants=MUTANTS,
            explanation=r"""
Let $\mathbf S = \mathbf Q \mathbf K^\top/\sqrt D$ be the scores of $\mathbf X$. For $\mathbf P\mathbf X$ queries,
keys and values are $\mathbf P\mathbf Q$, $\mathbf P\mathbf K$, $\mathbf P\mathbf V$, because the matrices act on each
row alone. So the scores are $\mathbf P \mathbf Q (\mathbf P \mathbf K)^\top / \sqrt D = \mathbf P \mathbf S \mathbf
P^\top$: the same numbers, with rows and columns in the new order. The softmax works on each row: its exponentials
move with the scores, and its denominator is a sum, which has no order. So it gives $\mathbf P
\operatorname{softmax}(\mathbf S) \mathbf P^\top$. Then

$$\operatorname{Sa}(\mathbf P\mathbf X) = \mathbf P \operatorname{softmax}(\mathbf S)\, \mathbf P^\top \mathbf P\,
\mathbf V = \mathbf P \operatorname{softmax}(\mathbf S)\, \mathbf V = \mathbf P \operatorname{Sa}(\mathbf X) ,$$

for $\mathbf P^\top \mathbf P = \mathbf I$. With positions the argument stops at its first step: $\mathbf P \mathbf X +
\mathbf E$ is not $\mathbf P(\mathbf X + \mathbf E)$. And where two rows of $\mathbf P$ are alike, the denominators
change: one token is there twice and counts twice, while another is lost.
""",
        ),
        Choice(
            key="udl-12.4b",
            prompt="A classifier for sentences is to give the same answer for every order of the words (a bag of "
            "words). "
            "Its tokens carry no positions. Which of these does it need on top of a stack of self-attention layers?",
            hints=[
                "Is the stack invariant, or equivariant?",
                "What does each option do if its input rows are shuffled?",
            ],
            options=[
                Option(
                    "Nothing more: self-attention is invariant under permutations.",
                    "It is equivariant: shuffled tokens give shuffled outputs, not the same ones. A linear layer over "
                    "all outputs laid end to end would notice.",
                ),
                Option(
                    "The mean of the outputs over the tokens, and a linear layer.",
                    "The outputs are the same vectors in another order, and a mean does not see the order. Equivariant "
                    "layers followed by something symmetric give an invariant function.",
                    right=True,
                ),
                Option(
                    "The output of the first token, and a linear layer on it.",
                    "After shuffling another word stands first, and its output is taken. (An extra class token that "
                    "stays where it is would do: it sees the others as a set.)",
                ),
                Option(
                    "A causal mask in every layer, and the mean of the outputs.",
                    "The mask tells earlier from later, so the layers are no longer equivariant: the mean changes with "
                    "the order.",
                ),
                Option(
                    "Learned position encodings, trained until they do no harm.",
                    "Positions break the symmetry. Training may make the effect small on the training data; it does "
                    "not make the function invariant.",
                ),
            ],
        ),
    ],
)
