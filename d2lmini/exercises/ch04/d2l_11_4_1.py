r"""An LSTM in place of the GRU

The decoder of D2L's section 11.4 carries one vector for each layer, the state of its GRU. An LSTM carries two: the
*hidden* state, which it shows, and the *cell*, which it keeps to itself. Both must be handed from step to step, and
only one of them can be the query. First write the decoder, then find out whether it was worth it.
"""

from d2lmini.exercises.ch04 import d2l_11_4_1a, d2l_11_4_1b
from d2lmini.exercises.engine import Exercise

EXERCISE = Exercise(
    key="d2l-11.4.1",
    doc=__doc__,
    source="D2L 11.4, exercise 1",
    parts=[
        d2l_11_4_1a.PART,
        d2l_11_4_1b.PART,
    ],
)
