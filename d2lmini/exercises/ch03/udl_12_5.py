r"""A softmax with one huge input

A softmax turns five scores $x_1, \dots, x_5$ into weights $y_i$. Suppose one score is far above the others,
say $\mathbf x = (-2, 0.5, 90, 3, -1)$. There are 25 derivatives $\partial y_i / \partial x_j$: how large are
they, and what does that mean for a network that has to learn these scores?
"""

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def softmax_jacobian(scores):
    """Compute all derivatives of a softmax.

    Args:
        scores: (S,), of any size, moderate or huge.

    Returns:
        (S, S); the entry in row i and column j is the derivative of weight i in score j.
    """
    ### BEGIN SOLUTION
    exponentials = torch.exp(scores - scores.max())  # the largest becomes 1, so none overflows
    weights = exponentials / exponentials.sum()
    return torch.diag(weights) - torch.outer(weights, weights)
    ### END SOLUTION


def by_autograd(scores):
    return torch.autograd.functional.jacobian(lambda x: torch.softmax(x, dim=-1), scores)


def entry_by_entry(scores):
    y = torch.softmax(scores, dim=-1)
    rows = [[y[i] * (float(i == j) - y[j]) for j in range(len(y))] for i in range(len(y))]
    return torch.stack([torch.stack(row) for row in rows])


def only_for_five(scores):
    return by_autograd(scores)[:5, :5]


def _of_weights(weights):
    return torch.diag(weights) - torch.outer(weights, weights)


def clamped(scores):
    return _of_weights(torch.softmax(scores.clamp(-80, 80), dim=-1))


def without_nan(scores):
    powers = torch.exp(scores)
    return _of_weights(powers / powers.sum()).nan_to_num()


def less_the_largest_size(scores):
    powers = torch.exp(scores - scores.abs().max())
    return _of_weights(powers / powers.sum())


def verify(t, answer):
    for size in t.sizes(1, 3, 6) + t.sizes(1, 6, 10):  # one above the five of the example
        scores = t.randn(size)
        x = scores.cpu().double()
        y = torch.exp(x) / torch.exp(x).sum()
        want = torch.tensor([[y[i] * (float(i == j) - y[j]) for j in range(size)] for i in range(size)]).double()
        got = t.call(answer, scores)
        t.same(got, want, f"the Jacobian for {size} moderate scores")

    huge = torch.tensor([-2, 0.5, 90, 3, -1], device=t.device)
    got = t.call(answer, huge)
    t.same(got, torch.zeros(5, 5, dtype=torch.float64), "the Jacobian with one huge score", tolerance=(0, 1e-6))
    got = t.call(answer, 10 * huge)
    t.same(got, torch.zeros(5, 5, dtype=torch.float64), "the Jacobian with a score of 900", tolerance=(0, 1e-6))
    pairs = {
        "the Jacobian with two huge scores": [-2, 0.5, 90, 89, -1],
        "the Jacobian with one large score, whose weight is not quite 1": [0, 8, -1],
        "the Jacobian with scores near -900": [-901, -900, -903],
        "the Jacobian of a single score": [7],
    }
    for name, scores in pairs.items():
        y = torch.softmax(torch.tensor(scores, dtype=torch.float64), 0)
        got = t.call(answer, torch.tensor(scores, dtype=torch.float32, device=t.device))
        t.same(got, torch.diag(y) - torch.outer(y, y), name)
    cooled = huge.double() / 60
    y = torch.softmax(cooled.cpu(), 0)
    want = torch.diag(y) - torch.outer(y, y)
    t.same(t.call(answer, cooled), want, "the Jacobian after dividing the huge scores by 60, in float64")


MUTANTS = [
    Mutant("cut", ("    return torch.diag", "    weights = weights * (weights.max() < 0.999)\n    return torch.diag"),
        "where one weight is nearly 1 all derivatives are set to 0: they are small, and not 0"),
    Mutant("nonfinite", ("scores - scores.max()", "scores")),  # naive exponential
    Mutant("diagonal", ("torch.outer(weights, weights)", "torch.diag(weights**2)"), "the derivatives off the diagonal "
        "are missing: the sum couples all"),
    Mutant("no-diagonal", ("torch.diag(weights) - ", "-"), "the diagonal lacks its first term: derivative i, i is y_i "
        "(1 - y_i)"),
    Mutant("no-product", (" - torch.outer(weights, weights)", ""), "the denominator depends on the scores too: use the "
        "quotient rule"),
    Mutant("plus", ("torch.diag(weights) - ", "torch.diag(weights) + "), "a weight falls when another score grows: "
        "mind the sign of y_i y_j"),
    Mutant("everywhere-one-minus", ("torch.diag(weights) - torch.outer(weights, weights)",
        "torch.outer(weights, 1 - weights)"), "y_i (1 - y_j) holds on the diagonal only: elsewhere the numerator does "
        "not depend on score j, and the 1 is gone"),
    Mutant("everywhere-row", ("torch.diag(weights) - torch.outer(weights, weights)",
        "(weights * (1 - weights))[:, None].expand(-1, len(weights)).clone()"), "y_i (1 - y_i) holds on the diagonal "
        "only: elsewhere the numerator does not depend on score j"),
    Mutant("plus-off", ("torch.outer(weights, weights)",
        "torch.outer(weights, weights) * (2 * torch.eye(len(weights)).to(scores) - 1)"), "the diagonal is right; off "
        "it a weight falls when another score grows: mind the sign"),
    Mutant("sign", ("torch.diag(weights) - ", "-torch.diag(weights) + "), "all signs are turned: a weight grows with "
        "its own score"),
    Mutant("sigmoid", ("torch.diag(weights) - torch.outer(weights, weights)",
        "torch.diag(torch.sigmoid(scores) * torch.sigmoid(-scores))"), "these are derivatives of a sigmoid, which "
        "looks at one score alone"),
    Mutant("shape", only_for_five),
    Mutant("shape", ("torch.diag(weights) - torch.outer(weights, weights)",
        "(torch.diag(weights) - torch.outer(weights, weights)).squeeze()")),  # a single score
    Mutant("dtype", ("torch.exp(scores - scores.max())", "torch.exp(scores - scores.max()).float()")),
    Mutant("shape", ("torch.diag(weights) - torch.outer(weights, weights)", "weights * (1 - weights)")),  # a vector
    Mutant("log", ("torch.diag(weights) - torch.outer(weights, weights)",
        "torch.eye(len(weights)).to(scores) - weights"), "these are the derivatives of log y_i: multiply row i by y_i"),
    Mutant("identity", ("torch.diag(weights)", "torch.eye(len(weights)).to(scores)"), "the first term on the diagonal "
        "is y_i, not 1"),
    Mutant("scaled", ("scores - scores.max()", "(scores - scores.max()) / len(scores) ** 0.5"), "the scores are scaled "
        "first; the derivatives asked for are those of the softmax alone"),
    Mutant("zeros", ("torch.diag(weights) - torch.outer(weights, weights)",
        "torch.zeros_like(torch.outer(weights, weights))"), "these are zeros, which is true where one score is huge, "
        "and nowhere else"),
    Mutant("clamped", clamped, "scores beyond a limit are made equal: subtract the largest score, which changes no "
        "weight"),
    Mutant("nan-to-zero", without_nan, "zeros, but two huge scores that are close share the weight. An overflow is not "
        "zero, and no score is so large that it wins for certain: subtract the largest first"),
    Mutant("nonfinite", less_the_largest_size),
    Mutant("log", ("torch.diag(weights) - torch.outer(weights, weights)",
        "torch.eye(len(weights)).to(scores) - weights[:, None]"), "these are the derivatives of logarithms of weights, "
        "with rows and columns exchanged: multiply by the weight"),
    Mutant("unnormalised", ("exponentials / exponentials.sum()", "exponentials"), "the exponentials are not divided by "
        "their sum, so these are no weights of a softmax"),
    Mutant("divided", ("scores - scores.max()", "scores / scores.abs().max()"), "the scores are divided by the "
        "largest: subtract it, which changes no weight"),
    Mutant("diagonal-twice", ("torch.diag(weights) -", "torch.diag(weights * (1 - weights)) -"), "the diagonal is "
        "taken off twice: y_i (1 - y_i) is there already, and y_i y_j is subtracted everywhere"),
    Mutant("row-off", ("torch.diag(weights) - torch.outer(weights, weights)", "torch.diag(weights) - weights"), "y_j "
        "is subtracted in place of y_i y_j"),
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.5",
    doc=__doc__,
    source="UDL problem 12.5",
    parts=[
        Code(
            key="udl-12.5a",
            prompt="Write `softmax_jacobian(scores)`, which returns all derivatives as a matrix, for scores "
            "of any size.",
            hints=[
                "Use the quotient rule, once for i = j and once for i different from j.",
                r"Both cases in one: $y_i(\delta_{ij} - y_j)$.",
                "The exponential of a large score overflows; subtracting the largest score changes no weight.",
            ],
            advice={
                "values": "Entry i, j is y_i (1 - y_i) on the diagonal and -y_i y_j elsewhere, with y the softmax of "
                "the scores as they are",
                "nonfinite": "exp(90) is larger than any float32, and exp(-900) is zero: subtract the largest score "
                "first",
            },
            answer=softmax_jacobian,
            verify=verify,
            alternatives=[by_autograd, entry_by_entry],
            mutants=MUTANTS,
            explanation=r"""
With $y_i = e^{x_i} / \sum_k e^{x_k}$ the quotient rule gives $\partial y_i/\partial x_j = y_i(\delta_{ij} -
y_j)$. If one weight is 1 and the others are 0, each of the 25 products has a factor 0: $y_i$ for all rows but
one, and $\delta_{ij} - y_j$ in the row that is left.
""",
        ),
        Choice(
            key="udl-12.5b",
            prompt="All 25 derivatives are (numerically) zero. What follows for a network that computes these scores?",
            hints=["Follow the chain rule from the loss back to the weights that made the scores."],
            options=[
                Option(
                    "The network learns fast, being sure of its choice already.",
                    "Sure is not right. If the chosen key is the wrong one, the loss is large and still no "
                    "gradient comes back to say so.",
                ),
                Option(
                    "Queries and keys learn nothing through this softmax.",
                    "Every path from the loss to the scores is multiplied by one of the 25 derivatives. "
                    "Scores that are dot products of D terms have a typical size of the root of D; divided by it "
                    "they keep the softmax where its derivatives are not zero.",
                    right=True,
                ),
                Option(
                    "It learns as before if the learning rate is made larger.",
                    "Zero times any learning rate is zero. In float32 the derivatives here are exactly zero "
                    "or far below what an optimiser can tell from rounding.",
                ),
                Option(
                    "Queries, keys and values alike learn nothing any more.",
                    "The output is linear in the values, with the weights as coefficients: the chosen value "
                    "gets the full gradient. What stops learning is where to look, not what is found there.",
                ),
            ],
        ),
    ],
)
