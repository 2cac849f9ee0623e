"""Has something been so for most of a while? A sign test in the manner of Page's CUSUM, which no outlier can sway.

Each look is +1 where it is so and -1 where it is not; the sum never falls below 0, and at `limit` the alarm is raised.
What is always so raises it after `limit` looks. A pause that is shorter raises nothing, however extreme it is.

Guarantees: the mean time between false alarms is exact, `mean_looks_to_alarm`: of looks that are independent, each so
by chance with probability p (docs/policy.md#false-alarms). Source: E. S. Page, Continuous inspection schemes,
Biometrika 41 (1954).
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Persistence:
    """The sum so far; `limit` looks more for than against raise the alarm."""

    limit: int
    score: int = 0

    def look(self, is_so: bool) -> bool:
        """Tells whether the alarm is raised now; after that the sum begins anew."""
        self.score = max(0, self.score + (1 if is_so else -1))
        if self.score < self.limit:
            return False
        self.score = 0
        return True


def mean_looks_to_alarm(limit: int, chance: float) -> float:
    """The mean number of looks until an alarm is raised by chance alone; `chance` is from 0 to 1, not 0."""
    # Looks to get from a sum to the next higher one, by the sum: up at once, or down and up again twice.
    total = climb = 1 / chance
    for _ in range(limit - 1):
        climb = (1 + (1 - chance) * climb) / chance
        total += climb
    return total
