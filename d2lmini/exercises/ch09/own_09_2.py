r"""A softmax that never sees all scores

A query needs $\sum_s e^{x_s} \mathbf v_s \,/ \sum_s e^{x_s}$, with its scores x. Large scores overflow, so the largest
is subtracted first. But what if the keys come a few at a time, as tiles of a fused kernel do, or lie on several
machines, so that nobody ever sees all of them? Then each works on its own share, and shares are *merged*.

A share of the keys leaves three things, for each of T queries:

- `top`, (B, T): the largest of its scores; minus infinity where it has no key that the query may attend to;
- `total`, (B, T): the sum of exp(x - top) over its keys; 0 where there are none;
- `output`, (B, T, E): the sum of exp(x - top) times the value, over the same keys; not divided by anything.
"""

from d2lmini.exercises.ch09 import own_09_2a, own_09_2b
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="own-09.2",
    doc=__doc__,
    source="own",
    parts=[
        own_09_2a.PART,
        own_09_2b.PART,
        Choice(
            key="own-09.2c",
            prompt="Somebody keeps for each share the *average* of its values and the logarithm L of its sum of "
            "exponentials, two things in place of three; two shares have L₁ and L₂. Can their averages be merged?",
            hints=[
                "With which weights are two averages the average of all?",
                "A share's sum of exponentials is exp(L). What is the sum of both?",
            ],
            options=[
                Option(
                    "No: what was divided cannot be mended.",
                    "It can be multiplied again, with exp(L). L has what the division took away.",
                ),
                Option(
                    "Yes, with the numbers of keys as weights.",
                    "That is right where all scores are equal. A share with larger scores must count more.",
                ),
                Option(
                    "Yes, with exp(L₁) and exp(L₂) as weights.",
                    "Each average is worth its sum of exponentials. Divided by the sum of both, with L = "
                    "torch.logaddexp(L₁, L₂), these weights are exp(L₁ - L) and exp(L₂ - L): they sum to one, and "
                    "nothing overflows. What is kept from such an attention for its "
                    "backward pass is L, too.",
                    right=True,
                ),
                Option(
                    "Yes, with L₁ and L₂ themselves as weights.",
                    "L is a logarithm, which may be below zero. A share whose L is larger by 1 counts e times as much, "
                    "whatever L is.",
                ),
            ],
        ),
    ],
)
