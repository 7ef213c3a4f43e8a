"""Part b of own-17.1, "Fit a power law and its floor, and say how sure you are": `exponent_interval`."""

import torch

from d2lmini.exercises.engine import Code, Mutant


def exponent_interval(sizes, losses, floor, draws, level):
    """How sure the exponent is: fit it again to the same number of runs, drawn from them with replacement.

    Args:
        sizes: (n,), float64, some of which may be equal. losses: (n,), float64.
        floor: E, a number below all losses: it is known here, so that each fit is a straight line in logarithms.
        draws: integers (R, n): row r says which runs the r-th sample has.
        level: share of the interval, as 0.9.

    Returns:
        Tensor (2,): the ends between which the middle ``level`` of the R exponents b lies. Samples whose sizes are all
        equal have no slope, and are left out.
    """
    ### BEGIN SOLUTION
    x, y = sizes.log()[draws], (losses - floor).log()[draws]  # (R, n): runs stay together
    x = x - x.mean(dim=1, keepdim=True)
    spread = (x * x).sum(dim=1)
    exponents = -(x * y).sum(dim=1) / spread
    exponents = exponents[spread > 1e-12]
    ends = exponents.new_tensor([(1 - level) / 2, (1 + level) / 2])
    return exponents.quantile(ends)
    ### END SOLUTION


def draw_by_draw(sizes, losses, floor, draws, level):
    exponents = []
    for row in draws:
        if len(sizes[row].unique()) > 1:
            design = torch.stack([torch.ones_like(sizes), sizes[row].log()], dim=1)
            exponents.append(-torch.linalg.lstsq(design, (losses[row] - floor).log()).solution[1])
    low = torch.stack(exponents).quantile((1 - level) / 2)
    return torch.stack([low, torch.stack(exponents).quantile(1 - (1 - level) / 2)])


def by_counts(sizes, losses, floor, draws, level):
    """Weighted lines: how often each run was drawn is its weight."""
    W = torch.nn.functional.one_hot(draws, len(sizes)).sum(1).to(sizes)  # (R, n)
    x, y = sizes.log(), (losses - floor).log()
    n = W.sum(1)
    slope_of = (W @ (x * y) - (W @ x) * (W @ y) / n) / (W @ (x * x) - (W @ x) ** 2 / n)
    several = torch.tensor([len(sizes[row].unique()) > 1 for row in draws], device=sizes.device)
    return torch.quantile(-slope_of[several], torch.tensor([0.5 - level / 2, 0.5 + level / 2]).to(sizes))


# mistakes


def _exponents(sizes, losses, floor, draws):
    x, y = sizes.log()[draws], (losses - floor).log()[draws]
    x = x - x.mean(1, keepdim=True)
    spread = (x * x).sum(1)
    return (-(x * y).sum(1) / spread)[spread > 1e-12]


def torn_apart(sizes, losses, floor, draws, level):
    """Sizes stay in order, losses are drawn."""
    x, y = sizes.log(), (losses - floor).log()[draws]
    x = x - x.mean()
    return (-(x * y).sum(1) / (x * x).sum()).quantile(sizes.new_tensor([(1 - level) / 2, (1 + level) / 2]))


def normal(sizes, losses, floor, draws, level):
    exponents = _exponents(sizes, losses, floor, draws)
    half = torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor((1 + level) / 2)).to(sizes) * exponents.std()
    return torch.stack([exponents.mean() - half, exponents.mean() + half])


def of_the_mean(sizes, losses, floor, draws, level):
    """An interval for the mean of the exponents: narrower with each draw."""
    exponents = _exponents(sizes, losses, floor, draws)
    half = torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor((1 + level) / 2)).to(sizes)
    half = half * exponents.std() / len(exponents) ** 0.5
    return torch.stack([exponents.mean() - half, exponents.mean() + half])


def turned_at_the_fit(sizes, losses, floor, draws, level):
    """The basic bootstrap."""
    fit = _exponents(sizes, losses, floor, torch.arange(len(sizes), device=sizes.device)[None])[0]
    low, high = exponent_interval(sizes, losses, floor, draws, level)
    return torch.stack([2 * fit - high, 2 * fit - low])


def around_the_fit(sizes, losses, floor, draws, level):
    """The fit of all runs, and half of the interval's width on either side."""
    fit = _exponents(sizes, losses, floor, torch.arange(len(sizes), device=sizes.device)[None])[0]
    low, high = exponent_interval(sizes, losses, floor, draws, level)
    return torch.stack([fit - (high - low) / 2, fit + (high - low) / 2])


def each_run_once(sizes, losses, floor, draws, level):
    """Runs that were drawn twice count once."""
    exponents = []
    for row in draws:
        row = row.unique()
        x = sizes[row].log() - sizes[row].log().mean()
        if x.abs().max() > 1e-9:
            exponents.append(-(x * (losses[row] - floor).log()).sum() / (x * x).sum())
    return torch.stack(exponents).quantile(sizes.new_tensor([(1 - level) / 2, (1 + level) / 2]))


def of_residuals(sizes, losses, floor, draws, level):
    """What is drawn is by how much runs miss the line; sizes stay."""
    x, y = sizes.log() - sizes.log().mean(), (losses - floor).log()
    line = y.mean() + x * (x * y).sum() / (x * x).sum()
    exponents = -(x * (line + (y - line)[draws])).sum(1) / (x * x).sum()
    return exponents.quantile(sizes.new_tensor([(1 - level) / 2, (1 + level) / 2]))


def mixed_divisors(sizes, losses, floor, draws, level):
    """Covariance over n, variance over n - 1."""
    n = len(sizes)
    ends = sizes.new_tensor([(1 - level) / 2, (1 + level) / 2])
    return (_exponents(sizes, losses, floor, draws) * (n - 1) / n).quantile(ends)


def not_interpolated(sizes, losses, floor, draws, level):
    exponents = _exponents(sizes, losses, floor, draws).sort().values
    return torch.stack([exponents[int(len(exponents) * share)] for share in ((1 - level) / 2, (1 + level) / 2)])


def zero_for_no_slope(sizes, losses, floor, draws, level):
    x, y = sizes.log()[draws], (losses - floor).log()[draws]
    x = x - x.mean(1, keepdim=True)
    spread = (x * x).sum(1)
    exponents = torch.where(spread > 1e-12, -(x * y).sum(1) / spread, 0)
    return exponents.quantile(sizes.new_tensor([(1 - level) / 2, (1 + level) / 2]))


def _interval(sizes, losses, floor, draws, level):
    """Run by run and sample by sample, in plain Python."""
    x, y = sizes.log().tolist(), [(loss - floor).log().item() for loss in losses]
    exponents = []
    for row in draws.tolist():
        if len({x[i] for i in row}) > 1:
            mean = sum(x[i] for i in row) / len(row)
            above = sum((x[i] - mean) * y[i] for i in row)
            exponents.append(-above / sum((x[i] - mean) ** 2 for i in row))
    exponents.sort()
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        place = share * (len(exponents) - 1)
        low = min(int(place), len(exponents) - 2)
        ends.append(exponents[low] + (place - low) * (exponents[low + 1] - exponents[low]))
    return torch.tensor(ends, dtype=torch.float64)


def verify_interval(t, answer):
    for name, n, level, equal in (
        ("of many runs, 90 %", t.random.randint(9, 12), 0.9, False),
        ("of some runs, 60 %", t.random.randint(6, 8), 0.6, False),
        ("where some samples have one size alone", 7, 0.8, True),
    ):
        sizes = 10 ** t.rand(n, low=4.0, high=8.0, dtype=torch.float64)
        if equal:
            same = t.rand(99, 1, low=4.0, high=8.0, dtype=torch.float64).repeat(1, n)
            logs = (10**same).log()  # take a size where their mean is not quite each of them: no 0 is left
            sizes[:4] = 10 ** same[(logs != logs.mean(1, keepdim=True)).any(1)][0, 0]
        floor, b = t.random.uniform(1.0, 2.0), t.random.uniform(0.1, 0.4)
        losses = floor + 30 * sizes**-b * (0.1 * t.randn(n, dtype=torch.float64)).exp()
        draws = t.integers(0, n, 60, n)
        if equal:
            draws[:25] = t.integers(0, 4, 25, n)
        want = _interval(sizes.cpu(), losses.cpu(), floor, draws, level)
        t.same(t.call(answer, sizes, losses, floor, draws, level), want, f"the interval {name}", tolerance=(1e-5, 1e-7))


MUTANTS = [
    Mutant("torn", torn_apart, "losses are drawn and sizes are not, so that a loss stands at another run's size: draw "
        "*runs*, and the two stay together"),
    Mutant("floor", ("(losses - floor)", "losses"), "the floor is not subtracted: log L is no straight line"),
    Mutant("sign", ("-(x * y)", "(x * y)"), "these are slopes: b is minus the slope"),
    Mutant("one-sided", ("[(1 - level) / 2, (1 + level) / 2]", "[1 - level, level]"), "what is outside is cut off "
        "twice: half of it stands on either side"),
    Mutant("range", ("[(1 - level) / 2, (1 + level) / 2]", "[0.0, 1.0]"), "these are the least and the largest "
        "exponent: they go apart with each draw"),
    Mutant("normal", normal, "this is mean and standard deviation, as if exponents were normal: take quantiles"),
    Mutant("one-sigma", ("exponents.quantile(ends)",
        "exponents.mean() + exponents.std() * exponents.new_tensor([-1.0, 1.0])"),
        "this is one standard deviation on either side, whatever the level: take quantiles"),
    Mutant("inverse", ("-(x * y).sum(dim=1) / spread", "-spread / (x * y).sum(dim=1)"), "this is one over a slope: the "
        "sum of x squared is what it is divided by"),
    Mutant("of-the-mean", of_the_mean, "this is an interval for the *mean* of the exponents, which any number of draws "
        "makes narrow: the runs are as few as before. Their own spread is the answer"),
    Mutant("basic", turned_at_the_fit, "this is the basic bootstrap, quantiles turned at the fit: the quantiles "
        "themselves are asked for"),
    Mutant("once", each_run_once, "a run that was drawn twice counts once: that is no sample with replacement"),
    Mutant("residuals", of_residuals, "residuals are drawn and put on the line again, at the same sizes. That is a "
        "bootstrap, too, which trusts the line and that all runs err alike: here whole runs are drawn"),
    Mutant("divisors", mixed_divisors, "the covariance is divided by n and the variance by n - 1 (`torch.var`): take "
        "one of them for both"),
    Mutant("not-interpolated", not_interpolated, "these are single exponents of the sorted list: between two of them, "
        "interpolate (`torch.quantile`)"),
    Mutant("not-interpolated", ("exponents.quantile(ends)", "exponents.quantile(ends, interpolation='nearest')"),
        "these are single exponents of the sorted list: between two of them, interpolate (`torch.quantile`)"),
    Mutant("not-interpolated", ("exponents.quantile(ends)", "exponents.quantile(ends, interpolation='lower')"),
        "these are single exponents of the sorted list: between two of them, interpolate (`torch.quantile`)"),
    Mutant("half-level", ("[(1 - level) / 2, (1 + level) / 2]", "[level / 2, 1 - level / 2]"), "half of the level is "
        "cut off on either side: what is cut off there is half of 1 - level"),
    Mutant("losses-not-log", ("(losses - floor).log()", "(losses - floor)"), "the losses above the floor have no "
        "logarithm taken: the line is that of log(L - E) in log x"),
    Mutant("sizes-not-log", ("sizes.log()[draws]", "sizes[draws]"), "the sizes have no logarithm taken: the line is "
        "that of log(L - E) in log x"),
    Mutant("fit-in-the-middle", around_the_fit, "the ends lie evenly around the exponent of all runs: the quantiles "
        "need not, as the exponents may be skewed"),
    Mutant("zero", zero_for_no_slope, "samples without a slope count as b = 0: leave them out"),
    Mutant("origin", ("    x = x - x.mean(dim=1, keepdim=True)\n", ""), "the lines have no intercept: subtract the "
        "mean of log x in each sample"),
    Mutant("one-mean", ("x.mean(dim=1, keepdim=True)", "sizes.log().mean()"), "log x is centred by the mean of the "
        "runs: each sample has a mean of its own"),
    Mutant("rounding", ("exponents[spread > 1e-12]", "exponents[spread > 0]"), "samples of one size are found by a "
        "spread of exactly 0, which rounding spoils: ask whether all *sizes* are equal, or for a spread above 1e-12"),
    Mutant("turned", ("(1 - level) / 2, (1 + level) / 2", "(1 + level) / 2, (1 - level) / 2"),
        "the two ends are exchanged"),
]  # fmt: skip


PART = Code(
    key="own-17.1b",
    prompt="Write `exponent_interval(sizes, losses, floor, draws, level)`. To keep it simple E is known. The "
    "draws are given, so that the result is one and the same; in earnest they would be `torch.randint(n, (R, "
    "n))`. The ends are quantiles, interpolated as `torch.quantile` does.",
    hints=[
        "`sizes[draws]` is (R, n), and `losses[draws]` has in the same places the losses of the same runs.",
        "The slope of a least-squares line is sum (x - mean) y / sum (x - mean)^2, for each row; b is minus that.",
        "A row whose sizes are all equal divides 0 by 0. Leave it out before the quantiles.",
        "The middle 90 % have 5 % on either side.",
    ],
    answer=exponent_interval,
    verify=verify_interval,
    alternatives=[draw_by_draw, by_counts],
    min_checks=6,
    advice={
        "nonfinite": "A sample that has one size alone has no slope: leave it out.",
        "values": "Take one row of `draws` and fit it alone: sizes and losses of the runs it names, a line with an "
        "intercept in log(L - E) over log x, b with the sign turned. Does your list of exponents hold this number? If "
        "so, look at which samples are left out, and then at the quantiles, (1 - level) / 2 and (1 + level) / 2.",
    },
    mutants=MUTANTS,
    explanation=r"""
The runs are a sample of the runs that one might have made; drawing from them imitates making them anew (Efron 1979).
Where the exponents are skewed, as here, quantiles follow.

What the interval does *not* know: whether the law holds beyond the largest run, whether the learning rate was as good
for all sizes, and what the floor's own uncertainty adds; with E fitted in each sample (`d2l.scaling.bootstrap_laws`)
the interval is wider. And runs that share a seed or a text err together, which drawing them one by one cannot show.
""",
)
