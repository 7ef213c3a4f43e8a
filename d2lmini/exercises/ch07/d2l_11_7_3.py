r"""Encoder, decoder, or both: which one is a language model?

A language model gives, for every position of a text, the probabilities of the *next* token given those up to here,

$$P(x_{t+1} \mid x_1, \dots, x_t) .$$

A translation Transformer has two halves. Which of them does one need, and what has to be changed? Decide first, then
build one.
"""

from d2lmini.exercises.ch07 import d2l_11_7_3b
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="d2l-11.7.3",
    doc=__doc__,
    source="D2L 11.7, exercise 3",
    parts=[
        Choice(
            key="d2l-11.7.3a",
            prompt="For language modelling, with no source text beside the one that is written: encoder, decoder, or "
            "both?",
            hints=["What may position t see? And what is there for cross-attention to look at?"],
            options=[
                Option(
                    "The encoder as it is: every position sees the whole text, so it knows most about the next word.",
                    "It would see the very token that it should predict, learn to copy it, and have nothing to copy "
                    "when "
                    "it writes. (BERT uses an encoder, but hides the words that it asks for; that gives no probability "
                    "of a next word.)",
                ),
                Option(
                    "The decoder without cross-attention, which is to say the encoder's block with a causal mask.",
                    "Position t may use x_1 ... x_t and no more: that is the causal mask. There is no other text, so "
                    "nothing for cross-attention to attend to, and it goes. All positions train at once, and the same "
                    "weights write word by word.",
                    right=True,
                ),
                Option(
                    "Both halves: the encoder reads the text so far, and the decoder writes the next word of it.",
                    "It can be done, with a text cut into a given part and a part to write (T5 does so). But training "
                    "then uses the predictions of the second part only, and the parameters are split between two "
                    "stacks. "
                    "Nothing in the task asks for a second text.",
                ),
                Option(
                    "Neither of them: without a source text to attend to, one needs a recurrent network instead.",
                    "The text so far is what the model is conditioned on, and masked self-attention reads it.",
                ),
            ],
        ),
        d2l_11_7_3b.PART,
    ],
)
