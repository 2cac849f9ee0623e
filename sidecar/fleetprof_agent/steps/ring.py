"""The latest optimizer steps of this process.

Guarantees: `StepRing` holds SIZE rows from the start and never more; reading never stops a step from being recorded (a
reader that is overtaken loses the oldest rows, it never gets a torn one: rows are read up to the count that was seen,
and checked against it afterwards).
The hook (hook.py) writes the columns itself: a call per step would cost more than the work.
"""

from __future__ import annotations

SIZE = 4096  # 8 s of 2 ms steps, half a MiB; a power of two
MASK = SIZE - 1
MEDIAN_OF = 32
RECENT = 3
IN_SUCCESSION = 4
FEWEST = 2  # the first distance has the job's warm-up in it
# A job steps its optimizers in a fixed order. Longer periods than this are taken for none.
LONGEST_PERIOD = 32
PERIOD_SEEN_IN = 2 * LONGEST_PERIOD
TRIED_FOR = 16


class StepRing:
    """Columns of the same shape [SIZE]: step count after the step, Unix ns of its end, and which optimizer (its id)."""

    __slots__ = ("count", "end_unix_ns", "optimizer", "step")

    def __init__(self) -> None:
        self.count = 0  # rows ever written; row i is in slot i & MASK
        # Lists, not arrays: a step comes when the training has used the caches for itself, and each module that the
        # hook needs beside the interpreter's core costs it microseconds then.
        self.step = [0] * SIZE
        self.end_unix_ns = [0] * SIZE
        self.optimizer = [0] * SIZE

    def read(self, start: int, limit: int) -> tuple[int, list[int], list[int]]:
        """Rows from row `start` on, at most `limit`: the row after the last, their steps, their ends."""
        start = max(start, self.count - SIZE, 0)
        stop = min(self.count, start + limit)
        steps = [self.step[row & MASK] for row in range(start, stop)]
        ends = [self.end_unix_ns[row & MASK] for row in range(start, stop)]
        lost = max(0, min(self.count - SIZE - start, len(steps)))
        return stop, steps[lost:], ends[lost:]

    def latest_optimizers(self) -> list[int]:
        """The optimizers that made the latest steps, oldest first; at most PERIOD_SEEN_IN."""
        count = self.count
        return [self.optimizer[row & MASK] for row in range(max(0, count - PERIOD_SEEN_IN), count)]

    def iteration_ns(self, per_iteration: int) -> int:
        """Median of the latest MEDIAN_OF distances over `per_iteration` steps; 0 while there are fewer than FEWEST.

        That of the latest RECENT where it is less than half as long: a job that has just been compiled makes its next
        iterations in a hundredth of the time, and a step that is foretold by what was would be over too soon.
        """
        distances = self._read_distances(per_iteration)
        if len(distances) < FEWEST:
            return 0
        usual, recent = _lower_median(distances), _lower_median(distances[-RECENT:])
        return max(0, recent if 2 * recent < usual else usual)

    def fastest_iteration_ns(self, per_iteration: int) -> int:
        """Mean of the fastest IN_SUCCESSION of the same distances; 0 while there are fewer.

        On a machine that others use, a job makes its iterations as the others let it: this is how soon the next ones
        may come.
        """
        distances = self._read_distances(per_iteration)
        if len(distances) < IN_SUCCESSION:
            return 0
        starts = range(len(distances) - IN_SUCCESSION + 1)
        return max(0, min(sum(distances[start : start + IN_SUCCESSION]) for start in starts) // IN_SUCCESSION)

    def _read_distances(self, per_iteration: int) -> list[int]:
        count = self.count
        first = max(per_iteration, count - MEDIAN_OF, count - SIZE + per_iteration)
        ends = self.end_unix_ns
        return [ends[row & MASK] - ends[(row - per_iteration) & MASK] for row in range(first, count)]


def _lower_median(values: list[int]) -> int:
    return sorted(values)[(len(values) - 1) // 2]


def find_period(optimizers: list[int], known: int) -> int:
    """Optimizer steps per training iteration: the shortest period of the optimizers that stepped; 0: none yet.

    One optimizer is a period of 1, whatever is accumulated before it steps; D D D G is one of 4. The whole sequence
    must repeat, at least once; while it does not (a GradScaler skipped a step, the training entered a new phase)
    `known` stands, if it has room for every optimizer. Before that it is enough that the latest steps repeat, with
    every optimizer in them. The distance of two optimizers' steps is no iteration's length, so without a period nothing
    is known of it; a job of TRIED_FOR steps without one is taken to have none.
    """
    length, different = len(optimizers), set(optimizers)
    periods = range(1, min(LONGEST_PERIOD, length // 2) + 1)
    for period in periods:
        if optimizers[period:] == optimizers[: length - period]:
            return period
    if known >= max(len(different), 1):
        return known
    for period in periods:
        latest = optimizers[-2 * period :]
        if latest[period:] == latest[:period] and set(latest) == different:
            return period
    return 1 if length >= TRIED_FOR else 0
