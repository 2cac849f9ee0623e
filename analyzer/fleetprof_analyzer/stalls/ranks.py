"""One rank at one moment, as the rules of `causes` see it.

Guarantees: pure; a question about what is not known is answered with None or an empty tuple.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from fleetprof_api.samples import CodePlace
from fleetprof_api.stacks import ProcessStacks, RecordedCollective, ThreadStack

from fleetprof_analyzer.stalls.waits import Wait, find_wait

_LIBRARIES: Final = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "<frozen ")
BUSY_PERMILLE: Final = 500
"""A main thread that runs for so much of the time computes; one that waits takes next to none."""


@dataclass(frozen=True)
class StalledRank:
    """`number` is its rank. Frames are innermost first."""

    process: ProcessStacks
    number: int

    @cached_property
    def main(self) -> ThreadStack | None:
        """The main thread, where it was seen."""
        return next((thread for thread in self.process.threads if thread.is_main), None)

    @cached_property
    def frames(self) -> Sequence[CodePlace]:
        """The frames of the main thread."""
        return self.frames_of(self.main) if self.main is not None else ()

    def frames_of(self, thread: ThreadStack) -> Sequence[CodePlace]:
        """The frames of any of its threads."""
        return [self.process.places[place] for place in thread.stack]

    @property
    def call(self) -> str:
        """The name of the call in the job's own innermost line, where that is no Python code; "": not known."""
        is_own = bool(self.frames) and not is_library(self.frames[0])
        return self.main.call if is_own and self.main is not None else ""

    @cached_property
    def own_line(self) -> CodePlace | None:
        """The innermost line of the main thread that is not a library's."""
        return next((place for place in self.frames if not is_library(place)), None)

    @property
    def computes(self) -> bool:
        """Tells whether its main thread runs."""
        busy = self.process.busy_permille
        return busy is not None and busy >= BUSY_PERMILLE

    @property
    def wait(self) -> Wait | None:
        """The kind of thing that its main thread waits for, by the kernel's word; None while it runs, or not known."""
        return None if self.computes else find_wait(self.process.waits_in)

    @property
    def is_stopped(self) -> bool:
        """Tells whether a signal or a debugger holds it."""
        return self.process.state in ("T", "t")

    @cached_property
    def pending(self) -> dict[str, RecordedCollective]:
        """The oldest collective of each group that it has begun and that is not over."""
        found: dict[str, RecordedCollective] = {}
        for one in self.process.collectives:
            if not one.is_over and not one.is_p2p:
                found.setdefault(one.group, one)
        return found

    @cached_property
    def messages(self) -> Sequence[RecordedCollective]:
        """The sends and receives that are not over, the oldest first."""
        return [one for one in self.process.collectives if one.is_p2p and not one.is_over]

    @cached_property
    def reached(self) -> dict[str, RecordedCollective]:
        """The latest collective of each group that it has begun."""
        return {one.group: one for one in self.process.collectives if not one.is_p2p}

    def is_in(self, *ends: str) -> bool:
        """Tells whether its main thread is in one of these files, or in what they call."""
        return any(place.file.endswith(ends) for place in self.frames)


def waits_in_collective(rank: StalledRank) -> bool:
    """Tells whether it has entered a collective that is not over, by the recorder or by its stack."""
    return bool(rank.pending) or (rank.is_in("torch/distributed/distributed_c10d.py") and not rank.computes)


def is_library(place: CodePlace) -> bool:
    """Tells whether a line is Python's own or of an installed package."""
    return any(part in place.file for part in _LIBRARIES)


def choose_ranks(processes: Sequence[ProcessStacks]) -> list[StalledRank]:
    """The trainers among a job's processes, by rank; where nobody has made a step yet, those that may become one."""
    numbered = [p for p in processes if p.rank is not None and (p.is_trainer or p.has_agent)]
    if not numbered:
        alone = [p for p in processes if p.is_trainer] or [p for p in processes if p.has_agent]
        return [StalledRank(alone[0], 0)] if len(alone) == 1 else []
    trainers = [p for p in numbered if p.is_trainer] or numbered
    by_rank = {p.rank: p for p in sorted(trainers, key=lambda p: (p.has_answered, p.is_trainer))}
    return [StalledRank(by_rank[rank], rank) for rank in sorted(r for r in by_rank if r is not None)]
