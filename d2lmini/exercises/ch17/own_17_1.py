r"""Fit a power law and its floor, and say how sure you are

Language models of several sizes x were trained on one text. Their losses L, in nats a token, fall like a power law plus
a constant:

$$L(x) = E + a \, x^{-b} .$$

$E$ is what no size gets rid of: the text is not fully predictable. The exponent b says what more size is worth. The
three must be found from a dozen runs, each of which lies off the law by a per cent or so; and an exponent without an
interval says little.
"""

from d2lmini.exercises.ch17 import own_17_1a, own_17_1b
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="own-17.1",
    doc=__doc__,
    source="own",
    parts=[
        own_17_1a.PART,
        own_17_1b.PART,
        Choice(
            key="own-17.1c",
            prompt="Somebody has fitted E, a and b to four runs and reports b = 0.34, without an interval, as the "
            "squared error of the fit is nearly 0. What do you say?",
            hints=["How many numbers are fitted, and to how many?"],
            options=[
                Option(
                    "The law holds for them, as so small an error would be unlikely without.",
                    "Three numbers fitted to four leave one to err. Three runs would have been met exactly, by any "
                    "three losses that fall and bend.",
                ),
                Option(
                    "The error tells nothing of b: that takes more runs, and one to predict.",
                    "With hardly more runs than parameters small residuals are cheap. What tests a law is a run that "
                    "was not used, larger than all that were; and only runs beyond the third give any measure of "
                    "their scatter.",
                    right=True,
                ),
                Option(
                    "A bootstrap of these four runs will say how sure the exponent b is.",
                    "Most samples of four have three different runs or fewer, which determine the law or do not. The "
                    "spread of such fits tells of the draws.",
                ),
                Option(
                    "Take the largest run's loss for E: for two numbers four runs are enough.",
                    "No run reaches the floor, and a floor that is too high makes b too large. The uncertainty does "
                    "not go away, it is hidden in E.",
                ),
            ],
        ),
    ],
)
