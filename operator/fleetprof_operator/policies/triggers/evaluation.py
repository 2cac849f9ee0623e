"""Does a trigger fire, from what is seen of one job again and again?

Figures are averaged over 30 seconds, and each such look is for or against (`persistence`): an evaluation phase, a
checkpoint or a slow start must last as long as the trigger's `forSeconds` before it counts.

Guarantees: pure, time is passed in; a job that begins anew is judged anew; looks without a figure count neither way.
What is here is not kept over a restart of the operator: it takes `forSeconds` until it knows again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final

from fleetprof_api.policy import (
    IterationTimeDriftTrigger,
    LowUtilizationTrigger,
    SteadyStateTrigger,
    StragglerTrigger,
    Trigger,
    TriggerType,
)

from fleetprof_operator.policies.triggers.figures import JobFigures
from fleetprof_operator.policies.triggers.persistence import Persistence

LOOK_NS: Final = 30 * 10**9
_REFERENCE_LOOKS: Final = 20  # ten minutes: what a job's own past is measured over


@dataclass(frozen=True, slots=True)
class Detection:
    """A trigger has fired: for what, and what was seen, in a sentence."""

    trigger: str
    occasion: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The figures of 30 seconds; `rate` is iterations per second."""

    activity_permille: float | None = None
    rate: float | None = None
    iteration_ns: float | None = None
    lowest: tuple[int, float] | None = None


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

    def close(self, figures: JobFigures, now_unix_ns: int) -> Look:
        seconds = (now_unix_ns - self.since_unix_ns) / 1e9
        made = None
        if figures.iteration is not None and self.first_iteration is not None:
            made = figures.iteration - self.first_iteration
        return Look(
            activity_permille=fmean(self.activity) if self.activity else None,
            rate=made / seconds if made is not None else None,
            # A job that made no iteration repeats what it said of the last one.
            iteration_ns=median(self.iteration_ns) if self.iteration_ns and made else None,
            lowest=_most_often_lowest(self.lowest),
        )


class JobEvaluation:
    """One job before the triggers of one policy. `add` takes the job's figures, every few seconds."""

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        self._triggers = triggers
        self._began_unix_ns = 0
        self._iteration = 0
        self._collected: _Collected | None = None
        self._watches: list[_Watch] = []

    def add(self, figures: JobFigures, now_unix_ns: int) -> list[Detection]:
        """Which triggers fire now."""
        if self._is_another_run(figures):
            self._begin(figures)
        self._iteration = figures.iteration or 0
        detections = [s for w in self._watches if isinstance(w, _Steady) for s in w.see(figures)]
        if self._collected is None:
            self._collected = _Collected(now_unix_ns, figures.iteration)
            return detections
        self._collected.add(figures)
        if now_unix_ns - self._collected.since_unix_ns >= LOOK_NS:
            look = self._collected.close(figures, now_unix_ns)
            self._collected = _Collected(now_unix_ns, figures.iteration)
            for watch in self._watches:
                if not isinstance(watch, _Steady):
                    detections += (
                        Detection(watch.name, f"{now_unix_ns // 10**9}", cause) for cause in watch.look(look)
                    )
        return detections

    def _is_another_run(self, figures: JobFigures) -> bool:
        return not self._began_unix_ns or (figures.iteration or 0) < self._iteration

    def _begin(self, figures: JobFigures) -> None:
        self._began_unix_ns = figures.began_unix_ns
        self._collected = None
        self._watches = [watch for trigger in self._triggers for watch in _make_watch(trigger)]


def _make_watch(trigger: Trigger) -> "Iterator[_Watch]":
    match trigger.type:
        case TriggerType.LOW_UTILIZATION:
            yield _Low(trigger.name, trigger.low_utilization or LowUtilizationTrigger())
        case TriggerType.STRAGGLER:
            yield _Behind(trigger.name, trigger.straggler or StragglerTrigger())
        case TriggerType.ITERATION_TIME_DRIFT:
            yield _Drift(trigger.name, trigger.iteration_time_drift or IterationTimeDriftTrigger())
        case TriggerType.STEADY_STATE:
            assert trigger.steady_state is not None
            yield _Steady(trigger.name, trigger.steady_state)


def _count_looks(for_seconds: int) -> int:
    return -(-for_seconds * 10**9 // LOOK_NS)


class _Low:
    def __init__(self, name: str, what: LowUtilizationTrigger) -> None:
        self.name = name
        self._below_permille = what.below_permille
        self._for = f"for most of {what.for_seconds} s"
        self._persistence = Persistence(_count_looks(what.for_seconds))
        self._best = (0.0, 0.0)  # the two highest rates; the second one is no outlier

    def look(self, look: Look) -> Iterator[str]:
        if look.activity_permille is not None:
            used, of = look.activity_permille, "of the GPUs' activity"
        elif look.rate is not None:
            high, second = self._best
            self._best = (max(high, look.rate), max(second, min(high, look.rate)))
            if not self._best[1]:
                return
            used, of = 1000 * look.rate / self._best[1], "of the job's own best iteration rate"
        else:
            return
        if self._persistence.look(used < self._below_permille):
            yield f"{used / 10:.0f} % {of}, below {self._below_permille / 10:.0f} % {self._for}"


class _Behind:
    def __init__(self, name: str, what: StragglerTrigger) -> None:
        self.name = name
        self._below_permille = what.below_permille
        self._for = f"for most of {what.for_seconds} s"
        self._persistence = Persistence(_count_looks(what.for_seconds))
        self._rank = -1

    def look(self, look: Look) -> Iterator[str]:
        if look.lowest is None:
            return
        rank, share_permille = look.lowest
        is_behind = share_permille < self._below_permille
        if self._persistence.score == 0 and is_behind:
            self._rank = rank
        if self._persistence.look(is_behind and rank == self._rank):
            yield (
                f"rank {rank} has {share_permille / 10:.0f} % of the ranks' mean activity, "
                f"below {self._below_permille / 10:.0f} % {self._for}"
            )


class _Drift:
    """Beside the job's own best: the least median of ten minutes on end, so that a slow start is not the measure."""

    def __init__(self, name: str, what: IterationTimeDriftTrigger) -> None:
        self.name = name
        self._slower_permille = what.slower_permille
        self._for = f"for most of {what.for_seconds} s"
        self._persistence = Persistence(_count_looks(what.for_seconds))
        self._block: list[float] = []
        self._best_ns = 0.0

    def look(self, look: Look) -> Iterator[str]:
        if look.iteration_ns is None:
            return
        self._block.append(look.iteration_ns)
        if len(self._block) == _REFERENCE_LOOKS:
            found = median(self._block)
            self._best_ns = min(self._best_ns or found, found)
            self._block.clear()
        if not self._best_ns:
            return
        slower_permille = 1000 * (look.iteration_ns / self._best_ns - 1)
        if self._persistence.look(slower_permille > self._slower_permille):
            yield (
                f"iterations take {look.iteration_ns / 1e6:.1f} ms, {slower_permille / 10:.0f} % more than the "
                f"{self._best_ns / 1e6:.1f} ms of this run's best ten minutes, {self._for}"
            )


class _Steady:
    def __init__(self, name: str, what: SteadyStateTrigger) -> None:
        self.name = name
        self._iteration = what.iteration
        self._is_reached = False

    def see(self, figures: JobFigures) -> Iterator[Detection]:
        if self._is_reached or figures.iteration is None or figures.iteration < self._iteration:
            return
        self._is_reached = True
        cause = f"iteration {self._iteration} was reached by all {figures.ranks} ranks"
        yield Detection(self.name, f"run-{figures.began_unix_ns // 10**9}", cause)


_Watch = _Low | _Behind | _Drift | _Steady


def _most_often_lowest(lowest_shares: Sequence[tuple[int, int]]) -> tuple[int, float] | None:
    if not lowest_shares:
        return None
    ((rank, _),) = Counter(rank for rank, _ in lowest_shares).most_common(1)
    return rank, fmean(share for lowest, share in lowest_shares if lowest == rank)
