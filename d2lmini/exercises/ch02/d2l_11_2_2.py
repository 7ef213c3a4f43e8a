r"""Learning the width of the kernel, and how it cheats

Nadaraya-Watson with a Gaussian kernel has one parameter, its width $w$:

$$f_w(\mathbf x) = \sum_j \frac{\exp\left(-\lVert\mathbf x - \mathbf x_j\rVert^2 / (2 w^2)\right)}
{\sum_k \exp\left(-\lVert\mathbf x - \mathbf x_k\rVert^2 / (2 w^2)\right)}\, y_j .$$

Why choose it by eye, when there is gradient descent? Make the mean squared error over the $N$ stored examples
small,

$$L(w) = \frac1N \sum_{i=1}^N \left(f_w(\mathbf x_i) - y_i\right)^2 .$$

There is a catch. The example $(\mathbf x_i, y_i)$ is among those that $f_w(\mathbf x_i)$ averages: it may
look up its own answer. So there are two losses. The **direct** one is $L$ as it stands. The **leave-one-out**
one removes example $i$ from both sums when it predicts for $\mathbf x_i$, and from no others. Which of the
two can choose a width?
"""

import math
from itertools import pairwise

import torch

from d2lmini.exercises.engine import Code, Exercise, Experiment, Mutant


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

    # a width far below all distances: each point stands on a line, farther from the next than from the last
    steps = torch.tensor([0.6 + 0.2 * i for i in range(N)])
    keys = torch.zeros(N, D, device=t.device)
    keys[:, 0] = steps.cumsum(0).to(t.device)
    narrow = torch.tensor(0.01, device=t.device).requires_grad_()
    nearest = torch.tensor([1, *range(N - 1)])
    want = torch.zeros((), dtype=torch.float64), (y[nearest] - y).square().mean()
    for leave_one_out in (False, True):
        got = t.call(answer, keys, values, narrow, leave_one_out)
        name = f"the loss for width 0.01 with leave_one_out={leave_one_out}"
        t.same(got, want[leave_one_out], name)


def learn_widths(keys, values, new_keys, new_values):
    """Learn the width twice and measure each on examples that were not there.

    Args:
        keys: (N, D), float64.
        values: (N,), float64.
        new_keys: (M, D), float64; not to be learned from.
        new_values: (M,), float64; not to be learned from.

    Returns:
        A dict of four numbers: ``"direct"`` and ``"left_out"``, the widths learned with either loss, and
        ``"direct_error"`` and ``"left_out_error"``, the mean squared error with it on the new examples.
    """
    ### BEGIN SOLUTION
    own = torch.eye(len(keys), dtype=torch.bool, device=keys.device)

    def error(queries, wanted, width, hidden=None):
        scores = -torch.cdist(queries, keys).square() / (2 * width**2)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        return (torch.softmax(scores, dim=-1) @ values - wanted).square().mean()

    found = {}
    for name, hidden in (("direct", None), ("left_out", own)):
        log_width = torch.zeros((), dtype=keys.dtype, device=keys.device, requires_grad=True)  # width 1
        optimizer = torch.optim.Adam([log_width], lr=0.1)
        for _ in range(200):
            loss = error(keys, values, log_width.exp(), hidden)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        width = log_width.detach().exp()
        found[name] = width.item()
        found[name + "_error"] = error(new_keys, new_values, width).item()
    return found
    ### END SOLUTION


def by_plain_descent(keys, values, new_keys, new_values):
    """Gradient descent without an optimiser, and the loss example by example."""

    def predict(queries, width, leave):
        scores = -(queries[:, None] - keys[None]).square().sum(-1) / width**2 / 2
        if leave:
            scores = scores - torch.diag(torch.full((len(keys),), math.inf, dtype=keys.dtype))
        return torch.softmax(scores, dim=-1) @ values

    found = {}
    for name, leave in (("direct", False), ("left_out", True)):
        log_width = torch.zeros((), dtype=keys.dtype, requires_grad=True)
        for _ in range(1200):
            loss = torch.nn.functional.mse_loss(predict(keys, log_width.exp(), leave), values)
            (slope,) = torch.autograd.grad(loss, log_width)
            log_width = (log_width - 0.3 * slope).detach().requires_grad_()
        width = log_width.exp().item()
        new = torch.nn.functional.mse_loss(predict(new_keys, width, False), new_values)
        found |= {name: width, name + "_error": float(new)}
    return found


def learning_from_the_new(keys, values, new_keys, new_values):
    found = learn_widths(keys, values, new_keys, new_values)
    widths = [0.01 * 1.05**i for i in range(100)]
    found["left_out"] = min(widths, key=lambda w: _error((keys, values), (new_keys, new_values), w))
    found["left_out_error"] = _error((keys, values), (new_keys, new_values), found["left_out"])
    return found


def with_the_other_gaussian(keys, values, new_keys, new_values):
    """The Gaussian divides by w^2, so that the widths are larger."""
    found = learn_widths(keys, values, new_keys, new_values)
    return found | {name: 2**0.5 * found[name] for name in ("direct", "left_out")}


def with_widths_known_beforehand(keys, values, new_keys, new_values):
    found = {"direct": 0.003, "left_out": 0.17}
    for name, width in list(found.items()):
        found[name + "_error"] = _error((keys, values), (new_keys, new_values), width)
    return found


STRETCHES = 1 / 3, 1, 3  # of the axis on which the keys lie: no width suits all, so it must be learned
VALLEY = 1.01  # the leave-one-out loss may end this far above its least


def verify_widths(t, answer):
    direct_errors, left_out_errors, widths = [], [], []
    for stretch in t.random.sample(STRETCHES, len(STRETCHES)):
        keys, values, new_keys, new_values, least = _draw(t, stretch)
        stored, new = (keys.cpu(), values.cpu()), (new_keys.cpu(), new_values.cpu())

        got = t.call(answer, keys, values, new_keys, new_values)
        names = "direct", "left_out", "direct_error", "left_out_error"
        direct, left_out, *reported = t.fields(got, *names)
        direct, left_out = _width(t, direct, "direct"), _width(t, left_out, "left_out")
        if not widths:  # once more with other new values
            other = t.call(answer, keys, values, new_keys, new_values.flip(0) + 1)
            other = [_width(t, w, name) for w, name in zip(t.fields(other, *names[:2]), names[:2], strict=True)]
            t.that(
                all(math.isclose(a, b, rel_tol=0.01) for a, b in zip((direct, left_out), other, strict=True)),
                "learns-from-new",
                "with other values of the new examples the widths are others. The new examples are there to measure "
                "with: learn from the stored ones alone",
            )
        trained = {width: _error(stored, stored, width) for width in (direct, left_out)}
        t.that(
            not direct > 5 * left_out,
            "swapped",
            "the width under 'direct' is far above the one under 'left_out': are the two mixed up?",
        )
        left_out_loss = _error(stored, stored, left_out, True)
        t.that(
            left_out_loss <= VALLEY * least or trained[left_out] > least / 4,
            "left-out-collapsed",
            "the width under 'left_out' has shrunk until every example just repeats its own value: does the "
            "loss that you minimise really leave the example out?",
        )
        t.that(
            left_out_loss <= VALLEY * least,
            "left-out-unfinished",
            "the width under 'left_out' is not where the leave-one-out loss is least: "
            f"a {'narrower' if _error(stored, stored, 0.9 * left_out, True) < left_out_loss else 'wider'} "
            "kernel does better on the stored examples. More steps, or another learning rate? Do the other "
            "weights sum to one, and does the Gaussian divide by 2 w^2?",
        )
        t.that(
            trained[direct] <= 0.4 * least,
            "direct-unfinished",
            "the width under 'direct' is not where the direct loss takes it: that loss can be made far "
            "smaller. More steps, or another learning rate? And does every example count in its own "
            "prediction?",
        )
        for width, error, name in zip((direct, left_out), reported, names[2:], strict=True):
            right = _error(stored, new, width)
            mistakes = {
                "error-on-stored": (
                    trained[width],
                    "this is the error on the stored examples, each seeing itself; measure on the new ones",
                ),
                "error-left-out": (
                    _error(stored, stored, width, True),
                    "this is the leave-one-out loss; measure on the new examples",
                ),
                "error-sum": (
                    right * len(new_values),
                    "this is the sum of the squared errors; take their mean",
                ),
                "error-no-half": (
                    _error(stored, new, width / 2**0.5),
                    "this is the error if the Gaussian divides by w^2; it divides by 2 w^2",
                ),
                "error-root": (right**0.5, "this is the root of the mean squared error; take no root"),
            }
            t.number(error, right, name, mistakes=mistakes, rtol=1e-3)
        direct_errors.append(_error(stored, new, direct))
        left_out_errors.append(_error(stored, new, left_out))
        widths.append(left_out)
    t.that(
        max(widths) > 1.01 * min(widths), "same-width", "the width under 'left_out' is the same whatever the data are"
    )
    t.below(
        left_out_errors,
        direct_errors,
        0.04,
        "no-gain",
        "on new examples the width learned with leave-one-out should do clearly better",
    )


def _draw(t, stretch):
    """Draw data whose leave-one-out loss is least at a sensible width, downhill all the way from width 1.

    A few draws in a hundred are otherwise: another valley is on the way or just behind, or a far too narrow kernel
    suits some close neighbours by chance.

    Returns:
        keys, values, new_keys, new_values, and the least leave-one-out loss.
    """
    while True:
        slope = t.random.uniform(0.3, 0.7)
        keys, new_keys = (t.rand(count, 1, high=4, dtype=torch.float64) for count in (60, 200))
        wave, new_values = (torch.sin(3 * x[:, 0]) + slope * x[:, 0] for x in (keys, new_keys))
        values = wave + t.randn(60, scale=0.5, dtype=torch.float64)
        stored = keys.cpu(), values.cpu()
        losses = [_error(stored, stored, 0.005 * 1.07**i, True) for i in range(96)]
        lowest = losses.index(min(losses))
        rises = all(b >= a * (1 - 1e-6) for a, b in pairwise(losses[lowest:]))
        below = losses[max(lowest - 10, 0) : lowest + 1]  # as far as a descent may overshoot
        falls = all(b <= a * (1 + 1e-6) for a, b in pairwise(below))
        if 0.05 < 0.005 * 1.07**lowest < 0.3 and rises and falls:
            return stretch * keys, values, stretch * new_keys, new_values, losses[lowest]


def _error(stored, wanted, width, leave_one_out=False):
    """Return the mean squared error on ``wanted`` (keys, values) of the mean over ``stored`` ones."""
    keys, values = stored
    scores = -(wanted[0][:, None] - keys[None]).square().sum(-1) / (2 * width**2)
    if leave_one_out:
        scores.fill_diagonal_(-math.inf)
    return float((torch.softmax(scores, -1) @ values - wanted[1]).square().mean())


def _width(t, width, name):
    if isinstance(width, torch.Tensor) and width.dim() == 0:
        width = width.item()
    if isinstance(width, bool) or not isinstance(width, (int, float)):
        t.that(False, "type", f"the width under {name!r} is a {type(width).__name__}, expected a number")
    t.that(math.isfinite(width), "nonfinite", f"the width under {name!r} is {width}")
    t.that(
        width > 0,
        "not-positive",
        f"the width under {name!r} is not positive: descend on its logarithm, so that no step "
        "can cross zero, and return its exponential",
    )
    return width


MUTANTS_A = [
    Mutant("sees-itself", ("if leave_one_out:", "if False:"), "every example still sees its own value. (Its distance "
        "from itself is 0 already. A score of 0 is therefore no way to remove it: exp(0) is the largest weight of "
        "all)"),
    Mutant("always-left-out", ("if leave_one_out:", "if True:"), "with leave_one_out=False the example counts in its "
        "own prediction, here it does not"),
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

MUTANTS_B = [
    Mutant("left-out-collapsed", ('("left_out", own)', '("left_out", None)')),  # nothing left out
    Mutant("direct-unfinished", ('("direct", None)', '("direct", own)')),  # left out in both
    Mutant("swapped", ('("direct", None), ("left_out", own)', '("direct", own), ("left_out", None)')),  # mixed up
    Mutant("left-out-unfinished", with_widths_known_beforehand),
    Mutant("left-out-unfinished", ("range(200)", "range(5)")),  # few steps
    Mutant("learns-from-new", learning_from_the_new),
    Mutant("left-out-unfinished", with_the_other_gaussian),
    Mutant("left-out-unfinished", ("            scores = scores.masked_fill(hidden, -math.inf)\n",
        "            weights = torch.softmax(scores, dim=-1).masked_fill(hidden, 0)\n            return (weights @ "
        "values - wanted).square().mean()\n")),  # weight zero
    # error with the other Gaussian
    Mutant("error-no-half", ("error(new_keys, new_values, width)", "error(new_keys, new_values, width / 2**0.5)")),
    Mutant("left-out-unfinished", ("loss.backward()", "(-loss).backward()")),  # uphill
    Mutant("not-positive", ("log_width.detach().exp()", "log_width.detach()")),  # width, not its logarithm
    # measured on the stored
    Mutant("error-on-stored", ("error(new_keys, new_values, width)", "error(keys, values, width)")),
    Mutant("error-root", ("new_values, width).item()", "new_values, width).sqrt().item()")),  # root
    Mutant("error-sum", ("new_values, width).item()", "new_values, width).item() * len(new_keys)")),  # sum
    Mutant("type", ("return found", "return list(found.values())")),  # a list
    Mutant("shape", ('(("direct", None), ("left_out", own))', '[("direct", None)]')),  # one fit only
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.2.2",
    doc=__doc__,
    source="D2L 11.2, exercise 2",
    parts=[
        Code(
            key="d2l-11.2.2a",
            prompt="Write both losses as one function, `width_loss(keys, values, width, leave_one_out)`, "
            "for keys of shape (N, D) and values (N,). It returns a tensor without axes, through which a "
            "gradient must reach the width. It must also work for widths far below all distances: the check "
            "tries 0.01 where the examples are more than 0.5 apart.",
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
            mutants=MUTANTS_A,
            explanation=r"""
Leaving out means removing a term from numerator *and* denominator. A score of $-\infty$ does both at once,
and leaves the rest a softmax. It is the same device with which a causal mask hides the future from a language
model, for the same reason: the answer stands among the inputs.

Look at the two ends. For $w \to \infty$ all weights are equal, and both losses are about the variance of the
values. For $w \to 0$ the direct loss is exactly zero, whatever the data: every example finds itself. The
leave-one-out loss there is that of the *nearest neighbour*.
""",
        ),
        Experiment(
            key="d2l-11.2.2b",
            prompt=r"""
Now learn. Write `learn_widths(keys, values, new_keys, new_values)`, which finds the width by gradient
descent, once with each loss, from a start of $w = 1$ in both cases. Descend on $\log w$ rather than on $w$,
so that no step makes it negative. Take enough steps that the loss hardly changes any more: a few hundred
steps of Adam with learning rate 0.1 will do. It returns a dict with four numbers:

- `"direct"` and `"left_out"`, the widths that the two losses lead to;
- `"direct_error"` and `"left_out_error"`, the mean squared error that predictions with this width make on the
  *new* examples. There all $N$ stored examples take part.

Before you run it, predict: where does each width go? The check draws data three times: 60 stored examples,
with keys (60, 1) uniform between 0 and 4, and values that are a wave plus noise of standard deviation 0.5;
200 new examples from the same wave, without noise, so that a perfect prediction has error 0. All are float64.
One of the three times the whole axis, keys and wave, is stretched to three times its length, and once it is squeezed
to a third: a width that suits one of them suits no other. Once your code is run again with other new values, which the
widths must not notice.
(A few draws in a hundred have another valley on the way, or their least leave-one-out loss at a far too
narrow width, because close neighbours agree by chance. The check does not use such data.) To look at it
yourself:

```python
keys, new_keys = 4 * torch.rand(60, 1, dtype=torch.float64), 4 * torch.rand(200, 1, dtype=torch.float64)
wave = lambda x: torch.sin(3 * x[:, 0]) + 0.5 * x[:, 0]
print(learn_widths(keys, wave(keys) + 0.5 * torch.randn(60), new_keys, wave(new_keys)))
```

The answer cell must stand alone, so it needs the loss of the first part once more.
""",
            hints=[
                "Make `log_width = torch.zeros((), requires_grad=True)` and give it to an optimiser; the "
                "width is `log_width.exp()`.",
                "Two separate descents, each from width 1, with the same number of steps. The new examples "
                "are for measuring only.",
                "What can the direct loss do with a kernel so narrow that each example sees only itself?",
                "For the new examples nothing is left out: their scores are a (200, 60) matrix, and no "
                "diagonal is masked.",
            ],
            advice={
                "nonfinite": "If the loss has become NaN: put the infinity into the finished scores. An "
                "infinite distance that is *then* divided by the width has an infinite derivative in the "
                "width.",
                "values": "The errors are compared with those of your own widths. Predict the new examples "
                "from the stored ones alone, from all of them, and leave nothing out.",
                "raised": "The data are float64: make the width float64 as well, or let it be a tensor without axes.",
            },
            answer=learn_widths,
            verify=verify_widths,
            alternatives=[by_plain_descent],
            seconds=60.0,  # the first optimiser of a process loads much of torch
            mutants=MUTANTS_B,
            explanation=r"""
The direct loss drives the width towards zero and is content: with a kernel narrower than the gaps between
examples it has *memorised* them, noise and all. On new examples it is then a nearest-neighbour look-up and
repeats the noise of one example. (It stops short of zero only because the gradient vanishes when nothing is
left to gain.) Leaving the example out takes the look-up away, and the loss has a minimum at a finite width:
wide enough to average noise away, narrow enough to follow the wave.

Do you still overfit? Rarely. For any fixed width the leave-one-out loss estimates the error on new examples
(noise included) without bias, if for one stored example fewer. But you take the width where that estimate is
*least*, and now and then it is low by chance: some of the draws that the check does not use are of that kind.
With many parameters, such as a width for every feature, chance would have many more openings.

What to take from it: a model that can look up the answer will. Attention is a look-up, so whenever its keys
contain the target, mask the target: in a language model the future, in BERT the masked words, here the
example itself.
""",
        ),
    ],
)
