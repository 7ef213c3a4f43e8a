r"""Spans behind sentinels

T5 is pretrained to fill gaps. From a text, *noise* is taken out, and the encoder reads what is left, with one token, a
*sentinel*, in place of each span. The decoder has to write the spans: in front of each stands its sentinel, and after
the last one the next sentinel that was not used yet, which says that nothing follows.

D2L's sentence is *I love this red car*. With *love* and *red* as noise and the sentinels X, Y, Z it gives

    input   I X this Y car
    target  X love Y red Z

Whatever tokens of noise stand side by side are *one* span. Write both directions.
"""

from d2lmini.exercises.ch14 import own_14_1a, own_14_1b
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="own-14.1",
    doc=__doc__,
    source="own",
    parts=[
        own_14_1a.PART,
        own_14_1b.PART,
        Choice(
            key="own-14.1c",
            prompt="In place of spans one could replace each token of noise by its own sentinel, or by the same mask "
            "token, and let the decoder write the whole text. What speaks for spans?",
            hints=["How many steps does the decoder need in each case, and what would most of them ask?"],
            options=[
                Option(
                    "Only with spans can the decoder know where a token of noise belongs.",
                    "A sentinel for each token says it as well, and in a whole text the place says it.",
                ),
                Option(
                    "Spans can hide more: the other ways end at 15 % of the tokens of a text.",
                    "The share is free in all of them. T5's authors try 10 to 50 %, with little difference up to 25 %.",
                ),
                Option(
                    "With the whole text as target it could be copied, and nothing is learned.",
                    "What was hidden cannot be copied; there the decoder has to guess. The rest is copied indeed, "
                    "which costs steps and teaches little, but not nothing is learned.",
                ),
                Option(
                    "Their short texts train more cheaply and, in the paper, about as well.",
                    "Input and target are shorter, and each step of the decoder asks about something that was hidden. "
                    "Raffel et al. 2020 (section 3.3) compare these: what is learned differs little, and the short "
                    "targets make it cheaper. The model also has to find out *how many* tokens are missing. In our "
                    "small run `t5_pretrain` spans lost: after fine-tuning, 40 % of a grammar's sentences are "
                    "translated correctly with spans, 85 % with whole masked texts, 82 % with those at as many FLOPs, "
                    "and 57 % without pretraining. It is one seed and 200 steps of fine-tuning at one learning rate, "
                    "so it says little about spans as such.",
                    right=True,
                ),
            ],
        ),
    ],
)
