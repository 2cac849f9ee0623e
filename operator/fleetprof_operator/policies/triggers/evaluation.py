"""One job before the triggers of one policy.

Figures are averaged over 30 seconds, and each such interval is for or against (`persistence`): an evaluation phase, a
checkpoint or a slow start must last as long as the trigger's `forSeconds` before it counts.

Guarantees: pure, time is passed in; a job that begins anew is judged anew; intervals without a figure count neither
way. What is here is not kept over a restart of the operator: it takes `forSeconds` until it knows again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from fleetprof_api.policy import Trigger

from fleetprof_operator.policies.triggers.alerts import FiringAlert
from fleetprof_operator.policies.triggers.figures import JobFigures
from fleetprof_operator.policies.triggers.table import make_watch
from fleetprof_operator.policies.triggers.watch import INTERVAL_NS, Detection, IntervalFigures, JobMoment, Watch


@dataclass(slots=True)
class _Collected:
    since_unix_ns: int
    first_iteration: int | None
    activity: list[int] = field(default_factory=list)
    iteration_ns: list[int] = field(default_factory=list)
    lowest: list[tuple[int, int]] = field(default_factory=list)

    def add(self, figures: JobFigures) -> None:
        if figures.activity_permille is not None:
            self.activity.append(figures.activity_permille)
        if figures.iteration_ns is not None:
            self.iteration_ns.append(figures.iteration_ns)
        if figures.lowest is not None:
            self.lowest.append(figures.lowest)

    def close(self, figures: JobFigures, now_unix_ns: int) -> IntervalFigures:
        seconds = (now_unix_ns - self.since_unix_ns) / 1e9
        made = None
        if figures.iteration is not None and self.first_iteration is not None:
            made = figures.iteration - self.first_iteration
        return IntervalFigures(
            activity_permille=fmean(self.activity) if self.activity else None,
            rate=made / seconds if made is not None else None,
            # A job that made no iteration repeats what it said of the last one.
            iteration_ns=median(self.iteration_ns) if self.iteration_ns and made else None,
            lowest=_most_often_lowest(self.lowest),
        )


class JobEvaluation:
    """The watches of one job. `add` takes the job's figures, every few seconds."""

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        self._triggers = triggers
        self._began_unix_ns = 0
        self._iteration = 0
        self._collected: _Collected | None = None
        self._watches: list[Watch[Any]] = []

    def add(self, figures: JobFigures, now_unix_ns: int, alerts: Sequence[FiringAlert] = ()) -> list[Detection]:
        """The triggers that fire now. `alerts` are those about this job since the last call."""
        if not self._began_unix_ns or (figures.iteration or 0) < self._iteration:
            self._began_unix_ns = figures.began_unix_ns
            self._collected = None
            self._watches = [make_watch(trigger) for trigger in self._triggers]
        self._iteration = figures.iteration or 0
        moment = JobMoment(figures, now_unix_ns, self._close_interval(figures, now_unix_ns), alerts)
        return [detection for watch in self._watches for detection in watch.observe(moment)]

    def _close_interval(self, figures: JobFigures, now_unix_ns: int) -> IntervalFigures | None:
        if self._collected is None:
            self._collected = _Collected(now_unix_ns, figures.iteration)
            return None
        self._collected.add(figures)
        if now_unix_ns - self._collected.since_unix_ns < INTERVAL_NS:
            return None
        closed = self._collected.close(figures, now_unix_ns)
        self._collected = _Collected(now_unix_ns, figures.iteration)
        return closed


def _most_often_lowest(lowest_shares: Sequence[tuple[int, int]]) -> tuple[int, float] | None:
    if not lowest_shares:
        return None
    ((rank, _),) = Counter(rank for rank, _ in lowest_shares).most_common(1)
    return rank, fmean(share for lowest, share in lowest_shares if lowest == rank)
