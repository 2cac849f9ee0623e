"""Waiting longer after each failure, with jitter, so that what failed together does not come back in step."""

import random
from typing import Final

_MOST_DOUBLINGS: Final = 30


class Backoff:
    """Delays in seconds that double from `first_s` to `most_s`, each drawn from the upper half of its range."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._failures = 0

    def next_s(self) -> float:
        """The delay before the next try."""
        self._failures += 1
        return draw_delay_s(self._failures - 1, self._first_s, self._most_s)

    def reset(self) -> None:
        """Begins anew after a success."""
        self._failures = 0


def draw_delay_s(failures: int, first_s: float, most_s: float) -> float:
    """The delay after so many failures before the last one, for who counts them."""
    delay_s = min(most_s, first_s * 2.0 ** min(failures, _MOST_DOUBLINGS))
    return delay_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
