r"""Find the gamed reward

A model sums numbers step by step. Its answer to `terms = [7, 5, 9]` is a dict:

```python
{"steps": [(7, 5, 12), (12, 9, 21)], "final": 21, "remarks": ["let us see"]}
```

A step `(a, b, c)` claims that a + b = c; `final` is what the answer gives as the sum. An answer is *good* if its steps
add the terms in their order, if every step is true, and if `final` is the last result. In each step a is the result of
the step before, in the first one the first term, and b is the next term. Remarks do no harm.

Judges reward answers, and models are trained to be rewarded. None of the judges below looks whether an answer is good.
Most look at something that good answers *have*. What happens when one asks for more of it?
"""

from d2lmini.exercises.ch18 import own_18_2a, own_18_2b
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="own-18.2",
    doc=__doc__,
    source="own",
    parts=[
        own_18_2a.PART,
        own_18_2b.PART,
        Choice(
            key="own-18.2c",
            prompt="A policy is trained against a learned judge of essays. The reward rises from week to week. How do "
            "you find out whether the judge is being gamed?",
            hints=["Which number has the search not been looking at?"],
            options=[
                Option(
                    "By its reward on held-out prompts: if that rises, too, it is no overfitting.",
                    "A fault of the judge is the same for new prompts. What it likes wrongly it likes everywhere.",
                ),
                Option(
                    "By the divergence from the reference: while that is small, nothing is gamed.",
                    "A small divergence limits how far the search gets, and so is worth keeping small. But nine out of "
                    "ten answers with a flattering phrase in front cost little divergence.",
                ),
                Option(
                    "By people who judge answers from before and after without knowing which.",
                    "A measure that the search could not see: if their verdict no longer rises with the reward, the "
                    "reward is being gamed. Let them read what the judge rewards most, too: it shows how, and mends "
                    "the judge, until the search finds the next fault.",
                    right=True,
                ),
                Option(
                    "By a second judge, trained on the same comparisons with another seed.",
                    "Better than nothing, as faults of one seed show. But both have learned from the same people and "
                    "texts and share the faults of these.",
                ),
            ],
        ),
    ],
)
