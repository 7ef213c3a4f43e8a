r"""Larger images: what do they cost?

A vision Transformer reads square images of `img_size` times `img_size` pixels with c channels, in patches of
`patch_size` times `patch_size` pixels. It has a class token, learned positions, `num_blks` blocks of h = `num_hiddens`
features with a hidden layer of m = `mlp_num_hiddens`, and a linear layer to C classes on top of the class token:
`d2l.ViT`, with its projections of attention without bias.

Twice the side is four times the pixels. Is it four times the work? **Predict** first, for small images and for very
large ones; then count, then measure.
"""

from d2lmini.exercises.ch10 import d2l_11_8_1a, d2l_11_8_1b
from d2lmini.exercises.engine import Exercise

EXERCISE = Exercise(
    key="d2l-11.8.1",
    doc=__doc__,
    source="D2L 11.8, exercise 1",
    parts=[
        d2l_11_8_1a.PART,
        d2l_11_8_1b.PART,
    ],
)
