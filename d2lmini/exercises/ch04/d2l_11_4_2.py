r"""Scaled dot products in Bahdanau's decoder

Bahdanau scores a state against an encoder output with a small network. Both are vectors of the same size h here, so
a scaled dot product would do as well, and it needs no parameters at all. Replace the one by the other. Then measure
what that changes: parameters, time, and what is learned.
"""

from d2lmini.exercises.ch04 import d2l_11_4_2a, d2l_11_4_2b
from d2lmini.exercises.engine import Exercise

EXERCISE = Exercise(
    key="d2l-11.4.2",
    doc=__doc__,
    source="D2L 11.4, exercise 2",
    parts=[
        d2l_11_4_2a.PART,
        d2l_11_4_2b.PART,
    ],
)
