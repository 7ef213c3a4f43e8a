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
            prompt="Somebody builds a Transformer as usual, but each self-attention layer returns vectors of E = 2 D "
            "numbers. Which sentence is true of it?",
            hints=[
                "Think of what stands around the layer in a Transformer, not of what is in it.",
                "What does a residual connection need?",
            ],
            options=[
                Option(
                    "The dot product of a query with a key is no longer defined, since the two have different lengths.",
                    "Queries must be as long as *keys*. That says nothing about the values, which alone decide the "
                    "length of the output.",
                ),
                Option(
                    "The attention weights of a row no longer sum to one, as the values have twice as many numbers.",
                    "The softmax sees to that, for values of any length: the weights are made before the values come "
                    "in.",
                ),
                Option(
                    "The sum of the layer's input and its output, which a residual connection takes, is not defined.",
                    "One is (N, D), the other (N, 2 D). A deep stack passes one stream of N vectors of length D from "
                    "layer to layer, and each layer adds to it. Were the sizes different, every residual connection "
                    "would need a matrix that brings one to the size of the other.",
                    right=True,
                ),
                Option(
                    "Shuffling the tokens no longer shuffles the outputs in the same way: equivariance has been lost.",
                    "The layer is as equivariant as before: shuffling the rows of X shuffles queries, keys and values "
                    "alike, of whatever length.",
                ),
                Option(
                    "The number of parameters begins to depend on the length of the sequence that is to be read.",
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
