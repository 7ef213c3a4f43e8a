r"""A row of weights in eight bits

A weight in float32 takes four bytes. One byte is enough if the weights of a row share a scale: each weight w becomes a
whole number, its *code*, and w is nearly **code times scale**.

Quantise a matrix row by row, symmetrically: the scale of a row is the largest absolute value in it divided by 127, and
a code is the weight divided by the scale, rounded to the nearest whole number, halves either way. So codes go from
-127 to 127, and the weight 0 is the code 0. A row of zeros has the scale 1. Weights may be of any size, 1e-12 and 1e12
included.
"""

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def quantised(W):
    """A matrix in eight bits, with a scale for each row.

    Args:
        W: (O, I), floating-point.

    Returns:
        (codes, scales, back): codes of type int8, (O, I); the scales (O,); and the matrix that they stand for, (O, I).
        The last two have the type of W.
    """
    ### BEGIN SOLUTION
    largest = W.abs().amax(dim=1)  # (O,)
    scales = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    codes = torch.round(W / scales[:, None]).to(torch.int8)  # (O, I)
    back = codes * scales[:, None]  # (O, I)
    return codes, scales, back
    ### END SOLUTION


def row_by_row(W):
    codes, scales = torch.zeros_like(W, dtype=torch.int8), torch.ones_like(W[:, 0])
    for o, row in enumerate(W):
        largest = max(abs(w) for w in row.tolist())
        if largest > 0:
            scales[o] = largest / 127
            codes[o] = torch.floor(row / scales[o] + 0.5).to(torch.int8)
    return codes, scales, codes.to(W.dtype) * scales.unsqueeze(1)


def with_a_norm(W):
    largest = torch.linalg.vector_norm(W, ord=float("inf"), dim=-1, keepdim=True)
    largest[largest == 0] = 127.0
    codes = (W * 127 / largest).round()
    return codes.char(), (largest / 127)[:, 0], codes * largest / 127


def between_the_ends(W):
    low, high = W.amin(1, keepdim=True), W.amax(1, keepdim=True)
    scales = torch.where(high > low, (high - low) / 254, torch.ones_like(high))
    codes = torch.round((W - low) / scales) - 127
    return codes.to(torch.int8), scales[:, 0], (codes + 127) * scales + low


def for_the_whole_matrix(W):
    codes, scales, back = quantised(W.flatten()[None])
    return codes.view(W.shape), scales.expand(len(W)).clone(), back.view(W.shape)


def for_each_column(W):
    codes, scales, back = quantised(W.T.contiguous())
    return codes.T.contiguous(), scales[torch.arange(len(W)) % len(scales)], back.T.contiguous()


def never_below_a_small_number(W):
    scales = W.abs().amax(1).clamp(min=1e-8) / 127
    codes = torch.round(W / scales[:, None]).to(torch.int8)
    return codes, torch.where(W.abs().amax(1) > 0, scales, 1.0), codes * scales[:, None]


def _matrix(t, O, I, scale):  # noqa: E741
    """Weights that lie clearly nearer to one code than to the next, the largest of each row at an end."""
    codes = t.integers(-120, 121, O, I).double()
    codes[:, 0] = torch.where(t.rand(O) < 0.5, 127.0, -127.0).double()
    codes[0, 0], codes[1, 0], codes[:, 1] = -127.0, 127.0, 0.0
    offsets = t.rand(O, I, low=-0.4, high=0.4, dtype=torch.float64)
    offsets[:, 0] = 0.0
    scales = scale * t.rand(O, 1, low=0.5, high=2.0, dtype=torch.float64)
    order = t.rand(I).argsort()
    return ((codes + offsets) * scales)[:, order].float()


def _reference(W):
    rows, scales = [], []
    for row in W.cpu().double().tolist():
        scale = max(map(abs, row)) / 127 or 1.0
        rows.append([round(w / scale) for w in row])
        scales.append(scale)
    codes, scales = torch.tensor(rows, dtype=torch.int8), torch.tensor(scales, dtype=torch.float64)
    return codes, scales, codes * scales[:, None]


def verify(t, answer):
    O, I = t.sizes(2, 4, 9)  # noqa: E741
    zeros = _matrix(t, O, 3 * I, 1.0)
    zeros[2] = 0.0
    for W, case in (
        (_matrix(t, O, 3 * I, 0.01), "of an ordinary matrix"),
        (_matrix(t, O, 3 * I, 1e-12), "of tiny weights"),
        (_matrix(t, O, 3 * I, 1e12), "of huge weights"),
        (zeros, "with a row of zeros"),
    ):
        want = _reference(W)
        got = t.unpack(t.call(answer, W), "codes", "scales", "back")
        tiny = (1e-4, 1e-5 * W.abs().max().item())
        t.same(got[0], want[0], f"codes {case}")
        t.same(got[1], want[1], f"scales {case}", tolerance=(1e-4, 0.0))
        t.same(got[2], want[2], f"back {case}", tolerance=tiny)


MUTANTS = [
    Mutant("truncated", ("torch.round(W / scales[:, None])", "torch.trunc(W / scales[:, None])"), "the codes are cut "
        "off towards 0 (`.to(torch.int8)` alone does so): round first"),
    Mutant("floored", ("torch.round(W / scales[:, None])", "torch.floor(W / scales[:, None])"), "the codes are rounded "
        "down: take the nearest whole number"),
    Mutant("half-added", ("torch.round(W / scales[:, None])", "(W / scales[:, None] + 0.5)"), "a half is added and "
        "the rest cut off: that is wrong for negative weights, use `torch.round`"),
    Mutant("rounded-up", ("torch.round(W / scales[:, None])", "torch.ceil(W / scales[:, None])"), "the codes are "
        "rounded up: take the nearest whole number"),
    Mutant("signed-maximum", ("W.abs().amax(dim=1)", "W.amax(dim=1)"), "the largest weight decides, not the largest "
        "*absolute value*: a large negative weight overflows"),
    Mutant("minimum", ("W.abs().amax(dim=1)", "W.amin(dim=1).abs()"), "the least weight decides: it is the largest "
        "absolute value"),
    Mutant("matrix", for_the_whole_matrix, "one scale serves the whole matrix: each row has its own"),
    Mutant("columns", for_each_column, "there is a scale for each column: it is one for each row, over `dim=1`"),
    Mutant("128", ("largest / 127", "largest / 128"), "the largest weight gets a code that int8 does not have, one "
        "too large"),
    Mutant("127-and-a-half", ("largest / 127", "largest / 127.5"), "a half is added to the divisor: then no weight "
        "is the largest code exactly"),
    Mutant("255", ("largest / 127", "largest / 255"), "it is divided by the number of all codes: they "
        "have a sign, and half of them are negative"),
    Mutant("half-range", ("largest / 127", "2 * largest / 127"), "the scale is twice too large: codes use half of "
        "their range"),
    Mutant("four-bits", ("largest / 127", "largest / 7"), "codes go from -7 to 7: those are four bits, and "
        "there are eight"),
    Mutant("mean", ("W.abs().amax(dim=1)", "W.abs().mean(dim=1)"), "the mean absolute value decides: then larger "
        "weights have no code"),
    Mutant("norm", ("W.abs().amax(dim=1)", "W.norm(dim=1)"), "the root of the sum of squares decides: it is the "
        "largest absolute value"),
    Mutant("deviation", ("W.abs().amax(dim=1)", "W.std(dim=1)"), "the standard deviation decides: then larger weights "
        "have no code"),
    Mutant("minimum-taken-away", between_the_ends, "the codes go from the least weight to the largest: here they are "
        "symmetric, and the weight 0 is the code 0"),
    Mutant("multiplied", ("W / scales[:, None]", "W * scales[:, None]"), "the weights are multiplied by the scale: "
        "divide, a code is w / scale"),
    Mutant("inverse", ("return codes, scales, back", "return codes, 1 / scales, back"), "these are the scales' "
        "inverses: w is code *times* scale"),
    Mutant("largest", ("return codes, scales, back", "return codes, scales * 127, back"), "these are the largest "
        "absolute values: a scale is the step from one code to the next"),
    Mutant("zero-scale", ("torch.where(largest > 0, largest / 127, torch.ones_like(largest))", "largest / 127"),
        "the scale of a row of zeros is 0, and 0 / 0 is no number: it is 1"),
    Mutant("one-over-127", ("torch.where(largest > 0, largest / 127, torch.ones_like(largest))",
        "torch.where(largest > 0, largest, torch.ones_like(largest)) / 127"), "the scale of a row of zeros is "
        "1, and not divided any more"),
    Mutant("small-number", ("torch.where(largest > 0, largest / 127, torch.ones_like(largest))",
        "largest / 127 + 1e-8"), "tiny scales are changed, by a sum or a bound: tiny weights need theirs"),
    Mutant("clamped", never_below_a_small_number, "a scale does not fall below a small number: tiny weights become 0"),
    Mutant("zero-row-small", ("torch.where(largest > 0, largest / 127, torch.ones_like(largest))",
        "largest.clamp(min=1e-12) / 127"), "the scale of a row of zeros is a small number: it is 1"),
    Mutant("without-scale", ("codes * scales[:, None]", "codes * torch.ones_like(scales)[:, None]"),
        "these are the codes: what they stand for is code times scale"),
    Mutant("the-original", ("back = codes * scales[:, None]", "back = W.clone()"), "this is W itself: what the *codes* "
        "stand for is code times scale"),
    Mutant("unrounded", ("back = codes * scales[:, None]", "back = W / scales[:, None]"), "these are codes before "
        "rounding: what the codes stand for is code times scale"),
    Mutant("dtype", (".to(torch.int8)", "")),
    Mutant("dtype", (".to(torch.int8)", ".to(torch.int32)")),
    Mutant("shape", ("return codes, scales, back", "return codes, scales[:, None], back")),
    Mutant("mutates", ("largest = W.abs()", "largest = W.abs_()")),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-19.3",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-19.3a",
            prompt="Write `quantised(W)`.",
            hints=[
                "Take one row, [0.2, -1.0, 0.4]. Its scale is 1 / 127. Which are the three codes?",
                "`amax(dim=1)` of the absolute values, and `scales[:, None]` where a row is divided by its own scale.",
                "`.to(torch.int8)` cuts off: round before it. `torch.where` gives rows of zeros their scale.",
            ],
            answer=quantised,
            verify=verify,
            alternatives=[row_by_row, with_a_norm],
            mutants=MUTANTS,
            min_checks=16,
            advice={
                "values": "Print one row beside `codes * scale`: no weight may be off by more than half a scale.",
                "nonfinite": "If it is the row of zeros: 0 / 0 is NaN.",
                "dtype": "Codes are int8; scales and what comes back have the type of W.",
                "shape": "Each row has one scale. If there is a last axis of one, `keepdim=True` left it.",
            },
            explanation=r"""
No weight is off by more than half a scale, and that is a promise: the largest absolute value in the row decides it. So
a row takes I bytes and one scale instead of 4 I bytes. A linear layer can do its products with the codes and multiply
by the scale afterwards, once for each output, as all weights of that output share it.

Adding 1e-8 to the scale "to be safe" is a habit worth losing: it changes every small weight. Treat the one case that
is different, a row of zeros, as the one case that it is.
""",
        ),
        Choice(
            key="own-19.3b",
            prompt="All 576 weights of a row lie between -0.05 and 0.05, except for one, which is 1.27. What does it "
            "do to the others, in eight bits with one scale for the row?",
            hints=["Compute the scale. How many codes are left for weights between -0.05 and 0.05?"],
            options=[
                Option(
                    "They keep eleven different codes, as the scale is 0.01 now.",
                    "The scale is 1.27 / 127 = 0.01, so that 0.05 has the code 5: from -5 to 5 there are eleven. "
                    "Without the outlier the scale would be about 0.0004, with an error 25 times smaller. So weights "
                    "are cut into groups: an outlier spoils its own group alone.",
                    right=True,
                ),
                Option(
                    "They keep their codes; only the outlier is cut off at 127.",
                    "The largest absolute value decides the scale, so that the outlier is the one weight that comes "
                    "back exactly, and the others pay for it.",
                ),
                Option(
                    "They become 0, since the outlier takes up all the range.",
                    "What is below half a scale, 0.005, becomes 0. Weights up to 0.05 are up to ten times that.",
                ),
                Option(
                    "They lose a 576th of their precision, as there is only one.",
                    "It does not matter how many there are: a single weight decides the scale of the row.",
                ),
            ],
        ),
    ],
)
