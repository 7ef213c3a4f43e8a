r"""Two ways out of the quadratic cost

In a Vision Transformer every patch attends to every other: with N patches that is $N^2$ pairs in each layer, and an
image of twice the side has sixteen times as many. Yet not every pair has to meet in *every* layer. A patch can hear
of another one through a third.

Let there be a grid of `rows` x `columns` patches, numbered row by row. A boolean mask (N, N) says for one layer who may
attend to whom: the entry in row t and column s is True where patch t may attend to patch s. Several layers, one mask
each, are a *pattern*. Patch t *hears of* patch s if there is a way: t attends in the last layer to a patch that
attended in the layer before to a patch ... that attended in the first layer to s.
"""

from functools import cache

import torch

from d2lmini.exercises.engine import Code, Count, Exercise, Mutant

DEPTH, BUDGET, SAME = 3, 3, 0.75


def two_patterns(rows, columns):
    """Find two different patterns, each with few pairs, in which everybody hears of everybody.

    Args:
        rows, columns: of the grid of N patches; both even, from 4 to 12.

    Returns:
        A pair of patterns. Each is a list of one to three boolean masks (N, N), that of the first layer first.
    """
    ### BEGIN SOLUTION
    patch = torch.arange(rows * columns)
    row, column = patch // columns, patch % columns

    def same(x):
        return x[:, None] == x

    cross = same(row) | same(column)
    window = same(row // 2) & same(column // 2)  # 2 x 2 neighbours
    place = same(row % 2) & same(column % 2)  # one patch of every window
    return [cross, cross], [window, place]
    ### END SOLUTION


def with_a_hub(rows, columns):
    N = rows * columns
    hub = torch.eye(N).bool()
    hub[0] = hub[:, 0] = True  # one patch listens to all, and all listen to it
    line = torch.arange(N).div(columns, rounding_mode="floor")
    row = line[:, None] == line
    turned = torch.arange(N) % columns
    return [hub, hub], [row, turned[:, None] == turned]


def without_staying(rows, columns):
    """Leaders of the rows, in three layers; a patch need not attend to itself in all of them."""
    N = rows * columns
    r, leader = torch.arange(N) // columns, torch.arange(N) % columns == 0
    own = r[:, None] == r
    to_leader = own & leader  # (N, N): everybody asks the leader of the row
    among = leader[:, None] & leader
    return [own, among | torch.eye(N).bool(), to_leader], with_a_hub(rows, columns)[1]


# wrong answers


def all_to_all(rows, columns):
    full = torch.ones(rows * columns, rows * columns).bool()
    return [full], two_patterns(rows, columns)[1]


def half_of_all(rows, columns):
    half = torch.ones(rows * columns, rows * columns).bool().tril()
    return [half, half.T], two_patterns(rows, columns)[1]


def neighbours(rows, columns):
    patch = torch.arange(rows * columns)
    row, column = patch // columns, patch % columns
    near = ((row[:, None] - row).abs() <= 1) & ((column[:, None] - column).abs() <= 1)
    return [near] * 3, two_patterns(rows, columns)[1]


def shifted(rows, columns):
    patch = torch.arange(rows * columns)
    row, column = patch // columns, patch % columns
    masks = []
    for shift in (0, 1, 0):
        r, c = (row + shift) // 2, (column + shift) // 2
        masks.append((r[:, None] == r) & (c[:, None] == c))
    return two_patterns(rows, columns)[0], masks


def rows_first(rows, columns):
    """A mask that was read with the number of rows in the place of that of columns."""
    patch = torch.arange(rows * columns)
    row, column = patch // rows, patch % columns
    return [row[:, None] == row, column[:, None] == column], two_patterns(rows, columns)[1]


def read_backwards(rows, columns):
    first, second = without_staying(rows, columns)
    return first[::-1], second


def once_more(rows, columns):
    """The first pattern with a layer in which everybody keeps to itself."""
    first, _ = two_patterns(rows, columns)
    return first, [*first, torch.eye(rows * columns).bool()]


def with_useless_layers(rows, columns):
    """Rows and columns twice, each time with a third layer that nobody needs."""
    _, (row, column) = with_a_hub(rows, columns)
    itself = torch.eye(rows * columns).bool()
    return [row, column, itself], [row, column, itself.roll(1, 1)]


def with_a_full_row(rows, columns):
    """Rows and columns, and then again with one patch that listens to all."""
    (hub, _), (row, column) = with_a_hub(rows, columns)
    return [row, column], [row | hub, column | hub]


def hardly_changed(rows, columns):
    (cross, _), _ = two_patterns(rows, columns)
    other = cross.clone()
    other[0, -1] = True
    return [cross, cross], [other, other]


def _all_hear(masks):
    """Whose news reach whom after all layers: (N, N)."""
    heard = masks[0].double()
    for mask in masks[1:]:
        heard = (mask.double() @ heard > 0).double()
    return heard > 0


def _needed(masks):
    """The layers without those that can be left out."""
    for i in reversed(range(len(masks))):
        rest = masks[:i] + masks[i + 1 :]
        if rest and bool(_all_hear(rest).all()):
            return _needed(rest)
    return masks


def _known(mask, masks):
    """Whether most pairs of a mask are those of one among ``masks``."""
    return any(int((mask & other).sum()) >= SAME * int((mask | other).sum()) for other in masks)


def verify_patterns(t, answer):
    grids = [(4, 6), (t.random.choice([6, 10]), 8), (12, t.random.choice([8, 10]))]
    for rows, columns in grids:
        N = rows * columns
        case = f"for {rows} x {columns} patches"
        patterns = t.unpack(t.call(answer, rows, columns), "first", "second")
        sets = []
        for name, masks in zip(("first", "second"), patterns, strict=True):
            listed = isinstance(masks, (list, tuple)) and all(isinstance(mask, torch.Tensor) for mask in masks)
            t.that(listed, "type", f"the {name} pattern is no list of masks")
            layers = len(masks)
            t.that(1 <= layers <= DEPTH, "deep", f"the {name} pattern has {layers} layers, expected 1 to {DEPTH}")
            shapes = [tuple(mask.shape) for mask in masks]
            t.that(set(shapes) == {(N, N)}, "shape", f"masks of the {name} pattern have shapes {shapes}, for N = {N}")
            boolean = all(mask.dtype == torch.bool for mask in masks)
            t.that(boolean, "dtype", f"masks of the {name} pattern must be boolean: True where a patch may attend")
            masks = [mask.cpu() for mask in masks]
            most = max(int(mask.sum()) for mask in masks)
            t.that(
                most <= BUDGET * N**1.5,
                "expensive",
                f"{case}, a layer of the {name} pattern has {most / N:.1f} pairs for each patch: more than {BUDGET} "
                f"times the root of N = {N}",
            )
            attends = all(bool(mask.any(1).all()) for mask in masks)
            t.that(attends, "deaf", f"{case}, the {name} pattern has patches that attend to nobody")
            lost = (~_all_hear(masks)).nonzero()
            forwards = len(lost) == 0 or not bool(_all_hear(masks[::-1]).all())
            t.that(
                forwards,
                "order",
                f"{case}, the {name} pattern lets all hear of all only if it is read backwards: the first mask belongs "
                "to the first layer, and row t says whom patch t attends to",
            )
            t.that(
                len(lost) == 0,
                "unheard",
                f"{case}, {len(lost)} of {N * N} pairs never meet in the {name} pattern; patch "
                f"{lost[0].tolist()[0] if len(lost) else 0} is one that does not hear of all",
            )
            sets.append(_needed(masks))
        first, second = sets
        new = all(
            any(not _known(mask, others) for mask in masks) for masks, others in ((first, second), (second, first))
        )
        t.that(
            new,
            "alike",
            f"{case}, the patterns are nearly the same: each must have a mask that the other has not, and some pairs "
            "more or less do not make one, nor does a layer that could be left out. Find another idea",
        )


def pattern_costs(rows, columns, window_size, num_hiddens):
    """Count the work of four ways to attend.

    Args:
        rows, columns: of the grid of N patches.
        window_size: M, a divisor of both.
        num_hiddens: h, features of every patch.

    Returns:
        dict of multiply-adds of one layer: ``full`` (all patches), ``cross`` (those of the same row or the same
        column), ``window`` (those of the same window of M x M patches), ``place`` (those at the same place in their
        windows).
    """
    ### BEGIN SOLUTION
    N = rows * columns
    seen = {  # how many patches each one attends to
        "full": N,
        "cross": rows + columns - 1,  # itself once
        "window": window_size**2,
        "place": N // window_size**2,  # one in every window
    }
    return {name: 2 * N * keys * num_hiddens for name, keys in seen.items()}
    ### END SOLUTION


def in_windows(rows, columns, window_size, num_hiddens):
    N, windows = rows * columns, (rows // window_size) * (columns // window_size)
    inside = N // windows
    return {
        "full": 2 * num_hiddens * N * N,
        "cross": 2 * num_hiddens * (rows * columns * columns + columns * rows * rows - N),
        "window": 2 * num_hiddens * windows * inside**2,
        "place": 2 * num_hiddens * inside * windows**2,
    }


@cache
def _multiply_adds(rows, columns, M, h):
    """All pairs are looked at."""
    every = range(rows * columns)
    row, column = [n // columns for n in every], [n % columns for n in every]
    pairs = [(a, b) for a in every for b in every]
    counts = {
        "full": len(pairs),
        "cross": sum(row[a] == row[b] or column[a] == column[b] for a, b in pairs),
        "window": sum(row[a] // M == row[b] // M and column[a] // M == column[b] // M for a, b in pairs),
        "place": sum(row[a] % M == row[b] % M and column[a] % M == column[b] % M for a, b in pairs),
    }
    return {name: 2 * count * h for name, count in counts.items()}


def verify_costs(t, answer):
    for rows, columns, M, h in ((6, 15, 3, 10), (14, 7, 7, 16), (4, 6, 2, 5), (8, 20, 4, 3)):
        wanted = _multiply_adds(rows, columns, M, h)
        got = t.fields(t.call(answer, rows, columns, M, h), *wanted)
        for (name, want), number in zip(wanted.items(), got, strict=True):
            t.number(number, want, f"{name} for {rows} x {columns} patches, M={M}, h={h}")


MUTANTS_A = [
    Mutant("expensive", all_to_all),
    Mutant("expensive", half_of_all),
    Mutant("unheard", neighbours),
    Mutant("unheard", shifted),
    Mutant("unheard", rows_first),
    Mutant("order", read_backwards),
    Mutant("alike", once_more),
    Mutant("alike", with_useless_layers),
    Mutant("alike", with_a_full_row),
    Mutant("alike", hardly_changed),
    Mutant("alike", ("[cross, cross], [window, place]", "[window, place], [window, place][::-1]")),  # in another order
    Mutant("unheard", ("[cross, cross]", "[cross]")),  # one layer
    Mutant("deep", ("[cross, cross]", "[cross] * 4")),  # too deep
    Mutant("alike", ("[window, place]", "[cross, cross]")),  # the same twice
    Mutant("deaf", ("[window, place]", "[window, place & ~place]")),  # not itself
    Mutant("dtype", ("[cross, cross]", "[cross.float(), cross.float()]")),  # numbers
    Mutant("shape", ("[cross, cross]", "[cross.unflatten(1, (rows, columns))] * 2")),  # a grid of them
    Mutant("type", ("[cross, cross]", "cross")),  # one mask
]  # fmt: skip

MUTANTS_B = [
    Mutant("one-product", ("2 * N * keys", "N * keys"), "there are two products: queries with keys, and weights with "
        "values"),
    Mutant("operations", ("2 * N * keys", "4 * N * keys"), "a multiplication and its addition count as one here"),
    Mutant("pairs", ("2 * N * keys * num_hiddens", "N * keys"), "these are pairs: each costs h multiply-adds in either "
        "product"),
    Mutant("no-features", ("2 * N * keys * num_hiddens", "2 * N * keys"), "a patch has h features: every pair costs h "
        "multiply-adds in either product"),
    Mutant("one-query", ("2 * N * keys", "2 * keys"), "this is the work for one patch; there are N"),
    Mutant("itself", ("rows + columns - 1", "rows + columns"), "the patch itself is in its row and in its column: "
        "count it once"),
    Mutant("without-itself", ("rows + columns - 1", "rows + columns - 2"), "the patch itself is in its row, too: it "
        "attends to itself"),
    Mutant("row-alone", ("rows + columns - 1", "columns"), "this is the row alone: the patches of the same column are "
        "seen, too"),
    Mutant("window-side", ('"window": window_size**2', '"window": window_size'), "a window has M x M patches"),
    Mutant("one-window", ('"window": window_size**2', '"window": window_size**4 / N'), "this is the work of one "
        "window: all of them are computed"),
    Mutant("windows-side", ("N // window_size**2", "N // window_size"), "there are N / M^2 windows"),
    Mutant("exchanged", ('"window": window_size**2,\n        "place": N // window_size**2,',
        '"window": N // window_size**2,\n        "place": window_size**2,'), "window and place are exchanged: a window "
        "has M x M patches, a place one in every window"),
    Mutant("square", ("N = rows * columns", "N = rows**2"), "the grid is no square: rows and columns are two numbers"),
    Mutant("square", ("N = rows * columns", "N = columns**2"), "the grid is no square: rows and columns are two "
        "numbers"),
    Mutant("square", ('"full": N,', '"full": rows**2,'), "the grid is no square: rows and columns are two numbers"),
    Mutant("square", ("rows + columns - 1", "2 * rows - 1"), "the grid is no square: rows and columns are two numbers"),
    Mutant("square", ("rows + columns - 1", "2 * columns - 1"), "the grid is no square: rows and columns are two "
        "numbers"),
    Mutant("square", ("N // window_size**2", "(rows // window_size) ** 2"), "the grid is no square: rows and columns "
        "are two numbers"),
    Mutant("square", ("N // window_size**2", "(columns // window_size) ** 2"), "the grid is no square: rows and "
        "columns are two numbers"),
    Mutant("window-for-place", ('"place": N // window_size**2', '"place": window_size**2'), "these are the patches of "
        "a window; at the same place there is one in every window"),
    Mutant("all-windows", ('"place": N // window_size**2', '"place": N'), "a patch attends to the patches at its "
        "own place, one in every window, not to all"),
    Mutant("features-squared", ("2 * N * keys * num_hiddens", "2 * N * keys * num_hiddens**2"), "h is in it twice: "
        "a score is a sum of h products"),
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.9",
    doc=__doc__,
    source="UDL problem 12.9",
    parts=[
        Code(
            key="udl-12.9a",
            prompt=r"""
Invent two patterns, and write `two_patterns(rows, columns)`, which returns them as two lists of masks. What the check
asks of each:

- it has at most three layers, and after the last one **every patch hears of every other**;
- no layer lets more than $3 N \sqrt N$ pairs attend, and in none is there a patch that attends to nobody.

And the two must differ: each has a mask that the other lacks. Two masks that share three quarters of their pairs count
as one, and layers that could be left out, so that still all hear of all, do not count. It is tried on three grids with
more columns than rows or the reverse. There are many right answers.
""",
            hints=[
                "With which piece can you reach every square of a chessboard in two moves? Not with a king.",
                "A patch hears in the first layer of its whole row. If it then asks those of its column, what have "
                "they heard?",
                "Another idea: neighbours first, and then one patch of every neighbourhood. Or one patch that listens "
                "to all, and to which all listen.",
                "`row, column = patch // columns, patch % columns`, and `row[:, None] == row` is a mask.",
            ],
            advice={
                "unheard": "Patches are numbered row by row: `patch // columns` is the row, `patch % columns` the "
                "column. Write down what patch 0 has heard after each layer.",
                "expensive": "How many may each patch attend to? With N patches about the root of N, three times.",
            },
            answer=two_patterns,
            verify=verify_patterns,
            alternatives=[with_a_hub, without_staying],
            min_checks=30,
            mutants=MUTANTS_A,
            explanation=r"""
Rows and columns together (*criss-cross* attention) need two layers and $N(\text{rows} + \text{columns} - 1)$ pairs,
about $2N\sqrt N$. Windows, and then one patch of every window (MaxViT's *block* and *grid* attention), need two layers
as well; windows of $\sqrt[4] N$ patches a side make both equally large. A *hub*, a token that listens to all and is
heard by all, needs only about $3N$ pairs; but all that anybody hears of anybody has to fit into its h features. The
class token of ViT would be one, if the patches did not attend to each other besides.

Windows that shift, as Swin has them, cost little, but small ones do not pass within three layers: news travel about one
window a layer. Swin merges patches from stage to stage, so that windows come to cover the image.
""",
        ),
        Count(
            key="udl-12.9b",
            prompt="What do such layers cost? Write `pattern_costs(rows, columns, window_size, num_hiddens)`. Count "
            "multiply-adds of the two products (queries with keys, weights with values) and nothing else; only pairs "
            "that may attend are computed.",
            hints=[
                "How many patches does each one attend to? That is all that differs.",
                "Each pair costs h multiply-adds for its score, and h more for its share of the average.",
                "In the same row are `columns` patches and in the same column `rows`; one is in both.",
            ],
            answer=pattern_costs,
            verify=verify_costs,
            alternatives=[in_windows],
            min_checks=16,
            advice={
                "values": "For 4 x 6 patches and windows of 2, count by hand the patches that one of them attends to. "
                "Then there are N patches, two products and h features, and nothing else counts.",
            },
            mutants=MUTANTS_B,
            explanation=r"""
All is $2hN$ times the patches that each one attends to. For an image of twice the side, N is four times as large: the
full layer costs 16 times as much, the cross about 8 times, windows of a fixed size 4 times.
""",
        ),
    ],
)
