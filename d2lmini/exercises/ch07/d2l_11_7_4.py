r"""Very long inputs

A Transformer has no trouble with long inputs in principle: every word reaches every other in one step. In practice
something gives way. You are to say what, in bytes, and then to draw the conclusion.

Look at the attention of one layer, between the projections: queries, keys and values of H heads, all of shape
(B, H, T, d) with H d = h, and the output of the same shape. Two ways to compute it,

```python
def plain(queries, keys, values):  # queries are already divided by sqrt(d)
    return torch.softmax(queries @ keys.mT, dim=-1) @ values

def fused(queries, keys, values):
    return F.scaled_dot_product_attention(queries, keys, values, scale=1.0)
```

For the backward pass, autograd *keeps* tensors. The product keeps its two factors, the softmax its result (what is
needed twice is kept once). The fused kernel keeps its three inputs, its output, and for each query and head one number,
the logarithm of the sum of exponentials; from these it computes the weights again, block by block.
"""

from functools import cache

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Choice, Count, Exercise, Mutant, Option
from d2lmini.measure import peak_bytes


def attention_memory(B, T, h, H, itemsize):
    """Count the bytes that attention of one layer needs.

    Args:
        B: sequences. T: tokens of each, at least h. h: features of all heads together. H: heads. itemsize: bytes a
        number.

    Returns:
        A dict: ``"kept_plain"`` and ``"kept_fused"``, bytes that are kept for the backward pass, queries, keys and
        values included; ``"peak_plain"``, the most bytes that ``plain`` holds at once *beyond* queries, keys and
        values, when no gradient is wanted.
    """
    ### BEGIN SOLUTION
    ends = B * T * h  # queries of all heads; so many numbers have the keys, the values and the output, too
    square = B * H * T * T  # scores, and weights
    return {
        "kept_plain": itemsize * (3 * ends + square),
        "kept_fused": itemsize * (4 * ends + B * H * T),
        "peak_plain": itemsize * 2 * square,  # in the softmax: the scores are read while the weights are written
    }
    ### END SOLUTION


def per_head(B, T, h, H, itemsize):
    d = h / H
    pieces = {"kept_plain": 3 * T * d + T**2, "kept_fused": (4 * d + 1) * T, "peak_plain": T**2 + T**2}
    return {name: itemsize * B * H * piece for name, piece in pieces.items()}


# all numbers differ, and T is at least h
CONFIGURATIONS = [(7, 60, 20, 5, 8), (3, 40, 20, 5, 8), (1, 112, 36, 6, 4), (5, 32, 28, 7, 8)]
DTYPES = {4: torch.float32, 8: torch.float64}


def plain(queries, keys, values):
    return torch.softmax(queries @ keys.mT, dim=-1) @ values


def fused(queries, keys, values):
    return F.scaled_dot_product_attention(queries, keys, values, scale=1.0)


def kept(attend, inputs):
    """Bytes of the tensors that autograd keeps, each storage once."""
    seen = {}

    def pack(x):
        seen[x.untyped_storage().data_ptr()] = x  # kept alive, so that no address is used twice
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        output = attend(*(x.requires_grad_() for x in inputs))
    # scalars, as random states, are not counted
    kept_bytes = sum(x.untyped_storage().nbytes() for x in seen.values() if x.dim())
    return kept_bytes, output.detach()


@cache
def measured(B, T, h, H, itemsize):
    """Bytes kept by the plain and by the fused form, and the peak of the plain one, measured on the CPU."""
    inputs = [torch.randn(B, H, T, h // H, dtype=DTYPES[itemsize]) / (h // H) ** 0.25 for _ in range(3)]
    peak = peak_bytes(lambda: plain(*inputs), torch.device("cpu"))
    (kept_plain, output), (kept_fused, same) = kept(plain, inputs), kept(fused, inputs)
    torch.testing.assert_close(output, same)
    return kept_plain, kept_fused, peak


def verify(t, answer):
    for B, T, h, H, itemsize in CONFIGURATIONS:
        wants = measured(B, T, h, H, itemsize)
        case = f"for B={B}, T={T}, h={h}, H={H}, itemsize={itemsize}"
        names = "kept_plain", "kept_fused", "peak_plain"
        answers = t.fields(t.call(answer, B, T, h, H, itemsize), *names)
        for name, got, want in zip(names, answers, wants, strict=True):
            t.number(got, want, f"{name} {case}", rtol=1e-3 if name == "peak_plain" else 1e-9)


MUTANTS = [
    Mutant("one-head", ("square = B * H * T * T", "square = B * T * T"), "every head has its own (T, T) weights"),
    Mutant("scores-kept", ("(3 * ends + square)", "(3 * ends + 2 * square)"), "the scores are not kept: the derivative "
        "of a softmax needs its result alone"),
    Mutant("output-kept", ("(3 * ends + square)", "(4 * ends + square)"), "the output is not kept: no derivative in "
        "here needs it"),
    Mutant("all-kept", ("(3 * ends + square)", "(4 * ends + 2 * square)"), "scores and output are not kept: no "
        "derivative in here needs them"),
    Mutant("weights-only", ("(3 * ends + square)", "square"), "queries, keys and values are kept too: the products "
        "need their factors"),
    Mutant("no-weights", ("(3 * ends + square)", "3 * ends"), "the weights are kept: this is what grows with the "
        "square of T"),
    Mutant("heads-twice", ("ends = B * T * h", "ends = B * T * h * H"), "h counts the features of all heads together"),
    Mutant("numbers", ("itemsize * (3", "(3"), "these are numbers, not bytes"),
    Mutant("numbers", ("itemsize * (4", "(4"), "these are numbers, not bytes"),
    Mutant("numbers", ("itemsize * 2", "2"), "these are numbers, not bytes"),
    Mutant("no-output", ("4 * ends + B * H * T", "3 * ends + B * H * T"), "the fused kernel keeps its output too"),
    Mutant("no-logarithm", ("4 * ends + B * H * T", "4 * ends"), "one number for each query and head is missing"),
    Mutant("log-one-head", ("4 * ends + B * H * T", "4 * ends + B * T"), "each head has its own sums of exponentials"),
    Mutant("two-numbers", ("4 * ends + B * H * T", "4 * ends + 2 * B * H * T"), "maximum and sum are kept as one "
        "number, the logarithm of the sum of exponentials"),
    Mutant("not-fused", ("(4 * ends + B * H * T)", "(3 * ends + square)"), "the fused kernel keeps no weights"),
    Mutant("one-square", ("itemsize * 2 * square", "itemsize * square"), "while the softmax runs, its input and its "
        "result exist both"),
    Mutant("three-squares", ("itemsize * 2 * square", "itemsize * 3 * square"), "scores and weights are two, and the "
        "softmax needs no third"),
    Mutant("with-output", ("itemsize * 2 * square", "itemsize * (2 * square + ends)"), "the output does not exist yet "
        "when scores and weights do; when it is made, the scores are gone"),
    Mutant("late-peak", ("itemsize * 2 * square", "itemsize * (square + ends)"), "this is what is held at the end; "
        "before, in the softmax, it is more"),
    Mutant("with-inputs", ("itemsize * 2 * square", "itemsize * (2 * square + 3 * ends)"), "queries, keys and values "
        "do not count here"),
    Mutant("features-squared", ("square = B * H * T * T", "square = B * H * T * h"), "weights belong to pairs of "
        "tokens: T for each of the T queries"),
    Mutant("one-input", ("(3 * ends + square)", "(2 * ends + square)"), "queries, keys and values are three, and "
        "each is a factor of a product"),
    Mutant("inputs-alone", ("(4 * ends + B * H * T)", "3 * ends"), "output and logarithms are kept, too: the "
        "weights are computed from them again"),
    Mutant("one-example", ("square = B * H * T * T", "square = H * T * T"), "each of the B sequences has its own "
        "weights"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.7.4",
    doc=__doc__,
    source="D2L 11.7, exercise 4",
    parts=[
        Count(
            key="d2l-11.7.4a",
            prompt="""
Write `attention_memory(B, T, h, H, itemsize)`, a dict of three numbers of bytes: `"kept_plain"` and `"kept_fused"`,
what each form keeps for the backward pass, queries, keys and values included; and `"peak_plain"`, the most that `plain`
holds at once *beyond* queries, keys and values when no gradient is wanted. T is at least h. The check measures all
three on tensors.
""",
            hints=[
                "Queries of all heads together are B T h numbers. The weights are B H T T.",
                "Which tensors does the derivative of a product need? And that of a softmax?",
                "Go through `plain` line by line and write down what exists: scores; scores and weights; weights and "
                "output. Which is the most?",
            ],
            answer=attention_memory,
            verify=verify,
            alternatives=[per_head],
            min_checks=16,
            seconds=30.0,
            advice={
                "values": "Write down the shape of each tensor that is kept, or held at once, and add up their "
                "numbers. All are of one dtype: each number takes `itemsize` bytes.",
            },
            mutants=MUTANTS,
            explanation="""
Plain attention keeps $3BTh + BHT^2$ numbers, the fused kernel $4BTh + BHT$. Set the two parts of the first in
proportion: the weights are $HT/(3h) = T/(3d)$ times the rest, d being the size of a head. With d = 64 they are the
larger part from some two hundred tokens on; at eight thousand they are more than forty times all else, in every layer.

Doubling T doubles the one and quadruples the other. The fused kernel does not save by approximating: it computes the
same weights, twice, and never keeps them.
""",
        ),
        Choice(
            key="d2l-11.7.4b",
            prompt="In a Transformer with fused attention, scores and mixtures of values are a quarter of all "
            "operations at the length of the training texts; projections and networks are the rest. What must one "
            "expect of a text of eight times that length?",
            hints=[
                "Which part of the operations grows with the square of T, and which in proportion to it?",
                "Memory and time need not grow alike. And are all positions known to the model?",
            ],
            options=[
                Option(
                    "8 times the operations: the fused kernel has made attention linear in the length of the text.",
                    "Its *memory* is linear in T. Its work is not: every query still meets every key, so a quarter "
                    "of the operations grows 64-fold and three quarters eightfold.",
                ),
                Option(
                    "22 times the operations, and 64 times the memory: the weights of all heads are kept.",
                    "The operations are right, the memory is that of the plain form. The fused kernel keeps no "
                    "weights; what it keeps grows in proportion to T.",
                ),
                Option(
                    "22 times the operations, 16 of them attention's; and positions that no training has shown.",
                    "Attention's products grow as T squared, 64 / 4 = 16, and the rest as T, 8 * 3 / 4 = 6: for long "
                    "texts attention takes most of the time, on any kernel. And whatever tells positions apart, sines "
                    "or learned vectors, the weights were trained on short texts only. Windows, sparse patterns, "
                    "linear forms and relative positions are the answers of other chapters.",
                    right=True,
                ),
                Option(
                    "22 times the operations; and gradients that vanish over the length, as in a recurrent network.",
                    "The operations are right. But any two positions are one attention step apart, whatever lies "
                    "between them: the number of steps grows with depth, not with length.",
                ),
            ],
        ),
    ],
)
