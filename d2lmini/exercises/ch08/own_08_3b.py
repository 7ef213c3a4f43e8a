"""Part b of own-08.3, "Clipping, and gradients in half precision": `loss_scale`."""

import math
from functools import partial

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant
from d2lmini.exercises.engine.provenance import Calls


def loss_scale(gradients):
    """How far the loss may be multiplied so that the gradients fit into float16, and what is lost all the same.

    Args:
        gradients: list of float32 tensors of any shapes, finite, and not all 0.

    Returns:
        (scale, lost): the largest power of two, far below 1 or far above float32's largest number if need be, with
        which no ``scale * gradient`` becomes infinite in float16; and how many gradients that are not 0 then become 0
        in float16, an integer. Both are numbers, or tensors without dimensions.
    """
    ### BEGIN SOLUTION
    values = torch.cat([g.flatten() for g in gradients]).double()
    largest = values.abs().max().item()
    exponent = math.floor(math.log2(65504 / largest))
    if (torch.tensor(largest).double() * 2.0 ** (exponent + 1)).half().isfinite():
        exponent += 1  # what is a little above 65504 is rounded down to it
    scale = 2.0**exponent
    lost = (scale * values).half() == 0
    return scale, (lost & (values != 0)).sum().item()
    ### END SOLUTION


def by_trying(gradients):
    def half(scale):
        return torch.cat([(g.double() * scale).half().flatten() for g in gradients])

    scale = 2.0**-140
    while half(2 * scale).isfinite().all():
        scale *= 2
    zeros = (half(scale) == 0).sum() - sum((g == 0).sum() for g in gradients)
    return scale, int(zeros)


def from_exponents(gradients):
    """What is at least 2^16 - 16 becomes infinite, what is at most 2^-25 becomes 0."""
    sizes = torch.cat([g.abs().flatten() for g in gradients]).double()
    mantissa, exponent = math.frexp(sizes.max().item())  # largest = mantissa * 2^exponent, 0.5 <= mantissa < 1
    power = 16 - exponent if mantissa * 2**16 < 2**16 - 16 else 15 - exponent
    return torch.tensor(2.0).double().pow(power), int(((sizes > 0) & (sizes <= 2.0 ** (-25 - power))).sum())


# mistakes


class _Model(torch.nn.Module):
    """Its loss has given gradients."""

    def __init__(self, gradients):
        super().__init__()
        self.given = gradients
        self.weights = torch.nn.ParameterList(torch.zeros_like(g) for g in gradients)

    def forward(self, X):
        return sum((w * g).sum() for w, g in zip(self.weights, self.given, strict=True))

    def loss(self, Y_hat, Y):
        return Y_hat


def by_the_package(gradients):
    model, batch = _Model(gradients), (torch.zeros(1), torch.zeros(1))
    scale = d2l.highest_loss_scale(model, batch)
    shares = d2l.underflow(model, batch, scale=scale)
    lost = sum(share * int((g != 0).sum()) for share, g in zip(shares.values(), gradients, strict=True))
    return scale, round(lost)


# in units of 2^-25, which is the last to be lost
TINY = (-0.1, 0.5, -0.9, 1.0, 1.1, -1.2, 1.3, 1.4, -1.5, 1.6, 1.7, 1.8, -1.9, 3.0, 700.0)


def _reference(gradients):
    """In plain numbers: float16 rounds at the halves, and ties to even."""
    sizes = [abs(x) for g in gradients for x in g.flatten().tolist() if x]
    scale = 1.0
    while max(sizes) * scale >= 65520:
        scale /= 2
    while max(sizes) * scale * 2 < 65520:
        scale *= 2
    return scale, sum(x * scale <= 2.0**-25 for x in sizes)


def verify_scale(t, answer):
    B, D, E = t.sizes(3, 5, 9)
    for name, top, fraction in (
        ("of small gradients", 2.0**-9, t.random.uniform(1.85, 1.95)),
        ("of a large one below 0", -(2.0**5), t.random.uniform(1.1, 1.9)),
        ("of gradients too large as they are", 2.0**90, t.random.uniform(1.1, 1.9)),
        ("where the largest is a tiny power of two", 2.0**-120, 1.0),  # its scale is too large for float32
        ("where the largest comes to 65,510", 2.0**-12, 65510 / 2**15),
        ("where the largest comes to 65,530", 2.0**-12, 65530 / 2**15),
    ):
        largest = top * fraction
        gradients = [
            largest * 10 ** t.rand(*shape, 1, low=-8.5, high=-0.7)[..., 0] for shape in ((E,), (B, D), (E, D), ())
        ]
        gradients = [g * (1 - 2 * t.integers(0, 2, *g.shape)) for g in gradients]
        gradients[1][:, 2] = 0.0
        gradients[1][0, :2] = gradients[1].new_tensor([0.45 * largest, largest])
        gradients[2].view(-1)[-15:] = 0.9 * largest  # the norm is far above the largest
        gradients[2].view(-1)[: len(TINY)] = gradients[2].new_tensor(TINY) * 2.0**-25 / _reference(gradients)[0]
        scale, lost = _reference(gradients)
        with t.watching(partial(Calls, "d2lmini.training."), "names") as seen:
            got = t.unpack(t.call(answer, gradients), "scale", "lost")
        t.that(not seen.names, "borrowed", "this asks the package's own functions: find the scale yourself")
        t.number(got[0], scale, f"the scale {name}")
        t.number(got[1], lost, f"the number of lost gradients {name}")
        whole = isinstance(got[1], int) or (isinstance(got[1], torch.Tensor) and not got[1].is_floating_point())
        t.that(whole, "type", f"the number of lost gradients {name} is no integer: a count is one (`.item()` of a sum)")


MUTANTS = [
    Mutant("strict-maximum", ("        exponent += 1  #", "        pass  #"), "half of what is possible: numbers a "
        "little above 65504 are rounded down to it; from 65520 on they become infinite"),
    Mutant("overflows", ("math.floor(", "math.ceil("), "with this scale the largest gradient becomes infinite: round "
        "the exponent down"),
    Mutant("no-power", ("scale = 2.0**exponent", "scale = 65504 / largest"), "this is no power of two: such scales "
        "alone change no digit of a gradient"),
    Mutant("signed", ("values.abs().max()", "values.max()"), "the largest gradient may be negative: take the absolute "
        "value"),
    Mutant("smallest", ("values.abs().max()", "values[values != 0].abs().min()"), "this scale is made for the smallest "
        "gradient: the largest overflows"),
    Mutant("by-norm", ("values.abs().max()", "values.norm()"), "this keeps the norm of all gradients below 65504: it "
        "is the largest single one that must fit"),
    Mutant("first-tensor", ("largest = values.abs()", "largest = gradients[0].abs()"), "only the first tensor was "
        "asked for its largest gradient"),
    Mutant("bfloat16", ("scale = 2.0**exponent",
        "scale = 2.0 ** math.floor(math.log2(torch.finfo(torch.bfloat16).max / largest))"), "this is the scale for "
        "bfloat16, whose numbers go as far as float32's"),
    Mutant("not-below-1", ("scale = 2.0**exponent", "scale = max(2.0**exponent, 1.0)"), "gradients that are too large "
        "as they are need a scale below 1"),
    Mutant("exponent", ("return scale,", "return exponent,"), "this is the exponent: return two to that power"),
    Mutant("before-scaling", ("(scale * values).half()", "values.half()"), "these are lost without a scale: count "
        "after scaling"),
    Mutant("zeros-counted", ("(lost & (values != 0)).sum()", "lost.sum()"), "those that were 0 before are counted, "
        "too: nothing was lost there"),
    Mutant("zeros-alone", ("(lost & (values != 0)).sum()", "(values == 0).sum()"), "these are gradients that were 0 "
        "before"),
    Mutant("tensors", ("(lost & (values != 0)).sum().item()",
        "sum(bool((((scale * g.double()).half() == 0) & (g != 0)).any()) for g in gradients)"), "these are tensors in "
        "which something is lost: count the numbers"),
    Mutant("nonfinite", ("return scale,", "return torch.tensor(scale),")),  # in float32
    Mutant("subnormal", ("(scale * values).half() == 0",
        "(scale * values).abs() < torch.finfo(torch.float16).smallest_normal"), "all below 2^-14 are counted: float16 "
        "has smaller, subnormal numbers, with fewer digits"),
    Mutant("not-rounded", ("(scale * values).half() == 0", "(scale * values).abs() < 2.0**-24"), "all below 2^-24 are "
        "counted: those above half of that are rounded up to it"),
    Mutant("kept", ("(lost & (values != 0)).sum()", "(~lost).sum()"), "these are the gradients that are *not* lost"),
    Mutant("share", ("(lost & (values != 0)).sum().item()", "(lost & (values != 0)).double().mean().item()"),
        "this is a share of all gradients: a number of them is asked for"),
    Mutant("type", ("return scale, (lost & (values != 0)).sum().item()", "return scale")),  # the scale alone
    Mutant("type", ("(lost & (values != 0)).sum().item()", "(lost & (values != 0)).double().sum().item()")),
    Mutant("type", ("return scale, (lost", "return (scale, lost.shape[0]), (lost")),  # a pair in place of the scale
    Mutant("raised", ("torch.cat([g.flatten() for g in gradients])", "torch.cat([g.view(len(g), -1)[:, 0] for g in "
        "gradients])")),
    Mutant("largest-lost", ("(scale * values).half() == 0", "(scale * values).half().abs() >= 2.0**15"), "these are "
        "the largest gradients: lost are those that become 0"),
    Mutant("least-number", ("(scale * values).half() == 0", "(scale * values).abs() < 2.0**-25"), "one at exactly "
        "half of float16's smallest number is not counted: it is rounded to even, which is 0. Ask `.half()` itself"),
    Mutant("borrowed", by_the_package),
]  # fmt: skip


PART = Code(
    key="own-08.3b",
    prompt="Write `loss_scale(gradients)`. It is float16's own rounding that decides: a number is too large if "
    "`.half()` makes it infinite, and lost if `.half()` makes it 0. `d2l.highest_loss_scale` and "
    "`d2l.underflow` tell such things; here they are not allowed.",
    hints=[
        "All gradients are multiplied by the same scale, so only the one of largest absolute value can overflow first.",
        "The largest number of float16 is 65504: `math.floor(math.log2(65504 / largest))` is the exponent, or "
        "nearly. What does `torch.tensor(65510.0).half()` give?",
        "Count after scaling, and leave out those that were 0 before: `(scale * g).half() == 0` and `g != 0`. "
        "`.half()` knows the numbers below the smallest normal one, too.",
    ],
    answer=loss_scale,
    verify=verify_scale,
    alternatives=[by_trying, from_exponents],
    min_checks=24,
    advice={
        "nonfinite": "Such a scale is too large for float32, though the gradients are float32: keep it in float64, "
        "or as a Python number.",
        "factor": "The scale is the largest power of two with which all stay finite. What is lost is counted in "
        "numbers, not in tensors.",
        "values": "Try a single gradient, 1e-3, then 1e30 and 1e-36: double or halve the scale until `.half()` is just "
        "about finite. Compute in float64, for which no such scale is too large or too small. "
        "What is lost may have either sign.",
    },
    mutants=MUTANTS,
    explanation=r"""
A power of two changes the exponent alone, so that scaling and unscaling lose no digit of normal numbers. float16 spans
$2^{-24}$ to about $2^{16}$: forty powers of two, and whoever needs more loses at the lower end. bfloat16 has the
exponents of float32, so that no scale is needed, and pays with its precision: 8 bits, where float16 has 11.

In training nobody looks for the largest gradient beforehand. `torch.amp.GradScaler` tries: it leaves out a step in
which something became infinite and halves the scale, and doubles it after many steps without. That is the search of
this exercise, spread over the training.
""",
)
