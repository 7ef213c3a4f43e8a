"""Part a of own-17.1, "Fit a power law and its floor, and say how sure you are": `fit_law`."""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant


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
    x, y, fits = sizes.log() - sizes.log().mean(), losses.log(), []
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
        fits.append((closure().item(), theta.detach()))
    theta = min(fits, key=lambda fit: fit[0])[1]
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
    for name, off, low, high in (
        ("of runs that lie on a law", 0.0, 0.2, 0.35),
        ("of runs that lie off it", 0.01, 0.2, 0.35),
        ("of runs of which many are at the floor", 0.01, 1.3, 1.6),
    ):
        n = t.random.randint(12, 15)
        sizes = 10 ** t.rand(n, low=4.0, high=9.0, dtype=torch.float64)
        sizes[:2] = sizes.new_tensor([1e4, 1e9])
        if low > 1:
            sizes[2:6] = sizes.new_tensor([2e4, 4e4, 1e7, 1e8])
        E, b = t.random.uniform(1.5, 2.0), t.random.uniform(low, high)
        a = t.random.uniform(2.0, 4.0) * 1e4**b
        law = torch.tensor([E, a, b], dtype=torch.float64)
        noise = off * t.randn(n, dtype=torch.float64)
        if low < 1:
            noise[0] = 6 * off  # one that went badly, where the loss itself is largest
        losses = (E + a * sizes**-b) * noise.exp()
        if off:
            law = by_the_package(sizes, losses).cpu()
        got = t.call(answer, sizes, losses)
        t.same(got, law, f"[E, a, b] {name}", tolerance=(2e-3, 0.0))


MUTANTS = [
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
    Mutant("centred", ("a * torch.exp(b * middle)", "a"), "a is the factor for sizes over their geometric mean: undo "
        "that"),
    Mutant("log-a", ("a * torch.exp(b * middle)", "a.log() + b * middle"), "this is log a"),
    Mutant("logarithms", ("torch.stack([E, a * torch.exp(b * middle), b])",
        "torch.stack([E, a * torch.exp(b * middle), b]).log()"),
        "these are the logarithms in which the search runs: return their exponentials"),
    Mutant("base", ("a * torch.exp(b * middle), b])", "a * torch.exp(b * middle), b * math.log(10)])"),
        "b belongs to a logarithm of base ten on one axis and of base e on the other"),
    Mutant("order", ("torch.stack([E, a * torch.exp(b * middle), b])",
        "torch.stack([b, a * torch.exp(b * middle), E])"), "E and b are exchanged"),
    Mutant("order-of-a", ("torch.stack([E, a * torch.exp(b * middle), b])",
        "torch.stack([a * torch.exp(b * middle), E, b])"), "E and a are exchanged"),
    Mutant("dtype", ("b * middle), b])", "b * middle), b]).float()")),  # in single
]  # fmt: skip


PART = Code(
    key="own-17.1a",
    prompt="Write `fit_law(sizes, losses)`. What is least is the sum of squared differences of *logarithms*, "
    "so that a run that is a per cent off counts the same whether its loss is large or small. The check has "
    "runs that lie on a law, and then runs that do not; of the latter it wants your three numbers to 0.2 %, so "
    "the search must have arrived. Where many runs are at the floor E is above the least of their losses, as they "
    "scatter; and b may be above 1.",
    hints=[
        "If E were known, log(L - E) would be a straight line in log x: `torch.linalg.lstsq`. That is a good "
        "start, from a few floors E between 0 and the least loss. It is not yet the fit: near the floor a "
        "small error of L is a large one of log(L - E).",
        "Search over log E, log a and log b, and all three stay above 0.",
        "Subtract the mean of log x first. At x = 1, where the loss is E + a, there is no run: a and b would vary "
        "together, and a search would creep.",
        '`torch.optim.LBFGS` with `line_search_fn="strong_wolfe"` and tolerances near 0, on 10^4 times the '
        "sum, arrives. Or steps of Gauss and Newton: with the Jacobian J of the residuals r the step is the "
        "solution of (J^T J + damping) s = J^T r; less damping after a step that helped, more after one that "
        "did not.",
    ],
    answer=fit_law,
    verify=verify_law,
    alternatives=[by_the_package, by_lbfgs],
    min_checks=6,
    seconds=30.0,
    advice={
        "nonfinite": "a x^-b needs a large a where sizes are large: work with log a, and centre log x. And a "
        "floor above a loss has no logarithm.",
        "values": "Put your three numbers into the sum of (log L - log(E + a x^-b))^2, and then change each of them a "
        "little. If the sum falls, the search has not arrived: more steps, other starts, log x centred. If it "
        "does not, you have made another sum least: of the losses themselves, of absolute values, or with E "
        "fixed beforehand or kept below all losses.",
    },
    mutants=MUTANTS,
    explanation=r"""
A floor and an exponent trade off: a higher floor makes what is left steeper. Without it (Kaplan et al. 2020) the slope
in logarithms is that of $E + a x^{-b}$ and not of $a x^{-b}$, the smaller the nearer to the floor; that is one of the
reasons why published exponents differ. Two things make the fit reliable: parameters that hardly depend on each other,
by centring log x, and several starts, for the sum has flat valleys (Besiroglu et al. 2024 found a published fit whose
search had stopped early).

`d2l.scaling.fit_power_law` does this, also for two variables, and for many samples at once.
""",
)
