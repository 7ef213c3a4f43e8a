r"""Counting votes or comparing densities

Two people classify the same point $\mathbf x$ from the same $N$ stored examples $\mathbf x_i$ with labels
$y_i \in \{-1, +1\}$ and the same kernel $k(\mathbf x, \mathbf x_i) \ge 0$.

The first is a statistician. She estimates a density for each class with **Parzen windows**: every example
lays a little heap around itself, and the heaps of one class add up,

$$\hat p(\mathbf x, c) = \frac1N \sum_{i:\; y_i = c} k(\mathbf x, \mathbf x_i), \qquad c \in \{-1, +1\}.$$

Note the $N$: it counts *all* examples, so that $\hat p(\mathbf x, c)$ is a joint density that also knows how
frequent the class is. From it come $\hat p(\mathbf x) = \hat p(\mathbf x, +1) + \hat p(\mathbf x, -1)$ and,
by Bayes' rule, the probability of each class at $\mathbf x$. She reports the signed difference

$$\ell(\mathbf x) = \hat P(+1 \mid \mathbf x) - \hat P(-1 \mid \mathbf x)$$

and decides for the class $+1$ where it is positive. The second lets the examples vote, with attention
weights. That is **Nadaraya-Watson** with the labels as values:

$$r(\mathbf x) = \sum_i \alpha(\mathbf x, \mathbf x_i)\, y_i, \qquad
\alpha(\mathbf x, \mathbf x_i) = \frac{k(\mathbf x, \mathbf x_i)}{\sum_j k(\mathbf x, \mathbf x_j)}.$$

Prove that the two always report the same number, whatever the kernel, and show it: write `both_sides(queries,
keys, labels, kernel)`, which returns the pair `(left, right)`, both of shape (T,): $\ell$ by way of the two
densities, and $r$ by way of the weights. The queries (T, D) are the points to classify, the keys (N, D) and
labels (N,) the stored examples; everything is float64. `kernel(queries, keys)` gives all kernel values as a
tensor (T, N). The check brings several kernels, for one of which $k(\mathbf x, \mathbf x')$ is not
$k(\mathbf x', \mathbf x)$. Every query has an example near enough for $\hat p(\mathbf x) > 0$.

Compute each side from its own ingredients: the left from the two classes, the right from the labels as values. To see
that, the check brings some labels of +2 and -2 at the end, with which the two sides differ: there the right must be the
mean of the labels, and the left anything else (to which class such an example belongs is yours to say).
"""

import torch

from d2lmini.exercises.engine import Exercise, Identity, Mutant


def both_sides(queries, keys, labels, kernel):
    """Classify by two Parzen densities and by attention to the labels.

    Args:
        queries: (T, D), float64.
        keys: (N, D), float64.
        labels: (N,), float64, each -1.0 or 1.0, perhaps all the same.
        kernel: kernel(queries, keys) is a tensor (T, N) of numbers that are not negative.

    Returns:
        (left, right), each (T,): the difference of the class probabilities, and the mean of the labels under
        the attention weights.
    """
    ### BEGIN SOLUTION
    heaps = kernel(queries, keys)  # (T, N)
    N = len(labels)
    positive = heaps[:, labels > 0].sum(dim=-1) / N  # (T,): joint densities
    negative = heaps[:, labels < 0].sum(dim=-1) / N
    left = (positive - negative) / (positive + negative)

    weights = heaps / heaps.sum(dim=-1, keepdim=True)  # (T, N): each row sums to one
    right = weights @ labels
    return left, right
    ### END SOLUTION


def with_masks(queries, keys, labels, kernel):
    heaps = kernel(queries, keys)
    densities = torch.stack([(heaps * (labels.sign() == c)).mean(-1) for c in (1, -1)])
    chances = densities / densities.sum(0)
    return chances[0] - chances[1], torch.softmax(heaps.log(), -1) @ labels


def with_classes_by_value(queries, keys, labels, kernel):
    heaps = kernel(queries, keys)
    chance = (heaps * (labels == 1)).sum(-1) / heaps.sum(-1)
    return 2 * chance - 1, torch.einsum("tn,n->t", heaps, labels) / heaps.sum(-1)


def with_densities_by_weighting(queries, keys, labels, kernel):
    heaps = kernel(queries, keys)
    positive, negative = ((heaps * (sign * labels).clamp(min=0)).mean(-1) for sign in (1, -1))
    return (positive - negative) / (positive + negative), (heaps / heaps.sum(-1, keepdim=True)) @ labels


def query_by_query(queries, keys, labels, kernel):
    left, right = [], []
    for query in queries:
        heaps = [kernel(query[None], key[None])[0, 0] for key in keys]
        density = {c: sum(h for h, y in zip(heaps, labels, strict=True) if y * c > 0) for c in (1, -1)}
        left.append(density[1] / sum(density.values()) - density[-1] / sum(density.values()))
        right.append(sum(h * y for h, y in zip(heaps, labels, strict=True)) / sum(heaps))
    return torch.stack(left), torch.stack(right)


def with_densities_of_the_classes(queries, keys, labels, kernel):
    heaps = kernel(queries, keys)
    positive, negative = heaps[:, labels > 0].mean(dim=-1), heaps[:, labels < 0].mean(dim=-1)
    return (positive - negative) / (positive + negative), heaps @ labels / heaps.sum(dim=-1)


def kernels(t, reach, D):
    """Return kernels of several kinds; ``reach``: the distance within which every query has an example."""
    width, matrix = reach * t.random.uniform(0.4, 0.7), t.randn(D, D, scale=0.5, dtype=torch.float64)
    return {
        "Gaussian": lambda q, k: torch.exp(-torch.cdist(q, k).square() / (2 * width**2)),
        "exponential of q^T M k": lambda q, k: torch.exp(q @ matrix @ k.T),
        "Epanechnikov, of small values": lambda q, k: 1e-9 * (1 - torch.cdist(q, k) / (1.3 * reach)).clamp(min=0),
        "boxcar": lambda q, k: (torch.cdist(q, k) < 1.3 * reach).double(),
    }


def verify(t, answer):
    T, D = t.sizes(2)
    N = t.random.randrange(10, 20)
    queries, keys = t.randn(T, D, dtype=torch.float64), t.randn(N, D, dtype=torch.float64)
    labels = -torch.ones(N, dtype=torch.float64, device=t.device)
    labels[torch.randperm(N, generator=t.generator)[: N // 3]] = 1  # never as many as the others
    reach = float(torch.cdist(queries, keys).amin(dim=1).max())
    trials = [(f"kernel: {name}", kernel, labels) for name, kernel in kernels(t, reach, D).items()]
    sized = labels.clone()
    sized[labels.argsort()[::2]] *= 2
    trials += [("some labels are +2 and -2", trials[0][1], sized), ("all labels are -1", trials[0][1], 0 * labels - 1)]
    for name, kernel, labels in trials:
        heaps, y = kernel(queries, keys).cpu(), labels.cpu()
        total = torch.tensor([sum(row) for row in heaps.tolist()], dtype=torch.float64)
        plus = torch.stack([heaps[:, i] * (y[i] > 0) for i in range(N)]).sum(0)
        left, right = t.unpack(t.call(answer, queries, keys, labels, kernel), "left", "right")
        mean = (heaps * y).sum(-1) / total
        if labels is sized:  # the sides differ, so that neither can stand for the other
            t.same(right, mean, f"right ({name})")
            t.that(_differs(left, mean), "votes-for-densities", f"left ({name}): {VOTES_FOR_DENSITIES}")
            continue
        t.same(left, 2 * plus / total - 1, f"left ({name})")
        t.same(right, mean, f"right ({name})")


def _differs(left, mean):
    """Whether the left side is another number than the mean of the labels."""
    alike = isinstance(left, torch.Tensor) and left.shape == mean.shape
    return not (alike and torch.allclose(left.detach().cpu().double(), mean, rtol=1e-6))


VOTES_FOR_DENSITIES = (
    "equal to the right side, where the two must differ. The left side adds up the kernel values of each class: does "
    "it use the labels as numbers, is the right side returned twice, or have the two changed places?"
)


MUTANTS = [
    Mutant("unnormalised", (" / (positive + negative)", ""), "this is the difference of the joint densities. Its sign "
        "is right, its size is not: Bayes' rule divides by the density of x"),
    Mutant("unnormalised-sum", ("(positive - negative) / (positive + negative)", "(positive - negative) * N"),
        "this is the difference of two sums; Bayes' rule divides by the density of x, and then the 1/N cancels"),
    Mutant("own-counts", with_densities_of_the_classes, "each class is divided by its own number of examples. That is "
        "the density of a point *within* a class; the rare class would then count as much as the frequent one. Divide "
        "both by N"),
    Mutant("prior-twice", ("(positive - negative) / (positive + negative)", "(positive * (labels > 0).sum() - negative "
        "* (labels < 0).sum()) / (positive * (labels > 0).sum() + negative * (labels < 0).sum())"),
        "how frequent a class is counts twice: the joint density knows it already"),
    Mutant("log-odds", ("(positive - negative) / (positive + negative)", "torch.log(positive / negative)"),
        "these are log-odds, not a difference of probabilities"),
    Mutant("swapped", ("(positive - negative)", "(negative - positive)"), "the sign is turned: the class +1 counts "
        "positive"),
    Mutant("swapped", ("weights @ labels", "-weights @ labels"), "the sign is turned: the class +1 counts positive"),
    Mutant("share", ("(positive - negative)", "positive"), "this is the share of the class +1, from 0 to 1; wanted is "
        "a difference"),
    Mutant("decision", ("(positive - negative) / (positive + negative)", "(positive - negative).sign()"),
        "this is the decision alone; the score also says how clear the decision is"),
    Mutant("decision", ("weights @ labels", "(weights @ labels).sign()"), "this is the decision alone; the score also "
        "says how clear the decision is"),
    Mutant("votes-not-normalised", ("weights @ labels", "heaps @ labels"), "the weights do not sum to one: divide by "
        "their sum"),
    Mutant("votes-by-N", ("weights @ labels", "heaps @ labels / N"), "the votes are divided by N. Attention weights "
        "are divided by the sum of the kernel values, which is another number for every query"),
    Mutant("softmax", ("weights @ labels", "heaps.softmax(-1) @ labels"), "a softmax of the kernel values takes the "
        "exponential once more: the kernel values themselves are divided by their sum"),
    Mutant("over-queries", ("heaps.sum(dim=-1, keepdim=True)", "heaps.sum(dim=0, keepdim=True)"),
        "the weights sum to one over the queries, not over the stored examples"),
    Mutant("over-everything", ("heaps.sum(dim=-1, keepdim=True)", "heaps.sum()"), "the kernel values are divided by "
        "their sum over all queries and examples; every query has a sum of its own"),
    Mutant("share", ("weights @ labels", "weights @ (labels > 0).double()"), "this is the share of the class +1, from "
        "0 to 1; wanted is a difference"),
    Mutant("kernel-turned", ("= kernel(queries, keys)", "= kernel(keys, queries).mT"), "the kernel gets the examples "
        "first and the queries second; for a kernel that is not symmetric that is something else"),
    Mutant("labels-not-values", ("return left, right", "return left, left"), "equal to the left side, where the two "
        "must differ. The right side is the mean of the labels as they are: are they not its values, is the left side "
        "returned twice, or have the two changed places?"),
    Mutant("votes-for-densities", ("return left, right", "return right, right")),
    Mutant("sized-denominator", ("weights @ labels", "heaps @ labels / (heaps @ labels.abs())"), "the denominator has "
        "the sizes of the labels; the weights are divided by the sum of the kernel values alone"),
    Mutant("added", ("/ (positive + negative)", "/ (positive + negative + 1e-12)"), "something is added to the "
        "denominator, and beside the small values of this kernel it is not little"),
    Mutant("added", ("heaps.sum(dim=-1, keepdim=True)", "(heaps.sum(dim=-1, keepdim=True) + 1e-12)"),
        "something is added to the denominator, and beside the small values of this kernel it is not little"),
    Mutant("nonfinite", ("heaps[:, labels > 0].sum(dim=-1) / N",
        "heaps[:, labels > 0].mean(dim=-1) * (labels > 0).sum() / N")),  # means and shares
    Mutant("raised", ("= kernel(queries, keys)", "= kernel(keys, queries)")),  # kernel turned
    Mutant("dtype", ("return left, right", "return left.float(), right.float()")),  # in single
    Mutant("kernel-exponential", ("heaps = kernel(queries, keys)", "heaps = torch.exp(kernel(queries, keys))"), "an "
        "exponential (or a softmax) is taken of the kernel values: they are what adds up, as they come"),
    Mutant("size-only", ("(positive - negative) /", "(positive - negative).abs() /"), "the sign is lost: the class -1 "
        "counts negative"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.2.1",
    doc=__doc__,
    source="D2L 11.2, exercise 1",
    parts=[
        Identity(
            key="d2l-11.2.1",
            hints=[
                "Bayes' rule: the probability of a class at a point is its joint density there, divided by "
                "the density of the point.",
                r"The labels are $\pm 1$, so $\sum_i y_i\, k(\mathbf x, \mathbf x_i)$ is a sum over one "
                "class minus a sum over the other.",
                "`heaps[:, labels > 0].sum(dim=-1) / N` is one joint density. Put both over their sum: what "
                "becomes of N?",
            ],
            advice={
                "shape": "kernel(queries, keys) has one row for each query and one column for each example; "
                "the results have one number for each query.",
                "nonfinite": "Is a class empty? Then its density is 0, a sum over nothing; a mean over nothing is NaN. "
                "(The labels are negative or positive, not 0 and 1.) And some kernels "
                "are exactly zero for far examples: take no logarithm, and divide only by the sum over all "
                "examples.",
                "values": "Use the kernel that is passed, unchanged. Both sides end in a division by the "
                "sum of a query's kernel values over *all* examples, with nothing added to it.",
                "raised": "If it is a mask that fails: labels are numbers, -1.0 or 1.0, and `labels > 0` is the mask "
                "of one class.",
            },
            answer=both_sides,
            verify=verify,
            alternatives=[with_masks, query_by_query, with_classes_by_value, with_densities_by_weighting],
            mutants=MUTANTS,
            explanation=r"""
Write $k_i$ for $k(\mathbf x, \mathbf x_i)$. By Bayes' rule $\hat P(c \mid \mathbf x) = \hat p(\mathbf x, c) /
\hat p(\mathbf x)$, so

$$\ell(\mathbf x) = \frac{\hat p(\mathbf x, +1) - \hat p(\mathbf x, -1)}{\hat p(\mathbf x, +1) + \hat
p(\mathbf x, -1)}$$

$$= \frac{\frac1N \left(\sum_{i:\,y_i=+1} k_i - \sum_{i:\,y_i=-1} k_i\right)}{\frac1N\sum_j
k_j} = \frac{\sum_i y_i k_i}{\sum_j k_j} = \sum_i \alpha(\mathbf x, \mathbf x_i)\, y_i = r(\mathbf x).$$

The third step uses that $y_i$ is $+1$ on the first sum and $-1$ on the second, and that every example is in
exactly one of them, so that the denominator runs over all of them. The $1/N$ cancels. So would any other
constant: a kernel need not integrate to one here. And as $\hat p(\mathbf x) > 0$, the plain difference $\hat
p(\mathbf x, +1) - \hat p(\mathbf x, -1) = \hat p(\mathbf x)\, r(\mathbf x)$ has the same sign: the *decision*
does not need the division, the *score* does.

What to take from it: attention weights over labelled examples are class probabilities. With more than two
classes, use one-hot labels as values, and the output has one probability for each class. Nothing in the proof
asks for a distance or for symmetry. The kernel $\exp(\mathbf q^\top \mathbf M\, \mathbf k)$ among those of
the check is what a Transformer uses, and dividing by the sum is its softmax.
""",
        )
    ],
)
