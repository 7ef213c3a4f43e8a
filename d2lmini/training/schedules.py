"""Learning-rate schedules: functions from a step, counted from 1, to a factor on the optimizer's learning rate.

Any function of that kind will do for ``Trainer(schedule=...)``; those of this file warm up first. A step is one update
of the parameters, however many batches it took. The factor is 1 at the end of the warm-up, so that the learning rate
given to the optimizer is the highest that is used.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class WarmupInverseSqrt:
    """Linear warm-up, then the inverse square root of the step::

        factor(step) = min(step / warmup, sqrt(warmup / step))

    With the learning rate 1 / sqrt(h * warmup), h = ``num_hiddens``, it is the schedule of the Transformer:
    h^-0.5 * min(step^-0.5, step * warmup^-1.5).

    Args:
        warmup: steps until the factor is 1; at least 1.

    Raises:
        ValueError: ``warmup`` is below 1.

    Source: Vaswani et al. 2017, equation 3.
    """

    warmup: int

    def __post_init__(self):
        if self.warmup < 1:
            raise ValueError(f"warmup is {self.warmup}, expected at least 1 step")

    def __call__(self, step):
        return step / self.warmup if step < self.warmup else math.sqrt(self.warmup / step)


@dataclass(frozen=True)
class WarmupCosine:
    """Linear warm-up, then half a cosine wave down to ``floor``, which is kept::

        factor(step) = step / warmup                                          for step < warmup
        factor(step) = floor + (1 - floor) * (1 + cos(pi * t)) / 2            else,
                       t = min(1, (step - warmup) / (total - warmup))

    Args:
        warmup: steps until the factor is 1; 0: none.
        total: steps until the factor is ``floor``, the warm-up among them; above ``warmup``.
        floor: the last factor, from 0 to 1.

    Raises:
        ValueError: a value is outside of its range.

    Source: Loshchilov and Hutter 2017, equation 5, without restarts; D2L section 12.11.3.4.
    """

    warmup: int
    total: int
    floor: float = 0.0

    def __post_init__(self):
        if not 0 <= self.warmup < self.total:
            raise ValueError(f"warmup is {self.warmup} and total {self.total}, expected 0 <= warmup < total")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor is {self.floor}, expected a factor from 0 to 1")

    def __call__(self, step):
        if step < self.warmup:
            return step / self.warmup
        done = min(1, (step - self.warmup) / (self.total - self.warmup))
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2


@dataclass(frozen=True)
class WarmupLinear:
    """Linear warm-up, a plateau, then a straight line down to ``floor``, which is kept::

        factor(step) = step / warmup                                          for step < warmup
        factor(step) = floor + (1 - floor) * min(1, (total - step) / decay)   else, and floor after total

    Args:
        warmup: steps until the factor is 1; 0: none.
        total: steps until the factor is ``floor``.
        decay: how many of these the way down takes; 0: none, the plateau never ends.
        floor: the last factor, from 0 to 1.

    Raises:
        ValueError: a value is outside of its range.

    Source: Hägele et al. 2024, section 3.
    """

    warmup: int
    total: int
    decay: int
    floor: float = 0.0

    def __post_init__(self):
        if not (0 <= self.warmup <= self.total - self.decay and self.decay >= 0):
            raise ValueError(
                f"warmup is {self.warmup}, total {self.total} and decay {self.decay}: expected "
                "0 <= warmup <= total - decay and decay >= 0"
            )
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor is {self.floor}, expected a factor from 0 to 1")

    def __call__(self, step):
        if step < self.warmup:
            return step / self.warmup
        left = max(0, self.total - step)
        return 1.0 if left >= self.decay else self.floor + (1 - self.floor) * left / self.decay
