"""Part b of d2l-11.8.1, "Larger images: what do they cost?": `cost_growth`."""

import math
from itertools import pairwise

import torch

from d2lmini.exercises.ch10.d2l_11_8_1a import counted
from d2lmini.exercises.engine import Experiment, Mutant
from d2lmini.models.vit import ViT


def cost_growth(make_model, img_sizes, measure):
    """Measure how the cost of a training step grows with the side of the image.

    Args:
        make_model: function of ``img_size`` that gives a new model; it takes images (B, 1, img_size, img_size) to
            scores (B, C).
        img_sizes: increasing list of sides in pixels.
        measure: function that calls a function without arguments and returns what that call has cost, a number.

    Returns:
        dict with ``cost``, a list with the cost of one training step for each size, and ``exponent``, a list with one
        number for each two neighbouring sizes.
    """
    ### BEGIN SOLUTION
    cost = []
    for img_size in img_sizes:
        model, pictures = make_model(img_size), torch.rand(2, 1, img_size, img_size)
        cost.append(measure(lambda m=model, x=pictures: m(x).logsumexp(-1).sum().backward()))
    exponent = [
        math.log(cost[i + 1] / cost[i]) / math.log(img_sizes[i + 1] / img_sizes[i]) for i in range(len(cost) - 1)
    ]
    return {"cost": cost, "exponent": exponent}
    ### END SOLUTION


def with_labels(make_model, img_sizes, measure):
    """A whole step with cross-entropy and an optimiser; the slopes by tensors."""
    costs = []
    for side in img_sizes:
        model = make_model(side).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        X, y = torch.randn(2, 1, side, side), torch.tensor([0, 1])

        def step(model=model, optimizer=optimizer, X=X, y=y):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(X), y).backward()
            optimizer.step()

        costs.append(measure(step))
    logs = torch.tensor([costs, img_sizes], dtype=torch.float64).log().diff()
    return {"cost": costs, "exponent": (logs[0] / logs[1]).tolist()}


def with_backward_alone(make_model, img_sizes, measure):
    """Wrong: the forward pass is not measured."""
    cost = [measure(make_model(s)(torch.rand(2, 1, s, s)).sum().backward) for s in img_sizes]
    return {"cost": cost, "exponent": _slopes(cost, img_sizes)}


def in_steps_of_one(make_model, img_sizes, measure):
    """Wrong: the differences of the costs themselves."""
    cost = cost_growth(make_model, img_sizes, measure)["cost"]
    pairs = zip(pairwise(cost), pairwise(img_sizes), strict=True)
    return {"cost": cost, "exponent": [(k[1] - k[0]) / (s[1] - s[0]) for k, s in pairs]}


def all_made_first(make_model, img_sizes, measure):
    """Wrong: when the steps are measured, all of them find the last model and the last images."""
    steps = []
    for img_size in img_sizes:
        model, pictures = make_model(img_size), torch.rand(2, 1, img_size, img_size)
        steps.append(lambda: model(pictures).sum().backward())  # noqa: B023
    cost = [measure(step) for step in steps]
    return {"cost": cost, "exponent": _slopes(cost, img_sizes)}


SIDES = (8, 16, 40, 64)  # neighbours whose ratios differ


class _Bench:
    """Makes models and measures steps, and remembers what for."""

    def __init__(self, h, m, L):
        self.sizes = h, m, 2, L, 0.0, 0.0
        self.made, self.calls, self.read, self.measuring, self.made_inside, self.passes = [], [], [], False, False, 0
        self.learning, self.differing, self.needless, self.drawn_inside = True, True, False, False

    def make(self, img_size):
        self.made.append(img_size)
        self.made_inside |= self.measuring
        model = ViT(img_size, 4, *self.sizes, num_classes=3, num_channels=1)
        model.register_forward_pre_hook(self.hear)
        return model

    def hear(self, model, args):
        self.read.append(tuple(args[0].shape))
        self.passes += self.measuring
        self.learning &= model.training and all(p.requires_grad for p in model.parameters())
        self.needless |= args[0].requires_grad
        self.differing &= len(args[0]) < 2 or not torch.equal(args[0][0], args[0][1])

    def measure(self, step):
        self.measuring, before = True, torch.get_rng_state()
        self.calls.append(counted(step)[0])
        self.drawn_inside |= not torch.equal(torch.get_rng_state(), before)  # the models have no dropout
        self.measuring = False
        return self.calls[-1]


def _seen(given):
    bench = given[0].__self__
    inside = bench.made_inside, bench.drawn_inside, bench.passes
    return bench.made, inside, bench.calls, bench.read, bench.learning, bench.differing, bench.needless


def verify_growth(t, answer):
    for sizes in ((8, 16, 1), (12, 20, 2), (16, 12, 1)):
        bench, want = _Bench(*sizes), []
        for side in SIDES:
            model, X = bench.make(side), torch.rand(2, 1, side, side)
            want.append(counted(lambda model=model, X=X: model(X).sum().backward())[0])

        bench = _Bench(*sizes)
        got = t.call(answer, bench.make, list(SIDES), bench.measure)
        cost, exponent = t.fields(got, "cost", "exponent")
        made, (made_inside, drawn_inside, passes), calls, read, learning, differing, needless = t.look(_seen)
        t.that(not made_inside, "made-inside", "a model is made inside of what is measured: measure the step alone")
        t.that(not drawn_inside, "drawn-inside", "images are drawn inside of what is measured: measure the step alone")
        t.that(made == list(SIDES), "models", f"make_model must be called once for each size, it was for {made}")
        t.that(
            len(calls) == len(SIDES), "calls", f"measure must be called once for each size, it was {len(calls)} times"
        )
        message = f"{passes} forward passes are measured for {len(SIDES)} sizes: measure one step for each"
        t.that(passes <= len(SIDES), "steps", message)
        shapes = [tuple(shape) for shape in read]
        t.that(
            {shape[0] for shape in shapes} == {2},
            "batch",
            f"the models get images of the shapes {sorted(set(shapes))}; a batch has two, (2, 1, size, size)",
        )
        t.that(differing, "no-batch", "the two images are one and the same: take random ones")
        t.that(
            not needless,
            "of-pictures",
            "the gradient in the images is computed, too: a step needs that in the parameters alone",
        )
        t.that(
            learning,
            "not-training",
            "in a training step the model is in training mode, and all of its parameters get gradients",
        )
        cost, exponent = _list(t, cost, "cost", len(SIDES)), _list(t, exponent, "exponent", len(SIDES) - 1)
        for name, values, wanted in (("cost", cost, want), ("exponent", exponent, _slopes(want, SIDES))):
            wanted = torch.tensor(wanted, dtype=torch.float64)
            t.same(values, wanted, f"`{name}`", dtype=wanted.dtype, tolerance=(1e-6, 0))


def _slopes(cost, sides):
    pairs = zip(pairwise(cost), pairwise(sides), strict=True)
    return [math.log(high / low) / math.log(large / small) for (low, high), (small, large) in pairs]


def _list(t, values, name, length):
    """Numbers, or tensors of one each, as a tensor of float64; or a rejection."""
    values = list(values) if isinstance(values, torch.Tensor) and values.dim() == 1 else values
    listed = isinstance(values, (list, tuple)) and len(values) == length
    t.that(listed, "shape", f"`{name}` must be a list of {length} numbers")
    values = [x.item() if isinstance(x, torch.Tensor) and x.dim() == 0 else x for x in values]
    plain = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in values)
    t.that(plain, "type", f"`{name}` must hold numbers")
    return torch.tensor(values, dtype=torch.float64, device=t.device)


_MEASURE = "cost.append(measure(lambda m=model, x=pictures: m(x).logsumexp(-1).sum().backward()))"


MUTANTS = [
    Mutant("forward-only", (".logsumexp(-1).sum().backward()", ""), "this is the forward pass: a training step goes "
        "backward, too, inside of what is measured"),
    Mutant("backward-only", with_backward_alone, "this is the backward pass: the forward pass, too, belongs inside of "
        "what is measured"),
    Mutant("per-picture", (_MEASURE, f"{_MEASURE[:-1]} / 2)"), "this is half of what `measure` returned: the cost of "
        "the whole step is asked for"),
    Mutant("late", all_made_first, "all of these are the cost for the last size: a lambda looks up `model` when it is "
        "called, so measure each step before you make the next model, or bind it (`lambda m=model: ...`)"),
    Mutant("three-forward", (_MEASURE, "cost.append(3 * measure(lambda m=model, x=pictures: m(x)))"),
        "this is three times the forward pass, which is near but not it: measure the step"),
    Mutant("steps", ("m(x).logsumexp", "(m(x), m(x))[1].logsumexp")),  # two forward passes
    Mutant("of-pictures", ("torch.rand(2, 1, img_size, img_size)",
        "torch.rand(2, 1, img_size, img_size, requires_grad=True)")),  # gradients of the images
    Mutant("not-neighbours", ("math.log(cost[i + 1] / cost[i]) / math.log(img_sizes[i + 1] / img_sizes[i])",
        "math.log(cost[i + 1] / cost[0]) / math.log(img_sizes[i + 1] / img_sizes[0])"), "these are not slopes between "
        "neighbouring sizes: number i is that from size i to size i + 1"),
    Mutant("not-neighbours", ("math.log(cost[i + 1] / cost[i]) / math.log(img_sizes[i + 1] / img_sizes[i])",
        "math.log(cost[-1] / cost[0]) / math.log(img_sizes[-1] / img_sizes[0])"), "these are not slopes between "
        "neighbouring sizes: number i is that from size i to size i + 1"),
    Mutant("no-batch", ("torch.rand(2, 1, img_size, img_size)",
        "torch.rand(1, 1, img_size, img_size).expand(2, -1, -1, -1)")),  # one image twice
    Mutant("not-training", ("m(x).logsumexp", "m.patch_embedding.requires_grad_(False) and m(x).logsumexp")),  # frozen
    Mutant("not-training", ("make_model(img_size), torch", "make_model(img_size).eval(), torch")),  # in evaluation mode
    Mutant("batch", ("torch.rand(2, 1,", "torch.rand(1, 1,")),  # one image
    Mutant("pixels", ("/ math.log(img_sizes[i + 1] / img_sizes[i])",
        "/ math.log(img_sizes[i + 1] ** 2 / img_sizes[i] ** 2)"), "this is the exponent of the number of *pixels*, not "
        "of the side"),
    Mutant("ratio", ("math.log(cost[i + 1] / cost[i]) / math.log(img_sizes[i + 1] / img_sizes[i])",
        "cost[i + 1] / cost[i]"), "these are ratios of costs: take logarithms, and divide by that of the sizes' ratio"),
    Mutant("no-size", (" / math.log(img_sizes[i + 1] / img_sizes[i])", ""), "divide the logarithm of the costs' ratio "
        "by that of the sizes' ratio"),
    Mutant("base-two", ("math.log(img_sizes[i + 1] / img_sizes[i])", "math.log(2)"), "the sizes do not double each "
        "time: divide by the logarithm of their ratio"),
    Mutant("not-logs", ("math.log(cost[i + 1] / cost[i]) / math.log(img_sizes[i + 1] / img_sizes[i])",
        "(cost[i + 1] / cost[i]) / (img_sizes[i + 1] / img_sizes[i])"), "an exponent is a ratio of logarithms"),
    Mutant("plain-axes", in_steps_of_one, "these are slopes with plain axes: take the logarithms of costs and sizes "
        "first"),
    Mutant("upside-down", ("math.log(cost[i + 1] / cost[i]) / math.log(img_sizes[i + 1] / img_sizes[i])",
        "math.log(img_sizes[i + 1] / img_sizes[i]) / math.log(cost[i + 1] / cost[i])"), "turn the fraction round: the "
        "cost's logarithm goes on top"),
    Mutant("raised", ("make_model(img_size)", "make_model(img_sizes[0])")),  # one model
    # two models
    Mutant("models", ("        model, pictures", "        make_model(img_size)\n        model, pictures")),
    Mutant("made-inside", ("m(x).logsumexp", "make_model(x.shape[-1])(x).logsumexp")),  # model made inside
    # measured twice
    Mutant("calls", ("        cost.append(", "        measure(lambda: model(pictures))\n        cost.append(")),
    Mutant("shape", ("range(len(cost) - 1)", "range(len(cost) - 2)")),  # an exponent short
    Mutant("drawn-inside", ("m(x).logsumexp", "m(torch.rand_like(x)).logsumexp")),
]  # fmt: skip


PART = Experiment(
    key="d2l-11.8.1b",
    prompt="""
Now by experiment. Write `cost_growth(make_model, img_sizes, measure)`. For each size it makes a model and measures one
training step, forward and backward, on a batch of **two** different random images, with the model in training mode,
as `make_model` gives it; `measure(f)` calls `f()` and returns what it has cost. Only one step belongs into `f`, and
`measure` is called once for each size. Return a dict: `cost`, the list of costs, and `exponent`: for two neighbouring
sizes s and s' with costs k and k', the slope in a plot with two logarithmic axes,

$$\\frac{\\log k' - \\log k}{\\log s' - \\log s}.$$

The check gives you a `measure` that counts operations, so that a busy machine changes nothing. Try yours with a clock:

```python
import time

def seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start

make_model = lambda img_size: d2l.ViT(img_size, 8, 64, 128, 4, 2, 0.0, 0.0, num_channels=1)
print(cost_growth(make_model, [16, 32, 64, 128, 256], seconds))
```
""",
    hints=[
        "A lambda without arguments can hold the whole step: `measure(lambda: ...backward())`.",
        "Any scalar of the scores will do as a loss: it is the products that cost.",
        "`math.log(cost[i + 1] / cost[i]) / math.log(img_sizes[i + 1] / img_sizes[i])`.",
    ],
    answer=cost_growth,
    verify=verify_growth,
    alternatives=[with_labels],
    min_checks=20,
    seconds=30.0,
    advice={
        "values": "`cost` holds what `measure` returned, for a forward and a backward pass; the exponents follow from "
        "it by the formula, one for each two neighbours.",
    },
    mutants=MUTANTS,
    explanation="""
The exponent starts near two, where projections and networks dominate and each pixel costs the same, and climbs towards
four, where the scores of all pairs of patches dominate. (For the very smallest images it is below two: the class
token costs the same whatever the size.)

A clock shows the same with more noise. For small images it shows an exponent far below two: then the machine is busy
with other things than arithmetic, and larger images only make better use of it.
""",
)
