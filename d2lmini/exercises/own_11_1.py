r"""Find the bugs in a shifted window

Attention inside of windows that are shifted: the borders run `shift` patches below and to the right of where they would
run without. Windows at the edge of the picture are smaller then, and to compute them with the others one *rolls* the
picture. This is somebody's code for it. Shapes are right, gradients flow, a model with it trains, and it has **four
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

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option
from d2lmini.vision.windows import shifted_window_mask, window_partition, window_reverse


def shifted_windows(X, W_q, W_k, W_v, W_o, bias, window, shift):
    """Multi-head self-attention inside of shifted windows.

    Args:
        X: (B, rows, columns, h), patches on a grid that windows divide.
        W_q, W_k, W_v, W_o: (h, h); head i has the i-th block of h / H columns of the first three.
        bias: (H, P, P), added to the scores of each head, a row for a query's place in the window.
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
    area = (2 * down[:, None].long() + right)[None, :, :, None]  # cut off by an edge of the picture, or not
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


def as_given(X, W_q, W_k, W_v, W_o, bias, window, shift, *, cut=False, mask=False, heads=False, undo=False, **other):
    """The broken function; each keyword repairs one of its faults. ``other`` has faults of its own."""
    rolled, scale, late = (other.get(name, name != "late") for name in ("rolled", "scale", "late"))
    B, rows, columns, h = X.shape
    H, grid, by = len(bias), (rows, columns), -shift if rolled else 0
    X = torch.roll(X, (by, by), dims=(1, 2))
    X = window_partition(X, window) if cut else X.reshape(-1, window * window, h)
    q, k, v = ((X @ W).unflatten(-1, (H, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    scores = q @ k.mT / (math.sqrt(h // H) if scale else 1) + (bias if heads else bias.mean(0))
    hidden = ~shifted_window_mask(grid, window, shift if mask else 0, X.device).repeat(B, 1, 1)[:, None]
    weights = torch.softmax(scores if late else scores.masked_fill(hidden, -torch.inf), -1)
    Y = (weights.masked_fill(hidden, 0) @ v).transpose(1, 2).flatten(2) @ W_o
    Y = window_reverse(Y, window, grid) if cut else Y.reshape(B, rows, columns, h)
    back = -by if undo else by
    return torch.roll(Y, (back, back), dims=(1, 2))


def faulty(*faults, **options):
    """The function with these faults left in it."""
    repaired = {name: name not in faults for name in ("cut", "mask", "heads", "undo")}
    return lambda *args: as_given(*args, **repaired, **options)


def not_back(*args):
    return faulty()(*args).roll((-args[-1], -args[-1]), dims=(1, 2))


def _reference(X, W_q, W_k, W_v, W_o, bias, window, shift):
    """Patch by patch, from where the borders lie in the picture: nothing is rolled."""
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


def verify(t, answer):
    for (rows, columns), window, shift in (((9, 6), 3, 1), ((6, 9), 3, 0), ((8, 4), 4, 2), ((4, 6), 2, 1)):
        B, H = t.random.sample([2, 3, 4], 2)
        h, P = H * t.random.choice([2, 5]), window * window
        X = t.randn(B, rows, columns, h)
        matrices = [t.randn(h, h, scale=h**-0.5) for _ in range(4)]
        bias = t.randn(H, P, P, scale=1.5)
        wide = [x.cpu().double() for x in (X, *matrices, bias)]
        want = _reference(*wide, window, shift)

        def wrong(*faults, wide=wide, window=window, shift=shift, **options):
            return faulty(*faults, **options)(*wide, window, shift)

        mistakes = {
            "as-given": (wrong("cut", "mask", "heads", "undo"), "this is still what was given"),
            "strips": (
                wrong("cut"),
                "these windows are strips: reshape takes P patches of a row in their order; cut rows and columns both",
            ),
            "one-bias": (wrong("heads"), "all heads get the same bias: add to each head its own table"),
            "no-bias": (_reference(*wide[:-1], 0 * wide[-1], window, shift), "the bias is not added"),
            "bias-turned": (
                _reference(*wide[:-1], wide[-1].mT, window, shift),
                "the tables are turned: rows belong to queries",
            ),
            "not-scaled": (wrong(scale=False), "the scores are not divided by the root of d"),
            "no-mask": (
                wrong("mask"),
                "patches from opposite edges of the picture attend to each other: the roll brought them together",
            ),
            "too-late": (
                wrong(late=True),
                "weights are set to zero after the softmax, so that what is left does not sum to one: mask the scores",
            ),
            "not-undone": (wrong("undo"), "the roll is repeated, not undone: outputs stand at other patches"),
            "not-back": (not_back(*wide, window, shift), "the roll is not undone: outputs stand at other patches"),
            "no-shift": (_reference(*wide, window, 0), "the windows are not shifted"),
            "never-rolled": (wrong(rolled=False), "the mask is for a rolled picture, and this one was not rolled"),
        }
        for several in (("mask", "undo"), ("cut", "mask"), ("heads", "mask"), ("heads", "undo")):
            mistakes["-and-".join(several)] = (wrong(*several), f"two faults are left of the four; {_LEFT}")
        for one in ("cut", "mask", "heads", "undo"):
            others = [name for name in ("cut", "mask", "heads", "undo") if name != one]
            mistakes[f"only-{one}"] = (wrong(*others), f"one of the four is mended; {_LEFT}")
        case = f"a grid of {rows} x {columns}, windows of {window} and a shift of {shift}"
        t.same(t.call(answer, X, *matrices, bias, window, shift), want, f"the output for {case}", mistakes=mistakes)


_LEFT = "do the experiments again"

EXERCISE = Exercise(
    key="own-11.1",
    doc=__doc__,
    source="own",
    chapter="11",
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
                "raised": "Windows are cut with `unflatten(2, (-1, window)).unflatten(1, (-1, window))` and then "
                "`transpose(2, 3)`: (B, rows / window, columns / window, window, window, h).",
            },
            answer=shifted_windows,
            verify=verify,
            alternatives=[with_the_package, all_at_once, faulty()],
            min_checks=8,
            seconds=20.0,
            mutants=[
                Mutant("as given", "as-given", function=as_given),
                Mutant("strips", "strips", function=faulty("cut")),
                Mutant("no mask", "no-mask", "scores.masked_fill(~may, -torch.inf)", "scores"),
                Mutant("one bias", "one-bias", "+ bias  #", "+ bias.mean(0)  #"),
                Mutant("no bias", "no-bias", "+ bias  #", "#"),
                Mutant("bias turned", "bias-turned", "+ bias  #", "+ bias.mT  #"),
                Mutant("rolled twice", "not-undone", "torch.roll(Y, (shift, shift)", "torch.roll(Y, (-shift, -shift)"),
                Mutant("not rolled back", "not-back", "return torch.roll(Y, (shift, shift), dims=(1, 2))", "return Y"),
                Mutant("not scaled", "not-scaled", " / math.sqrt(h // H)", ""),
                Mutant("mask and roll", "mask-and-undo", function=faulty("mask", "undo")),
                Mutant("only cut", "only-cut", function=faulty("mask", "heads", "undo")),
                Mutant("mask turned", "nonfinite", "masked_fill(~may,", "masked_fill(may,"),
                Mutant("masked too late", "too-late", function=faulty(late=True)),
            ],
            explanation=r"""
None of the four changes a shape, and all let the gradient through: a model learns with windows that are strips, with
opposite edges of the picture side by side, and with heads that share one table of places; it only learns less well, and
nothing says so. So test what a layer *does*: who depends on whom, with and without a shift, is a table of booleans that
takes no reference (chapter 05 has it as an exercise).
""",
        ),
        Choice(
            key="own-11.1b",
            prompt="Why roll the picture and mask, and not simply cut it at the shifted borders?",
            hints=["Count the windows of a 6 x 6 grid for windows of 3, with a shift of 1 and without."],
            options=[
                Option(
                    "Rolling lets patches at opposite edges attend to each other, as on a globe.",
                    "The mask forbids exactly that; without it, it would be a fault.",
                ),
                Option(
                    "Cut at the borders there are more windows, of different shapes; rolled, they are as many as "
                    "before and of one size, so that one product computes them all.",
                    "2 x 2 windows would become 3 x 3, one of them whole and the others narrow or small. Padding them "
                    "to one size would cost more than twice as much; rolling costs nothing but the copy and a mask.",
                    right=True,
                ),
                Option(
                    "Without rolling, information could never cross the borders of the windows.",
                    "Where the borders lie is what matters for that, not how the windows are computed: cutting at the "
                    "shifted borders gives the same result.",
                ),
                Option(
                    "The position bias is only defined for rolled pictures.",
                    "It depends on the places of two patches relative to each other, which no roll changes inside of a "
                    "window.",
                ),
            ],
        ),
    ],
)
