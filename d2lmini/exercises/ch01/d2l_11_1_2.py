r"""The slope of attention is a covariance

Let every key be its own value. Attention with unscaled dot-product scores then gives back a mean of the
keys under the weights $p_i$,

$$f(\mathbf q) = \sum_i p_i\, \mathbf k_i, \qquad
p_i = \frac{\exp(\mathbf q^\top \mathbf k_i)}{\sum_j \exp(\mathbf q^\top \mathbf k_j)} .$$

The weights are probabilities, so the keys have a mean and also a covariance under them. Show that the
derivative of the output in the query is that covariance:

$$\nabla_{\mathbf q} f(\mathbf q) = \operatorname{Cov}_p[\mathbf k] .$$

Write `slope_and_covariance(query, keys)` for one query (D,) and keys (S, D). It returns both sides, each of
shape (D, D): the left by letting torch differentiate $f$ (`torch.autograd` or `torch.func`), the right from the
weights and the keys, without any derivative. The check runs your code a second time with every derivative of torch
doubled, and so sees which side comes from where. Then prove it on paper, compare with the model proof, and call
`review("d2l-11.1.2", "agrees")`.
"""

import torch

from d2lmini.exercises.engine import Exercise, Identity, Mutant
from d2lmini.exercises.engine.provenance import DoubledSlopes, Noise, differentiated


def slope_and_covariance(query, keys):
    """Compute both sides of the identity.

    Args:
        query: (D,); D may be 1.
        keys: (S, D); they are the values, too. No score is too large for `exp` in float64.

    Returns:
        (left, right), each (D, D). left: row a, column b holds the derivative of output a in query entry b.
        right: the covariance of the keys under the attention weights.
    """
    ### BEGIN SOLUTION

    def attend(q):
        return torch.softmax(keys @ q, dim=-1) @ keys  # (D,)

    left = torch.autograd.functional.jacobian(attend, query)  # (D, D)

    weights = torch.softmax(keys @ query, dim=-1)  # (S,)
    centred = keys - weights @ keys  # (S, D): the mean is the output itself
    right = centred.mT @ (weights.unsqueeze(-1) * centred)  # (D, S) times (S, D)
    return left, right
    ### END SOLUTION


def by_moments(query, keys):
    hessian = torch.func.hessian(lambda q: torch.logsumexp(keys @ q, dim=0))(query)
    p = torch.softmax(keys @ query, dim=0)
    mean = torch.einsum("s,sa->a", p, keys)
    return hessian, torch.einsum("s,sa,sb->ab", p, keys, keys) - torch.outer(mean, mean)


def by_weighted_cov(query, keys):
    slope = torch.func.jacfwd(lambda q: keys.T @ torch.softmax(keys @ q, dim=0))(query)
    weights = torch.softmax(keys @ query, dim=0)
    return slope, torch.cov(keys.T, correction=0, aweights=weights).reshape(slope.shape)


def row_of_the_sum(query, keys):
    query = query.requires_grad_()
    left, right = slope_and_covariance(query, keys)
    (summed,) = torch.autograd.grad((torch.softmax(keys @ query, dim=-1) @ keys).sum(), query)
    return summed.expand_as(left), right


def verify(t, answer):
    for D, S in ((*t.sizes(2, 3, 8),), (1, t.random.randint(3, 8)), (t.random.randint(9, 12), 2)):
        query = t.randn(D, scale=0.6, dtype=torch.float64)
        keys = t.randn(S, D, dtype=torch.float64) + t.randn(D, dtype=torch.float64)
        q, k = query.cpu(), keys.cpu()
        p = torch.exp(k @ q) / torch.exp(k @ q).sum()

        # right: half the mean squared difference of two keys drawn independently, which needs no mean
        pairs = k[:, None, :] - k[None, :, :]
        right = torch.einsum("i,j,ija,ijb->ab", p, p, pairs, pairs) / 2
        # left: the quotient rule on f = numerator / denominator
        e = torch.exp(k @ q)
        top, bottom = e @ k, e.sum()
        left = (k.T * e) @ k / bottom - torch.outer(top, e @ k) / bottom**2

        shapes = f"for D={D}, S={S}"
        got_left, got_right = t.unpack(t.call(answer, query, keys), "left", "right")
        t.same(got_left, left, f"the left side {shapes}")
        t.same(got_right, right, f"the right side {shapes}")
        with t.watching(DoubledSlopes, "runs"):
            again = t.unpack(t.call(answer, query, keys), "left", "right")
        t.that(differentiated(got_left, again[0]), "not-differentiated", NOT_DIFFERENTIATED)
        t.that(not differentiated(got_right, again[1]), "differentiated", DIFFERENTIATED)
        with t.watching(Noise, "runs"):
            noisy = t.unpack(t.call(answer, query, keys), "left", "right")[1]
        off = (noisy - got_right).abs().max() if isinstance(noisy, torch.Tensor) else torch.inf
        t.that(bool(off <= 50 * Noise.SIZE * k.square().amax().clamp(min=1)), "differences", DIFFERENCES)


DIFFERENCES = (
    "the right side has the right values, but they are differences over a small step: a derivative all the same, and "
    "one that rounding spoils. Compute it from the weights and the keys alone"
)
NOT_DIFFERENTIATED = (
    "the left side has the right values, but torch did not differentiate anything for it. Let autograd differentiate "
    "the output in the query; a formula for the result is the right side's business"
)
DIFFERENTIATED = (
    "the right side has the right values, but they come out of a derivative. Compute it from the weights and the keys "
    "alone; the left side once more shows nothing"
)


def by_differences(query, keys):
    left, _ = slope_and_covariance(query, keys)
    steps = 1e-5 * torch.eye(len(query)).to(query)
    attended = [torch.softmax((query + sign * steps) @ keys.mT, dim=-1) @ keys for sign in (1, -1)]
    return left, (attended[0] - attended[1]).mT / 2e-5


MUTANTS = [
    Mutant("differences", by_differences),
    Mutant("variance-only", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "torch.diag(weights @ centred.square())"), "these are the variances alone. Entries of the keys vary together, "
        "and the off-diagonal says how"),
    Mutant("second-moment", ("keys - weights @ keys", "keys"), "this is the second moment, E[k k^T]: the mean has not "
        "been taken off"),
    Mutant("unweighted", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "torch.cov(keys.mT, correction=0).reshape(left.shape)"), "all keys count alike here: weigh each with its "
        "attention weight"),
    Mutant("unweighted-sample", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "torch.cov(keys.mT).reshape(left.shape)"), "this is the covariance of a plain sample: weigh each key with its "
        "attention weight"),
    Mutant("cov-corrected", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "torch.cov(keys.mT, aweights=weights).reshape(left.shape)"), "corrected for a sample (`torch.cov` needs "
        "correction=0); here the weights are the whole distribution"),
    Mutant("correlation", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "left / torch.outer(left.diagonal(), left.diagonal()).sqrt()"), "these are correlations: nothing is divided by "
        "standard deviations"),
    Mutant("at-the-query", ("keys - weights @ keys", "keys - query"), "the keys are centred at the query; centre them "
        "at their mean under the weights"),
    Mutant("unweighted-mean", ("keys - weights @ keys", "keys - keys.mean(dim=0)"), "the mean taken off is the plain "
        "one; it must be the mean under the weights"),
    Mutant("unweighted-mean", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "keys.mT @ (weights[:, None] * keys) - torch.outer(keys.mean(dim=0), keys.mean(dim=0))"),
        "the mean taken off is the plain one; it must be the mean under the weights"),
    Mutant("weights-squared", ("weights.unsqueeze(-1) *", "weights.unsqueeze(-1) ** 2 *"), "the weights enter twice: "
        "each key counts once with p_i"),
    Mutant("not-weighted", ("weights.unsqueeze(-1) * ", ""), "the products are summed without their weights"),
    Mutant("not-weighted", ("weights.unsqueeze(-1) * centred)", "centred) / len(keys)"), "the products are averaged "
        "without their weights"),
    Mutant("weighted-keys", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "torch.cov((weights[:, None] * keys).mT, correction=0).reshape(left.shape)"), "this is the plain covariance of "
        "p_i k_i; the weights belong in front of the products of the centred keys"),
    Mutant("sample", ("return left, right", "return left, right * len(keys) / (len(keys) - 1)"),
        "S/(S - 1) corrects for a sample; here the weights are the whole distribution"),
    Mutant("by-S", ("return left, right", "return left, right / len(keys)"), "divided by S as well: the weights "
        "already sum to one"),
    Mutant("shape", ("centred.mT @ (weights.unsqueeze(-1) * centred)", "centred @ centred.mT")),  # keys by keys
    Mutant("shape", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "torch.cov(keys.mT, correction=0, aweights=weights)")),  # axes dropped by torch.cov
    Mutant("scaled", ("return torch.softmax(keys @ q,", "return torch.softmax(keys @ q / len(q) ** 0.5,"),
        "this is the slope for scores divided by sqrt(D); ours are unscaled"),
    Mutant("no-denominator", ("return torch.softmax(keys @ q, dim=-1) @ keys",
        "return torch.exp(keys @ q) @ keys / torch.exp(keys @ q).sum().detach()"), "only the exponentials were "
        "differentiated; the sum in the denominator depends on q too"),
    Mutant("zero", ("softmax(keys @ q, dim=-1)", "softmax(keys @ q, dim=-1).detach()"), "all zero: are the weights "
        "detached? The query acts through them alone"),
    Mutant("summed", row_of_the_sum, "every row is the gradient of the sum of the outputs; a Jacobian has one row for "
        "each output"),
    Mutant("negative", ("jacobian(attend, query)", "jacobian(lambda q: -attend(q), query)"), "the sign is turned: the "
        "output moves towards the keys that the query moves to"),
    Mutant("differentiated", ("return left, right", "return left, left")),  # left twice
    Mutant("differentiated", ("return left, right", "return left, left.clone()")),  # left copied
    Mutant("not-differentiated", ("return left, right", "return right, right")),  # right twice
    Mutant("not-differentiated", ("return left, right",
        "return keys.mT @ (torch.diag(weights) - torch.outer(weights, weights)) @ keys, right")),  # left by hand
    Mutant("dtype", ("return left, right", "return left.float(), right.float()")),  # in single
    Mutant("means-only", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "torch.outer(weights @ keys, weights @ keys)"), "this is the product of the means; a covariance is the mean of "
        "products of what is centred"),
    Mutant("plus", ("centred.mT @ (weights.unsqueeze(-1) * centred)",
        "keys.mT @ (weights.unsqueeze(-1) * keys) + torch.outer(weights @ keys, weights @ keys)"), "the product of the "
        "means is added to the second moment: take it off"),
    Mutant("weights-scaled", ("weights = torch.softmax(keys @ query, dim=-1)",
        "weights = torch.softmax(keys @ query / len(query) ** 0.5, dim=-1)"), "the scores are divided by sqrt(D); here "
        "they are plain dot products"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.1.2",
    doc=__doc__,
    source="D2L 11.1, exercise 2",
    parts=[
        Identity(
            key="d2l-11.1.2",
            hints=[
                "Begin with the derivative of a single weight in the query. Take its logarithm first.",
                r"$\log p_i = \mathbf q^\top \mathbf k_i - \log \sum_j \exp(\mathbf q^\top \mathbf k_j)$, "
                "and the gradient of the last term is a mean that you have met.",
                r"$\nabla p_i = p_i (\mathbf k_i - \bar{\mathbf k})$ with $\bar{\mathbf k} = \sum_j p_j "
                r"\mathbf k_j$. Put it into $\sum_i \mathbf k_i (\nabla p_i)^\top$.",
                "In code: `torch.autograd.functional.jacobian(attend, query)` on the left; on the right "
                "centre the keys with `weights @ keys` and add up outer products, each with its weight.",
            ],
            answer=slope_and_covariance,
            verify=verify,
            alternatives=[by_moments, by_weighted_cov],
            seconds=30.0,  # the first use of torch.func loads much of torch
            advice={
                "values": "Left: the derivative of the output, a mean of the keys, in the query. Right: keys less their"
                " weighted mean, and of their products the weighted mean",
                "dtype": "The inputs are float64 here, so that the two sides can be compared to eight digits",
                "shape": "Both sides are (D, D): features by features. Over keys by keys there is nothing to compare. "
                "And `torch.cov` drops both axes where D = 1: reshape what it gives",
            },
            mutants=MUTANTS,
            explanation=r"""
**Model proof.** Take logarithms, $\log p_i = \mathbf q^\top \mathbf k_i - \log Z$ with $Z = \sum_j
\exp(\mathbf q^\top \mathbf k_j)$. The gradient of the last term is

$$\nabla_{\mathbf q} \log Z = \frac{1}{Z} \sum_j \exp(\mathbf q^\top \mathbf k_j)\, \mathbf k_j
= \sum_j p_j\, \mathbf k_j = \bar{\mathbf k},$$

the output itself. Hence $\nabla p_i = p_i\, \nabla \log p_i = p_i (\mathbf k_i - \bar{\mathbf k})$, and the
Jacobian is

$$\sum_i \mathbf k_i\, (\nabla p_i)^\top = \sum_i p_i\, \mathbf k_i (\mathbf k_i - \bar{\mathbf k})^\top
= \sum_i p_i\, (\mathbf k_i - \bar{\mathbf k})(\mathbf k_i - \bar{\mathbf k})^\top
= \operatorname{Cov}_p[\mathbf k] .$$

The middle step takes off $\bar{\mathbf k} \sum_i p_i (\mathbf k_i - \bar{\mathbf k})^\top$, which is zero.
$\square$

**What to take from it.** A covariance is symmetric and positive semidefinite, so a query that moves in the
direction $\mathbf u$ moves the output by $\operatorname{Cov}\,\mathbf u$, never against $\mathbf u$. Where
one key has all the weight there is no covariance and no slope, so that the query gets no gradient. With
scores divided by $\tau$ the slope is $\operatorname{Cov}/\tau$. And $f = \nabla \log Z$, so the slope is
the second derivative of $\log Z$: the first two moments come from one function. With values that are not
the keys the same proof gives $\operatorname{Cov}_p[\mathbf v, \mathbf k]$.
""",
        )
    ],
)
