r"""On the unit sphere a distance is a dot product

Nadaraya-Watson with a Gaussian kernel of width $w$ weights each stored value by the distance of its key from
the query:

$$\ell(\mathbf q) = \sum_i \frac{\exp\left(-\lVert\mathbf q - \mathbf k_i\rVert^2 / (2 w^2)\right)}
{\sum_j \exp\left(-\lVert\mathbf q - \mathbf k_j\rVert^2 / (2 w^2)\right)}\, \mathbf v_i .$$

Suppose every query and every key is a **unit vector**, $\lVert\mathbf q\rVert = \lVert\mathbf k_i\rVert = 1$.
Then the distance can be had from a dot product, and the whole thing becomes softmax attention with some
*scale* $s$,

$$r(\mathbf q) = \sum_i \frac{\exp(s\, \mathbf q^\top \mathbf k_i)}{\sum_j \exp(s\, \mathbf q^\top \mathbf
k_j)}\, \mathbf v_i .$$

Find the scale as a function of $w$, prove that $\ell = r$, and show it: write `both_sides(queries, keys,
values, width)`, which returns the pair `(left, right)`, both of shape (B, T, E): $\ell$ computed from
distances, and $r$ computed from dot products with your scale. Queries have shape (B, T, D), keys (B, S, D),
values (B, S, E), all float64; `width` is a number between 0.5 and 1.

Compute each side by its own formula for whatever vectors come in, and do not normalise them yourself. On unit
vectors the two must agree. The check also brings vectors of *other* lengths: there they do not agree, and
each must still be what its formula says. Once you have the proof, look at it again: whose length did it
really need?
"""

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Exercise, Identity, Mutant


def both_sides(queries, keys, values, width):
    """Attend with a Gaussian of the distance and with a scaled dot product.

    Args:
        queries: (B, T, D), float64.
        keys: (B, S, D), float64.
        values: (B, S, E), float64.
        width: of the Gaussian, a number between 0.5 and 1.

    Returns:
        (left, right), each (B, T, E): by distances, and by dot products.
    """
    ### BEGIN SOLUTION
    squared = torch.cdist(queries, keys).square()  # (B, T, S)
    gaussian = torch.exp(-squared / (2 * width**2))
    left = gaussian / gaussian.sum(dim=-1, keepdim=True) @ values

    dots = queries @ keys.transpose(-2, -1)  # (B, T, S)
    right = torch.softmax(dots / width**2, dim=-1) @ values
    return left, right
    ### END SOLUTION


def with_the_fused_kernel(queries, keys, values, width):
    differences = queries.unsqueeze(-2) - keys.unsqueeze(-3)
    left = torch.softmax(-(differences / width).square().sum(-1) / 2, dim=-1) @ values
    return left, F.scaled_dot_product_attention(queries, keys, values, scale=width**-2)


def query_by_query(queries, keys, values, width):
    left, right = torch.zeros(2, *queries.shape[:2], values.shape[-1], dtype=values.dtype, device=values.device)
    for b, t in torch.cartesian_prod(torch.arange(queries.shape[0]), torch.arange(queries.shape[1])):
        q = queries[b, t]
        near = torch.stack([torch.exp(-((q - k) ** 2).sum() / 2 / width**2) for k in keys[b]])
        alike = torch.stack([torch.exp(torch.dot(q, k) / width**2) for k in keys[b]])
        left[b, t] = near @ values[b] / near.sum()
        right[b, t] = alike @ values[b] / alike.sum()
    return left, right


def verify(t, answer):
    B, T, S, D, E = t.sizes(5, low=5, high=11)  # sqrt(D) = 2 would hide which factor is wrong
    width = t.random.uniform(0.5, 0.8)
    queries, keys = t.randn(B, T, D, dtype=torch.float64), t.randn(B, S, D, dtype=torch.float64)
    values = t.randn(B, S, E, dtype=torch.float64)
    units = F.normalize(queries, dim=-1), F.normalize(keys, dim=-1)
    others = tuple(x * t.rand(*x.shape[:2], 1, low=0.4, high=1.6, dtype=torch.float64) for x in units)
    v = values.cpu()

    for (queries, keys), name in ((units, "unit vectors"), (others, "vectors of other lengths")):
        pairs = queries.cpu()[:, :, None, :], keys.cpu()[:, None, :, :]
        dots, squared = (pairs[0] * pairs[1]).sum(-1), (pairs[0] - pairs[1]).square().sum(-1)  # (B, T, S)
        left, right = t.unpack(t.call(answer, queries, keys, values, width), "left", "right")
        t.same(left, torch.softmax(-squared / (2 * width**2), dim=-1) @ v, f"left ({name})")
        t.same(right, torch.softmax(dots / width**2, dim=-1) @ v, f"right ({name})")


MUTANTS = [
    Mutant("half", ("dots / width**2", "dots / (2 * width**2)"), "the scale is half of what it should be. Multiply out "
        "the square: the dot product comes with a factor 2, which meets the 2 in 2 w^2"),
    Mutant("double", ("dots / width**2", "2 * dots / width**2"), "the scale is twice what it should be. The dot "
        "product has a factor 2 in the squared distance, but the Gaussian has a 1/2"),
    Mutant("not-squared", ("dots / width**2", "dots / width"), "the scale has the width, not its square"),
    Mutant("half-not-squared", ("dots / width**2", "dots / (2 * width)"), "the scale has the width, not its square, "
        "and a 2 that cancels in the proof"),
    Mutant("upside-down", ("dots / width**2", "dots * width**2"), "the scale is upside down: a narrow Gaussian must "
        "give sharp weights, so large scores"),
    Mutant("plain", ("dots / width**2", "dots"), "the dot product is not scaled: the width must appear"),
    Mutant("sqrt-d", ("dots / width**2", "dots / queries.shape[-1] ** 0.5"), "the scale is 1/sqrt(D). That belongs to "
        "vectors with D entries of size one; unit vectors are shorter, and here the width decides"),
    Mutant("sqrt-d-too", ("dots / width**2", "dots / width**2 / queries.shape[-1] ** 0.5"), "besides the width there "
        "is a 1/sqrt(D): the identity has none (the fused kernel puts it in unless you give it a scale)"),
    Mutant("sign", ("dots / width**2", "-dots / width**2"), "keys that point away from the query get the large "
        "weights: mind the sign"),
    Mutant("over-queries", ("width**2, dim=-1", "width**2, dim=-2"), "the weights sum to one over the queries, not "
        "over the keys"),
    Mutant("sum", ("torch.softmax(dots / width**2, dim=-1)", "torch.exp(dots / width**2)"), "the weights of a query do "
        "not sum to one: divide by the sum"),
    Mutant("left-no-half", ("(2 * width**2)", "width**2"), "the Gaussian divides by 2 w^2, not by w^2"),
    Mutant("left-width", ("(2 * width**2)", "(2 * width)"), "the width is not squared"),
    Mutant("left-no-width", ("(2 * width**2)", "2"), "the width is not used"),
    Mutant("left-sign", ("torch.exp(-squared", "torch.exp(squared"), "far keys get the large weights: mind the minus "
        "sign"),
    Mutant("left-not-squared", (".square()", ""), "the distance is not squared"),
    Mutant("left-density", ("gaussian / gaussian.sum(dim=-1, keepdim=True)",
        "gaussian / (width * math.sqrt(2 * math.pi))"), "the Gaussians are divided by the constant of a normal "
        "density; divide them by their sum over the keys"),
    Mutant("left-sum", (" / gaussian.sum(dim=-1, keepdim=True)", ""), "the Gaussians are not divided by their sum, so "
        "the weights of a query do not sum to one"),
    Mutant("left-twice", ("gaussian / gaussian.sum(dim=-1, keepdim=True)", "gaussian.softmax(-1)"),
        "a softmax of the Gaussian takes the exponential twice: divide the Gaussians by their sum, or take the softmax "
        "of their exponents"),
    Mutant("left-over-queries", ("gaussian.sum(dim=-1,", "gaussian.sum(dim=-2,"), "the weights sum to one over the "
        "queries, not over the keys"),
    Mutant("normalised", ("squared = torch.cdist(queries, keys)", "queries, keys = F.normalize(queries, dim=-1), "
        "F.normalize(keys, dim=-1)\n    squared = torch.cdist(queries, keys)"), "your code normalises its inputs; "
        "leave the vectors as they come"),
    Mutant("normalised", ("dots = queries @ keys", "dots = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1)"),
        "your code normalises its inputs; leave the vectors as they come"),
    Mutant("keys-normalised", ("dots = queries @ keys", "dots = queries @ F.normalize(keys, dim=-1)"),
        "your code normalises the keys; leave the vectors as they come"),
    Mutant("queries-normalised", ("dots = queries @ keys", "dots = F.normalize(queries, dim=-1) @ keys"),
        "your code normalises the queries; leave the vectors as they come"),
    Mutant("distances-twice", ("return left, right", "return left, left"), "this is computed from distances. Equal on "
        "unit vectors, yes, but that is what is to be shown: use dot products alone, without any lengths"),
    Mutant("dots-twice", ("return left, right", "return right, right"), "this is computed from dot products, not from "
        "distances (2 - 2 q.k is a squared distance for unit vectors alone). Or are the two exchanged?"),
    Mutant("type", ("return left, right", "return torch.stack([left, right])")),  # stacked
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.2.3",
    doc=__doc__,
    source="D2L 11.2, exercise 3",
    parts=[
        Identity(
            key="d2l-11.2.3",
            hints=[
                r"Multiply out $\lVert\mathbf q - \mathbf k_i\rVert^2$. What are its three terms on the unit "
                "sphere?",
                "A softmax does not change when all scores of a query grow by the same amount. So a constant "
                "in the exponent may be dropped.",
                r"$\lVert\mathbf q - \mathbf k_i\rVert^2 = 2 - 2\, \mathbf q^\top \mathbf k_i$. Divide by "
                r"$-2w^2$ and drop what is the same for every key.",
            ],
            advice={
                "nonfinite": "The distances reach from 0 to a few widths: no exponential should overflow "
                "here. Look for a division by zero.",
                "shape": "Scores have shape (B, T, S): keys.transpose(-2, -1) swaps the last two axes only. "
                "The result has the E features of the values.",
                "raised": "If shapes do not fit: keys.transpose(-2, -1) or keys.mT swap the last two axes; .T turns "
                "all axes around.",
                "values": "Left: exp(-distance^2 / (2 w^2)), divided by its sum over the keys. Right: a "
                "softmax over the keys of the plain dot products times a scale. Which power of w is in it, "
                "and which factor?",
            },
            answer=both_sides,
            verify=verify,
            alternatives=[with_the_fused_kernel, query_by_query],
            mutants=MUTANTS,
            explanation=r"""
On the unit sphere

$$\lVert\mathbf q - \mathbf k_i\rVert^2 = \lVert\mathbf q\rVert^2 - 2\, \mathbf q^\top\mathbf k_i +
\lVert\mathbf k_i\rVert^2 = 2 - 2\, \mathbf q^\top\mathbf k_i ,$$

so the exponent of the Gaussian is $-\frac{1}{w^2} + \frac{1}{w^2}\, \mathbf q^\top\mathbf k_i$. The first
term is the same for every key. In the quotient the factor $e^{-1/w^2}$ stands above and below and cancels,
and what is left is a softmax of $\mathbf q^\top\mathbf k_i / w^2$: the scale is $s = 1/w^2$.

**Whose length was needed?** Only that of the keys, and only that they are all equally long. The term $\lVert\mathbf
q\rVert^2$ is the same for every key whatever it is, and cancels; so does $\lVert\mathbf k_i\rVert^2$ if it does not
depend on $i$. So where the keys are divided by their lengths, dot-product attention is attention with a Gaussian
kernel.

What to take from it: the number by which attention divides its scores is the *squared width* of a kernel. A
unit sphere in $D$ dimensions also explains the usual choice: vectors with $D$ entries of size one have length
$\sqrt D$, so $\mathbf q^\top\mathbf k / \sqrt D = \sqrt D\, \cos\angle(\mathbf q, \mathbf k)$. On the unit
sphere this is a kernel with $w^2 = 1/\sqrt D$. More dimensions mean a narrower kernel, because there random
directions are nearly orthogonal.
""",
        )
    ],
)
