r"""Clipping, and gradients in half precision

Two things keep gradients within bounds. A batch that gives gradients far too large is held back: all of them are
multiplied by one factor, so that their *global norm*, the root of the sum of all squares in all tensors, is at most
`max_norm`. And where gradients are kept in float16, the loss is multiplied beforehand, so that small gradients do not
become 0: float16 has no number between 0 and $2^{-24}$, and none above 65,504.
"""

from d2lmini.exercises.ch08 import own_08_3a, own_08_3b
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="own-08.3",
    doc=__doc__,
    source="own",
    parts=[
        own_08_3a.PART,
        own_08_3b.PART,
        Choice(
            key="own-08.3c",
            prompt="A training in float16 with a loss scale of 4,096 clips at a global norm of 1. After the backward "
            "pass with the scaled loss, what comes in which order?",
            hints=[
                "Which norm do scaled gradients have, and what would be compared with 1?",
                "What becomes of the gradients if they are clipped to a norm of 1 and then divided by 4,096?",
            ],
            options=[
                Option(
                    "Clip, divide by 4,096, step; no step where the norm is not finite.",
                    "Clipping then compares 4,096 times the norm with 1: nearly every batch is clipped, and after the "
                    "division no gradient has a norm above 1/4096.",
                ),
                Option(
                    "Divide by 4,096, clip, step; no step where the norm is not finite.",
                    "Clipping must see the gradients as they are. Divided in float32, they do not underflow again, and "
                    "what overflowed in the backward pass shows in the norm. In torch: `scaler.unscale_(optimizer)`, "
                    "`clip_grad_norm_`, `scaler.step(optimizer)`.",
                    right=True,
                ),
                Option(
                    "Clip, step without dividing; no step where the norm is not finite.",
                    "Clipping is at 1/4096 of what was meant: nearly every gradient gets the norm 1, the small as the "
                    "large ones. Adam hardly minds a constant factor, but this one changes from batch to batch, and "
                    "eps means something else.",
                ),
                Option(
                    "Divide by 4,096, step, clip; no step where the norm is not finite.",
                    "After the step the gradients are used up: clipping them then does nothing.",
                ),
            ],
        ),
    ],
)
