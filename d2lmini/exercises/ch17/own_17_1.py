r"""Fit a power law, and say how sure you are

Language models of several sizes x were trained on one text. Their losses L, in nats a token, fall like

$$L(x) = E + a \, x^{-b} .$$

$E$ is what no size gets rid of: the text is not fully predictable. The exponent b says what more size is worth. The
three must be found from a dozen runs, each of which lies off the law by a per cent or so; and an exponent without an
interval says little.
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def fit_law(sizes, losses):
    """The law that is nearest to the runs.

    Args:
        sizes: (n,), float64, above 0, over several powers of ten; n is more than 3.
        losses: (n,), float64, above 0.

    Returns:
        Tensor (3,): E, a and b for which the sum of (log L_i - log(E + a x_i^-b))^2 is least; all above 0.
    """
    ### BEGIN SOLUTION
    x, y = sizes.log(), losses.log()
    middle = x.mean()  # from here on exponent and factor hardly depend on each other
    fits = []
    for share in (0.3, 0.6, 0.9):
        E = share * losses.min()  # with E known it would be a straight line
        design = torch.stack([torch.ones_like(x), middle - x], dim=1)
        log_a, b = torch.linalg.lstsq(design, (losses - E).log()[:, None]).solution[:, 0]
        theta = torch.stack([E.log(), log_a, b.log()])  # logarithms of what must stay above 0
        damping, cost = 1e-3, torch.inf
        for _ in range(100):  # Levenberg and Marquardt
            E, a, b = theta.exp()
            term = a * torch.exp(-b * (x - middle))
            residuals = (E + term).log() - y
            if (new := residuals.square().sum().item()) < cost:
                J = torch.stack([E.expand(len(x)), term, -b * (x - middle) * term], dim=1) / (E + term)[:, None]
                kept, cost, error, damping = theta, new, residuals, damping / 5
            else:
                damping = min(damping * 4, 1e9)
            theta = kept - torch.linalg.solve(J.T @ J + damping * torch.eye(3).to(J), J.T @ error)
        fits.append((cost, kept))
    E, a, b = min(fits, key=lambda fit: fit[0])[1].exp()
    return torch.stack([E, a * torch.exp(b * middle), b])
    ### END SOLUTION


def by_the_package(sizes, losses):
    law = d2l.scaling.fit_power_law(sizes, losses)
    return torch.tensor([law.floor, *law.factors, *law.exponents], dtype=torch.float64, device=sizes.device)


def by_lbfgs(sizes, losses):
    """From a few floors, with torch's quasi-Newton method."""
    x, y, found = sizes.log() - sizes.log().mean(), losses.log(), []
    for share in (0.3, 0.7, 0.95):
        spread = (losses - share * losses.min()).log()
        start = [(share * losses.min()).log(), spread.mean(), torch.tensor(-1.5).to(x)]
        theta = torch.stack(start).requires_grad_()
        search = torch.optim.LBFGS([theta], 1.0, 200, 500, 1e-13, 1e-16, 20, "strong_wolfe")

        def closure(theta=theta, search=search):
            search.zero_grad()
            cost = (torch.logaddexp(theta[0], theta[1] - theta[2].exp() * x) - y).square().sum() * 1e4
            cost.backward()
            return cost

        search.step(closure)
        found.append((closure().item(), theta.detach()))
    theta = min(found, key=lambda one: one[0])[1]
    b = theta[2].exp()
    return torch.stack([theta[0].exp(), (theta[1] + b * sizes.log().mean()).exp(), b])


# mistakes


def _line(x, y):
    """Least squares: intercept and slope."""
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    return y.mean() - slope * x.mean(), slope


def straight_line(sizes, losses):
    """Kaplan's form: E is 0."""
    log_a, slope = _line(sizes.log(), losses.log())
    return torch.stack([torch.zeros_like(slope), log_a.exp(), -slope])


def best_loss_is_the_floor(sizes, losses):
    order = losses.argsort()[1:]
    log_a, slope = _line(sizes[order].log(), (losses[order] - losses.min()).log())
    return torch.stack([losses.min(), log_a.exp(), -slope])


def straightest_line(sizes, losses):
    """Of many floors the one with the straightest line in the logarithm of L - E: other weights for the runs."""
    E = torch.linspace(0.0, 0.9999, 20_000).to(sizes)[:, None] * losses.min()
    x, y = sizes.log(), (losses - E).log()  # (20000, n)
    slope = ((x - x.mean()) * y).sum(1, keepdim=True) / (x - x.mean()).square().sum()
    log_a = y.mean(1, keepdim=True) - slope * x.mean()
    best = (y - log_a - slope * x).square().sum(1).argmin()
    return torch.stack([E[best, 0], log_a[best, 0].exp(), -slope[best, 0]])


def _gauss_newton(sizes, theta, residuals, steps=40):
    damping, cost = 1e-3, residuals(theta).square().sum()
    for _ in range(steps):
        J, r = torch.func.jacfwd(residuals)(theta), residuals(theta)
        step = torch.linalg.solve(J.T @ J + damping * torch.eye(len(theta)).to(J), J.T @ r)
        new = residuals(theta - step).square().sum()
        theta, cost, damping = (theta - step, new, damping / 5) if new < cost else (theta, cost, min(damping * 4, 1e9))
    return theta


def differences_of_losses(sizes, losses):
    """Least squares of the losses themselves, not of their logarithms."""
    x, middle = sizes.log(), sizes.log().mean()

    def residuals(theta):
        return theta[0].exp() + torch.exp(theta[1] - theta[2].exp() * (x - middle)) - losses

    start = torch.stack([(0.7 * losses.min()).log(), (losses - 0.7 * losses.min()).log().mean(), middle * 0 - 1.0])
    E, a, b = _gauss_newton(sizes, start, residuals).exp()
    return torch.stack([E, a * torch.exp(b * middle), b])


def from_the_ends(sizes, losses):
    """Three runs: the smallest, one in the middle, the largest; the others are not looked at."""
    order = sizes.argsort()
    three = order[torch.tensor([0, len(order) // 2, len(order) - 1])]
    return fit_law(sizes[three], losses[three])


def a_few_steps(sizes, losses):
    """Gradient descent that has not arrived."""
    x, y = sizes.log() - sizes.log().mean(), losses.log()
    theta = torch.stack([(0.5 * losses.min()).log(), (losses - 0.5 * losses.min()).log().mean(), x[0] * 0 - 1.0])
    theta = theta.requires_grad_()
    for _ in range(100):
        cost = (torch.logaddexp(theta[0], theta[1] - theta[2].exp() * x) - y).square().mean()
        theta = (theta - 0.1 * torch.autograd.grad(cost, theta)[0]).detach().requires_grad_()
    E, a, b = theta.detach().exp()
    return torch.stack([E, a * torch.exp(b * sizes.log().mean()), b])


def verify_law(t, answer):
    for name, off in (("of runs that lie on a law", 0.0), ("of runs that lie off it", 0.01)):
        n = t.random.randint(12, 15)
        sizes = 10 ** t.rand(n, low=4.0, high=9.0, dtype=torch.float64)
        sizes[:2] = sizes.new_tensor([1e4, 1e9])
        E, b = t.random.uniform(1.5, 2.0), t.random.uniform(0.2, 0.35)
        a = t.random.uniform(2.0, 4.0) * 1e4**b
        law = torch.tensor([E, a, b], dtype=torch.float64)
        noise = off * t.randn(n, dtype=torch.float64)
        noise[2] += 3 * off  # one that went badly
        losses = (E + a * sizes**-b) * noise.exp()
        if off:
            law = by_the_package(sizes, losses).cpu()
        got = t.call(answer, sizes, losses)
        t.same(got, law, f"[E, a, b] {name}", tolerance=(2e-3, 0.0))


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


def each_run_once(sizes, losses, floor, draws, level):
    """Runs that were drawn twice count once."""
    found = []
    for row in draws:
        row = row.unique()
        x = sizes[row].log() - sizes[row].log().mean()
        if x.abs().max() > 1e-9:
            found.append(-(x * (losses[row] - floor).log()).sum() / (x * x).sum())
    return torch.stack(found).quantile(sizes.new_tensor([(1 - level) / 2, (1 + level) / 2]))


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
    found = []
    for row in draws.tolist():
        if len({x[i] for i in row}) > 1:
            mean = sum(x[i] for i in row) / len(row)
            above = sum((x[i] - mean) * y[i] for i in row)
            found.append(-above / sum((x[i] - mean) ** 2 for i in row))
    found.sort()
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        place = share * (len(found) - 1)
        low = min(int(place), len(found) - 2)
        ends.append(found[low] + (place - low) * (found[low + 1] - found[low]))
    return torch.tensor(ends, dtype=torch.float64)


def verify_interval(t, answer):
    for name, n, level, equal in (
        ("of many runs, 90 %", t.random.randint(9, 12), 0.9, False),
        ("of some runs, 60 %", t.random.randint(6, 8), 0.6, False),
        ("where some samples have one size alone", 4, 0.8, True),
    ):
        sizes = 10 ** t.rand(n, low=4.0, high=8.0, dtype=torch.float64)
        if equal:
            sizes[1:3] = sizes[0]
        floor, b = t.random.uniform(1.0, 2.0), t.random.uniform(0.1, 0.4)
        losses = floor + 30 * sizes**-b * (0.1 * t.randn(n, dtype=torch.float64)).exp()
        draws = t.integers(0, n, 60, n)
        if equal:
            draws[:9] = t.integers(0, 3, 9, n)
        want = _interval(sizes.cpu(), losses.cpu(), floor, draws, level)
        t.same(t.call(answer, sizes, losses, floor, draws, level), want, f"the interval {name}", tolerance=(1e-5, 1e-7))


MUTANTS_A = [
    Mutant("no-floor", straight_line, "this is a straight line in logarithms, with E = 0: then b comes out too small"),
    Mutant("best-run", best_loss_is_the_floor, "the least loss is taken for E: no run reaches the floor, and E must be "
        "fitted"),
    Mutant("straightest", straightest_line, "E is chosen so that log(L - E) is straightest. Runs near the floor then "
        "decide, whose log(L - E) is the least certain: compare log L with log(E + a x^-b)"),
    Mutant("not-logarithms", differences_of_losses, "this is the least sum of squared differences of the losses: of "
        "their logarithms it should be"),
    Mutant("three-runs", from_the_ends, "the law goes through the first, the middle and the last run: all of them "
        "count"),
    Mutant("not-arrived", a_few_steps, "the search stops before it has arrived: gradient descent creeps along this "
        "valley"),
    Mutant("sign", ("a * torch.exp(b * middle), b])", "a * torch.exp(b * middle), -b])"), "b has the wrong sign: the "
        "law has x^-b"),
    Mutant("centred", ("a * torch.exp(b * middle)", "a"), "a is the factor for sizes that were divided by their mean: "
        "undo that"),
    Mutant("log-a", ("a * torch.exp(b * middle)", "a.log() + b * middle"), "this is log a"),
    Mutant("base", ("a * torch.exp(b * middle), b])", "a * torch.exp(b * middle), b * math.log(10)])"),
        "b belongs to a logarithm of base ten on one axis and of base e on the other"),
    Mutant("order", ("torch.stack([E, a * torch.exp(b * middle), b])",
        "torch.stack([b, a * torch.exp(b * middle), E])"), "E and b are exchanged"),
    Mutant("dtype", ("b * middle), b])", "b * middle), b]).float()")),  # in single
]  # fmt: skip

MUTANTS_B = [
    Mutant("torn", torn_apart, "losses are drawn and sizes are not, so that a loss stands at another run's size: draw "
        "*runs*, and the two stay together"),
    Mutant("floor", ("(losses - floor)", "losses"), "the floor is not subtracted: log L is no straight line"),
    Mutant("sign", ("-(x * y)", "(x * y)"), "these are slopes: b is minus the slope"),
    Mutant("one-sided", ("[(1 - level) / 2, (1 + level) / 2]", "[1 - level, level]"), "what is outside is cut off "
        "twice: half of it stands on either side"),
    Mutant("range", ("[(1 - level) / 2, (1 + level) / 2]", "[0.0, 1.0]"), "these are the least and the largest "
        "exponent: they go apart with each draw"),
    Mutant("normal", normal, "this is mean and standard deviation, as if exponents were normal: take quantiles"),
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
    Mutant("zero", zero_for_no_slope, "samples without a slope count as b = 0: leave them out"),
    Mutant("origin", ("    x = x - x.mean(dim=1, keepdim=True)\n", ""), "the lines have no intercept: subtract the "
        "mean of log x in each sample"),
    Mutant("one-mean", ("x.mean(dim=1, keepdim=True)", "sizes.log().mean()"), "log x is centred by the mean of the "
        "runs: each sample has a mean of its own"),
    Mutant("nonfinite", ("exponents[spread > 1e-12]", "exponents[spread >= 0]")),  # no slope left in
    Mutant("turned", ("(1 - level) / 2, (1 + level) / 2", "(1 + level) / 2, (1 - level) / 2"),
        "the two ends are exchanged"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-17.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-17.1a",
            prompt="Write `fit_law(sizes, losses)`. What is least is the sum of squared differences of *logarithms*, "
            "so that a run that is a per cent off counts the same whether its loss is large or small. The check has "
            "runs that lie on a law, and then runs that do not; of the latter it wants your three numbers to 0.2 %, so "
            "the search must have arrived.",
            hints=[
                "If E were known, log(L - E) would be a straight line in log x: `torch.linalg.lstsq`. That is a good "
                "start, from a few floors E between 0 and the least loss. It is not yet the fit: near the floor a "
                "small error of L is a large one of log(L - E).",
                "Search over log E, log a and log b, and all three stay above 0.",
                "Subtract the mean of log x first. At x = 1, where a is the loss, there is no run: a and b would vary "
                "together, and a search would creep.",
                '`torch.optim.LBFGS` with `line_search_fn="strong_wolfe"` and tolerances near 0, on 10^4 times the '
                "sum, arrives. Or steps of Gauss and Newton: with the Jacobian J of the residuals r the step is the "
                "solution of (J^T J + damping) s = J^T r; less damping after a step that helped, more after one that "
                "did not.",
            ],
            answer=fit_law,
            verify=verify_law,
            alternatives=[by_the_package, by_lbfgs],
            min_checks=4,
            seconds=30.0,
            advice={
                "nonfinite": "a x^-b needs a large a where sizes are large: work with log a, and centre log x. And a "
                "floor above a loss has no logarithm.",
            },
            mutants=MUTANTS_A,
            explanation=r"""
A floor and an exponent trade off: a higher floor makes what is left steeper. Without it (Kaplan et al. 2020) the slope
in logarithms is that of $E + a x^{-b}$ and not of $a x^{-b}$, the smaller the nearer to the floor; that is one of the
reasons why published exponents differ. Two things make the fit reliable: parameters that hardly depend on each other,
by centring log x, and several starts, for the sum has flat valleys (Besiroglu et al. 2024 found a published fit whose
search had stopped early).

`d2l.scaling.fit_power_law` does this, also for two variables, and for many samples at once.
""",
        ),
        Code(
            key="own-17.1b",
            prompt="Write `exponent_interval(sizes, losses, floor, draws, level)`. To keep it simple E is known. The "
            "draws are given, so that the result is one and the same; in earnest they would be `torch.randint(n, (R, "
            "n))`. The ends are quantiles, interpolated as `torch.quantile` does.",
            hints=[
                "`sizes[draws]` is (R, n), and `losses[draws]` has in the same places the losses of the same runs.",
                "The slope of a least-squares line is sum (x - mean) y / sum (x - mean)^2, for each row; b is minus "
                "that.",
                "A row whose sizes are all equal divides 0 by 0. Leave it out before the quantiles.",
                "The middle 90 % have 5 % on either side.",
            ],
            answer=exponent_interval,
            verify=verify_interval,
            alternatives=[draw_by_draw, by_counts],
            min_checks=6,
            advice={"nonfinite": "A sample that has one size alone has no slope: leave it out."},
            mutants=MUTANTS_B,
            explanation=r"""
The runs are a sample of the runs that one might have made; drawing from them imitates making them anew (Efron 1979).
Where the exponents are skewed, as here, quantiles follow.

What the interval does *not* know: whether the law holds beyond the largest run, whether the learning rate was as good
for all sizes, and what the floor's own uncertainty adds; with E fitted in each sample (`d2l.scaling.bootstrap_laws`)
the interval is wider. And runs that share a seed or a text err together, which drawing them one by one cannot show.
""",
        ),
        Choice(
            key="own-17.1c",
            prompt="Somebody has fitted E, a and b to four runs and reports b = 0.34, without an interval, as the "
            "squared error of the fit is nearly 0. What do you say?",
            hints=["How many numbers are fitted, and to how many?"],
            options=[
                Option(
                    "A small error shows that the law holds.",
                    "Three numbers fitted to four leave one to err. Three runs would have been met exactly, by any "
                    "three losses that fall and bend.",
                ),
                Option(
                    "With hardly more runs than parameters the error tells nothing of how sure b is: more runs, over a "
                    "wider range, and one left out to be predicted.",
                    "Small residuals are cheap here. What tests a law is a run that was not used, larger than all that "
                    "were; and only runs beyond the third give any measure of their scatter.",
                    right=True,
                ),
                Option(
                    "A bootstrap of the four runs settles it.",
                    "Most samples of four have three different runs or fewer, which determine the law or do not. The "
                    "spread of such fits tells of the draws.",
                ),
                Option(
                    "The loss of the largest run should be taken for E; then two numbers are left and four runs are "
                    "enough.",
                    "No run reaches the floor, and a floor that is too high makes b too large. The uncertainty does "
                    "not go away, it is hidden in E.",
                ),
            ],
        ),
    ],
)
