r"""As many numbers out as in

Self-attention turns N vectors of length D into N vectors. Their length is that of the *values*, and nothing in the
formula forces it to be D: with $\mathbf W_v$ of shape (D, E) the outputs have length E. Yet nearly every
published Transformer has E = D in the end. Why?
"""

from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="udl-12.2",
    doc=__doc__,
    source="UDL problem 12.2",
    parts=[
        Choice(
            key="udl-12.2",
            prompt="Why do we want the output of a self-attention layer to have the size of its input?",
            hints=[
                "Think of what stands around the layer in a Transformer, not of what is in it.",
                "What does a residual connection need?",
            ],
            options=[
                Option(
                    "Otherwise the dot product of a query with a key is not defined.",
                    "Queries must be as long as *keys*. That says nothing about the values, which alone decide the "
                    "length of the output.",
                ),
                Option(
                    "So that the attention weights sum to one.",
                    "The softmax sees to that, for values of any length: the weights are made before the values come "
                    "in.",
                ),
                Option(
                    "So that layers can be stacked alike and the input can be added to the output: a residual "
                    "connection is a sum of two tensors of one shape.",
                    "A deep stack passes one stream of N vectors of length D from layer to layer, and each layer adds "
                    "to it. Were the sizes different, every residual connection would need a matrix of its own, and "
                    "no two layers would be alike.",
                    right=True,
                ),
                Option(
                    "Because a layer with E different from D would no longer be equivariant under permutations.",
                    "It would be. Shuffling the rows of X shuffles queries, keys and values alike, of whatever length.",
                ),
                Option(
                    "Because otherwise the number of parameters would depend on the length of the sequence.",
                    "The parameters are those of three matrices, D by something. The length N occurs in none of them.",
                ),
            ],
            explanation=r"""
Inside the layer other sizes are common. With H heads each value has D/H numbers; the heads are laid side by side, and
a last matrix brings them back to D. So the *inside* is free, and the *ends* agree.
""",
        )
    ],
)
