"""Is a count what chance gives?"""

import math


def fits(count, n, p, deviations=5):
    """Whether ``count`` of ``n`` independent draws is within so many standard deviations of ``n * p``.

    Five of them are left once in two million draws; the seeds of the tests are fixed.
    """
    return abs(count - n * p) <= deviations * math.sqrt(n * p * (1 - p))
