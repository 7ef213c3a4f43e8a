"""Part a of d2l-11.2.2, "Learning the width of the kernel, and how it cheats": `width_loss`."""

import math

import torch

from d2lmini.exercises.engine import Code, Mutant


def width_loss(keys, values, width, leave_one_out):
    """Compute the mean squared error of predicting every stored example.

    Args:
        keys: (N, D), all different.
        values: (N,).
        width: a tensor without axes, positive; the gradient in it is wanted.
        leave_one_out: whether an example is left out of its own prediction (True) or not (False).

    Returns:
        The loss, a tensor without axes.
    """
    ### BEGIN SOLUTION
    scores = -torch.cdist(keys, keys).square() / (2 * width**2)  # (N, N)
    if leave_one_out:
        itself = torch.eye(len(keys), dtype=torch.bool, device=keys.device)
        scores = scores.masked_fill(itself, -math.inf)  # a weight of zero, and the others still sum to one
    predictions = torch.softmax(scores, dim=-1) @ values  # (N,)
    return (predictions - values).square().mean()
    ### END SOLUTION


def by_deleting(keys, values, width, leave_one_out):
    losses = []
    for i in range(len(keys)):
        kept = [j for j in range(len(keys)) if j != i or not leave_one_out]
        scores = -((keys[kept] - keys[i]) / width).square().sum(-1) / 2
        losses.append((scores.softmax(0) @ values[kept] - values[i]) ** 2)
    return torch.stack(losses).mean()


def by_correcting(keys, values, width, leave_one_out):
    """The exponentials by hand, after subtracting the largest score among those that count."""
    N = len(keys)
    counts = 1 - torch.eye(N, device=keys.device) if leave_one_out else torch.ones(N, N, device=keys.device)
    squared = (keys[:, None] - keys[None]).square().sum(-1)
    nearest = torch.where(counts > 0, squared, squared.max() + 1).amin(dim=-1, keepdim=True)
    heaps = torch.exp(-(squared - nearest).clamp(min=0) / (2 * width**2)) * counts
    return torch.nn.functional.mse_loss(heaps @ values / heaps.sum(-1), values)


def with_the_naive_exponential(keys, values, width, leave_one_out, least=0):
    heaps = torch.exp(-torch.cdist(keys, keys).square() / (2 * width**2))
    if leave_one_out:
        heaps = heaps * (1 - torch.eye(len(keys), device=keys.device))
    return (heaps @ values / (heaps.sum(-1) + least) - values).square().mean()


def with_a_little_in_the_denominator(keys, values, width, leave_one_out):
    return with_the_naive_exponential(keys, values, width, leave_one_out, least=1e-9)


def with_weight_set_to_zero(keys, values, width, leave_one_out):
    weights = torch.softmax(-torch.cdist(keys, keys).square() / (2 * width**2), -1)
    if leave_one_out:
        weights = weights * (1 - torch.eye(len(keys), device=keys.device))
    return (weights @ values - values).square().mean()


def with_infinite_distance(keys, values, width, leave_one_out):
    squared = torch.cdist(keys, keys).square()
    if leave_one_out:
        squared = squared.masked_fill(torch.eye(len(keys), dtype=torch.bool, device=keys.device), math.inf)
    return (torch.softmax(-squared / (2 * width**2), -1) @ values - values).square().mean()


def verify_loss(t, answer):
    N = t.random.randrange(9, 16)
    D = t.random.randrange(2, 6)
    keys, values = t.randn(N, D), t.randn(N)
    values[1] = values[0] + 1
    values[-1], keys[-1] = values[0], keys[0] + 0.3  # neighbours of one value: neither is the other
    width = torch.tensor(t.random.uniform(0.6, 0.9), device=t.device).requires_grad_()
    k, y, w = keys.cpu().double(), values.cpu().double(), width.detach().cpu().double().requires_grad_()
    squared = (k[:, None, :] - k[None, :, :]).square().sum(-1)
    itself = torch.eye(N, dtype=torch.bool)
    for leave_one_out in (False, True):
        exponents = -squared / (2 * w**2)
        weights = torch.softmax(exponents.masked_fill(itself, -math.inf) if leave_one_out else exponents, -1)
        want = (weights @ y - y).square().sum() / N
        (slope,) = torch.autograd.grad(want, w)
        got = t.call(answer, keys, values, width, leave_one_out)
        name = f"the loss with leave_one_out={leave_one_out}"
        t.same(got, want, name)
        gradient = t.gradient(got, 2, name)
        t.same(gradient, slope, f"the gradient of {name} in the width", tolerance=(2e-3, 1e-4))

    # a width below all distances: each point stands on a line, farther from the next than from the last; the first
    # two are so close that a width of 0.03 would not do, the others so far away that a score of -1e6 is none
    steps = torch.tensor([0.0, 0.06, *(24.0 + 8 * i for i in range(N - 2))])
    keys = torch.zeros(N, D, device=t.device)
    keys[:, 0] = steps.cumsum(0).to(t.device)
    narrow = torch.tensor(0.01, device=t.device).requires_grad_()
    nearest = torch.tensor([1, *range(N - 1)])
    want = torch.zeros((), dtype=torch.float64), (y[nearest] - y).square().mean()
    for leave_one_out in (False, True):
        got = t.call(answer, keys, values, narrow, leave_one_out)
        name = f"the loss for width 0.01 with leave_one_out={leave_one_out}"
        t.same(got, want[leave_one_out], name)


MUTANTS = [
    Mutant("sees-itself", ("if leave_one_out:", "if False:"), "every example still sees its own value. (Its distance "
        "from itself is 0 already. A score of 0 is therefore no way to remove it: exp(0) is the largest weight of "
        "all)"),
    Mutant("always-left-out", ("if leave_one_out:", "if True:"), "with leave_one_out=False the example counts in its "
        "own prediction, here it does not (does it with True? Then the flag is the wrong way round)"),
    Mutant("width-bounded", ("width**2)", "width.clamp(min=0.1) ** 2)"), "the width is not let below a bound: take it "
        "as it comes"),
    Mutant("width-bounded", ("width**2)", "width.clamp(min=0.05) ** 2)"), "the width is not let below a bound: take it "
        "as it comes"),
    Mutant("near-left-out", ("torch.eye(len(keys), dtype=torch.bool, device=keys.device)",
        "torch.cdist(keys, keys) < 0.5"), "near neighbours are left out as well; only the example itself is"),
    Mutant("equal-left-out", ("torch.eye(len(keys), dtype=torch.bool, device=keys.device)",
        "values[:, None] == values"), "examples of the same value are left out as well; only the example itself is"),
    Mutant("finite-mask", ("-math.inf", "-1e3"), "the loss is 0: every example finds itself again, or those without a "
        "near neighbour are left out of the mean. A finite number in place of minus infinity is not low enough when "
        "the kernel is narrow"),
    Mutant("finite-mask", ("-math.inf", "-1e4"), "some examples find themselves again. A finite number in place of "
        "minus infinity is not low enough when the kernel is narrow"),
    Mutant("broadcast", ("softmax(scores, dim=-1) @ values", "softmax(scores, dim=-1) @ values[:, None]"),
        "all N x N differences are averaged: predictions of shape (N, 1) against values of shape (N,) broadcast to (N, "
        "N). Make both (N,)"),
    Mutant("not-renormalised", with_weight_set_to_zero, "the example's own weight is gone, but the other weights no "
        "longer sum to one: take it out *before* normalising"),
    Mutant("nonfinite", with_the_naive_exponential),
    Mutant("vanishes", with_a_little_in_the_denominator, "the predictions are 0. With a narrow kernel every "
        "exponential is 0 in float32, and only what was added to the denominator is left: a softmax of the exponents "
        "subtracts the largest first"),
    Mutant("nonfinite", with_infinite_distance),
    Mutant("sum", (".mean()", ".sum()"), "this is the sum of the squared errors; divide by N"),
    Mutant("by-N-minus-1", (".mean()", ".sum() / (len(keys) - 1)"), "the sum is divided by N - 1; all N examples are "
        "predicted, so divide by N"),
    Mutant("by-N-minus-1", (".mean()", ".sum() / (len(keys) - leave_one_out)"), "the sum is divided by N - 1; all N "
        "examples are predicted, so divide by N"),
    Mutant("first-feature", ("cdist(keys, keys)", "cdist(keys[:, :1], keys[:, :1])"), "only the first of the D "
        "features counts"),
    Mutant("root", (".square().mean()", ".square().mean().sqrt()"), "this is the root of the mean squared error; the "
        "loss has no root"),
    Mutant("half-loss", (".square().mean()", ".square().mean() / 2"), "the loss has a factor 1/2 that was not asked "
        "for"),
    Mutant("absolute", (".square().mean()", ".abs().mean()"), "the errors are not squared"),
    Mutant("no-half", ("(2 * width**2)", "width**2"), "the Gaussian divides by 2 w^2, not by w^2"),
    Mutant("width-not-squared", ("(2 * width**2)", "(2 * width)"), "the width is not squared"),
    Mutant("times-width", ("/ (2 * width**2)", "* width**2 / 2"), "the distance is multiplied by the width: a wide "
        "kernel must reach farther, so divide"),
    Mutant("distance-not-squared", ("cdist(keys, keys).square()", "cdist(keys, keys)"), "the distance is not squared"),
    Mutant("mean-over-features", ("(2 * width**2)", "(2 * width**2) / keys.shape[1]"), "the squared distance is the "
        "sum over the D features, not their mean"),
    Mutant("wrong-axis", ("softmax(scores, dim=-1)", "softmax(scores, dim=0)"), "the softmax runs over the wrong axis: "
        "the weights of each *prediction* sum to one"),
    Mutant("shape", (".square().mean()", ".square()")),  # one error each
    Mutant("type", (".square().mean()", ".square().mean().item()")),  # a number
]  # fmt: skip


PART = Code(
    key="d2l-11.2.2a",
    prompt="Write both losses as one function, `width_loss(keys, values, width, leave_one_out)`, "
    "for keys of shape (N, D) and values (N,). It returns a tensor without axes, through which a "
    "gradient must reach the width. It must also work for widths far below all distances: the check "
    "tries 0.01 where the examples are more than 0.05 apart.",
    hints=[
        "The stored keys are the queries, too: the scores form an (N, N) matrix.",
        "On its diagonal every example meets itself. Which score gives a weight of exactly zero?",
        "Fill the diagonal with minus infinity, before the softmax. Then the other weights still sum to one.",
    ],
    advice={
        "nonfinite": "Two usual causes. With a narrow kernel every exponential but the own one is "
        "zero in float32; without the own one you divide zero by zero, while a softmax of the "
        "exponents subtracts the largest first. And an infinite distance that is *then* divided by "
        "the width has an infinite derivative: put the infinity into the finished scores.",
        "grad": "The width must stay a tensor: no .item(), .detach(), .data or float().",
        "shape": "The loss is a single number: one squared error for each example, then their mean.",
        "values": "Two things to look at: the Gaussian is exp(-distance^2 / (2 w^2)), and every row "
        "of the weights sums to one over the examples that take part. With leave_one_out these are "
        "all others, and all N examples are predicted.",
    },
    answer=width_loss,
    verify=verify_loss,
    alternatives=[by_deleting, by_correcting],
    mutants=MUTANTS,
    explanation=r"""
Leaving out means removing a term from numerator *and* denominator. A score of $-\infty$ does both at once,
and leaves the rest a softmax. It is the same device with which a causal mask hides the future from a language
model, for the same reason: the answer stands among the inputs.

Look at the two ends. For $w \to \infty$ all weights are equal, and both losses are about the variance of the
values. For $w \to 0$ the direct loss is exactly zero, whatever the data: every example finds itself. The
leave-one-out loss there is that of the *nearest neighbour*.
""",
)
