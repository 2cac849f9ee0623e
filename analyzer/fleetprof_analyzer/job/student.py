"""Student's distribution, as far as tests and intervals need it; numpy has none.

Guarantees: pure; to nine digits from one degree of freedom on.
"""

from functools import lru_cache
from math import exp, lgamma, log, log1p
from typing import Final

_MOST: Final = 1e6
_HALVINGS: Final = 60
_EXACT: Final = 1e-12
_TERMS: Final = 1000


def student_tail(t: float, freedom: float) -> float:
    """P(|T| >= t) of Student's distribution, t >= 0: a regularized incomplete beta function (DLMF 8.17)."""
    beyond = t * t / freedom
    if beyond == 0:
        return 1.0
    if beyond == float("inf"):
        return 0.0
    # x = freedom / (freedom + t²); the fraction converges fast on its side of the mean alone.
    a, x = freedom / 2, 1 / (1 + beyond)
    power = exp(lgamma(a + 0.5) - lgamma(a) - lgamma(0.5) - a * log1p(beyond) + 0.5 * (log(beyond) - log1p(beyond)))
    if x < (a + 1) / (a + 2.5):
        return power * _fraction(a, 0.5, x) / a
    return 1 - power * _fraction(0.5, a, beyond / (1 + beyond)) / 0.5


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz' method."""
    numerator, denominator = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            numerator, denominator = 1 + term / numerator, 1 / (1 + term * denominator)
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < _EXACT:
            break
    return value


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
        if high - low < _EXACT * high:
            break
    return high
