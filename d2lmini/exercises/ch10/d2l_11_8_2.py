r"""The mean of the patches in place of the class token

A vision Transformer adds a token that is no patch, lets it look at all patches in every block, and classifies what it
has become. Is it needed? One could as well take the mean of the patches, which is what convolutional networks do at
their end.

The model is a `d2l.ViT` with learned positions and a class token. You need its parts: `patch_embedding` takes images
(B, c, height, width) to (B, N, h); `pos_embedding`, (1, 1 + N, h), has the class token's position first; then come
`dropout`, the blocks in `blks`, and `head`, which normalises (B, h) and gives scores (B, C).
"""

from d2lmini.exercises.ch10 import d2l_11_8_2a, d2l_11_8_2b
from d2lmini.exercises.engine import Exercise

EXERCISE = Exercise(
    key="d2l-11.8.2",
    doc=__doc__,
    source="D2L 11.8, exercise 2",
    parts=[
        d2l_11_8_2a.PART,
        d2l_11_8_2b.PART,
    ],
)
