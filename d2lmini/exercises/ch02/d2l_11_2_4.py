r"""How fast must the kernel narrow?

More data allow a narrower kernel. But how much narrower? Averages over wide neighbourhoods are wrong because
the curve bends within them; averages over narrow ones are wrong because few noisy examples take part. The
best width $w$ balances the two. As the number $N$ of stored examples grows it follows a power law,

$$w_{\text{best}} \propto N^{\,p}$$

with an exponent $p < 0$ that depends on the dimension $D$ of the keys.

First you measure $p$, then you explain it.
"""

import math
from itertools import pairwise

import torch

from d2lmini.exercises.engine import Choice, Exercise, Experiment, Mutant, Option


def width_exponent(datasets, height, widths):
    """Find the best width for each number of examples, and the exponent with which it shrinks.

    Args:
        datasets: a list of pairs (keys, values), keys (R, N, D) and values (R, N): R independent data sets
            of N examples each. N grows along the list.
        height: the true value at the query, a number. The query is the origin.
        widths: the widths to choose from, a list of numbers; none is so narrow that all exponentials are 0.

    Returns:
        A dict: ``"widths"``, the list of the best widths, one for each entry of ``datasets``; ``"exponent"``,
        the slope of the straight line fitted to log(best width) against log(N) by least squares.
    """
    ### BEGIN SOLUTION
    best = []
    for keys, values in datasets:
        squared = keys.square().sum(dim=-1)  # (R, N): squared distances from the origin
        errors = []
        for width in widths:
            weights = torch.softmax(-squared / (2 * width**2), dim=-1)  # (R, N)
            predictions = (weights * values).sum(dim=-1)  # (R,): one for each data set
            errors.append((predictions - height).square().mean().item())
        best.append(widths[errors.index(min(errors))])

    x = torch.tensor([keys.shape[1] for keys, _ in datasets]).double().log()
    y = torch.tensor(best).double().log()
    x, y = x - x.mean(), y - y.mean()
    return {"widths": best, "exponent": ((x * y).sum() / (x * x).sum()).item()}
    ### END SOLUTION


def with_least_squares(datasets, height, widths):
    best, sizes = [], []
    for keys, values in datasets:
        distances, candidates = keys.norm(dim=-1), torch.tensor(widths)
        heaps = [torch.exp(-((distances / w) ** 2) / 2) for w in widths]
        heights = torch.stack([(h * values).sum(-1) / h.sum(-1) for h in heaps])  # (W, R)
        best.append(candidates[((heights - height) ** 2).mean(-1).argmin()])
        sizes.append(keys.shape[-2])
    table = torch.stack([torch.tensor(sizes).float().log(), torch.ones(len(sizes))], dim=1)
    line = torch.linalg.lstsq(table, torch.stack(best).log()[:, None]).solution
    return {"widths": torch.stack(best), "exponent": line[0, 0]}


UNTRIED = "a width at an end of the list is the best one here, and your code does not try it"
SIZES, SETS = (100, 400, 1600), 400
WIDTHS = [0.08 * 1.05**i for i in range(31)]
MARGIN = 0.05  # how far from the theory the median of the exponents may lie


def without_the_narrowest(datasets, height, widths):
    return width_exponent(datasets, height, widths[1:])


def without_the_widest(datasets, height, widths):
    return width_exponent(datasets, height, widths[:-1])


def of_the_ends(datasets, height, widths):
    """Fit a line through the first and the last point alone."""
    best = width_exponent(datasets, height, widths)["widths"]
    (first, _), (last, _) = datasets[0], datasets[-1]
    return {"widths": best, "exponent": math.log(best[-1] / best[0]) / math.log(last.shape[1] / first.shape[1])}


def verify(t, answer):
    exponents = {3: [], 1: []}
    for _ in range(3):
        for D in exponents:
            height = t.random.uniform(2, 4)
            datasets = [_hill(t, SETS, N, D, height) for N in SIZES]
            exponents[D].append(_exponent(t, answer, datasets, height, WIDTHS))
    for D, measured in exponents.items():
        middle = sorted(measured)[len(measured) // 2]
        t.that(
            abs(middle + 1 / (D + 4)) <= MARGIN,
            "exponent",
            f"for D={D} the exponents lie too far from what theory says",
        )
    t.below(
        exponents[1],
        exponents[3],
        0.01,
        "no-flattening",
        "in higher dimensions the width should shrink slower",
    )

    # other numbers, unevenly spaced; on a steep hill without noise the narrowest is best, on a plain the widest
    offers = WIDTHS[5:26:2]
    steep, plain = _hill(t, 6, 50, 2, 1.0, 9.0, 0.0), _hill(t, 90, 700, 2, 1.0, 0.0)
    _exponent(t, answer, [steep, _uneven(t, offers), plain, _hill(t, 90, 900, 2, 1.0)], 1.0, offers)


def _uneven(t, offers):
    """Return few data sets, whose error has a valley before the deepest one."""
    while True:
        datasets = _hill(t, 4, 80, 2, 1.0)
        errors = _errors(*(x.cpu() for x in datasets), 1.0, offers)
        rises = [a for a, b in pairwise(errors[: errors.index(min(errors))]) if a < b]
        if rises and min(errors) < 0.9 * min(rises):
            return datasets


def _hill(t, R, N, D, height, curvature=2.0, noise=1.0):
    keys = t.rand(R, N, D, low=-1)
    return keys, height - curvature * keys.square().sum(-1) + noise * t.randn(R, N)


def _exponent(t, answer, datasets, height, offers):
    """Return the slope of the line through the answer's widths, if they are the best and it is what the answer says."""
    got = t.call(answer, datasets, height, offers)
    widths, exponent = t.fields(got, "widths", "exponent")
    widths = _widths(t, widths, len(datasets), offers)
    _judge(t, widths, datasets, height, offers)
    sizes = [keys.shape[1] for keys, _ in datasets]
    x, y = [math.log(N) for N in sizes], [math.log(w) for w in widths]
    totals = [math.log(keys.shape[0] * keys.shape[1]) for keys, _ in datasets]
    slope = _slope(x, y)
    mistakes = {
        "no-log-of-N": (_slope(sizes, y), "take the logarithm of N (as well as that of the widths)"),
        "no-log-of-width": (_slope(x, widths), "take the logarithm of the widths, too"),
        "other-line": (
            _slope(y, x),
            "this is the slope of log(N) against log(width): width is on the vertical axis",
        ),
        "turned-line": (
            1 / (_slope(y, x) or 1e-9),
            "log(N) was fitted against log(width), and that line turned round: fit log(width) against log(N)",
        ),
        "sign": (-slope, "the sign is turned: a slope is positive where the width grows with N"),
        "intercept": (
            sum(y) / len(y) - slope * sum(x) / len(x),
            "this is the height of the line at log(N) = 0, not its slope",
        ),
        "origin": (
            sum(a * b for a, b in zip(x, y, strict=True)) / sum(a * a for a in x),
            "this line goes through the origin; subtract the means first",
        ),
        "places": (_slope(range(len(y)), y), "the widths are fitted against their places in the list, not log(N)"),
        "ends": ((y[-1] - y[0]) / (x[-1] - x[0]), "this line joins the first and the last point: fit all"),
        "pairs": (
            sum((b - a) / (d - c) for (a, b), (c, d) in zip(pairwise(y), pairwise(x), strict=True)) / (len(y) - 1),
            "this is the mean of the slopes between neighbours; fit one line to all points, by least squares",
        ),
        "total": (_slope(totals, y), "N is the number of examples in one data set, not in all R"),
    }
    t.number(
        exponent,
        slope,
        "the exponent (compared with the slope of the line through your own widths)",
        mistakes=mistakes,
        rtol=2e-3,
    )
    return slope


def _judge(t, widths, datasets, height, offers):
    """Reject widths that are not the best; as good as the best will do."""
    best, wrong = [], []
    for width, (keys, values) in zip(widths, datasets, strict=True):
        *errors, reached = _errors(keys.cpu(), values.cpu(), height, [*offers, width])
        best.append(offers[errors.index(min(errors))])
        if reached > 1.001 * min(errors):
            wrong.append(f"for N={keys.shape[1]} too {'narrow' if width < best[-1] else 'wide'}")
    if wrong:
        got, want = (torch.tensor(x, dtype=torch.float64) for x in (widths, best))
        name = f"'widths' for D={datasets[0][0].shape[2]} ({', '.join(wrong)})"
        t.same(got.to(t.device), want, name, dtype=torch.float64, tolerance=(1e-4, 0))


def _errors(keys, values, height, widths):
    """Return the mean squared error for each width, the weights made by hand."""
    squared, errors = keys.square().sum(-1), []
    for width in widths:
        heaps = torch.exp(squared * (-0.5 / width**2))
        errors.append(((heaps * values).sum(-1) / heaps.sum(-1) - height).double().square().mean().item())
    return errors


def _widths(t, widths, count, offers):
    if isinstance(widths, torch.Tensor):
        widths = widths.tolist()
    t.that(isinstance(widths, (list, tuple)), "type", f"'widths' is a {type(widths).__name__}, expected a list")
    t.that(
        len(widths) == count,
        "shape",
        f"'widths' has {len(widths)} entries, expected {count}, one for each entry of datasets",
    )
    try:
        widths = [float(w) for w in widths]
    except (TypeError, ValueError, RuntimeError):
        t.that(False, "type", "an entry of 'widths' is not a number")
    t.that(all(map(math.isfinite, widths)), "nonfinite", "a width is NaN or infinite")
    offered = [any(math.isclose(w, offer, rel_tol=1e-4) for offer in offers) for w in widths]
    t.that(
        all(offered),
        "not-offered",
        "an entry of 'widths' is none of the widths to choose from: return the width itself, not its "
        "position in the list, and nothing between two of them",
    )
    return widths


def _slope(x, y):
    """Return the slope of the least-squares line through the points."""
    at = sum(x) / len(x)
    return sum((a - at) * b for a, b in zip(x, y, strict=True)) / sum((a - at) ** 2 for a in x)


MUTANTS = [
    Mutant("no-half", ("(2 * width**2)", "width**2"), "these are the best ones if the Gaussian divides by w^2; it "
        "divides by 2 w^2"),
    Mutant("too-narrow", ("(2 * width**2)", "(2 * width)"), "nearly the narrowest of all. So it comes out if the "
        "errors of all data sets are averaged first and squared then, which lets the noise cancel (square each error, "
        "then take the mean), or if the width is not squared"),
    Mutant("distance-not-squared", ("keys.square().sum(dim=-1)", "keys.square().sum(dim=-1).sqrt()"),
        "these are the best ones if the distance is not squared"),
    Mutant("mean-over-features", ("keys.square().sum(dim=-1)", "keys.square().mean(dim=-1)"), "these are the best ones "
        "if the squared distance is a mean over the D features; it is their sum"),
    Mutant("too-narrow", (".square().mean()", ".mean().square()"), "nearly the narrowest of all. So it comes out if "
        "the errors of all data sets are averaged first and squared then, which lets the noise cancel (square each "
        "error, then take the mean), or if the width is not squared"),
    Mutant("scatter-only", ("(predictions - height).square().mean()", "predictions.var()"), "the widest of all. So it "
        "comes out if only the scatter of the predictions counts, not how far they are from `height` (or from another "
        "one), or if the weights are divided by N and not by their sum"),
    Mutant("scatter-only", ("torch.softmax(-squared / (2 * width**2), dim=-1)",
        "torch.exp(-squared / (2 * width**2)) / keys.shape[1]")),  # divided by N
    Mutant("not-normalised", ("torch.softmax(-squared / (2 * width**2), dim=-1)",
        "torch.exp(-squared / (2 * width**2))"), "these are the best ones if the weights are not divided by their sum"),
    Mutant("first-set", ("(predictions - height)", "(predictions - height)[:1]"), "these are the best ones if only the "
        "first of the R data sets is used. One alone says next to nothing"),
    Mutant("absolute", (".square().mean()", ".abs().mean()"), "these are the best ones if the mean is taken of the "
        "errors' sizes; it is that of their squares"),
    Mutant("worst", ("min(errors)", "max(errors)"), "the largest error is looked for, not the least"),
    Mutant("no-log-of-width", ("torch.tensor(best).double().log()", "torch.tensor(best).double()")),  # no logarithms
    # log of the width alone
    Mutant("no-log-of-N", ("for keys, _ in datasets]).double().log()", "for keys, _ in datasets]).double()")),
    Mutant("nonfinite", ("keys.shape[1]", "keys.shape[0]")),  # number of sets
    Mutant("total", ("keys.shape[1]", "keys.shape[0] * keys.shape[1]")),  # all data sets together
    Mutant("raised", ("[keys.shape[1] for keys, _ in datasets]", "[100, 400, 1600]")),  # numbers of the example
    Mutant("places", ("torch.tensor([keys.shape[1] for keys, _ in datasets]).double().log()",
        "torch.arange(len(datasets)).double()")),  # places in the list
    Mutant("origin", ("x, y = x - x.mean(), y - y.mean()", "pass")),  # through the origin
    Mutant("ends", of_the_ends),
    Mutant("untried", without_the_narrowest, UNTRIED),
    Mutant("untried", without_the_widest, UNTRIED),
    Mutant("other-line", ("(x * x).sum()", "(y * y).sum()")),  # axes swapped
    Mutant("turned-line", ("(x * y).sum() / (x * x).sum()", "(y * y).sum() / (x * y).sum()")),
    Mutant("sign", ("((x * y)", "(-(x * y)")),  # turned sign
    Mutant("shape", ('"widths": best', '"widths": best[:1]')),  # one width only
    # positions
    Mutant("not-offered", ("best.append(widths[errors.index(min(errors))])", "best.append(errors.index(min(errors)))")),
    Mutant("raised", ("for keys, values in datasets:", "for keys, values in datasets[:3]:")),  # three entries, always
    Mutant("type", ('"widths": best', '"widths": None')),  # no widths
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.2.4",
    doc=__doc__,
    source="D2L 11.2, exercise 4",
    parts=[
        Experiment(
            key="d2l-11.2.4a",
            prompt=r"""
The landscape is a hill in $D$ dimensions, known only by noisy measurements: the keys are spread evenly over
the cube $[-1, 1]^D$, and the value at $\mathbf x$ is $h - 2\lVert\mathbf x\rVert^2$ plus noise of standard
deviation 1. We want the height $h$ of the summit, which is at the origin, by Nadaraya-Watson with a Gaussian
kernel,

$$\hat h = \sum_i \frac{\exp\left(-\lVert\mathbf x_i\rVert^2 / (2 w^2)\right)}{\sum_j \exp\left(-\lVert\mathbf
x_j\rVert^2 / (2 w^2)\right)}\, y_i .$$

One data set says little about the best width, so you get many. Write `width_exponent(datasets, height,
widths)`. An entry of the list `datasets` is a pair `(keys, values)` of shapes (R, N, D) and (R, N): R
independent data sets of N examples. For each entry, take the one of `widths` for which the *mean over the R
data sets of the squared error* $(\hat h - h)^2$ is least. Then fit a straight line, by least squares, to
$\log w_{\text{best}}$ (vertical) against $\log N$ (horizontal). Return a dict with `"widths"`, the list of
best widths in the order of `datasets`, and `"exponent"`, the slope.

The check draws R = 400 data sets of 100, 400 and 1600 examples, for $D = 1$ and $D = 3$, three times each.
The median of the three exponents must lie within 0.05 of the theory, which is the second part's question,
and for $D = 3$ it must be nearer to zero, by 0.01 or more. At the end come four entries, of other numbers R
and N, and other widths. See it for yourself, and try other dimensions:

```python
def draw(R, N, D, height=3.0):
    keys = 2 * torch.rand(R, N, D) - 1
    return keys, height - 2 * keys.square().sum(dim=-1) + torch.randn(R, N)

widths = [0.08 * 1.05**i for i in range(31)]
for D in (1, 2, 3):
    print(D, width_exponent([draw(400, N, D) for N in (100, 400, 1600)], 3.0, widths))
```
""",
            hints=[
                "The query is the origin, so the distances are the norms of the keys. All R data sets go "
                "through at once: scores, weights and values have shape (R, N).",
                "Two loops: over the entries of `datasets`, and over `widths`. Inside, `predictions` has shape (R,).",
                "A power law is a straight line in logarithms: $w = c N^p$ means $\\log w = \\log c + p \\log N$.",
                "The slope: subtract the mean from x and from y, then sum of x * y over sum of x * x.",
            ],
            advice={
                "values": "Look at the Gaussian, exp(-distance^2 / (2 w^2)), and at the error: the mean over all R "
                "data sets of the squared difference between prediction and height. And try every width: the error may "
                "have several valleys. In the slope log(width) is vertical, and N is `keys.shape[1]` of each entry.",
                "raised": "If it is a division by zero: N differs from entry to entry, R need not: keys are (R, N, D).",
            },
            answer=width_exponent,
            verify=verify,
            alternatives=[with_least_squares],
            seconds=60.0,
            mutants=MUTANTS,
            explanation=r"""
Plot $\log w$ against $\log N$ before you trust a slope. Three points on a line are reassuring; the slope
still moves in its second digit from one draw to the next, because near its minimum the error hardly depends
on the width. The minimum is flat: a width that is ten per cent off costs a few per cent of the error. That is
bad news for measuring the exponent and good news for everything else.

Why a hill with its summit at the query, far from the walls of the cube? At a wall there are examples on one
side only. The slope of the curve no longer cancels, and other exponents come out. And in higher dimensions
the law holds only for larger $N$: as long as hardly any example lies within a width, the formulas of the
second part do not apply.
""",
        ),
        Choice(
            key="d2l-11.2.4b",
            prompt="Measured exponents are noisy, so take the rule from theory. For a smooth curve in $D$ dimensions, "
            "how should the width $w$ depend on the number $N$ of examples, so that the error falls as fast as it can?",
            hints=[
                "How many examples lie within a width of the query? How does the variance of their mean "
                "depend on that number?",
                r"To first order a slope cancels: what lies higher on one side lies lower on the other. The "
                r"curvature stays, so the bias grows like $w^2$, and its square like $w^4$.",
                r"Minimise $w^4 + 1/(N w^D)$ over $w$.",
            ],
            options=[
                Option(
                    r"It does not depend on $N$, only on the curve.",
                    "With a fixed width the noise averages out, but the curve stays smeared: the error "
                    "stops falling at the squared bias, however many examples there are.",
                ),
                Option(
                    r"It falls as $N^{-1/D}$, so that $N w^D$ stays.",
                    "The same number of examples means the same noise: the variance never falls, however "
                    "many there are. The width must shrink more slowly than that, so that more and more "
                    "examples take part.",
                ),
                Option(
                    r"It falls as $N^{-1/2}$ in all dimensions alike.",
                    r"So falls the standard error of a mean of $N$ numbers; but only about $N w^D$ lie within a "
                    r"width. With this rule it stays the "
                    r"same in two dimensions and falls to zero in more. In one dimension it does grow, but "
                    r"the kernel is narrower than it need be.",
                ),
                Option(
                    r"It falls as $N^{-1/(D+4)}$ in $D$ dimensions.",
                    r"The squared bias goes like $w^4$, the variance like $1/(N w^D)$. Where their sum is "
                    r"least, $4 w^3$ equals (up to constants) $D / (N w^{D+1})$, so $w^{D+4} \propto 1/N$: the more "
                    r"dimensions, the more slowly.",
                    right=True,
                ),
                Option(
                    r"It falls as $N^{-1/4}$ in all dimensions alike.",
                    r"The squared bias goes like $w^4$ and has no dimension in it, but the variance has: only a "
                    r"share $w^D$ of the cube "
                    r"lies within a width, so in higher dimensions fewer examples share in the mean.",
                ),
            ],
            explanation=r"""
Two errors pull in opposite directions. **Bias:** within the kernel the curve is about a constant, a slope and
a curvature. The slope cancels between opposite sides, the curvature leaves a bias of order $w^2$.
**Variance:** about $N w^D$ examples share in the mean, so its variance is of order $1/(N w^D)$. The sum $a\,
w^4 + b / (N w^D)$ is least where $4 a\, w^3 = D\, b / (N w^{D+1})$, so

$$w_{\text{best}} = \left(\frac{D\, b}{4 a N}\right)^{1/(D+4)} \propto N^{-1/(D+4)}, \qquad \text{error}
\propto N^{-4/(D+4)} .$$

To halve the width you need $2^{D+4}$ times as many examples: 32 times in one dimension, 128 times in three,
about a million times in sixteen. This is the curse of dimensionality, and one reason why a Transformer does
not look at raw inputs with a fixed kernel: it *learns* queries and keys, so that what is relevant comes to
lie near.
""",
        ),
    ],
)
