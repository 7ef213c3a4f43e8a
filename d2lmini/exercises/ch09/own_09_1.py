r"""A pattern of three parts: who meets whom, at what price, after how many layers

BigBird leaves most pairs of tokens out. A query attends to its neighbours, to a few *global* tokens, and to a few keys
that were drawn for it by lot. Write its mask, count its pairs, and find out how many layers it takes until
everything has met everything.

A mask is a boolean tensor (T, T), a row a query and a column a key: True = may attend.

- Window w: a token attends to itself and to the w - 1 tokens on either side, as far as they exist.
- The first g tokens are global: they attend to all tokens, and all tokens attend to them.
- Random keys: row t of an integer tensor (T, R) says which keys query t has drawn. Some may be in the window already,
  and a row may name a key twice.
"""

from d2lmini.exercises.ch09 import own_09_1a, own_09_1b, own_09_1c
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="own-09.1",
    doc=__doc__,
    source="own",
    parts=[
        own_09_1a.PART,
        own_09_1b.PART,
        own_09_1c.PART,
        Choice(
            key="own-09.1d",
            prompt="Now a *decoder*: 4,096 tokens, a causal window of 256 (a token itself and the 255 before it), and "
            "the first token is global. After how many layers can the last output depend on every earlier input?",
            hints=[
                "What does the first token know, in any layer, in a decoder?",
                "By how many positions does a layer bring news further? How far is it from the second token to the "
                "last?",
            ],
            options=[
                Option(
                    "2, as in an encoder with a global token.",
                    "The first step fails: the first token may attend to no later one, so that it hands on nothing "
                    "but itself.",
                ),
                Option(
                    "None: what has left the window is lost.",
                    "There is such a number: a layer hands on what it got in the one before, so that two layers reach "
                    "510 positions back, and so on.",
                ),
                Option(
                    "16, as many as windows fit into the text.",
                    "A window of 256 holds the token itself: news travels 255 positions a layer, and 16 layers are 14 "
                    "positions short.",
                ),
                Option(
                    "17, as many as without a global token.",
                    "All attend to the first token, but it only ever knows itself. From the second token to the last "
                    "one there are 4,094 positions, and a layer takes 255 of them: 16 layers reach 4,080, so 17. (`d2l."
                    "layers_to_reach` counts it: of a causal mask it wants the earlier positions alone.)",
                    right=True,
                ),
            ],
        ),
    ],
)
