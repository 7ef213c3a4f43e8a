r"""Clipping, and gradients in half precision

Two things keep gradients within bounds. A batch that gives gradients far too large is held back: all of them are
multiplied by one factor, so that their *global norm*, the root of the sum of all squares in all tensors, is at most
`max_norm`. And where gradients are kept in float16, the loss is multiplied beforehand, so that small gradients do not
become 0: float16 has no number between 0 and $2^{-24}$, and none above 65,504.
"""

import math
from functools import partial

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option
from d2lmini.exercises.engine.provenance import Calls


def clip_gradients(gradients, max_norm):
    """Gradients of which the global norm is at most ``max_norm``, nearly; nothing is changed in place.

    Args:
        gradients: list of tensors of any shapes, float32 or float16, all of one dtype.
        max_norm: a number above 0.

    Returns:
        (clipped, norm): the norm before clipping, a float32 tensor without dimensions; and a list of new tensors,
        shapes and dtype as before, multiplied by max_norm / (norm + 1e-6), or by 1 where that is more than 1. Where the
        norm is infinite or NaN, ``clipped`` is None: the step is to be left out.
    """
    ### BEGIN SOLUTION
    squares = [(g.float() ** 2).sum() for g in gradients]
    norm = torch.stack(squares).sum().sqrt()
    if not torch.isfinite(norm):
        return None, norm
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return [(factor * g.float()).to(g.dtype) for g in gradients], norm
    ### END SOLUTION


def all_in_one(gradients, max_norm):
    """All numbers in one long vector."""
    flat = torch.cat([g.flatten() for g in gradients]).to(torch.float32)
    norm = flat.norm()
    if math.isnan(norm) or math.isinf(norm):
        return None, norm
    clipped = (flat * min(1.0, max_norm / (norm.item() + 1e-6))).to(gradients[0].dtype)
    pieces = clipped.split([g.numel() for g in gradients])
    return [piece.view(g.shape) for piece, g in zip(pieces, gradients, strict=True)], norm


def norm_of_norms(gradients, max_norm):
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g.float()) for g in gradients]))
    if norm.isnan() or norm.isinf():
        return None, norm
    scale = max_norm / (norm + 1e-6)
    return [(g.float() * scale).to(g) if scale < 1 else g.clone() for g in gradients], norm


# mistakes


def by_torch(gradients, max_norm):
    parameters = [torch.nn.Parameter(g.clone()) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g.clone()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return ([p.grad for p in parameters] if norm.isfinite() else None), norm.float()


def each_alone(gradients, max_norm):
    pairs = [clip_gradients([g], max_norm)[0] for g in gradients]
    _, norm = clip_gradients(gradients, max_norm)
    return (None if not norm.isfinite() else [pair[0] for pair in pairs]), norm


def by_value(gradients, max_norm):
    _, norm = clip_gradients(gradients, max_norm)
    return [g.clamp(-max_norm, max_norm) for g in gradients] if norm.isfinite() else None, norm


def norm_afterwards(gradients, max_norm):
    clipped, norm = clip_gradients(gradients, max_norm)
    return clipped, norm if clipped is None else clip_gradients(clipped, max_norm)[1]


def in_place(gradients, max_norm):
    clipped, norm = clip_gradients(gradients, max_norm)
    if clipped is not None:
        for g, new in zip(gradients, clipped, strict=True):
            g.copy_(new)
    return clipped and gradients, norm


def clipped_all_the_same(gradients, max_norm):
    _, norm = clip_gradients(gradients, max_norm)
    return [g * (max_norm / (norm + 1e-6)).clamp(max=1.0).to(g) for g in gradients], norm


def with_another_norm(gradients, max_norm, p):
    norm = torch.cat([g.float().flatten() for g in gradients]).norm(p)
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return [(factor * g).to(g) for g in gradients] if norm.isfinite() else None, norm


def as_one_vector(gradients, max_norm):
    clipped, norm = clip_gradients(gradients, max_norm)
    return torch.cat([g.flatten() for g in clipped]), norm


def zeros_instead(gradients, max_norm):
    clipped, norm = clip_gradients(gradients, max_norm)
    return [torch.zeros_like(g) for g in gradients] if clipped is None else clipped, norm


def _clipped(gradients, max_norm):
    """What torch's own function makes of these gradients, in float64 on the CPU."""
    parameters = [torch.nn.Parameter(g.cpu().double()) for g in gradients]
    for p in parameters:
        p.grad = p.detach().clone()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return [p.grad for p in parameters], norm


def verify_clip(t, answer):
    B, D, E = t.sizes(3, 2, 7)
    shapes = (B, D), (E,), (D, B, E), (1,)
    for name, size, share, dtype in (  # share: max_norm as a part of the norm
        ("of large gradients", 5.0, 0.15, torch.float32),
        ("of gradients that are small enough", 0.5, 3.0, torch.float32),
        ("of tiny gradients", 2e-7, 0.4, torch.float32),
        ("of gradients of 0", 0.0, 1.0, torch.float32),
        ("of gradients in float16", 900.0, 0.2, torch.float16),
    ):
        gradients = [(size * (4 - i) * t.randn(*shape)).to(dtype) for i, shape in enumerate(shapes)]
        total = math.sqrt(sum(g.double().square().sum().item() for g in gradients))
        max_norm = t.random.uniform(0.9, 1.1) * share * (total or 1.0)
        want, norm = _clipped(gradients, max_norm)
        with t.watching(partial(Calls, "torch.nn.utils.clip_grad"), "names") as seen:
            clipped, found = t.unpack(t.call(answer, gradients, max_norm), "clipped", "norm")
        t.that(not seen.names, "borrowed", "this calls torch's own function: write the norm and the factor yourself")
        t.that(
            not isinstance(found, torch.Tensor) or found.dtype == torch.float32,
            "dtype",
            f"the norm {name} is of {getattr(found, 'dtype', None)}, expected torch.float32 whatever the gradients are",
        )
        t.same(found, norm, f"the norm {name}", dtype=torch.float32, tolerance=(1e-4, 1e-12))
        t.that(
            isinstance(clipped, (list, tuple)) and len(clipped) == len(gradients),
            "type",
            f"what is clipped {name} is no list of {len(gradients)} tensors",
        )
        for number, (got, exact) in enumerate(zip(clipped, want, strict=True)):
            tolerance = (2e-3, 1e-3) if dtype == torch.float16 else (1e-4, 1e-12)
            t.same(got, exact, f"clipped[{number}] {name}", dtype=dtype, tolerance=tolerance)
    for name, bad in (("infinite", math.inf), ("NaN", math.nan)):
        gradients = [t.randn(*shape) for shape in shapes]
        gradients[2].view(-1)[t.random.randrange(D * B * E)] = bad
        clipped, found = t.unpack(t.call(answer, gradients, 1.0), "clipped", "norm")
        told = isinstance(found, torch.Tensor) and found.shape == () and not found.isfinite().item()
        t.that(told, "hidden", f"a gradient is {name}, and the norm is not: then nothing warns of it")
        message = (
            f"a gradient is {name}, and something is returned as clipped: after a step with it the weights would be "
            "lost, and a step with zeros would still move what has momentum. Return None in its place"
        )
        t.that(clipped is None, "step-made", message)


def loss_scale(gradients):
    """How far the loss may be multiplied so that the gradients fit into float16, and what is lost all the same.

    Args:
        gradients: list of float32 tensors of any shapes, finite, and not all 0.

    Returns:
        (scale, lost): the largest power of two, a number, which may be below 1, with which no ``scale * gradient``
        becomes infinite in float16; and how many gradients that are not 0 then become 0 in float16, an integer.
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
    return torch.tensor(2.0).pow(power), int(((sizes > 0) & (sizes <= 2.0 ** (-25 - power))).sum())


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


TINY = (0.1, 0.5, -0.9, 1.0, 1.1, -1.2, 1.3, 1.4, -1.5, 1.6, 1.7, 1.8, -1.9, 3.0, 700.0)  # 2^-25 is the last to be lost


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
        ("of gradients too large as they are", 2.0**21, t.random.uniform(1.1, 1.9)),
        ("where the largest is a power of two", 2.0**-3, 1.0),
        ("where the largest comes to 65,510", 2.0**-12, 65510 / 2**15),
        ("where the largest comes to 65,530", 2.0**-12, 65530 / 2**15),
    ):
        largest = top * fraction
        gradients = [largest * 10 ** t.rand(*shape, low=-8.5, high=-0.7) for shape in ((E,), (B, D), (E, D))]
        gradients = [g * (1 - 2 * t.integers(0, 2, *g.shape)) for g in gradients]
        gradients[1][:, 2] = 0.0
        gradients[1][0, :2] = gradients[1].new_tensor([0.45 * largest, largest])
        gradients[2].view(-1)[: len(TINY)] = gradients[2].new_tensor(TINY) * 2.0**-25 / _reference(gradients)[0]
        scale, lost = _reference(gradients)
        with t.watching(partial(Calls, "d2lmini.training."), "names") as seen:
            got = t.unpack(t.call(answer, gradients), "scale", "lost")
        t.that(not seen.names, "borrowed", "this asks the package's own functions: find the scale yourself")
        t.number(got[0], scale, f"the scale {name}")
        t.number(got[1], lost, f"the number of lost gradients {name}")


MUTANTS_A = [
    Mutant("each-alone", each_alone, "every tensor is clipped by a norm of its own: one factor for all keeps the "
        "direction of the step"),
    Mutant("by-value", by_value, "each number is cut off at max_norm: that is clipping by value, and it turns the "
        "direction of the step"),
    Mutant("scaled-up", (".clamp(max=1.0)", ""), "small gradients are made larger, up to max_norm: the factor is at "
        "most 1"),
    Mutant("sum-of-norms", ("squares).sum().sqrt()", "squares).sqrt().sum()"), "the norms of the tensors are added up: "
        "add their squares, and take the root of the sum"),
    Mutant("largest-norm", ("squares).sum().sqrt()", "squares).max().sqrt()"), "this is the norm of the largest tensor "
        "alone"),
    Mutant("no-root", ("squares).sum().sqrt()", "squares).sum()"), "this is the square of the norm: take the root"),
    Mutant("rms", ("(g.float() ** 2).sum()", "(g.float() ** 2).sum() / sum(g.numel() for g in gradients)"),
        "the squares are averaged over all numbers: the norm is the root of their sum"),
    Mutant("mean-squares", ("(g.float() ** 2).sum()", "(g.float() ** 2).mean()"), "the squares are averaged in each "
        "tensor: the norm is the root of their sum"),
    Mutant("one-norm", partial(with_another_norm, p=1), "these are absolute values added up: the norm is the root of "
        "the sum of squares"),
    Mutant("max-norm", partial(with_another_norm, p=math.inf), "this is the largest absolute value: the norm is the "
        "root of the sum of squares"),
    Mutant("norm-after", norm_afterwards, "this is the norm after clipping: the one before tells how far off the batch "
        "was"),
    Mutant("no-1e-6", ("(max_norm / (norm + 1e-6))", "(max_norm / norm)"), "the 1e-6 in the denominator is missing: it "
        "shows where the norm is that small itself"),
    Mutant("upside-down", ("(max_norm / (norm + 1e-6)).clamp(max=1.0)", "((norm + 1e-6) / max_norm)"),
        "the factor is upside down: large norms must make it small"),
    Mutant("unit", ("(max_norm / (norm + 1e-6))", "(1 / (norm + 1e-6))"), "gradients are brought to a norm of 1, not "
        "of max_norm"),
    Mutant("unclipped", ("factor * g.float()", "g.float()"), "these are the gradients as they came, although their "
        "norm is above max_norm"),
    Mutant("nonfinite", ("(g.float() ** 2).sum()", "(g**2).sum().float()")),  # squares in float16
    Mutant("type", ("for g in gradients], norm\n", "for g in gradients], norm.item()\n")),  # norm as a number
    # norm in float16
    Mutant("dtype", ("for g in gradients], norm\n", "for g in gradients], norm.to(gradients[0].dtype)\n")),
    Mutant("type", ("for g in gradients], norm\n", "for g in gradients][0]\n")),  # gradients alone
    Mutant("type", as_one_vector),
    Mutant("mutates", in_place),
    Mutant("step-made", clipped_all_the_same),
    Mutant("step-made", zeros_instead),
    # NaN hidden
    Mutant("hidden", ("[(g.float() ** 2).sum() for g", "[(g.float() ** 2).nan_to_num(posinf=torch.inf).sum() for g")),
    Mutant("borrowed", by_torch),
]  # fmt: skip

MUTANTS_B = [
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
    Mutant("subnormal", ("(scale * values).half() == 0",
        "(scale * values).abs() < torch.finfo(torch.float16).smallest_normal"), "all below 2^-14 are counted: float16 "
        "has smaller, subnormal numbers, with fewer digits"),
    Mutant("not-rounded", ("(scale * values).half() == 0", "(scale * values).abs() < 2.0**-24"), "all below 2^-24 are "
        "counted: those above half of that are rounded up to it"),
    Mutant("kept", ("(lost & (values != 0)).sum()", "(~lost).sum()"), "these are the gradients that are *not* lost"),
    Mutant("share", ("(lost & (values != 0)).sum().item()", "(lost & (values != 0)).double().mean().item()"),
        "this is a share of all gradients: a number of them is asked for"),
    Mutant("type", ("return scale, (lost & (values != 0)).sum().item()", "return scale")),  # the scale alone
    Mutant("borrowed", by_the_package),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-08.3",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-08.3a",
            prompt="Write `clip_gradients(gradients, max_norm)`: what `torch.nn.utils.clip_grad_norm_` does, without "
            "changing what it is given, with the norm in float32 whatever the gradients are, and with a norm "
            "that is not finite told instead of used.",
            hints=[
                "The norm of all tensors together: add up all squares first, take one root at the end.",
                "In float16 the square of 300 is infinite already: `g.float()` first.",
                "The factor is at most 1, for gradients that are small enough stay as they are. Compute new tensors, "
                "`factor * g`, not `g *= factor`, and bring each back to its dtype.",
                "One infinite or NaN number makes the norm so, too: ask the norm, and return None for the gradients.",
            ],
            answer=clip_gradients,
            verify=verify_clip,
            alternatives=[all_in_one, norm_of_norms],
            min_checks=40,
            advice={
                "nonfinite": "Squares of float16 numbers overflow above 255: compute the norm in float32. And where "
                "all gradients are 0, so is the norm: nothing may be divided by that alone.",
                "mutates": "The gradients are arguments: make new tensors.",
                "raised": "Where the norm is not finite, too, nothing is raised: return None and the norm.",
            },
            mutants=MUTANTS_A,
            explanation=r"""
One factor for all keeps the direction of the step; clipping each tensor or each number would turn it. The norm is worth
plotting: it tells which batches are unusual. With Adam, a factor that is always the same would change nothing but for
$\epsilon$; clipping matters as it holds back single batches, which would otherwise stay in the running mean of squares
for about $1/(1-\beta_2)$ steps.
""",
        ),
        Code(
            key="own-08.3b",
            prompt="Write `loss_scale(gradients)`. It is float16's own rounding that decides: a number is too large if "
            "`.half()` makes it infinite, and lost if `.half()` makes it 0. `d2l.highest_loss_scale` and "
            "`d2l.underflow` tell such things; here they are not allowed.",
            hints=[
                "All gradients are multiplied by the same scale, so only the one of largest absolute value can "
                "overflow first.",
                "The largest number of float16 is 65504: `math.floor(math.log2(65504 / largest))` is the exponent, or "
                "nearly. What does `torch.tensor(65510.0).half()` give?",
                "Count after scaling, and leave out those that were 0 before: `(scale * g).half() == 0` and `g != 0`. "
                "`.half()` knows the numbers below the smallest normal one, too.",
            ],
            answer=loss_scale,
            verify=verify_scale,
            alternatives=[by_trying, from_exponents],
            min_checks=24,
            mutants=MUTANTS_B,
            explanation=r"""
A power of two changes the exponent alone, so that scaling and unscaling lose no digit. float16 spans $2^{-24}$ to about
$2^{16}$: forty powers of two, and whoever needs more loses at the lower end. bfloat16 has the exponents of float32, so
that no scale is needed, and pays with its precision: 8 bits, where float16 has 11.

In training nobody looks for the largest gradient beforehand. `torch.amp.GradScaler` tries: it leaves out a step in
which something became infinite and halves the scale, and doubles it after many steps without. That is the search of
this exercise, spread over the training.
""",
        ),
        Choice(
            key="own-08.3c",
            prompt="A training in float16 with a loss scale of 4,096 clips at a global norm of 1. After the backward "
            "pass with the scaled loss, what comes in which order?",
            hints=[
                "Which norm do scaled gradients have, and what would be compared with 1?",
                "What becomes of the gradients if they are clipped to a norm of 1 and then divided by 4,096?",
            ],
            options=[
                Option(
                    "Clip, divide by 4,096, step.",
                    "Clipping then compares 4,096 times the norm with 1: nearly every batch is clipped, and after the "
                    "division no gradient has a norm above 1/4096.",
                ),
                Option(
                    "Divide by 4,096, clip, step; and no step where the norm is not finite.",
                    "Clipping must see the gradients as they are. Divided in float32, they do not underflow again, and "
                    "what overflowed in the backward pass shows in the norm. In torch: `scaler.unscale_(optimizer)`, "
                    "`clip_grad_norm_`, `scaler.step(optimizer)`.",
                    right=True,
                ),
                Option(
                    "Clip, step; Adam does not mind a factor of 4,096.",
                    "Adam nearly does not mind a constant factor, but eps means something else then, the factor "
                    "changes whenever the scale does, and clipping is at 1/4096 of what was meant.",
                ),
                Option(
                    "Divide by 4,096, step, clip.",
                    "After the step the gradients are used up: clipping them then does nothing.",
                ),
            ],
        ),
    ],
)
