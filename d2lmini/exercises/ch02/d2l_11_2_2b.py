"""Part b of d2l-11.2.2, "Learning the width of the kernel, and how it cheats": `learn_widths`."""

import math
from itertools import pairwise

import torch

from d2lmini.exercises.engine import Experiment, Mutant


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

    learned = {}
    for name, hidden in (("direct", None), ("left_out", own)):
        log_width = torch.zeros((), dtype=keys.dtype, device=keys.device, requires_grad=True)  # width 1
        optimizer = torch.optim.Adam([log_width], lr=0.1)
        for _ in range(200):
            loss = error(keys, values, log_width.exp(), hidden)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        width = log_width.detach().exp()
        learned[name] = width.item()
        learned[name + "_error"] = error(new_keys, new_values, width).item()
    return learned
    ### END SOLUTION


def by_plain_descent(keys, values, new_keys, new_values):
    """Gradient descent without an optimiser, and the loss example by example."""

    def predict(queries, width, leave):
        scores = -(queries[:, None] - keys[None]).square().sum(-1) / width**2 / 2
        if leave:
            scores = scores - torch.diag(torch.full((len(keys),), math.inf, dtype=keys.dtype))
        return torch.softmax(scores, dim=-1) @ values

    learned = {}
    for name, leave in (("direct", False), ("left_out", True)):
        log_width = torch.zeros((), dtype=keys.dtype, requires_grad=True)
        for _ in range(1200):
            loss = torch.nn.functional.mse_loss(predict(keys, log_width.exp(), leave), values)
            (slope,) = torch.autograd.grad(loss, log_width)
            log_width = (log_width - 0.3 * slope).detach().requires_grad_()
        width = log_width.exp().item()
        new = torch.nn.functional.mse_loss(predict(new_keys, width, False), new_values)
        learned |= {name: width, name + "_error": float(new)}
    return learned


def learning_from_the_new(keys, values, new_keys, new_values):
    learned = learn_widths(keys, values, new_keys, new_values)
    widths = [0.01 * 1.05**i for i in range(100)]
    learned["left_out"] = min(widths, key=lambda w: _error((keys, values), (new_keys, new_values), w))
    learned["left_out_error"] = _error((keys, values), (new_keys, new_values), learned["left_out"])
    return learned


def with_the_other_gaussian(keys, values, new_keys, new_values):
    """The Gaussian divides by w^2, so that the widths are larger."""
    learned = learn_widths(keys, values, new_keys, new_values)
    return learned | {name: 2**0.5 * learned[name] for name in ("direct", "left_out")}


def with_widths_known_beforehand(keys, values, new_keys, new_values):
    learned = {"direct": 0.003, "left_out": 0.17}
    for name, width in list(learned.items()):
        learned[name + "_error"] = _error((keys, values), (new_keys, new_values), width)
    return learned


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
            "loss that you minimise really leave the example out, and does its own descent begin at the start?",
        )
        t.that(
            left_out_loss <= VALLEY * least,
            "left-out-unfinished",
            "the width under 'left_out' is not where the leave-one-out loss is least: "
            f"a {'narrower' if _error(stored, stored, 0.9 * left_out, True) < left_out_loss else 'wider'} "
            "kernel does better on the stored examples. Is it learned from these data, in enough steps, at a "
            "suitable rate? Do the other weights sum to one, and does the Gaussian divide by 2 w^2?",
        )
        t.that(
            trained[direct] <= 0.4 * least,
            "direct-unfinished",
            "the width under 'direct' is not where the direct loss takes it: that loss can be made far "
            "smaller. More steps, or another learning rate? Is the width kept above a bound? And does every example "
            "count in its own prediction?",
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

    Some draws are otherwise: another valley is on the way or just behind, or a far too narrow kernel
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


MUTANTS = [
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
    Mutant("type", ("return learned", "return list(learned.values())")),  # a list
    Mutant("type", ('(("direct", None), ("left_out", own))', '[("direct", None)]')),  # one fit only
]  # fmt: skip


PART = Experiment(
    key="d2l-11.2.2b",
    prompt=r"""
Now learn. Write `learn_widths(keys, values, new_keys, new_values)`, which finds the width by gradient
descent, once with each loss, from a start of $w = 1$ in both cases. Descend on $\log w$ rather than on $w$,
so that no step makes it negative. Take enough steps that the loss hardly changes any more: a few hundred
steps of Adam with learning rate 0.1 will do. (The check looks at where the widths are, not at how they came there.)
It returns a dict with four numbers:

- `"direct"` and `"left_out"`, the widths that the two losses lead to;
- `"direct_error"` and `"left_out_error"`, the mean squared error that predictions with this width make on the
  *new* examples. There all $N$ stored examples take part.

Before you run it, predict: where does each width go? The check draws data three times: 60 stored examples,
with keys (60, 1) uniform between 0 and 4, and values that are a wave plus noise of standard deviation 0.5;
200 new examples from the same wave, without noise, so that a perfect prediction has error 0. All are float64.
One of the three times the whole axis, keys and wave, is stretched to three times its length, and once it is squeezed
to a third: a width that suits one of them suits no other. Once your code is run again with other new values, which the
widths must not notice.
(Some draws have another valley on the way, or their least leave-one-out loss at a far too
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
        "For the new examples nothing is left out: their scores are a (200, 60) matrix, and no diagonal is masked.",
    ],
    advice={
        "nonfinite": "If the loss has become NaN: put the infinity into the finished scores. An "
        "infinite distance that is *then* divided by the width has an infinite derivative in the "
        "width.",
        "values": "The errors are compared with those of your own widths. Predict the new examples "
        "from the stored ones alone, from all of them, and leave nothing out.",
        "raised": "If dtypes differ: the data are float64. Make the width float64 as well, or let it be a tensor "
        "without axes.",
    },
    answer=learn_widths,
    verify=verify_widths,
    alternatives=[by_plain_descent],
    seconds=60.0,  # the first optimiser of a process loads much of torch
    mutants=MUTANTS,
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
)
