r"""What attention costs, in arithmetic and in memory traffic

Take plain dot-product attention in three steps: scores $\mathbf Q \mathbf K^\top$, softmax, weights times
$\mathbf V$. There are B sequences, T queries and S keys; keys have D features, values E.

Write `attention_cost(B, T, S, D, E, itemsize)` that returns a dict of four numbers:

- `flops`: floating-point operations of the two matrix products; a multiplication and an addition are two;
- `bytes`: traffic to and from memory when each of the three steps reads its inputs from memory and writes
  its result back, at `itemsize` bytes a number;
- `intensity`: `flops` divided by `bytes`;
- `fused_intensity`: the same FLOPs divided by the traffic of a fused kernel, which reads Q, K and V once,
  writes the output once, and keeps scores and weights on the chip.

Leave out the scaling by $\sqrt D$ (it can be folded into the queries) and the few operations inside the
softmax.
"""

import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.exercises.engine import Count, Exercise, Mutant, Traffic

# and random ones: short and wide, long and narrow, one query against a long memory (decoding), no two sizes alike
CONFIGURATIONS = [
    (3, 7, 11, 64, 40, 4),
    (2, 128, 160, 16, 24, 4),
    (5, 1, 301, 48, 40, 2),
    (1, 67, 35, 20, 12, 8),
]
DTYPES = {2: torch.bfloat16, 4: torch.float32, 8: torch.float64}


def attention_cost(B, T, S, D, E, itemsize):
    """Count the work of plain dot-product attention.

    Args:
        B: sequences. T: queries. S: keys. D: features of a key. E: features of a value.
        itemsize: bytes a number.

    Returns:
        dict with ``flops``, ``bytes``, ``intensity`` and ``fused_intensity``.
    """
    ### BEGIN SOLUTION
    flops = 2 * B * T * S * (D + E)
    ends = B * (T * D + S * D + S * E + T * E)  # Q, K, V and the output
    middle = 4 * B * T * S  # scores written and read, weights written and read
    moved = itemsize * (ends + middle)
    return {
        "flops": flops,
        "bytes": moved,
        "intensity": flops / moved,
        "fused_intensity": flops / (itemsize * ends),
    }
    ### END SOLUTION


def step_by_step(B, T, S, D, E, itemsize):
    flops = B * T * S * (2 * D) + B * T * E * (2 * S)
    scores = T * D + S * D + T * S
    softmax = 2 * T * S
    output = T * S + S * E + T * E
    moved = B * itemsize * (scores + softmax + output)
    fused = B * itemsize * (D * (T + S) + E * (T + S))
    return {"flops": flops, "bytes": moved, "intensity": flops / moved, "fused_intensity": flops / fused}


def verify(t, answer):
    for B, T, S, D, E, itemsize in (*CONFIGURATIONS, (*t.sizes(5, 3, 70), 4)):
        queries, keys, values = (
            torch.randn(shape, dtype=DTYPES[itemsize]) for shape in ((B, T, D), (B, S, D), (B, S, E))
        )
        with FlopCounterMode(display=False) as work, Traffic() as traffic:
            out = torch.bmm(torch.softmax(torch.bmm(queries, keys.mT), -1), values)
        fused = F.scaled_dot_product_attention(queries, keys, values, scale=1.0)
        ends = sum(x.nbytes for x in (queries, keys, values, fused))
        flops, moved = work.get_total_flops(), traffic.bytes
        t.that(out.shape == fused.shape, "broken", "the two forms of attention differ in shape")

        case = f"for B={B}, T={T}, S={S}, D={D}, E={E}, itemsize={itemsize}"
        got = t.call(answer, B, T, S, D, E, itemsize)
        flops_got, bytes_got, plain_got, fused_got = t.fields(got, "flops", "bytes", "intensity", "fused_intensity")
        t.number(flops_got, flops, f"flops {case}")
        t.number(bytes_got, moved, f"bytes {case}")
        t.number(plain_got, flops / moved, f"intensity {case}")
        t.number(fused_got, flops / ends, f"fused_intensity {case}")


MUTANTS = [
    Mutant("one-product", ("(D + E)", "D"), "only the scores are counted, not the product with the values"),
    Mutant("D-for-E", ("(D + E)", "2 * D"), "both products are counted with D: the weighted sum has E features"),
    Mutant("multiply-add", ("2 * B * T * S * (D + E)", "B * T * S * (D + E)"), "a multiplication and an addition count "
        "as two operations"),
    Mutant("no-batch", ("2 * B * T * S * (D + E)", "2 * T * S * (D + E)"), "this is the work for one sequence of the "
        "batch"),
    Mutant("T-for-S", ("2 * B * T * S * (D + E)", "2 * B * T * T * (D + E)"), "there are S keys, and T queries only: "
        "the scores are a (T, S) matrix"),
    Mutant("full-layer", ("(D + E)", "(D * E)"), "the two products come one after the other: D + E, not D times E"),
    Mutant("twice", ("2 * B * T * S * (D + E)", "4 * B * T * S * (D + E)"), "twice too much: there are two products, "
        "and D + E already counts both"),
    Mutant("no-softmax", ("middle = 4 *", "middle = 2 *"), "the softmax reads and writes (T, S) numbers too"),
    Mutant("three-times", ("middle = 4 *", "middle = 3 *"), "(T, S) numbers move four times, not three: scores written "
        "and read, weights written and read"),
    Mutant("fused-bytes", ("(ends + middle)", "ends"), "this is the traffic of the fused kernel"),
    Mutant("numbers", ("moved = itemsize * ", "moved = "), "these are numbers, not bytes"),
    Mutant("no-output", ("S * E + T * E)", "S * E)"), "the output is written too"),
    Mutant("values-D", ("S * E + T * E)", "S * D + T * D)"), "values and output are counted with D features: they have "
        "E"),
    Mutant("V-with-D", ("S * E + T * E)", "S * D + T * E)"), "the values are counted with D features: they have E"),
    Mutant("output-D", ("S * E + T * E)", "S * E + T * D)"), "the output is counted with D features: it has E"),
    Mutant("bytes-no-batch", ("itemsize * (ends + middle)", "itemsize * (ends + middle) // B"), "this is the traffic "
        "for one sequence of the batch"),
    Mutant("upside-down", ('"intensity": flops / moved', '"intensity": moved / flops'), "this is bytes per operation: "
        "intensity is operations per byte"),
    Mutant("still-unfused", ("flops / (itemsize * ends)", "flops / moved"), "the fused kernel moves no scores and no "
        "weights"),
    Mutant("fused-upside-down", ("flops / (itemsize * ends)", "itemsize * ends / flops"),
        "this is bytes per operation: intensity is operations per byte"),
    Mutant("per-number", ("flops / (itemsize * ends)", "flops / ends"), "these are operations per number, not per "
        "byte"),
    Mutant("additions", ("2 * B * T * S * (D + E)", "B * T * S * (2 * D - 1) + B * T * E * (2 * S - 1)"),
        "count as many additions as multiplications: the first product is added to zero"),
    Mutant("softmax-flops", ("2 * B * T * S * (D + E)", "2 * B * T * S * (D + E) + B * T * S"),
        "leave out the operations of the softmax and the scaling"),
    Mutant("keys-shared", ("B * (T * D + S * D + S * E + T * E)", "B * (T * D + T * E) + S * D + S * E"),
        "each sequence has keys and values of its own"),
    Mutant("once-a-query", ("B * (T * D + S * D + S * E + T * E)", "B * (T * D + T * S * D + T * S * E + T * E)"),
        "K and V are counted once for each query: a matrix product reads them once for all queries of a sequence"),
    Mutant("six-times", ("middle = 4 *", "middle = 6 *"), "(T, S) numbers move four times, not six: leave out the "
        "scaling, and count each step of the softmax once"),
    Mutant("four-bytes", ("moved = itemsize * ", "moved = 4 * "), "a number has `itemsize` bytes, not always four"),
    Mutant("floored", ('"intensity": flops / moved', '"intensity": flops // moved'), "this is rounded to a whole "
        "number: divide with /"),
    Mutant("fused-no-output", ("flops / (itemsize * ends)", "flops / (itemsize * (ends - B * T * E))"),
        "the fused kernel writes the output, too"),
    Mutant("fused-scores", ("flops / (itemsize * ends)", "flops / (itemsize * (ends + B * T * S))"),
        "the fused kernel keeps the scores on the chip: no (T, S) numbers are moved"),
    Mutant("fused-traffic", ("flops / (itemsize * ends)", "itemsize * ends"), "this is the fused kernel's traffic: "
        "divide the FLOPs by it"),
    Mutant("once", ("middle = 4 *", "middle = 1 *"), "(T, S) numbers move four times: scores written and read, weights "
        "written and read"),
    Mutant("ends-no-batch", ("ends = B * (", "ends = ("), "Q, K, V and output are counted for one sequence of the "
        "batch"),
    Mutant("middle-no-batch", ("4 * B * T * S", "4 * T * S"), "scores and weights are counted for one sequence of the "
        "batch"),
    Mutant("middle-T-for-S", ("4 * B * T * S", "4 * B * T * T"), "scores and weights are (T, S) matrices, not (T, T)"),
    Mutant("sizes-for-work", ("2 * B * T * S * (D + E)", "2 * B * (T * D + S * E)"), "these are sizes of matrices: "
        "each of the T S scores takes D multiplications and D additions"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.3.3",
    doc=__doc__,
    source="D2L 11.3, exercise 3",
    parts=[
        Count(
            key="d2l-11.3.3",
            hints=[
                "A product of (T, D) and (D, S) has T S entries, each a sum of D products.",
                "List for each of the three steps what it reads and what it writes; the (T, S) matrix appears in all.",
                "Scores are written and read, weights are written and read: 4 B T S numbers besides Q, K, V "
                "and output.",
            ],
            answer=attention_cost,
            verify=verify,
            alternatives=[step_by_step],
            min_checks=20,
            advice={
                "values": "FLOPs: two a term, T S D terms in one product and T S E in the other. Bytes: for each step "
                "what it reads and what it writes. All of it B times; K and V are read once for all queries; nothing "
                "for the operations of the softmax",
            },
            mutants=MUTANTS,
            explanation=r"""
The work is $2BTS(D+E)$: it grows with the product of both lengths. So does the traffic of the plain form, $4BTS$
numbers and the ends. For long sequences their ratio tends to $(D+E)/(2\cdot\text{itemsize})$ operations per byte,
**whatever the length**: 32 with heads of 64 at two bytes, less than the hundred and more that accelerators need to be
kept busy, so there plain attention waits for memory.

The fused kernel moves only the ends. Its intensity grows with the length, as $TS/(T+S)$. With one query
($T=1$, decoding) fusing gains little: every key and value is read once and used once, and the intensity stays
near $2/\text{itemsize}$.
""",
        )
    ],
)
