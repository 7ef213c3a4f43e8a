r"""Kernels in place of the softmax

Softmax attention compares every query with every key: $T \cdot S$ numbers. In place of $\exp(\mathbf q^\top \mathbf k)$
put a kernel that is a product of *features*, $k(\mathbf q, \mathbf k) = \phi(\mathbf q)^\top \phi(\mathbf k)$, where
the feature map $\phi$ takes a vector of D numbers to one of R positive numbers. Then there are two ways to the output
for query t:

$$\frac{\sum_s k(\mathbf q_t, \mathbf k_s)\, \mathbf v_s}{\sum_s k(\mathbf q_t, \mathbf k_s)} =
\frac{[\sum_s \mathbf v_s\, \phi(\mathbf k_s)^\top]\, \phi(\mathbf q_t)}
{\phi(\mathbf q_t)^\top \sum_s \phi(\mathbf k_s)} .$$

The sums in brackets and in the denominator on the right do not depend on t. (UDL prints the weights with a sum over
queries, (12.20); the sum of its own attention, and of ours, runs over the keys.)

In all parts `phi` is given: a function that maps a tensor (..., D) to (..., R), each vector for itself. Features are
not scaled by a root of D.
"""

from d2lmini.exercises.ch09 import udl_12_11a, udl_12_11b, udl_12_11c
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="udl-12.11",
    doc=__doc__,
    source="UDL problem 12.11",
    parts=[
        udl_12_11a.PART,
        udl_12_11b.PART,
        udl_12_11c.PART,
        Choice(
            key="udl-12.11d",
            prompt=r"Why not take the feature map of $\exp(\mathbf q^\top \mathbf k)$ itself, and have softmax "
            "attention exactly, in linear time?",
            hints=[
                r"Expand $\exp(\mathbf q^\top \mathbf k)$ as a power series. Each power of the product is itself a "
                "product of features: of how many?",
                "With R features, what is the rank of the table of all kernel values, at most?",
            ],
            options=[
                Option(
                    "One cannot: the exponential is no product of features, whatever φ is.",
                    "It is one, with infinitely many features: all products of components, of every degree n, divided "
                    "by the root of n!. That is the power series.",
                ),
                Option(
                    "One cannot: its φ has infinitely many features, and no finite R does.",
                    "With R features the table of weights before the division has rank R at most; that of the "
                    "exponential may have any rank. Take n different vectors, for queries and keys alike. Their table "
                    "of exponentials has full rank, n (the kernel is strictly positive definite), so no finite R does "
                    "for every length. With R fixed one gives up sharp choices among many more keys than features, "
                    "such as to copy one token out of thousands. Random features come close on average, and the error "
                    "falls with R (Choromanski et al. 2021, arXiv:2009.14794).",
                    right=True,
                ),
                Option(
                    "One cannot: its φ has features below zero, and weights must not be so.",
                    "Signs of features are no matter where the kernel itself is positive, as the exponential is. No "
                    "finite number of them does.",
                ),
                Option(
                    "One can: the square comes from the softmax's division by its sums alone.",
                    "The division is cheap in both forms: one number for each query. What keeps the products from "
                    "being bracketed otherwise is the exponential between them.",
                ),
                Option(
                    "One can: nothing is lost by it, but on GPUs the square is the faster way.",
                    "For short sequences the square is fast. But no finite feature map gives the exponential "
                    "exactly, so that what is computed differs, too.",
                ),
            ],
        ),
    ],
)
