"""The job stands for longer than its own past allows."""

from collections.abc import Iterator
from typing import ClassVar, Final

from fleetprof_api.policy import StalledTrigger

from fleetprof_operator.policies.triggers.watch import Detection, JobMoment, Watch

PAUSES: Final = 3
"""So many times the longest pause before is no pause of the job's own any more."""


class StalledWatch(Watch[StalledTrigger]):
    """Fires while no iteration ends; again after `for_seconds`, as what kept it from an answer may be over.

    Of a job that has not moved since this operator looks first, nobody knows the pauses: `for_seconds` counts as one.
    """

    repeats_after_restart: ClassVar[bool] = True

    def __init__(self, name: str, details: StalledTrigger) -> None:
        super().__init__(name, details)
        self._for_ns = details.for_seconds * 10**9
        self._iteration: int | None = None
        self._since_unix_ns = 0
        self._longest_ns: int | None = None
        self._told_unix_ns = 0

    @classmethod
    def answers_with_stacks(cls, occasion: str) -> bool:
        """See Watch."""
        return True

    def observe(self, moment: JobMoment) -> Iterator[Detection]:
        """See Watch."""
        iteration, now = moment.figures.iteration, moment.now_unix_ns
        if not iteration:
            return  # its first one may take any time
        if iteration != self._iteration:
            if self._iteration is not None:
                self._longest_ns = max(self._longest_ns or 0, now - self._since_unix_ns)
            self._iteration, self._since_unix_ns, self._told_unix_ns = iteration, now, 0
            return
        stands_ns = now - self._since_unix_ns
        pause_ns = self._for_ns if self._longest_ns is None else self._longest_ns
        if stands_ns < max(self._for_ns, PAUSES * pause_ns) or now - self._told_unix_ns < self._for_ns:
            return
        self._told_unix_ns = now
        past = "" if self._longest_ns is None else f"; the longest pause before was {pause_ns // 10**9} s"
        cause = f"no iteration of the whole job has ended for {stands_ns // 10**9} s{past}"
        yield Detection(self.name, f"iteration-{iteration}-of-{moment.figures.began_unix_ns // 10**9}", cause)
