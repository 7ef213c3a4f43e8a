"""Part a of udl-12.11, "Kernels in place of the softmax": `two_orders`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Identity, Mutant


class _Features:
    """phi: (..., D) to (..., R), all positive."""

    def __init__(self, weight, size=1.0):
        self.weight, self.size = weight, size

    def __call__(self, x):
        return self.size * F.softplus(x @ self.weight)


def _features(t, D, R, dtype=torch.float32):
    weight = t.randn(D, R, dtype=dtype)
    weight[:, 0] = -weight[:, 0].abs()  # what is very negative has one large feature at least
    return _Features(weight)


class _Kernel:
    """k: (T, D) and (S, D) to (T, S)."""

    def __init__(self, phi):
        self.phi = phi

    def __call__(self, queries, keys):
        return self.phi(queries) @ self.phi(keys).mT


def _exponential(queries, keys):
    """Not the same with queries and keys exchanged."""
    return torch.exp(queries @ keys.mT + keys.sum(dim=1))


def two_orders(queries, keys, values, kernel, phi):
    """Compute both sides of the identity.

    Args:
        queries: (T, D), keys: (S, D), values: (S, E), float64.
        kernel: kernel(queries, keys) gives all values of the kernel, (T, S); it need not be symmetric.
        phi: phi(queries) gives features, (T, R), and phi(keys) (S, R).

    Returns:
        (left, right), each (T, E). left: with the kernel alone. right: with the features alone.
    """
    ### BEGIN SOLUTION
    weights = kernel(queries, keys)  # (T, S)
    left = weights @ values / weights.sum(dim=1, keepdim=True)
    to, by = phi(queries), phi(keys)  # (T, R), (S, R)
    state = by.mT @ values  # (R, E): the sum over the keys, once for all queries
    normaliser = by.sum(dim=0)  # (R,)
    right = (to @ state) / (to @ normaliser)[:, None]
    return left, right
    ### END SOLUTION


def query_by_query(queries, keys, values, kernel, phi):
    left, right = [], []
    for query in queries:
        shares = kernel(query[None], keys)[0]
        left.append(shares @ values / shares.sum())
        outer = sum(torch.outer(v, phi(k)) for k, v in zip(keys, values, strict=True))
        right.append(outer @ phi(query) / (phi(query) @ sum(phi(k) for k in keys)))
    return torch.stack(left), torch.stack(right)


def with_a_column_of_ones(queries, keys, values, kernel, phi):
    more = torch.cat([values, torch.ones_like(values[:, :1])], 1)  # its output is the normaliser
    sums = kernel(queries, keys) @ more, torch.einsum("tr,sr,se->te", phi(queries), phi(keys), more)
    return tuple(x[:, :-1] / x[:, -1:] for x in sums)


def verify_orders(t, answer):
    for name in ("the kernel of phi", "another kernel"):  # with the second no side can stand for the other
        T, S, D, E, R = t.sizes(5, 2, 10)
        queries, keys, values = (t.randn(n, d, scale=0.5, dtype=torch.float64) for n, d in ((T, D), (S, D), (S, E)))
        phi = _features(t, D, R, torch.float64)
        kernel = _exponential if name.startswith("another") else _Kernel(phi)
        q, k, v, w = (x.cpu() for x in (queries, keys, values, phi.weight))
        features = _Features(w)
        sides = []
        for table in ((_exponential if kernel is _exponential else _Kernel(features))(q, k), _Kernel(features)(q, k)):
            sides.append(torch.einsum("ts,se->te", table / table.sum(1, keepdim=True), v))
        got = t.unpack(t.call(answer, queries, keys, values, kernel, phi), "left", "right")
        for side, value, want in zip(("left", "right"), got, sides, strict=True):
            t.same(value, want, f"the {side} side with {name}, T={T}, S={S}")


MUTANTS = [
    Mutant("right-unnormalised", (" / (to @ normaliser)[:, None]", ""), "this is the numerator alone: divide by "
        "phi(q_t) times the sum of phi(k_s)"),
    Mutant("left-unnormalised", (" / weights.sum(dim=1, keepdim=True)", ""), "the weights do not sum to one: divide by "
        "their sum over the keys"),
    Mutant("summed-early", ("by.sum(dim=0)", "phi(keys.sum(dim=0))"), "the normaliser is phi of the sum of the keys; "
        "phi is not linear: sum the features"),
    Mutant("summed-early", ("by.sum(dim=0)", "len(keys) * phi(keys.mean(dim=0))"), "the normaliser has phi of a mean "
        "of keys; phi is not linear: sum the features"),
    Mutant("over-queries", ("weights @ values / weights.sum(dim=1, keepdim=True)",
        "weights / weights.sum(dim=0, keepdim=True) @ values"), "the weights of each key sum to one over the queries; "
        "those of each query should, over the keys"),
    Mutant("over-queries", ("right = (to @ state) / (to @ normaliser)[:, None]",
        "right = to @ (by.mT @ (values / (by @ to.sum(dim=0))[:, None]))"), "the weights of each key sum to one over "
        "the queries; those of each query should, over the keys"),
    Mutant("all-queries", ("(to @ normaliser)[:, None]", "(to @ normaliser).sum()"), "divided by the normalisers of "
        "all queries together: each query has its own"),
    Mutant("features-apart", ("(to @ normaliser)[:, None]", "(to.sum(dim=1) * normaliser.sum())[:, None]"),
        "the features of query and keys are summed apart in the denominator: it is an inner product"),
    Mutant("apart", ("state = by.mT @ values", "state = by.sum(0)[:, None] * values.sum(0)"), "keys and values are "
        "summed apart and then multiplied: sum the products phi(k_s) v_s"),
    Mutant("raised", ("phi(queries), phi(keys)", "queries, phi(keys)")),  # no feature map for queries
    Mutant("softmax", ("weights @ values / weights.sum(dim=1, keepdim=True)", "torch.softmax(weights, dim=1) @ values"),
        "the values of the kernel are put through a softmax; it is a kernel in place of exp: divide by the sum"),
    Mutant("own-kernel", ("weights = kernel(queries, keys) ", "weights = torch.exp(queries @ keys.mT) "), "this is "
        "the kernel of the softmax: use the one that is given"),
    Mutant("exchanged", ("weights = kernel(queries, keys) ", "weights = kernel(keys, queries).mT "), "the keys are "
        "given to the kernel as queries: it need not be symmetric"),
    Mutant("left-twice", ("return left, right", "return left, left"), "this is the left side again: use phi, and no "
        "kernel"),
    Mutant("right-twice", ("return left, right", "return right, right"), "this is the right side: use the kernel that "
        "is given, and no phi; or are the two turned?"),
]  # fmt: skip


PART = Identity(
    key="udl-12.11a",
    prompt=r"""
Write `two_orders(queries, keys, values, kernel, phi)`, which returns the two sides for all queries. Compute the left
one with `kernel` alone, which gives all of $k(\mathbf q_t, \mathbf k_s)$ at once, and the right one with `phi` alone:
the check also tries a kernel that is not that of `phi`, and then they differ. Then prove the identity on paper, compare
with the model proof, and call `review("udl-12.11a", "agrees")`.
""",
    hints=[
        "Write the kernel as a sum over the R features, and look which factors depend on s.",
        r"$(\mathbf Q' \mathbf K'^\top)\, \mathbf V = \mathbf Q'\, (\mathbf K'^\top \mathbf V)$, where a row "
        r"of $\mathbf Q'$ is $\phi(\mathbf q_t)$: brackets may be moved.",
        "The denominator is the same with a value of one for each key.",
    ],
    answer=two_orders,
    verify=verify_orders,
    alternatives=[query_by_query, with_a_column_of_ones],
    advice={
        "values": "Try one query and one key: both sides are then the value. With two keys the left side has two "
        "weights, divided by their sum over the keys; the right side has phi(q) times two sums, of phi(k) v and of "
        "phi(k), and nothing is scaled before phi."
    },
    mutants=MUTANTS,
    explanation=r"""
Put the kernel in. The numerator is $\sum_s \big(\phi(\mathbf q_t)^\top \phi(\mathbf k_s)\big)\, \mathbf v_s$. The
bracket is a number, so it may stand behind the vector: $\sum_s \mathbf v_s\, \phi(\mathbf k_s)^\top \phi(\mathbf q_t)$.
Here $\phi(\mathbf q_t)$ does not depend on s and is taken out of the sum: $[\sum_s \mathbf v_s\, \phi(\mathbf
k_s)^\top]\, \phi(\mathbf q_t)$. The denominator is the same with $v_s = 1$: $\phi(\mathbf q_t)^\top \sum_s
\phi(\mathbf k_s)$. No more is used than that products of matrices may be bracketed at will. A softmax between the
two products forbids it.
""",
)
