r"""A search engine with a slope

A search engine compares a query with every document and shows the best matches first. Exact search sorts; a
sort has no slope, so nothing can be learned through it. Attention can stand in: the weights of a query over
all documents say how strongly each is shown, sorting the weights gives back the ranking, and there is a
gradient.

Match by the cosine of the angle between query $\mathbf q$ and document $\mathbf d_i$, so that a document
does not win by being long, at a temperature $\tau$:

$$s_i = \frac{\mathbf q^\top \mathbf d_i}{\lVert\mathbf q\rVert\,\lVert\mathbf d_i\rVert}, \qquad
w_i = \frac{\exp(s_i/\tau)}{\sum_j \exp(s_j/\tau)} .$$

In three parts you build the engine, let a user correct it, and let it learn from examples what "similar"
means. The collection is real: the documents are pictures of clothes, made smaller, and a picture is
relevant for another if both show the same kind of garment.
"""

from d2lmini.exercises.ch01 import d2l_11_1_3a, d2l_11_1_3b, d2l_11_1_3c
from d2lmini.exercises.engine import Exercise

EXERCISE = Exercise(
    key="d2l-11.1.3",
    doc=__doc__,
    source="D2L 11.1, exercise 3",
    parts=[
        d2l_11_1_3a.PART,
        d2l_11_1_3b.PART,
        d2l_11_1_3c.PART,
    ],
)
