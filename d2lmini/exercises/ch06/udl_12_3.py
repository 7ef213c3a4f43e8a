r"""The derivatives of self-attention in all its parameters

One token in each row of $\mathbf X$, shape (N, D), and for this exercise no division by $\sqrt D$, as in the first
form of self-attention in UDL:

$$\mathbf Q = \mathbf X \mathbf W_q + \mathbf 1 \mathbf b_q^\top, \quad
\mathbf K = \mathbf X \mathbf W_k + \mathbf 1 \mathbf b_k^\top, \quad
\mathbf V = \mathbf X \mathbf W_v + \mathbf 1 \mathbf b_v^\top,$$

$$\mathbf Y = \operatorname{softmax}(\mathbf Q \mathbf K^\top)\, \mathbf V ,$$

with a softmax over each row. The whole derivative of $\mathbf Y$ in a matrix has four indices. What training needs is
less: for some loss $L$ the gradient in $\mathbf Y$ is known, $\mathbf G = \partial L/\partial \mathbf Y$ of shape (N,
D), and the gradients in the six parameters are wanted.

Write `gradients(X, parameters, G)`, where `parameters` is a dict with the keys `W_q`, `b_q`, `W_k`, `b_k`, `W_v` and
`b_v`. It returns two dicts with these keys: the gradients by autograd, and the gradients from formulas of your own,
in which nothing is differentiated by torch. Derive the formulas on paper, compare with the model derivation, and call
`review("udl-12.3", "agrees")`.

One of the six is a surprise. Look at it before you believe it.
"""

import torch

from d2lmini.exercises.engine import Exercise, Identity, Mutant
from d2lmini.exercises.engine.provenance import DoubledSlopes, differentiated

NAMES = ("W_q", "b_q", "W_k", "b_k", "W_v", "b_v")


def gradients(X, parameters, G):
    """Compute the gradients of self-attention in its parameters, in two ways.

    Args:
        X: (N, D).
        parameters: dict with W_q, W_k, W_v, (D, D) each, and b_q, b_k, b_v, (D,) each; no gradient stays in them.
        G: (N, D), the gradient of the loss in the output.

    Returns:
        (left, right): two dicts with the keys of ``parameters`` and tensors of the same shapes. left: by
        autograd. right: by formula.
    """
    ### BEGIN SOLUTION
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    Q, K, V = (X @ leaves[f"W_{part}"] + leaves[f"b_{part}"] for part in "qkv")
    Y = torch.softmax(Q @ K.mT, dim=-1) @ V
    left = dict(zip(leaves, torch.autograd.grad(Y, list(leaves.values()), G), strict=True))

    Q, K, V = (X @ parameters[f"W_{part}"] + parameters[f"b_{part}"] for part in "qkv")  # (N, D) each
    A = torch.softmax(Q @ K.mT, dim=-1)  # (N, N)
    dV = A.mT @ G  # (N, D): value s goes to every query, with weight A[t, s]
    dA = G @ V.mT  # (N, N)
    dS = A * (dA - (A * dA).sum(dim=-1, keepdim=True))  # (N, N): through the softmax, row by row
    dQ = dS @ K  # (N, D)
    dK = dS.mT @ Q  # (N, D)
    right = {}
    for part, d in (("q", dQ), ("k", dK), ("v", dV)):
        right[f"W_{part}"] = X.mT @ d  # (D, D)
        right[f"b_{part}"] = d.sum(dim=0)  # (D,)
    return left, right
    ### END SOLUTION


def token_by_token(X, parameters, G):
    p = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    q, k, v = (X @ p[f"W_{x}"] + p[f"b_{x}"] for x in "qkv")
    ((q @ k.T).softmax(-1) @ v * G).sum().backward()
    left = {name: value.grad for name, value in p.items()}
    Q, K, V = (X @ parameters[f"W_{x}"] + parameters[f"b_{x}"] for x in "qkv")
    right = {name: torch.zeros_like(value) for name, value in parameters.items()}
    for t, g in enumerate(G):
        a = torch.softmax(K @ Q[t], dim=0)  # (N,)
        s = (torch.diag(a) - torch.outer(a, a)) @ (V @ g)  # (N,)
        right["W_v"] += torch.outer(a @ X, g)
        right["b_v"] += g
        right["W_q"] += torch.outer(X[t], s @ K)
        right["b_q"] += s @ K
        right["W_k"] += torch.outer(s @ X, Q[t])
        right["b_k"] += s.sum() * Q[t]
    return left, right


def by_autograd_alone(X, parameters, G):
    left, _ = gradients(X, parameters, G)
    return left, {name: value.clone() for name, value in left.items()}


def verify(t, answer):
    for large in (False, True):
        N, D = t.sizes(2, 3, 7)
        X, G = t.randn(N, D, dtype=torch.float64), t.randn(N, D, dtype=torch.float64)
        parameters = {}
        for part in "qkv":
            parameters[f"W_{part}"] = t.randn(D, D, scale=0.7 * D**-0.5, dtype=torch.float64)
            parameters[f"b_{part}"] = t.randn(D, scale=0.5, dtype=torch.float64)
        if large:  # scores of 1000, whose exponentials are infinite
            query = X[0] @ parameters["W_q"] + parameters["b_q"]
            parameters["b_k"] = 1000 * query / query.square().sum()
        x, g = X.cpu(), G.cpu()
        p = {name: value.cpu() for name, value in parameters.items()}

        def loss(p, x=x.to(torch.complex128), g=g):
            p = {name: value.to(torch.complex128) for name, value in p.items()}
            q, k, v = (torch.einsum("na,ab->nb", x, p[f"W_{c}"]) + p[f"b_{c}"] for c in "qkv")
            scores = torch.einsum("ta,sa->ts", q, k)
            powers = torch.exp(scores - scores.real.amax(1, keepdim=True))
            return (torch.einsum("ts,sa->ta", powers / powers.sum(1, keepdim=True), v) * g).sum()

        want = {}
        for name in NAMES:  # an imaginary step in one entry at a time: exact, and nothing is differentiated
            steps = 1e-30j * torch.eye(p[name].numel(), dtype=torch.complex128).view(-1, *p[name].shape)
            slopes = [loss({**p, name: p[name] + step}).imag / 1e-30 for step in steps]
            want[name] = torch.stack(slopes).view(p[name].shape)
        sides = t.unpack(t.call(answer, X, parameters, G), "left", "right")
        kept = t.look(lambda given: [name for name, value in given[1].items() if value.grad is not None])
        message = f"a gradient is left in {', '.join(kept)}, and the next one would be added: differentiate with copies"
        t.that(not kept, "kept", message)
        with t.watching(DoubledSlopes, "runs"):
            again = t.unpack(t.call(answer, X, parameters, G), "left", "right")
        for side, gradient, doubled in zip(("left", "right"), sides, again, strict=True):
            values, doubled = t.fields(gradient, *NAMES), t.fields(doubled, *NAMES)
            for name, value in zip(NAMES, values, strict=True):
                t.same(value, want[name], f"{side}, {name}, for N={N}, D={D}")
            pairs = zip(NAMES, values, doubled, strict=True)
            # the gradient in b_k is zero, and twice zero tells nothing
            by_torch = [name for name, *pair in pairs if name != "b_k" and differentiated(*pair)]
            if side == "left":
                message = "left: the values are right, but autograd is to compute them, and not all come from there"
                t.that(len(by_torch) == len(NAMES) - 1, "not-differentiated", message)
            else:
                message = (
                    f"right, {', '.join(by_torch)}: the values are right, but torch has differentiated: use a formula"
                )
                t.that(not by_torch, "differentiated", message)


MUTANTS = [
    Mutant("no-denominator", ("A * (dA - (A * dA).sum(dim=-1, keepdim=True))", "A * dA"), "the denominator of the "
        "softmax depends on the scores, too: a term is missing"),
    Mutant("diagonal", ("A * (dA - (A * dA).sum(dim=-1, keepdim=True))", "A * (1 - A) * dA"), "only the diagonal of "
        "the softmax's Jacobian is there: the weights of a row are coupled"),
    Mutant("columns", ("(A * dA).sum(dim=-1, keepdim=True)", "(A * dA).sum(dim=0)"), "the sum in the softmax's "
        "derivative runs over the keys of a query, along the row"),
    Mutant("no-softmax", ("A * (dA - (A * dA).sum(dim=-1, keepdim=True))", "dA"), "the derivative of the softmax is "
        "missing"),
    Mutant("transposed-scores", ("dQ = dS @ K", "dQ = dS.mT @ K"), "rows and columns of the scores' gradient are "
        "swapped: queries are the rows"),
    Mutant("turned", ("(dA - (A * dA)", "-(dA - (A * dA)"), "the sign is turned"),
    Mutant("scaled", ("Q @ K.mT, dim=-1) @ V", "Q @ K.mT / X.shape[-1] ** 0.5, dim=-1) @ V"),
        "the scores of this exercise are not divided by the root of D"),
    Mutant("scaled", ("A = torch.softmax(Q @ K.mT, dim=-1)",
        "K = K / X.shape[-1] ** 0.5\n    A = torch.softmax(Q @ K.mT, dim=-1)"), "the scores of this exercise are not "
        "divided by the root of D"),
    Mutant("scaled", ("A = torch.softmax(Q @ K.mT, dim=-1)",
        "A = torch.softmax(Q @ K.mT / X.shape[-1] ** 0.5, dim=-1)"), "the scores of this exercise are not divided by "
        "the root of D"),
    Mutant("weights-transposed", ("A.mT @ G", "A @ G"), "value s goes to all queries: the weights must be transposed "
        "here"),
    Mutant("no-weights", ("A.mT @ G", "G"), "the attention weights are missing between value and output"),
    Mutant("matrix-transposed", ("X.mT @ d ", "d.mT @ X "), "the matrix is transposed: its rows belong to X"),
    Mutant("mean", ("d.sum(dim=0)", "d.mean(dim=0)"), "a bias is added to every token: sum over the tokens, no mean"),
    Mutant("shape", ("d.sum(dim=0)", "d.sum(dim=1)")),  # sum over features
    Mutant("no-loss", ("torch.autograd.grad(Y, list(leaves.values()), G)",
        "torch.autograd.grad(Y.sum(), list(leaves.values()))"), "this is the gradient of the sum of Y: hand G to "
        "autograd as the gradient in Y"),
    Mutant("over-queries", ("Q @ K.mT, dim=-1) @ V", "Q @ K.mT, dim=0) @ V"), "the softmax runs over the queries; it "
        "runs over each row, the keys of a query"),
    Mutant("differentiated", by_autograd_alone),
    Mutant("kept", ("return left, right", "for name in left:\n        parameters[name].grad = left[name]\n"
        "    return left, right")),
    Mutant("not-differentiated", ("return left, right", "return right, right")),  # right twice
    Mutant("whole-matrix", ("(A * dA).sum(dim=-1, keepdim=True)", "(A * dA).sum()"), "the sum in the softmax's "
        "derivative runs along one row, not over the whole matrix"),
    Mutant("plain-mean", ("(A * dA).sum(dim=-1, keepdim=True)", "dA.mean(dim=-1, keepdim=True)"),
        "what is subtracted in the softmax's derivative is a mean weighted with A"),
    Mutant("one-token", ("d.sum(dim=0)", "d[0]"), "this is the first token's: a bias is added to every token"),
    Mutant("scaled", ("dS = A * ", "dS = X.shape[-1] ** -0.5 * A * "), "the scores of this exercise are not divided by "
        "the root of D"),
    Mutant("exchanged", ('("q", dQ), ("k", dK)', '("q", dK), ("k", dQ)'), "the gradients of queries and keys have "
        "changed places"),
    Mutant("no-biases", ('(X @ parameters[f"W_{part}"] + parameters[f"b_{part}"] for part in "qkv")',
        '(X @ parameters[f"W_{part}"] for part in "qkv")'), "queries, keys and values are made without their biases"),
    Mutant("keys-transposed", ("dK = dS.mT @ Q", "dK = dS @ Q"), "rows and columns of the scores' gradient are "
        "swapped for the keys: these are its columns"),
    Mutant("own-queries", ("dQ = dS @ K", "dQ = dS @ Q"), "the gradient in the queries meets the keys, not the "
        "queries: S = Q K^T"),
    Mutant("not-the-values", ("dA = G @ V.mT", "dA = G @ X.mT"), "the weights mix the values V, not X: look at "
        "what A is multiplied with"),
    Mutant("over-queries", ("A = torch.softmax(Q @ K.mT, dim=-1)", "A = torch.softmax(Q @ K.mT, dim=0)"),
        "the softmax runs over the queries; it runs over each row, the keys of a query"),
    Mutant("no-upstream", ("dV = A.mT @ G", "dV = A.mT @ torch.ones_like(G)"), "G is left out: this is the "
        "gradient of the sum of Y"),
    Mutant("no-chain", ('right[f"b_{part}"] = d.sum(dim=0)', 'right[f"b_{part}"] = G.sum(dim=0)'), "this is the "
        "sum of G for every bias: it is so for the values alone, whose weights sum to one"),
    Mutant("no-own-weight", ("dS = A * (dA - (A * dA)", "dS = (dA - (A * dA)"), "the factor A in front is missing: "
        "a weight that is zero cannot change"),
    Mutant("inputs", ("X.mT @ d  #", "Q.mT @ d  #"), "the matrix gets X^T times the gradient of what it makes: Q = "
        "X W_q"),
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.3",
    doc=__doc__,
    source="UDL problem 12.3",
    parts=[
        Identity(
            key="udl-12.3",
            hints=[
                r"Go backwards, one product at a time. For $\mathbf C = \mathbf A \mathbf B$ the gradients are "
                r"$\mathbf G_A = "
                r"\mathbf G_C \mathbf B^\top$ and $\mathbf G_B = \mathbf A^\top \mathbf G_C$.",
                r"Through a softmax with weights $\mathbf a$: $\mathbf g \mapsto \mathbf a \odot (\mathbf g - "
                r"(\mathbf a^\top "
                r"\mathbf g)\mathbf 1)$. Exercise udl-12.5 has its Jacobian.",
                "A bias is added to every row, so its gradient is the sum over the rows. For the keys: what do the "
                "rows of "
                "the scores' gradient sum to?",
            ],
            answer=gradients,
            verify=verify,
            alternatives=[token_by_token],
            min_checks=24,
            advice={
                "shape": "Each gradient has the shape of its parameter",
                "values": "Go back product by product: for C = A B, G_A = G_C B^T and G_B = A^T G_C, with Q, K and V "
                "as they are, biases included. Which is wrong first: that of V, of the scores, of Q and K?",
                "nonfinite": "Scores may be large: by hand, subtract the largest of a row before the exponential",
            },
            mutants=MUTANTS,
            explanation=r"""
Write $\mathbf A$ for the weights and $\mathbf S$ for the scores. Backwards through $\mathbf Y = \mathbf A \mathbf V$:

$$\mathbf G_V = \mathbf A^\top \mathbf G, \qquad \mathbf G_A = \mathbf G \mathbf V^\top .$$

Row $t$ of $\mathbf A$ is the softmax of row $t$ of $\mathbf S$. Its Jacobian is $\operatorname{diag}(\mathbf a) -
\mathbf a \mathbf a^\top$, so, with $\odot$ entry by entry,

$$\mathbf G_S = \mathbf A \odot \bigl(\mathbf G_A - (\mathbf A \odot \mathbf G_A)\mathbf 1 \mathbf 1^\top\bigr) .$$

Through $\mathbf S = \mathbf Q\mathbf K^\top$: $\mathbf G_Q = \mathbf G_S \mathbf K$ and $\mathbf G_K = \mathbf
G_S^\top \mathbf Q$. Last, for each of $\mathbf Q$, $\mathbf K$, $\mathbf V$ the matrix gets $\mathbf X^\top \mathbf
G_\bullet$ and the bias the sum of the rows of $\mathbf G_\bullet$.

**The surprise:** the gradient in $\mathbf b_k$ is zero. A bias of the keys adds $\mathbf q_t^\top \mathbf b_k$ to all
scores of query $t$, the same to each, and the softmax does not notice. In formulas: $\sum_s \mathbf G_{K,s} = \mathbf
Q^\top \mathbf G_S \mathbf 1$, and each row of $\mathbf G_S$ sums to zero. So in this
layer the biases of the keys change no output, and some models leave them out. With rotary encoding, which turns the
keys by their positions, they would.

And $\mathbf b_v$: each row of $\mathbf A$ sums to one, so the bias of the values is simply added to every output, and
its gradient is the sum of the rows of $\mathbf G$.
""",
        )
    ],
)
