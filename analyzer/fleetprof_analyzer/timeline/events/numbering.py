"""Numbers for processes, threads and arrows that are unique over all ranks of the merged trace.

Perfetto takes a thread by its number alone, and an arrow by its id, category and name, whatever process they are in.
Guarantees: pure; one place keeps one number; a main thread keeps the number of its process; memory is bounded by
`MOST_PLACES` per rank.
"""

from dataclasses import dataclass, field
from typing import Final

from fleetprof_analyzer.trace.limits import refuse

MOST_PLACES: Final = 100_000
_MOST_TEXT: Final = 64
_LARGEST_ID: Final = 1 << 40


class Numbers:
    """Hands out numbers; one for all ranks."""

    def __init__(self) -> None:
        self._last = 0

    def take(self) -> int:
        """The next number, counted up."""
        self._last += 1
        return self._last


@dataclass(slots=True)
class TimelinePlaces:
    """The processes and threads of one rank, by what its trace calls them."""

    numbers: Numbers
    processes: dict[str, int] = field(default_factory=dict)
    threads: dict[tuple[str, str], int] = field(default_factory=dict)

    def process(self, pid: str) -> int:
        """The new number of a process."""
        pid = pid[:_MOST_TEXT]
        found = self.processes.get(pid)
        if found is None:
            found = self.processes[pid] = self._take()
        return found

    def thread(self, pid: str, tid: str) -> int:
        """The new number of a thread. Raises LimitExceeded."""
        key = (pid[:_MOST_TEXT], tid[:_MOST_TEXT])
        found = self.threads.get(key)
        if found is None:
            found = self.threads[key] = self.process(pid) if key[0] == key[1] else self._take()
        return found

    def _take(self) -> int:
        if len(self.processes) + len(self.threads) > MOST_PLACES:
            raise refuse("the number of threads and streams", MOST_PLACES, "places")
        return self.numbers.take()


@dataclass(frozen=True, slots=True)
class ArrowIds:
    """Ids of the arrows of one rank: the `position`-th of `ranks`."""

    position: int
    ranks: int

    def of(self, value: object) -> int | None:
        """The new id for a number or hexadecimal text; None where it is neither, and so draws no arrow in Perfetto."""
        if isinstance(value, str):
            try:
                value = int(value, 16)
            except ValueError:
                return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST_ID:
            return None
        return value * self.ranks + self.position
