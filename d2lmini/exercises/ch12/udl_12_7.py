r"""Byte-pair encoding of a nursery rhyme

A sailor went to sea, sea, sea, to see what he could see, see, see. The rhyme has 19 different characters, the space
among them. Byte-pair encoding starts from these. It makes one token of the two neighbours that stand side by side most
often, wherever they do; then it counts again. No merge reaches over the end of a word, and a space belongs to the word
before it: a token may end in a space, as `"sea "` and `"see "`, and has none elsewhere. Where pairs overlap all of them
count, and they are merged from the left: in `aaa` the pair of two `a` stands twice, and becomes `aa` and `a`.

A tie needs a rule, or no two programs agree. Ours is that of the `tokenizers` library. Every token has an id: the
characters have 0, 1, 2, ... in sorted order, and each merge gives the next id to the token that it makes. Among the
pairs that occur most often, take the one whose left token has the smallest id, and of those the one whose right token
has.
"""

from d2lmini.exercises.ch12 import udl_12_7a, udl_12_7b
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="udl-12.7",
    doc=__doc__,
    source="UDL problem 12.7",
    parts=[
        udl_12_7a.PART,
        udl_12_7b.PART,
        Choice(
            key="udl-12.7c",
            prompt="As the merges go on, the number of *different* tokens that the rhyme consists of first rises, "
            "from 19, and then falls, to 18. Why?",
            hints=[
                "A merge makes one new token. When do its two parts disappear from the text?",
                "How many different words has the rhyme?",
            ],
            options=[
                Option(
                    "Later merges are rare, and rare tokens are removed from the vocabulary.",
                    "Nothing is removed: the vocabulary grows with every merge. What falls is the number of tokens in "
                    "use.",
                ),
                Option(
                    "Later merges take the last places of their parts, which go out of use.",
                    "Each merge adds a token. Early on its parts still occur elsewhere, so the number rises. Later a "
                    "merge often takes the last places where its parts occurred. In the end each different word is one "
                    "token, and there are 18. The text becomes shorter with each merge; the number of different "
                    "tokens is highest somewhere in "
                    "the middle, and at the end it is that of the words.",
                    right=True,
                ),
                Option(
                    "Later merges join whole words, so that fewer tokens cover the text.",
                    "No merge reaches over the end of a word. If merges did, the rhyme would end as a single token.",
                ),
                Option(
                    "Later merges make tokens that exist already, and both share one id.",
                    "No merge makes a token that there is already: its two parts would have been merged everywhere "
                    "when that "
                    "token was made. Each merge adds one new string with an id of its own.",
                ),
            ],
        ),
    ],
)
