r"""Attention among patches, or among channels

An image is cut into a grid of `rows` x `columns` patches, N in all, each with C channels: a table of N rows and C
columns. DaViT attends to it in turns in two ways.

- **Patches**: each patch is a token of C features. There are N x N weights (DaViT has windows, part c).
- **Channels**: each channel is a token of N features, one for each patch. There are C x C weights; in G groups, each
  channel attends only to the C / G of its own group.

Both start with the same three projections, of every patch to query, key and value, and end with the same output
projection, from C to C features each. In between stand two products: queries with keys, weights with values. Count
**multiply-adds**: a multiplication with the addition of its result is one. Leave out the softmax, scaling and biases.

A layer of the size that the problem asks about has a grid of 16 x 16 patches and 512 channels.
"""

import math
from functools import cache

import torch
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.exercises.engine import Choice, Count, Exercise, Mutant, Option

# more patches than channels; the size that the problem names; groups
CONFIGURATIONS = [(14, 15, 24, 1), (16, 16, 512, 1), (7, 6, 96, 4), (9, 5, 60, 3)]


def davit_cost(rows, columns, num_channels, num_groups):
    """Count the multiply-adds of both kinds of attention.

    Args:
        rows, columns: of the grid of patches.
        num_channels: C.
        num_groups: G, a divisor of C, of the attention among channels. The one among patches has one head; more heads
            would not change its cost.

    Returns:
        dict with ``patches`` and ``channels``, the multiply-adds of the two products of each kind, ``projections``,
        those of the four projections, and ``ratio``, channels over patches.
    """
    ### BEGIN SOLUTION
    N, C = rows * columns, num_channels
    patches = 2 * N**2 * C  # N x N weights, each from C products; and used for C sums
    channels = 2 * C * (C // num_groups) * N
    return {
        "patches": patches,
        "channels": channels,
        "projections": 4 * N * C**2,
        "ratio": channels / patches,
    }
    ### END SOLUTION


def group_by_group(rows, columns, num_channels, num_groups):
    tokens, width = rows * columns, num_channels // num_groups
    scores = {"patches": tokens * tokens * num_channels, "channels": num_groups * width * width * tokens}
    ratio = num_channels / (num_groups * tokens)
    projections = 4 * tokens * num_channels * num_channels
    return {name: 2 * n for name, n in scores.items()} | {"projections": projections, "ratio": ratio}


def _multiply_adds(work):
    with FlopCounterMode(display=False) as counted:
        work()
    return counted.get_total_flops() // 2


@cache
def _measured(rows, columns, C, G):
    """Multiply-adds of real products: among patches, among channels, and of the projections."""
    X, W = torch.randn(1, rows * columns, C), torch.randn(C, C)
    by_group = X.mT.unflatten(1, (G, -1)).flatten(0, 1)  # (G, C / G, N)
    among = [_multiply_adds(lambda x=x: torch.bmm(torch.softmax(torch.bmm(x, x.mT), -1), x)) for x in (X, by_group)]
    return *among, 4 * _multiply_adds(lambda: X[0] @ W)


def verify_cost(t, answer):
    for rows, columns, C, G in CONFIGURATIONS:
        patches, channels, projections = _measured(rows, columns, C, G)
        wanted = {"patches": patches, "channels": channels, "projections": projections, "ratio": channels / patches}
        got = t.fields(t.call(answer, rows, columns, C, G), *wanted)
        for (name, want), number in zip(wanted.items(), got, strict=True):
            t.number(number, want, f"{name} for a grid of {rows} x {columns}, C={C}, G={G}")


def first_cheaper_side(patch_size, num_channels, num_groups):
    """Find from which size of image on attention among channels costs less than attention among all patches.

    Args:
        patch_size: pixels along a side of a patch.
        num_channels: C. num_groups: G, a divisor of C.

    Returns:
        The side, in pixels, of the smallest square image whose patches cost more to attend to than its channels.
        Patches divide the image.
    """
    ### BEGIN SOLUTION
    turn = num_channels // num_groups  # with so many patches both cost the same
    side = math.isqrt(turn) + 1  # patches: the first square above
    return patch_size * side
    ### END SOLUTION


def by_trying(patch_size, num_channels, num_groups):
    side = 1
    while 2 * (side * side) ** 2 * num_channels <= 2 * side * side * num_channels * num_channels // num_groups:
        side += 1
    return side * patch_size


def verify_turn(t, answer):
    # with 576 / 4, 256 / 4 and 288 / 2 channels a group, some square image costs exactly the same either way
    for patch_size, C, G in ((4, 512, 1), (2, 96, 3), (7, 576, 4), (16, 256, 4), (3, 288, 2)):
        side = 1
        while not side**2 * side**2 * C > C * (C // G) * side**2:
            side += 1
        before, after = _measured(side - 1, side - 1, C, G), _measured(side, side, C, G)
        t.that(before[0] <= before[1] and after[0] > after[1], "broken", "real products do not turn where they should")
        got = t.call(answer, patch_size, C, G)
        t.number(got, side * patch_size, f"the side for patches of {patch_size}, C={C}, G={G}")


_ONE = "this is one product; there are two, queries with keys and weights with values"
_OPERATIONS = "a multiplication and its addition count as one here"

MUTANTS_A = [
    Mutant("one-product", ("2 * N**2 * C", "N**2 * C"), _ONE),
    Mutant("operations", ("2 * N**2 * C", "4 * N**2 * C"), _OPERATIONS),
    Mutant("swapped", ("2 * N**2 * C", "2 * N * C**2"), "this is attention among all channels, not among patches"),
    Mutant("side", ("2 * N**2 * C", "2 * rows**2 * C"), "N counts all patches of the grid, not those along its side"),
    Mutant("square", ("N, C = rows * columns,", "N, C = rows * rows,"), "the grid is no square: N is rows times "
        "columns"),
    Mutant("patches-in-groups", ("2 * N**2 * C", "2 * N**2 * C // num_groups"), "the groups are of channels: attention "
        "among patches knows none"),
    Mutant("one-query", ("2 * N**2 * C", "2 * N * C"), "this is the work for one patch; there are N"),
    Mutant("one-product", ("2 * C * (C", "C * (C"), _ONE),
    Mutant("operations", ("2 * C * (C", "4 * C * (C"), _OPERATIONS),
    Mutant("no-groups", ("(C // num_groups)", "C"), "channels of different groups do not attend to each other"),
    Mutant("one-group", ("2 * C * (C // num_groups)", "2 * (C // num_groups) ** 2"), "this is the work for one group; "
        "there are G"),
    Mutant("three", ("4 * N * C**2", "3 * N * C**2"), "query, key, value, and the output projection: there are four"),
    Mutant("one-projection", ("4 * N * C**2", "N * C**2"), "this is one projection; there are four"),
    Mutant("operations", ("4 * N * C**2", "8 * N * C**2"), _OPERATIONS),
    Mutant("one-patch", ("4 * N * C**2", "4 * C**2"), "every patch is projected"),
    Mutant("grouped", ("4 * N * C**2", "4 * N * C**2 // num_groups"), "the projections know no groups: from C to C "
        "features each"),
    Mutant("upside-down", ("channels / patches", "patches / channels"), "upside down: channels over patches"),
    Mutant("rounded", ("channels / patches", "channels // patches"), "the ratio is rounded: `/` divides, `//` rounds "
        "down"),
    Mutant("with-projections", ('"ratio": channels / patches',
        '"ratio": (channels + 4 * N * C**2) / (patches + 4 * N * C**2)'), "the ratio is that of the two products "
        "alone, without the projections"),
    Mutant("features-squared", ("2 * C * (C // num_groups) * N", "2 * C * (C // num_groups) * N**2"),
        "N is in it twice: a weight of two channels is a sum of N products"),
    Mutant("biases", ("4 * N * C**2", "4 * N * (C**2 + C)"), "biases are left out here"),
    Mutant("percent", ('"ratio": channels / patches', '"ratio": 100 * channels / patches'), "this is in per cent; "
        "the ratio is channels divided by patches"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("patches", ("patch_size * side", "side"), "this is the side in patches, asked for are pixels"),
    Mutant("one-short", ("math.isqrt(turn) + 1", "math.isqrt(turn)"), "one patch short: at this side the patches do "
        "not cost more yet"),
    Mutant("equal", ("math.isqrt(turn) + 1", "math.ceil(math.sqrt(turn))"), "at this side both cost the same: the "
        "patches have to cost more"),
    Mutant("no-groups", ("num_channels // num_groups", "num_channels"), "a channel attends to those of its group: the "
        "turn depends on G"),
    Mutant("times-groups", ("num_channels // num_groups", "num_channels * num_groups"), "more groups make the channels "
        "cheaper: the turn comes earlier, not later"),
    Mutant("no-root", ("math.isqrt(turn) + 1", "turn + 1"), "this is a side with so many patches; the image is a "
        "square and has that many in all"),
    Mutant("floats", ("math.isqrt(turn) + 1", "int(math.sqrt(num_channels) / math.sqrt(num_groups)) + 1"),
        "a quotient of two roots is not exact: what should be a whole number may lie below it and be rounded down. "
        "Take one root, of C / G"),
    Mutant("no-patches", ("return patch_size * side", "return patch_size * math.sqrt(turn)"), "this is the side to the "
        "pixel: patches divide the image, so round up to a whole patch"),
    Mutant("no-patches", ("return patch_size * side", "return math.floor(patch_size * math.sqrt(turn)) + 1"),
        "this is the side to the pixel: patches divide the image, so round up to a whole patch"),
    Mutant("area", ("patch_size * side", "(patch_size * side) ** 2"), "this is the number of pixels; asked for is the "
        "side"),
    Mutant("patches-in-all", ("patch_size * side", "side**2"), "this is the number of patches in all; asked for is the "
        "side in pixels"),
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.10",
    doc=__doc__,
    source="UDL problem 12.10",
    parts=[
        Count(
            key="udl-12.10a",
            prompt="Write `davit_cost(rows, columns, num_channels, num_groups)`. Then call it for the layer of the "
            "problem: which of the two is cheaper there, and by what factor?",
            hints=[
                "A product of (n, m) and (m, n) has n n entries, and each takes m multiply-adds.",
                "Among patches: n = N and m = C. Among channels of one group: n = C / G and m = N. Each kind has two "
                "products.",
                "Patches 2 N N C, channels 2 C (C / G) N, projections 4 N C C.",
            ],
            answer=davit_cost,
            verify=verify_cost,
            alternatives=[group_by_group],
            min_checks=20,
            advice={
                "values": "Write down the shapes of both factors of each product: (n, m) and (m, k) cost n m k. "
                "Nothing but products counts, and nothing is rounded.",
            },
            mutants=MUTANTS_A,
            explanation=r"""
Among patches $2N^2C$, among channels $2NC^2/G$: the ratio is $C/(GN)$. A grid of 16 x 16 has N = 256; with 512 channels
in one group, the attention among *patches* is the cheaper one, by a factor of two. But its cost grows with the square
of the number of patches, that of the other in proportion to it. And both stand beside projections of $4NC^2$, which
are the larger part of attention among patches as long as $N < 2C$.
""",
        ),
        Count(
            key="udl-12.10b",
            prompt="For a given layer, channels become the cheaper ones when images grow. Write "
            "`first_cheaper_side(patch_size, num_channels, num_groups)`.",
            hints=[
                "Set the two formulas of part a equal. N and C cancel to what?",
                "They are equal at N = C / G. Square images have N = 1, 4, 9, ...: which is the first above C / G? "
                "Not the first that reaches it.",
                "`math.isqrt` rounds a root down.",
            ],
            answer=first_cheaper_side,
            verify=verify_turn,
            alternatives=[by_trying],
            min_checks=5,
            advice={
                "values": "Go through squares of 1, 4, 9, ... patches with your formulas for the two products, without "
                "the projections: at which do the patches cost more for the first time?",
            },
            mutants=MUTANTS_B,
            explanation=r"""
It turns at $N = C/G$: where there are as many patches as channels in a group. That is early. DaViT takes 32 channels a
group in every stage, so its attention among channels is the cheaper one on every grid above 5 x 5, and an image of
twice the side costs it four times as much where attention among all patches costs sixteen times as much.
""",
        ),
        Choice(
            key="udl-12.10c",
            prompt="Attention among channels is global and its cost is linear in N. Why does DaViT not use it alone?",
            hints=[
                "One weight says how much of channel b goes into channel a. In which patches?",
                "Move the patches of the image about, all channels in the same way. What happens to the weights?",
            ],
            options=[
                Option(
                    "A weight depends on the channels of one patch at a time, so that distant patches never meet.",
                    "A query is a channel with its values in *all* N patches; every patch takes part in every weight.",
                ),
                Option(
                    "One weight mixes two channels alike in every patch: which patch is where is never compared.",
                    "The dot product of two channels sums over patches and does not ask for their order. That tells "
                    "what the image holds as a whole. Which patch should hear of which is what attention in windows "
                    "adds.",
                    right=True,
                ),
                Option(
                    "It needs as many patches as channels, and most images have far fewer patches than that.",
                    "The products have sizes (C, N) and (N, C), which fit together for any N.",
                ),
                Option(
                    "The weights of a channel no longer sum to one, as its group holds only some of the channels.",
                    "The softmax runs over the channels of a group, and each row of C / G weights sums to one.",
                ),
            ],
        ),
    ],
)
