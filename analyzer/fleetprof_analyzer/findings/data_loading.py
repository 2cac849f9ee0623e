"""Ranks wait for the next batch: their GPUs, or, where they have none, their training threads.

More workers are advice only where a core is left for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.report import Rank
from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.findings.busy_cores import are_cores_busy
from fleetprof_analyzer.findings.finding import FindingRule, MeasuredFinding, RanksOfKind
from fleetprof_analyzer.findings.host_time import (
    add_iterations,
    add_stage,
    find_longest_silence,
    median_permille,
    name_threads,
)
from fleetprof_analyzer.findings.idle_device import IdleDevice, make_idle_rule
from fleetprof_analyzer.job.sentence_guard import SentenceGuard
from fleetprof_analyzer.words.code import name_code_place

_KIND: Final = "data_loading"


@dataclass(frozen=True, slots=True)
class DataLoading(IdleDevice):
    """Idle time in which the host waits for a batch; `cores_busy`: more workers would find no core."""

    cores_busy: bool = False

    guard = SentenceGuard(
        place="finding data_loading", figure="idle_ns.data_loading", whole="the devices' time", least_permille=30,
        words="the GPU waits for the next batch", part="idle",
    )  # fmt: skip

    @classmethod
    def of(
        cls, place: IdlePlace | None, permille: int, names: Sequence[str], view: RanksOfKind, chosen: Sequence[Rank]
    ) -> Self:
        """See IdleDevice."""
        return cls(place, permille, names, are_cores_busy(view.ranks))

    def advise(self) -> str:
        """See IdleDevice."""
        more = "give the DataLoader more workers, prefetching and pinned memory"
        return _advise(more, self.line, cores_busy=self.cores_busy)


IDLE: Final = make_idle_rule(
    _KIND, DataLoading, lambda idle: idle.data_loading, least_gain=lambda view: view.loading_gain
)
HOST_LOADING: Final = SentenceGuard(
    place="finding data_loading, without GPU", figure="ranks.data_loading_ns", whole="the median rank's time",
    least_permille=30, words="the training threads of all ranks wait for the next batch", part="host",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostLoading:
    """The training threads of all of so many CPU-only ranks wait for batches; `cores_busy`: workers find no core."""

    ranks: int
    cores_busy: bool = False
    place: PlaceInCode | None = None

    def say(self) -> tuple[str, str]:
        """See FindingFacts."""
        line = "" if self.place is None else name_code_place(self.place)
        more = "give the DataLoader more workers and prefetching"
        message = f"{name_threads(self.ranks, 'wait')} for the next batch"
        return message, _advise(more, line, cores_busy=self.cores_busy)


def _advise(more: str, line: str, *, cores_busy: bool) -> str:
    cheaper = f"make {line} cheaper" if line else "prepare samples more cheaply"
    if cores_busy:
        return f"{cheaper}: the cores are busy, and more workers would share them"
    return f"{more}, or {cheaper}"


def _find_on_host(view: RanksOfKind) -> MeasuredFinding | None:
    if view.total.kind != "cpu":
        return None
    ranks = view.ranks
    times = [rank.data_loading_ns or add_stage(rank, "data_loading") for rank in ranks]
    # Waits before the first operator lie outside of `span`, and those of other threads outside of the iterations.
    wholes = [max(rank.time_ns.span, add_iterations(rank), time) for rank, time in zip(ranks, times, strict=True)]
    permille = median_permille(times, wholes)
    if not HOST_LOADING.allows(permille, 1000):
        return None
    place = _find_place(ranks, times)
    return MeasuredFinding(
        kind=_KIND,
        facts=HostLoading(len(ranks), are_cores_busy(ranks), place),
        guard=HOST_LOADING,
        gain_permille=permille,
        measure="ranks.data_loading_ns",
        value_ns=sum(times),
        place=place,
    )


def _find_place(ranks: Sequence[Rank], times_ns: Sequence[int]) -> PlaceInCode | None:
    """The line of the rank that waits for longest, of those whose thread was sampled."""
    places = [
        (time_ns, place)
        for rank, time_ns in zip(ranks, times_ns, strict=True)
        if rank.stages is not None and (place := rank.stages.loading_place or _find_silent_place(rank)) is not None
    ]
    return max(places, key=lambda one: one[0], default=(0, None))[1]


def _find_silent_place(rank: Rank) -> PlaceInCode | None:
    """The line where a rank is silent whose batches come from a plain generator, so that no stage is the loader's."""
    longest = find_longest_silence([rank])
    if longest is None or add_stage(rank, _KIND) or 2 * longest.time_ns < (rank.data_loading_ns or 0):
        return None
    return longest.place


ON_HOST: Final = FindingRule(_KIND, (HOST_LOADING,), _find_on_host)
