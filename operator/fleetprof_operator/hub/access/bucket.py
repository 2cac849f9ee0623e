"""A token bucket: so much at once, so much per second after that. Pure, time is passed in (seconds of one clock)."""


class TokenBucket:
    """Begins full. What is taken beyond its content must be waited for, so that nobody is turned away for good."""

    def __init__(self, burst: float, per_s: float, now_s: float) -> None:
        self._burst = burst
        self._per_s = per_s
        self._left = burst
        self._at_s = now_s

    def take(self, amount: float, now_s: float) -> float:
        """Takes `amount`; for how many seconds the taker must wait, 0 while there is enough."""
        self._refill(now_s)
        self._left -= min(amount, self._burst)
        return max(0.0, -self._left / self._per_s)

    def take_or_refuse(self, amount: float, now_s: float) -> float | None:
        """As `take`, for those who may be turned away: None, and nothing taken, where the debt is above one burst."""
        self._refill(now_s)
        return None if self._left - amount < -self._burst else self.take(amount, now_s)

    def take_if_there(self, amount: float, now_s: float) -> bool:
        """Takes `amount` when there is so much; else nothing."""
        self._refill(now_s)
        if self._left < amount:
            return False
        self._left -= amount
        return True

    def is_full(self, now_s: float) -> bool:
        """Nobody has taken anything for so long that a new bucket would be the same."""
        self._refill(now_s)
        return self._left >= self._burst

    def _refill(self, now_s: float) -> None:
        self._left = min(self._burst, self._left + max(0.0, now_s - self._at_s) * self._per_s)
        self._at_s = now_s
