r"""A database's approximate match

A database can do more than find the one record whose key equals yours. "The three shops nearest to me" and
"every shop within a mile" are approximate matches. Both are attention: only the rule that gives the weights
is unusual, and the answer is the mean of the values that match.

Queries have shape (B, T, D), keys (B, S, D), both of one dtype. Near means the Euclidean distance
$\lVert \mathbf q - \mathbf k_i\rVert$. Each of the three functions below returns the weights, (B, T, S), of that
dtype, so that `weights @ values` is the database's answer.
"""

from d2lmini.exercises.ch01 import d2l_11_1_1a, d2l_11_1_1b, d2l_11_1_1c
from d2lmini.exercises.engine import Exercise

EXERCISE = Exercise(
    key="d2l-11.1.1",
    doc=__doc__,
    source="D2L 11.1, exercise 1",
    parts=[
        d2l_11_1_1a.PART,
        d2l_11_1_1b.PART,
        d2l_11_1_1c.PART,
    ],
)
