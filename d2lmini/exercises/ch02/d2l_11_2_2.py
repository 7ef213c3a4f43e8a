r"""Learning the width of the kernel, and how it cheats

Nadaraya-Watson with a Gaussian kernel has one parameter, its width $w$:

$$f_w(\mathbf x) = \sum_j \frac{\exp\left(-\lVert\mathbf x - \mathbf x_j\rVert^2 / (2 w^2)\right)}
{\sum_k \exp\left(-\lVert\mathbf x - \mathbf x_k\rVert^2 / (2 w^2)\right)}\, y_j .$$

Why choose it by eye, when there is gradient descent? Make the mean squared error over the $N$ stored examples
small,

$$L(w) = \frac1N \sum_{i=1}^N \left(f_w(\mathbf x_i) - y_i\right)^2 .$$

There is a catch. The example $(\mathbf x_i, y_i)$ is among those that $f_w(\mathbf x_i)$ averages: it may
look up its own answer. So there are two losses. The **direct** one is $L$ as it stands. The **leave-one-out**
one removes example $i$ from both sums when it predicts for $\mathbf x_i$, and from no others. Which of the
two can choose a width?
"""

from d2lmini.exercises.ch02 import d2l_11_2_2a, d2l_11_2_2b
from d2lmini.exercises.engine import Exercise

EXERCISE = Exercise(
    key="d2l-11.2.2",
    doc=__doc__,
    source="D2L 11.2, exercise 2",
    parts=[
        d2l_11_2_2a.PART,
        d2l_11_2_2b.PART,
    ],
)
