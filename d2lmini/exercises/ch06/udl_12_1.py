r"""Counting self-attention

A self-attention layer turns N vectors of length D into N vectors of length D. As in UDL it has one head, computes
queries, keys and values each with a matrix of weights and a vector of biases, and nothing after the mixing.

Write `self_attention_counts(N, D)` that returns a dict of three numbers:

- `parameters`: all weights and biases that make queries, keys and values;
- `attentions`: how many attention weights there are for one sequence;
- `full`: weights and biases of a fully connected layer that relates all D N inputs to all D N outputs.
"""

import torch
from torch import nn

import d2lmini as d2l
from d2lmini.exercises.engine import Count, Exercise, Mutant

CONFIGURATIONS = [(4, 6), (7, 12), (16, 5), (1, 9)]  # short and wide, long and narrow, a single token


def self_attention_counts(N, D):
    """Count what a layer of self-attention has and makes.

    Args:
        N: tokens.
        D: features of a token, and of its query, key and value.

    Returns:
        dict with ``parameters``, ``attentions`` and ``full``.
    """
    ### BEGIN SOLUTION
    each = D * D + D  # a matrix and its biases
    return {
        "parameters": 3 * each,
        "attentions": N * N,
        "full": (D * N) * (D * N + 1),
    }
    ### END SOLUTION


def by_building_them(N, D):
    layer = nn.MultiheadAttention(D, 1)
    return {
        "parameters": layer.in_proj_weight.numel() + layer.in_proj_bias.numel(),
        "attentions": layer(*3 * [torch.zeros(N, 1, D)])[1].numel(),
        "full": _size(nn.Linear(N * D, N * D)),
    }


def _size(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def verify(t, answer):
    for N, D in CONFIGURATIONS:
        to_query, to_key, to_value = (nn.Linear(D, D) for _ in range(3))
        X = torch.randn(1, N, D)
        attention = d2l.DotProductAttention()
        attention(to_query(X), to_key(X), to_value(X))
        parameters, attentions = _size(to_query, to_key, to_value), attention.attention_weights.numel()
        full = _size(nn.Linear(N * D, N * D))

        case = f"for N={N}, D={D}"
        got = t.call(answer, N, D)
        got_parameters, got_attentions, got_full = t.fields(got, "parameters", "attentions", "full")
        t.number(got_parameters, parameters, f"parameters {case}")
        t.number(got_attentions, attentions, f"attentions {case}")
        t.number(got_full, full, f"full {case}")


MUTANTS = [
    Mutant("one-of-three", ("3 * each", "each"), "this is one matrix with its biases: there are three"),
    Mutant("no-biases", ("D * D + D  #", "D * D  #"), "the biases are missing"),
    Mutant("per-token", ("3 * each", "3 * N * each"), "all tokens share the same matrices: N does not count"),
    Mutant("one-bias", ("3 * each", "3 * D * D + D"), "queries, keys and values have biases of their own"),
    Mutant("full-one-token", ("(D * N) * (D * N + 1)", "D * (D * N + 1)"), "all outputs of all tokens count, not those "
        "of one token"),
    Mutant("full-bias-per-feature", ("(D * N) * (D * N + 1)", "(D * N) ** 2 + D"), "there is a bias for every output "
        "number: each of the N tokens has D of them"),
    Mutant("output-matrix", ("3 * each", "4 * each"), "this layer has no matrix after the mixing"),
    Mutant("bias-a-weight", ("D * D + D  #", "D * D + 1  #"), "there is a bias for each of the D outputs, not one for "
        "all"),
    Mutant("pairs-once", ("N * N,", "N * (N + 1) // 2,"), "token 1 attending to 2 is not 2 attending to 1: count both"),
    Mutant("without-itself", ("N * N,", "N * (N - 1),"), "a token attends to itself, too"),
    Mutant("one-query", ("N * N,", "N,"), "this is the number for one query"),
    Mutant("times-features", ("N * N,", "N * N * D,"), "an attention is one number for a pair, whatever D is"),
    Mutant("full-no-biases", ("(D * N + 1)", "(D * N)"), "the biases are missing"),
    Mutant("full-shared", ("(D * N) * (D * N + 1)", "each"), "this layer treats every token alike; the full one does "
        "not"),
    Mutant("full-bias-per-token", ("(D * N) * (D * N + 1)", "(D * N) ** 2 + N"), "there is a bias for every output "
        "number, not for every token"),
    Mutant("two-of-three", ("3 * each", "2 * each"), "queries, keys and values are three"),
    Mutant("features-pairs", ("N * N,", "D * D,"), "weights belong to pairs of tokens, not of features"),
    Mutant("of-three", ("N * N,", "3 * N * N,"), "queries and keys together make one weight for each pair"),
    Mutant("full-no-mixing", ("(D * N) * (D * N + 1)", "N * (D * D + D)"), "this layer treats each token for "
        "itself: every output is to meet every input of all tokens"),
    Mutant("full-one-bias", ("(D * N) * (D * N + 1)", "(D * N) ** 2 + 1"), "each of the D N outputs has a bias of "
        "its own"),
    Mutant("both-biases", ("D * D + D  #", "D * D + 2 * D  #"), "a linear layer has one bias for each output, and "
        "none for its inputs"),
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.1",
    doc=__doc__,
    source="UDL problem 12.1",
    parts=[
        Count(
            key="udl-12.1",
            hints=[
                "What is learned, and what is computed from the input? Only one of the three numbers is not learned.",
                "A linear layer from a to b numbers has a b weights and b biases.",
                "Queries, keys and values: three layers from D to D. The full layer goes from D N to D N.",
            ],
            answer=self_attention_counts,
            verify=verify,
            alternatives=[by_building_them],
            min_checks=16,
            advice={"values": "A layer from a to b numbers has a b weights and b biases: which are its a and b?"},
            mutants=MUTANTS,
            explanation=r"""
Each of the three layers has $D^2$ weights and $D$ biases, so $3(D^2 + D)$ parameters, whatever the length. There are
$N^2$ attentions; they cost memory and time, but are no parameters. The fully connected layer has $DN(DN+1)$.

The ratio of the last to the first is about $N^2/3$. For a paragraph of a hundred tokens that is three thousand. And
the full layer would be good for exactly a hundred tokens.
""",
        )
    ],
)
