r"""Why heads of size D / H

A multi-head self-attention layer has N tokens of D features and H heads. Each head has queries, keys and values of d
features, with scores scaled and a softmax as usual; the heads' outputs, laid side by side, are projected back to D
features. There are no biases. UDL and most others choose d = D / H. What would d = D cost, and what does the choice
save?
"""

from functools import cache

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Count, Exercise, Mutant, Option

# (N, D, H, d): heads of the usual size, sizes that have nothing to do with each other, heads of full size, one head
CONFIGURATIONS = [(7, 18, 4, 8), (7, 24, 4, 6), (5, 18, 3, 4), (7, 24, 4, 24), (11, 20, 1, 20)]


def head_costs(N, D, H, d):
    """Count what a layer of H heads costs.

    Args:
        N: tokens. D: features of a token. H: heads. d: features of a query, a key and a value of one head.

    Returns:
        dict of four numbers: ``qkv_weights``, the parameters that make queries, keys and values; ``weights``, all
        parameters; ``maps``, how many attention weights there are; ``flops``, the operations of all matrix products
        (a multiplication and an addition are two).
    """
    ### BEGIN SOLUTION
    qkv_weights = 3 * D * (H * d)
    output_weights = (H * d) * D
    projections = 2 * N * (qkv_weights + output_weights)  # every token meets every parameter once
    products = 2 * H * N * N * d  # scores
    products += 2 * H * N * N * d  # weights times values
    return {
        "qkv_weights": qkv_weights,
        "weights": qkv_weights + output_weights,
        "maps": H * N * N,
        "flops": projections + products,
    }
    ### END SOLUTION


def head_after_head(N, D, H, d):
    per_head = {"qkv_weights": 3 * d * D, "weights": 4 * d * D, "maps": N**2}
    per_head["flops"] = 3 * (2 * N * D * d) + 2 * (2 * N * N * d) + 2 * N * d * D
    return {name: H * count for name, count in per_head.items()}


class AnySize(nn.Module):
    """A layer whose heads may have any size: the independent reference where H d is not D."""

    def __init__(self, D, H, d):
        super().__init__()
        self.H = H
        self.attention = d2l.DotProductAttention()
        self.qkv = nn.Linear(D, 3 * H * d, bias=False)
        self.out = nn.Linear(H * d, D, bias=False)

    def forward(self, X, *_):
        queries, keys, values = self.qkv(X).unflatten(-1, (3, self.H, -1)).permute(2, 0, 3, 1, 4)  # (1, H, N, d) each
        return self.out(self.attention(queries, keys, values).transpose(1, 2).flatten(2))


@cache
def measure(N, D, H, d):
    """Counts of real modules: parameters that make queries, keys and values, and all; attention weights; operations."""
    layer = d2l.MultiHeadAttention(D, H) if H * d == D else AnySize(D, H, d)
    last = layer.W_o if H * d == D else layer.out
    X = torch.randn(1, N, D)
    # the counter knows matrix products, not every fused kernel
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as work:
        layer(X, X, X)
    with d2l.capture_attention(layer) as record:
        layer(X, X, X)
    (maps,) = record["attention"]
    weights = sum(p.numel() for p in layer.parameters())
    return weights - last.weight.numel(), weights, maps.numel(), work.get_total_flops()


def verify(t, answer):
    names = "qkv_weights", "weights", "maps", "flops"
    for N, D, H, d in CONFIGURATIONS:
        got = t.fields(t.call(answer, N, D, H, d), *names)
        for name, value, want in zip(names, got, measure(N, D, H, d), strict=True):
            t.number(value, want, f"{name} for N={N}, D={D}, H={H}, d={d}")


MUTANTS = [
    Mutant("one-head", ("3 * D * (H * d)", "3 * D * d"), "this is one head's"),
    Mutant("one-matrix", ("3 * D * (H * d)", "D * (H * d)"), "queries, keys and values have a matrix each"),
    Mutant("assumes-full", ("3 * D * (H * d)", "3 * D * (H * D)"), "this is right for d = D only: mind the size of a "
        "head"),
    Mutant("assumes-usual", ("3 * D * (H * d)", "3 * D * D"), "this is right for d = D / H only: it should depend on "
        "d"),
    Mutant("biases", ("3 * D * (H * d)", "3 * (D + 1) * (H * d)"), "there are no biases here"),
    Mutant("no-last-projection", ("2 * N * (qkv_weights + output_weights)", "2 * N * qkv_weights"),
        "the projection of the heads' outputs back to D features is missing"),
    Mutant("no-output", ("qkv_weights + output_weights,", "qkv_weights,"), "the projection of the outputs is missing"),
    Mutant("square-output", ("output_weights = (H * d) * D", "output_weights = D * D"), "the heads' outputs together "
        "have H d features, not always D"),
    Mutant("one-map", ('"maps": H * N * N', '"maps": N * N'), "each head has a map of its own"),
    Mutant("map-features", ('"maps": H * N * N', '"maps": H * N * N * d'), "a map has one number for each pair of "
        "tokens, whatever d is"),
    Mutant("multiply-add", ("projections + products,", "(projections + products) // 2,"), "a multiplication and an "
        "addition are two operations"),
    Mutant("no-products", ("projections + products,", "projections,"), "the scores and the weighted sums are missing"),
    Mutant("no-values", ("    products += 2 * H * N * N * d  # weights times values\n", ""), "two products have N x N "
        "in them: scores, and the weighted sums"),
    Mutant("no-projections", ("projections + products,", "products,"), "the projections are missing"),
    Mutant("one-token", ("2 * N * (qkv_weights", "2 * (qkv_weights"), "every one of the N tokens is projected"),
    Mutant("products-one-head", ("projections + products,", "projections + products // H,"), "the products with N x N "
        "in them are counted for one head only"),
    Mutant("products-usual", ("projections + products,", "projections + 4 * N * N * D,"), "this is right for d = D / H "
        "only: the products of all heads have H d features"),
    Mutant("projections-usual", ("projections + products,", "8 * N * D * D + products,"), "this is right for d = D / H "
        "only: the projections go to H d features"),
    Mutant("weights-usual", ('"weights": qkv_weights + output_weights', '"weights": 4 * D * D'), "this is right for d "
        "= D / H only: it should depend on d"),
    Mutant("qkv-all", ('"qkv_weights": qkv_weights', '"qkv_weights": qkv_weights + output_weights'),
        "the matrix that projects the outputs makes no queries, keys or values"),
    Mutant("output-biases", ("output_weights = (H * d) * D", "output_weights = (H * d) * D + D"), "there are no "
        "biases here"),
    Mutant("pairs-once", ('"maps": H * N * N', '"maps": H * N * (N + 1) // 2'), "nothing is masked: every token "
        "attends to all N"),
    Mutant("map-d", ('"maps": H * N * N', '"maps": H * N * d'), "a map has N weights for each of the N queries, "
        "whatever d is"),
    Mutant("features-squared", ("products = 2 * H * N * N * d  # scores", "products = 2 * H * N * d * d"),
        "scores are products of (N, d) and (d, N): 2 N N d operations a head"),
    Mutant("features-squared", ("2 * H * N * N * d  # weights", "2 * H * N * d * d  # weights"), "the weights (N, "
        "N) meet the values (N, d): 2 N N d operations a head"),
    Mutant("softmax-too", ("projections + products,", "projections + products + H * N * N,"), "only matrix "
        "products count: leave softmax and scaling out"),
    Mutant("heads-twice", ('"weights": qkv_weights + output_weights', '"weights": H * (qkv_weights + '
        'output_weights)'), "H is in it twice: these are the weights of all heads already"),
    Mutant("two-of-three", ("3 * D * (H * d)", "2 * D * (H * d)"), "queries, keys and values are three"),
    Mutant("both-sides", ("3 * D * (H * d)", "3 * (H * d) * (H * d)"), "a matrix of queries goes from D features "
        "to H d, not from H d to H d"),
    Mutant("one-operation", ("projections = 2 * N", "projections = N"), "a multiplication and an addition are two "
        "operations, in the projections, too"),
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.6",
    doc=__doc__,
    source="UDL problem 12.6",
    parts=[
        Count(
            key="udl-12.6a",
            prompt="Write `head_costs(N, D, H, d)` that counts parameters, attention weights and operations for heads "
            "of *any* size d. The check compares with real modules. Then put in d = D / H, and d = D.",
            hints=[
                "One head projects D features to d, three times.",
                "The outputs of all heads together have H d features; the last matrix takes them to D.",
                "An (m, n) by (n, p) product costs 2 m n p operations. Count four projections of N tokens, and two "
                "products with N x N in them for every head.",
            ],
            answer=head_costs,
            verify=verify,
            alternatives=[head_after_head],
            min_checks=20,
            advice={
                "values": "Begin with one head: three matrices (D, d), N tokens through each, one map, two products. "
                "Then all H, and the last matrix; an (m, n) by (n, p) product is 2 m n p operations"
            },
            seconds=60.0,  # torch's counter of operations loads much at its first use
            mutants=MUTANTS,
            explanation=r"""
With $d = D/H$ the matrices hold $3D^2$ numbers for queries, keys and values, whatever H is, and the operations are
those of one head of size D. With $d = D$ they hold $3HD^2$, and everything grows with H. The maps alone do not care
about d: there are $HN^2$ attention weights either way.
""",
        ),
        Choice(
            key="udl-12.6b",
            prompt="So why do most take d = D / H?",
            hints=["Put d = D / H into each of your four counts, and see where H is left."],
            options=[
                Option(
                    "The attention maps of all heads together become H times smaller, and maps are what fills memory.",
                    "A map has one weight for each pair of tokens. There are H maps of N x N for heads of any size.",
                ),
                Option(
                    "Parameters and matrix products cost what one head of size D does, and there are H maps for it.",
                    "In every matrix H and d stand as the product H d = D. What is paid instead: H softmaxes, and "
                    "scores of rank at most D / H in each head.",
                    right=True,
                ),
                Option(
                    "The outputs of the heads could not be joined and projected back to D features for any other d.",
                    "They can: the last matrix is then H d by D. Any d works, and costs more where H d is above D.",
                ),
                Option(
                    "Each head becomes more expressive, because matrices with fewer columns are easier to train well.",
                    "A smaller head can do less: its scores are a product of matrices with d columns, so their rank is "
                    "at most d. The gain is in having several heads, not in their being small.",
                ),
            ],
        ),
    ],
)
