"""Waiting longer after each failure, with jitter, so that many sidecars do not come back in step."""

import random


class Backoff:
    """Delays in seconds that double from `first_s` to `most_s`, each drawn from the upper half of its range."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._next_s = first_s

    def next_s(self) -> float:
        """The delay before the next try."""
        delay_s = self._next_s
        self._next_s = min(self._most_s, 2 * delay_s)
        return delay_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    def reset(self) -> None:
        """Begins anew after a success."""
        self._next_s = self._first_s
