"""Student's distribution, as far as tests and intervals need it; numpy has none.

Guarantees: pure; to three digits from one degree of freedom on.
"""

from functools import lru_cache
from typing import Final

import numpy as np

_MOST: Final = 1e6
_HALVINGS: Final = 60


def student_tail(t: float, freedom: float) -> float:
    """P(|T| >= t) of Student's distribution; t = sqrt(freedom) tan(angle) makes it an integral of a cosine's power."""
    angle = np.arctan(t / freedom**0.5)
    grid = np.linspace(0.0, 1.0, 2001)

    def integral(start: float) -> float:
        points = start + (np.pi / 2 - start) * grid
        return float(np.trapezoid(np.cos(points) ** (freedom - 1), points))

    return integral(angle) / integral(0.0)


@lru_cache(maxsize=1024)
def student_quantile(chance: float, freedom: float) -> float:
    """The t with P(|T| >= t) = chance, 0 < chance < 1."""
    low, high = 0.0, _MOST
    for _ in range(_HALVINGS):
        # By the middle of the logarithms: few degrees of freedom reach far.
        middle = (low * high) ** 0.5 if low > 0 else high / 1000
        if student_tail(middle, freedom) >= chance:
            low = middle
        else:
            high = middle
        if low == 0.0 and high < 1 / _MOST:
            return 0.0
    return high
