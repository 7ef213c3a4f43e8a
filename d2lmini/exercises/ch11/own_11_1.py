r"""Find the bugs in a shifted window

Attention inside of windows that are shifted: the borders run `shift` patches below and to the right of where they would
run without. Windows at the edge of the image are smaller then, and to compute them with the others one *rolls* the
image. This is somebody's code for it. Shapes are right, gradients flow, a model with it trains, and it has **four
faults**.

```python
def shifted_windows(X, W_q, W_k, W_v, W_o, bias, window, shift):
    B, rows, columns, h = X.shape
    H = len(bias)
    X = torch.roll(X, (-shift, -shift), dims=(1, 2))
    X = X.reshape(-1, window * window, h)  # (B * windows, P, h)
    q, k, v = ((X @ W).unflatten(-1, (H, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))  # (B * windows, H, P, d)
    scores = q @ k.mT / math.sqrt(h // H) + bias.mean(0)  # (B * windows, H, P, P)
    Y = torch.softmax(scores, -1) @ v
    Y = Y.transpose(1, 2).flatten(2) @ W_o  # (B * windows, P, h)
    Y = Y.reshape(B, rows, columns, h)
    return torch.roll(Y, (-shift, -shift), dims=(1, 2))
```

`window` is the number of patches along a side, P = window * window those in a window, row by row. `bias`, (H, P, P),
has a table for each head: what is added to the scores of two patches, given their places in the window.

Do not search by staring. Each fault fails an experiment:

1. without a shift, change one patch: which outputs may move, and which do?
2. with a shift, change a patch at the left edge: does something at the right edge move?
3. set `W_q` and `W_k` to zero and one head's table to something large: which head's output changes?
4. give `W_v` and `W_o` such that the layer returns what a patch sees of itself: does it come out where it went in?
"""

import math
from itertools import combinations

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option
from d2lmini.vision.windows import shifted_window_mask, window_partition, window_reverse


def shifted_windows(X, W_q, W_k, W_v, W_o, bias, window, shift):
    """Multi-head self-attention inside of shifted windows.

    Args:
        X: (B, rows, columns, h), patches on a grid that windows divide.
        W_q, W_k, W_v, W_o: (h, h); head i has the i-th block of h / H columns of the first three.
        bias: (H, P, P), added to the scores of each head, a row for a query's place in the window; its numbers lie
            between -200 and 200.
        window: patches along a side of a window.
        shift: how far its borders lie below and to the right, from 0 to ``window - 1``.

    Returns:
        (B, rows, columns, h).
    """
    ### BEGIN SOLUTION
    B, rows, columns, h = X.shape
    H = len(bias)

    def cut(maps):  # (B, rows, columns, n) to (B * windows, P, n)
        maps = maps.unflatten(2, (-1, window)).unflatten(1, (-1, window))
        return maps.transpose(2, 3).flatten(3, 4).flatten(0, 2)

    down = torch.arange(rows, device=X.device) < shift
    right = torch.arange(columns, device=X.device) < shift
    area = (2 * down[:, None].long() + right)[None, :, :, None]  # cut off by an edge of the image, or not
    X, area = (torch.roll(x, (-shift, -shift), dims=(1, 2)) for x in (X, area))
    area = cut(area).squeeze(-1)  # (windows, P)
    may = (area[:, :, None] == area[:, None]).repeat(B, 1, 1)[:, None]  # (B * windows, 1, P, P)

    q, k, v = ((cut(X) @ W).unflatten(-1, (H, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))  # (B * windows, H, P, d)
    scores = q @ k.mT / math.sqrt(h // H) + bias  # (B * windows, H, P, P)
    scores = scores.masked_fill(~may, -torch.inf)
    Y = torch.softmax(scores, -1) @ v
    Y = Y.transpose(1, 2).flatten(2) @ W_o  # (B * windows, P, h)
    Y = Y.unflatten(1, (window, window)).unflatten(0, (B, rows // window, columns // window))
    Y = Y.transpose(2, 3).flatten(3, 4).flatten(1, 2)  # (B, rows, columns, h)
    return torch.roll(Y, (shift, shift), dims=(1, 2))
    ### END SOLUTION


def with_the_package(X, W_q, W_k, W_v, W_o, bias, window, shift):
    rolled = X.roll((-shift, -shift), dims=(1, 2))
    patches = window_partition(rolled, window)
    q, k, v = ((patches @ W).unflatten(-1, (len(bias), -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    mask = shifted_window_mask(X.shape[1:3], window, shift, X.device).repeat(len(X), 1, 1)[:, None]
    added = bias.expand(len(mask), -1, -1, -1).masked_fill(~mask, -torch.inf)
    Y = torch.nn.functional.scaled_dot_product_attention(q, k, v, added).transpose(1, 2).flatten(2) @ W_o
    return window_reverse(Y, window, X.shape[1:3]).roll((shift, shift), dims=(1, 2))


def all_at_once(X, W_q, W_k, W_v, W_o, bias, window, shift):
    """Nothing is rolled: one attention among all patches, with a mask of which share a window."""
    rows, columns = X.shape[1:3]
    patch = torch.arange(rows * columns, device=X.device)
    r, c = patch // columns - shift, patch % columns - shift
    cell = [torch.div(x, window, rounding_mode="floor") for x in (r, c)]
    together = (cell[0][:, None] == cell[0]) & (cell[1][:, None] == cell[1])
    place = r % window * window + c % window
    q, k, v = ((X.flatten(1, 2) @ W).unflatten(-1, (len(bias), -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    scores = q @ k.mT / q.shape[-1] ** 0.5 + bias[:, place[:, None], place]
    weights = scores.masked_fill(~together, -torch.inf).softmax(-1)
    return ((weights @ v).transpose(1, 2).flatten(2) @ W_o).view(X.shape)


FAULTS = {  # in the order of the experiments that show them
    "cut": "these windows are strips: reshape takes P patches of a row in their order; cut rows and columns both",
    "mask": "patches from opposite edges of the image attend to each other: the roll brought them together",
    "heads": "all heads get the same bias: add to each head its own table",
    "undo": "the roll is repeated, not undone: outputs stand at other patches",
}


def faulty(*faults, strips=False):
    """The function that was given with these of its faults left in it.

    Args:
        faults: keys of ``FAULTS``.
        strips: whether the mask is made of strips, too, where the windows are.
    """

    def shifted_windows(X, W_q, W_k, W_v, W_o, bias, window, shift):
        B, *grid, h = X.shape
        H = len(bias)
        X = torch.roll(X, (-shift, -shift), dims=(1, 2))
        X = X.reshape(-1, window * window, h) if "cut" in faults else window_partition(X, window)
        q, k, v = ((X @ W).unflatten(-1, (H, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
        scores = q @ k.mT / math.sqrt(h // H) + (bias.mean(0) if "heads" in faults else bias)
        if "mask" not in faults:
            may = shifted_window_mask(tuple(grid), window, shift, X.device)
            if strips:
                down, right = (torch.arange(n, device=X.device).roll(-shift) < shift for n in grid)
                area = (2 * down[:, None].long() + right).view(-1, window * window)
                may = area[:, :, None] == area[:, None]
            may = may.repeat(B, 1, 1)[:, None]
            scores = scores.masked_fill(~may, -torch.inf)
        Y = (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2) @ W_o
        Y = Y.reshape(B, *grid, h) if "cut" in faults else window_reverse(Y, window, grid)
        back = -shift if "undo" in faults else shift
        return torch.roll(Y, (back, back), dims=(1, 2))

    return shifted_windows


def what_is_left(faults, strips=False):
    """A mutant with these faults, and what to tell."""
    if len(faults) == 1:
        message = FAULTS[faults[0]]
    else:
        *numbers, last = (str(1 + list(FAULTS).index(fault)) for fault in faults)
        message = f"the faults that experiments {', '.join(numbers)} and {last} show are still there"
    return Mutant("-and-".join(faults), faulty(*faults, strips=strips), message)


def never_rolled(X, *others):
    shift = others[-1]
    there = torch.roll(X, (shift, shift), dims=(1, 2))
    return torch.roll(shifted_windows(there, *others), (-shift, -shift), dims=(1, 2))


def interleaved(X, W_q, W_k, W_v, W_o, *others):
    """Wrong: a head has every H-th column, of W_o every H-th row."""
    order = torch.arange(len(W_q)).view(-1, len(others[0])).T.flatten()
    return shifted_windows(X, W_q[:, order], W_k[:, order], W_v[:, order], W_o[order], *others)


def first_example_masked(X, *others):
    """Wrong: the mask has the windows of one image, and is laid on those of the first alone."""
    unmasked = faulty("mask")(X, *others)
    return torch.cat([shifted_windows(X[:1], *others), unmasked[1:]])


def first_example_shifted(X, *others):
    still = shifted_windows(X, *others[:-1], 0)
    return torch.cat([shifted_windows(X[:1], *others), still[1:]])


def _reference(X, W_q, W_k, W_v, W_o, bias, window, shift):
    """Patch by patch, from where the borders lie in the image: nothing is rolled."""
    rows, columns, h = X.shape[1:]
    H, want = len(bias), torch.zeros_like(X)
    d = h // H
    cells = {}
    for r in range(rows):
        for c in range(columns):
            cells.setdefault(((r - shift) // window, (c - shift) // window), []).append((r, c))
    for members in cells.values():
        r, c = (torch.tensor(x) for x in zip(*members, strict=True))
        place = (r - shift) % window * window + (c - shift) % window  # (n,)
        seen = X[:, r, c]  # (B, n, h)
        for head in range(H):
            own = slice(head * d, (head + 1) * d)
            scores = seen @ W_q[:, own] @ (seen @ W_k[:, own]).mT / math.sqrt(d) + bias[head][place][:, place]
            want[:, r, c] += scores.softmax(-1) @ (seen @ W_v[:, own]) @ W_o[own]
    return want


LARGE = 200
# grids, windows and shifts, of which some are no half of a window; and what else is tried
CASES = (
    ((12, 8), 4, 1, ""),
    ((6, 9), 3, 0, ""),
    ((5, 10), 5, 3, "gradients"),
    ((6, 3), 3, 2, "large bias"),
    ((4, 6), 2, 1, "one image and one head"),
)
ARGUMENTS = ("X", "W_q", "W_k", "W_v", "W_o", "bias")


def verify(t, answer):
    for (rows, columns), window, shift, special in CASES:
        B, H = (1, 1) if special.startswith("one") else t.random.sample([2, 3, 4], 2)
        h, P = H * t.random.choice([2, 5]), window * window
        X = t.randn(B, rows, columns, h)
        matrices = [t.randn(h, h, scale=h**-0.5) for _ in range(4)]
        bias = t.randn(H, P, P, scale=1.5)
        if special == "large bias":  # what is forbidden stays so, whatever the tables say
            bias[0] -= LARGE
            bias[1, :, 0] += LARGE
        inputs = [x.requires_grad_(special == "gradients") for x in (X, *matrices, bias)]
        wide = [x.detach().cpu().double().requires_grad_(x.requires_grad) for x in inputs]
        want = _reference(*wide, window, shift)

        case = f"a grid of {rows} x {columns}, windows of {window} and a shift of {shift}"
        case += f", with a bias of up to {LARGE}" if special == "large bias" else ""
        tolerance = (1e-3, 1e-4) if special == "large bias" else None
        got = t.call(answer, *inputs, window, shift)
        t.same(got, want.detach(), f"the output for {case}", tolerance=tolerance)
        if special == "gradients":
            weights = t.randn(*want.shape)
            slopes = torch.autograd.grad(want, wide, weights.cpu().double())
            for number, (name, slope) in enumerate(zip(ARGUMENTS, slopes, strict=True)):
                slope_got = t.gradient(got, number, "the output", weights)
                t.same(slope_got, slope, f"the gradient in {name} for {case}", tolerance=(1e-3, 1e-4))


# what mutants replace in the solution
_AREAS = """down = torch.arange(rows, device=X.device) < shift
    right = torch.arange(columns, device=X.device) < shift"""
_AREAS_AT_THE_END = """down = torch.arange(rows, device=X.device) >= rows - shift
    right = torch.arange(columns, device=X.device) >= columns - shift"""
_MASK = "scores = scores.masked_fill(~may, -torch.inf)"
_PUT_BACK = """Y = Y.unflatten(1, (window, window)).unflatten(0, (B, rows // window, columns // window))
    Y = Y.transpose(2, 3).flatten(3, 4).flatten(1, 2)  # (B, rows, columns, h)"""
_BACK = "return torch.roll(Y, (shift, shift), dims=(1, 2))"

_WRONG_ROWS = (
    "the mask separates at the wrong rows: those that come round are the first `shift` of the image as it was. "
    "Number them before the roll, and roll the numbers along"
)
_OTHER_WAY = "the image is rolled down and to the right: the borders lie `shift` above and to the left then"
_WEAK = (
    "what is taken from the scores of forbidden pairs is too little, so that they get some weight, if not always much: "
    "it takes minus infinity to forbid"
)


MUTANTS = [
    *(what_is_left(faults) for n in range(1, 5) for faults in combinations(FAULTS, n)),
    *(what_is_left(("cut", *others), strips=True) for others in ((), ("heads",), ("undo",), ("heads", "undo"))),
    Mutant("no-bias", ("+ bias  #", "#"), "the bias is not added"),
    Mutant("bias-turned", ("+ bias  #", "+ bias.mT  #"), "the tables are turned: rows belong to queries"),
    Mutant("bias-scaled", ("q @ k.mT / math.sqrt(h // H) + bias  #", "(q @ k.mT + bias) / math.sqrt(h // H)  #"),
        "the bias is scaled, too: it is added after the division"),
    Mutant("not-scaled", (" / math.sqrt(h // H)", ""), "the scores are not divided by the root of h / H, the features "
        "of a head"),
    Mutant("scaled-twice", ("math.sqrt(h // H)", "(h // H)"), "the scores are divided by h / H, not by its root: is "
        "there a second division?"),
    Mutant("scaled-by-h", ("math.sqrt(h // H)", "math.sqrt(h)"), "the scores are divided by the root of h: a head has "
        "h / H features"),
    Mutant("rows-masked", ("(2 * down[:, None].long() + right)", "(2 * down[:, None].long() + 0 * right)"),
        "the mask knows the upper and the lower edge, not the left and the right: columns come round, too"),
    Mutant("columns-masked", ("(2 * down[:, None].long() + right)", "(0 * down[:, None].long() + right)"),
        "the mask knows the left and the right edge, not the upper and the lower: rows come round, too"),
    Mutant("edges-mixed", ("(2 * down[:, None].long() + right)", "(down[:, None].long() + right)"),
        "the mask does not tell what came round over one edge from what came round over the other: four areas want "
        "four numbers"),
    Mutant("one-number", ("(2 * down[:, None].long() + right)", "(down[:, None] | right).long()"),
        "all patches that come round have one number, but they come over different edges: four areas want four "
        "numbers"),
    Mutant("numbers-not-rolled", ("X, area = (torch.roll(x, (-shift, -shift), dims=(1, 2)) for x in (X, area))",
        "X = torch.roll(X, (-shift, -shift), dims=(1, 2))"), "the numbers of the areas are not rolled along with the "
        "image"),
    Mutant("wrong-rows", (_AREAS, _AREAS_AT_THE_END), _WRONG_ROWS),
    Mutant("wrong-rows", (_AREAS, _AREAS.replace("< shift", "<= shift")), _WRONG_ROWS),
    Mutant("wrong-rows", (_AREAS, _AREAS.replace("< shift", "< window - shift")), _WRONG_ROWS),
    Mutant("wrong-rows", (_AREAS, _AREAS.replace("< shift", "< (shift > 0) * (window // 2)")), _WRONG_ROWS),
    Mutant("half-a-window", lambda *args: shifted_windows(*args[:-1], args[-2] // 2 if args[-1] else 0),
        "the image is rolled by half a window: by `shift`, whatever it is"),
    *(Mutant("other-way", (_AREAS, f"{areas}\n    shift = -shift"), _OTHER_WAY)
        for areas in (_AREAS, _AREAS_AT_THE_END)),
    Mutant("mask-order", (".repeat(B, 1, 1)[:, None]", ".repeat_interleave(B, 0)[:, None]"), "a window gets the mask "
        "of another one: the windows of an image follow each other, so all masks must be repeated in turn (`repeat`), "
        "not one mask B times"),
    Mutant("first-masked", first_example_masked, "only the first image of the batch is masked"),
    Mutant("first-shifted", first_example_shifted, "only the first image of the batch has shifted windows"),
    Mutant("mask-zero", ("-torch.inf", "0.0"), "a score of zero is an ordinary score: it takes minus infinity to "
        "forbid"),
    *(Mutant("weak-mask", (_MASK, f"scores = {mask.replace('n', str(n))}"), _WEAK)
        for mask in ("scores - n * ~may", "scores.masked_fill(~may, -n)") for n in (1, 10, 100)),
    Mutant("mask-turned", (_MASK, "scores = scores.masked_fill(may, -1e9)"), "the mask is turned round: it forbids "
        "what is allowed"),
    Mutant("over-queries", ("torch.softmax(scores, -1)", "torch.softmax(scores, -2)"), "the weights of a query must "
        "sum to one: the softmax runs over the keys, the last axis"),
    Mutant("too-late", ("scores = scores.masked_fill(~may, -torch.inf)\n    Y = torch.softmax(scores, -1)",
        "Y = torch.softmax(scores, -1).masked_fill(~may, 0)"), "weights are set to zero after the softmax, so that "
        "what is left does not sum to one: mask the scores"),
    Mutant("nonfinite", ("masked_fill(~may,", "masked_fill(may,")),  # mask turned
    Mutant("first-table", ("+ bias  #", "+ bias[0]  #"), "all heads get the first head's table: add to each its own"),
    Mutant("no-output", (" @ W_o  #", "  #"), "`W_o` is left out"),
    *(Mutant("heads-joined", ("Y.transpose(1, 2).flatten(2) @", f"Y.{how} @"), "the heads are joined wrongly: "
        "(B * windows, H, P, d) becomes (B * windows, P, H, d) and then (B * windows, P, h)")
        for how in ("permute(0, 2, 3, 1).flatten(2)", "reshape(len(Y), -1, h)")),
    Mutant("interleaved", interleaved, "a head has every H-th column: head i has the i-th *block* of h / H columns"),
    Mutant("put-back", (_PUT_BACK, "Y = Y.reshape(B, rows, columns, h)"), "the windows are cut rightly, and then put "
        "back as if they were strips: undo step by step what the cut did"),
    Mutant("shape", (_BACK, f"{_BACK}.squeeze(0)")),  # one image lost
    Mutant("not-back", ("return torch.roll(Y, (shift, shift), dims=(1, 2))", "return Y"), "the roll is not undone: "
        "outputs stand at other patches"),
    Mutant("other-axes", ("(shift, shift), dims=(1, 2)", "(shift, shift), dims=(0, 1)"), "the roll back goes along the "
        "batch: rows and columns are axes 1 and 2"),
    Mutant("never-rolled", never_rolled, "the mask is for a rolled image, and this one was not rolled"),
    Mutant("no-shift", lambda *args: shifted_windows(*args[:-1], 0), "the windows are not shifted"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-11.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-11.1a",
            prompt="Copy `shifted_windows` into your answer and repair it.",
            hints=[
                "Print what `torch.arange(36).view(1, 6, 6, 1)` becomes when it is cut into windows of 3. Which "
                "patches share a window?",
                "After the roll, the last windows hold rows from the top beside rows from the bottom. Number the rows "
                "0 or 1 before the roll by whether they come round, columns likewise, and roll the numbers too.",
                "`bias` is (H, P, P) and the scores are (B * windows, H, P, P): no mean is needed.",
                "What went up and to the left by `shift` has to come down and to the right by `shift`.",
            ],
            advice={
                "raised": "If it is the cutting: `unflatten(2, (-1, window)).unflatten(1, (-1, window))` and then "
                "`transpose(2, 3)` give (B, rows / window, columns / window, window, window, h). If it is `bias`: it "
                "is (H, P, P), so the heads of the scores must be the axis before the last two.",
                "values": "Make the experiments, first without a shift, then with one, which may be any; also where a "
                "window is as long as the image: its parts, too, attend to themselves alone then.",
            },
            answer=shifted_windows,
            verify=verify,
            alternatives=[with_the_package, all_at_once, faulty()],
            min_checks=20,
            seconds=20.0,
            mutants=MUTANTS,
            explanation=r"""
None of the four changes a shape, and all let the gradient through: a model learns with windows that are strips, with
opposite edges of the image side by side, and with heads that share one table of places; it only learns less well, and
nothing says so. So test what a layer *does*: who depends on whom, with and without a shift, is a table of booleans that
takes no reference (chapter 05 has it as an exercise).
""",
        ),
        Choice(
            key="own-11.1b",
            prompt="Why roll the image and mask, and not simply cut it at the shifted borders?",
            hints=["Count the windows of a 6 x 6 grid for windows of 3, with a shift of 1 and without."],
            options=[
                Option(
                    "Rolling lets patches at opposite edges of the image attend to each other, as if on a globe.",
                    "The roll does bring them together, and the mask forbids exactly that: without a mask it would be "
                    "a fault.",
                ),
                Option(
                    "Rolled, the windows are as many as before and of one size, so that one product computes all.",
                    "On a 6 x 6 grid with windows of 3 and a shift of 1, 2 x 2 windows would become 3 x 3, one of them "
                    "whole and the others narrow or small. Padding them to one size would cost more than twice as "
                    "much; rolling costs nothing but the copy and a mask.",
                    right=True,
                ),
                Option(
                    "Without rolling, information could never cross the borders at which windows were cut before.",
                    "Where the borders lie is what matters for that, not how the windows are computed: cutting at the "
                    "shifted borders gives the same result.",
                ),
                Option(
                    "The position bias is a table for rolled images alone, and cut windows would have no entries.",
                    "It depends on the places of two patches relative to each other. A narrow window has some of the "
                    "places of a whole one, so its entries are in the same table.",
                ),
            ],
        ),
    ],
)
