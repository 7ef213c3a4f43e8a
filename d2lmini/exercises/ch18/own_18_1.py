r"""The best of n

Draw n answers from a model and keep the one that a judge rewards most. No weight is changed, and yet the answers get
better, by the judge's opinion. Two questions are worth an exact answer: what is to be expected of the best of n, and
how far have the answers moved from those of the model, the *reference*?
"""

from d2lmini.exercises.ch18 import own_18_1a, own_18_1b
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="own-18.1",
    doc=__doc__,
    source="own",
    parts=[
        own_18_1a.PART,
        own_18_1b.PART,
        Choice(
            key="own-18.1c",
            prompt="The judge of part a is imperfect: a reward is the value plus an error. As n grows, what must "
            "happen?",
            hints=["Which answers does a large n find: good ones, or those for which the judge errs most?"],
            options=[
                Option(
                    "Reward and value both rise, as choosing more strictly cannot hurt.",
                    "The reward never falls with n, for it is what is maximised. Nothing of the kind holds for the "
                    "value of what is chosen.",
                ),
                Option(
                    "The reward does not fall; the value may rise, level off, or fall.",
                    "The largest rewards may be the largest errors: it hangs on the tails. With errors that vary "
                    "little, the value rises on. If the errors have the longer tail, the best of many is where the "
                    "judge is most wrong. Gao et al. (2023) measured value against the square root of the divergence: "
                    "up first, and then down.",
                    right=True,
                ),
                Option(
                    "The value falls, and the reward falls with it as the judge notices.",
                    "A judge that noticed would not have given the reward. What notices is somebody with another "
                    "measure.",
                ),
                Option(
                    "Neither changes by much, as the divergence is bounded by log n.",
                    "A bound on how far the answers move is no bound on what they lose: an answer that was unlikely, "
                    "by one in n, may be chosen in 63 %.",
                ),
            ],
        ),
    ],
)
