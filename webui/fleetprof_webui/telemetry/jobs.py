"""All jobs that told anything within the last day, captured or not, as the hub stored them.

Guarantees: a namespace's day is read once within KEPT_S, however many people look, and nobody waits for the read of
another namespace; what cannot be read is left out; a document that is not written any more, because its last job has
ended, ages with the clock; policies' actions of the day are beside the jobs that they are about.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fleetprof_api.telemetry.history import POINTS, STEP_NS, NamespaceDay, WorkloadDay
from fleetprof_store.base import Store

from fleetprof_webui.models.model import unix_ns
from fleetprof_webui.models.policies import PolicyAction
from fleetprof_webui.models.telemetry import JobOfDay, JobPage
from fleetprof_webui.policies.reading import find_actions
from fleetprof_webui.telemetry.stored_day import read_stored_day

KEPT_S: Final = 30.0
MOST_JOBS: Final = 500
_MOST_NAMESPACES: Final = 200
_MOST_ACTIONS: Final = 8
_POINTS: Final = 48
_RECENT: Final = 3
"""A figure of now is of the last quarter of an hour; what is older is a job that has ended."""
_ACTIVITY: Final = ("gpu_sm_active_ratio", "gpu_busy_ratio")
_HOUR_NS: Final = 3600 * 10**9


class TimedJob(NamedTuple):
    """A job, and the hours of the last day in which it told its pace; None where it told none."""

    job: JobOfDay
    hours: float | None


@dataclass(slots=True)
class _Kept:
    """The jobs of one namespace; `turn` is held while it is read."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    read_s: float = -KEPT_S
    jobs: Sequence[TimedJob] = ()
    actions: Mapping[tuple[str, str], Sequence[PolicyAction]] = field(default_factory=dict)


class JobsOfTheDay:
    """For several threads at once. `find_captured(namespaces)`: (namespace, kind, name) of those that were captured.

    `clock`: seconds, for what is kept; `read_unix_ns`: now, for what is told.
    """

    def __init__(
        self,
        store: Store,
        find_captured: Callable[[Collection[str]], Collection[tuple[str, str, str]]],
        clock: Callable[[], float] = time.monotonic,
        read_unix_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._find_captured = find_captured
        self._clock = clock
        self._read_unix_ns = read_unix_ns
        self._known: dict[str, _Kept] = {}
        self._turn = threading.Lock()

    def find(self, namespaces: Collection[str]) -> JobPage:
        """Running ones first, those of the lowest activity before others. Raises StoreError."""
        jobs = [job for job, _ in self.find_all(namespaces)]
        captured = self._find_captured({job.namespace for job in jobs})
        for job in jobs:
            job.captured = (job.namespace, job.kind, job.name) in captured
        jobs.sort(key=lambda job: (not job.running, 2.0 if job.activity is None else job.activity, job.name))
        return JobPage(items=jobs[:MOST_JOBS], total=len(jobs))

    def find_all(self, namespaces: Collection[str]) -> list[TimedJob]:
        """All of them, in no order. Raises StoreError."""
        return [job for namespace in sorted(namespaces)[:_MOST_NAMESPACES] for job in self._read(namespace).jobs]

    def knows(self, namespace: str, kind: str, name: str) -> bool:
        """Tells whether a job told anything; `kind` "" is any. Raises StoreError."""
        return any(job.name == name and kind in ("", job.kind) for job, _ in self._read(namespace).jobs)

    def _read(self, namespace: str) -> _Kept:
        with self._turn:
            kept = self._known.setdefault(namespace, _Kept())
            while len(self._known) > _MOST_NAMESPACES:
                del self._known[next(iter(self._known))]
        with kept.turn:
            if self._clock() - kept.read_s >= KEPT_S:
                kept.actions = find_actions(self._store, namespace)
                kept.jobs = self._read_anew(namespace, kept.actions)
                kept.read_s = self._clock()
            return kept

    def _read_anew(
        self, namespace: str, actions: Mapping[tuple[str, str], Sequence[PolicyAction]]
    ) -> Sequence[TimedJob]:
        day = read_stored_day(self._store, namespace)
        if day is None:
            return ()
        behind = max(0, (self._read_unix_ns() - day.end_unix_ns) // day.step_ns)
        if behind >= POINTS:
            return ()
        recent = max(0, _RECENT - behind)
        return [
            TimedJob(
                _describe(namespace, one, day, recent, actions.get((one.kind, one.name), ())),
                _count_hours(one.values.get("iterations_per_second", [])[behind - POINTS :], day.step_ns),
            )
            for one in day.workloads
        ]


def _count_hours(rates: Sequence[float | None], step_ns: int) -> float | None:
    steps = sum(rate is not None and rate > 0 for rate in rates)
    return steps * step_ns / _HOUR_NS if steps else None


def _describe(
    namespace: str, one: WorkloadDay, day: NamespaceDay, recent: int, actions: Sequence[PolicyAction]
) -> JobOfDay:
    """`recent`: how many of the last points tell of now."""

    def last(measure: str) -> float | None:
        values = one.values.get(measure, [])[-recent:] if recent else []
        return next((value for value in reversed(values) if value is not None), None)

    rates = one.values.get("iterations_per_second", [])
    now = {measure: value for measure in one.values if (value := last(measure)) is not None}
    job = _make_job((namespace, one.kind, one.name), now, _thin(rates), actions)
    job.end_unix_ns = unix_ns(day.end_unix_ns)
    job.step_ns = day.step_ns * max(1, -(-len(rates) // _POINTS))
    return job


def _make_job(
    of: tuple[str, str, str], now: Mapping[str, float], rates: list[float | None], actions: Sequence[PolicyAction]
) -> JobOfDay:
    """`now`: what it told in the last quarter of an hour, by measure."""
    seconds = now.get("iteration_seconds")
    namespace, kind, name = of
    return JobOfDay(
        namespace=namespace,
        kind=kind,
        name=name,
        captured=False,
        running=bool(now),
        activity=next((now[measure] for measure in _ACTIVITY if measure in now), None),
        iteration_ns=round(seconds * 1e9) if seconds is not None else None,
        iterations_per_second=now.get("iterations_per_second"),
        power_watts=now.get("gpu_power_watts"),
        cpu_busy=now.get("host_cpu_busy_ratio"),
        rates=rates,
        end_unix_ns=None,
        step_ns=STEP_NS,
        actions=list(actions[:_MOST_ACTIONS]),
    )


def _thin(values: Sequence[float | None]) -> list[float | None]:
    """At most _POINTS means of equal stretches, the last of them whole."""
    width = max(1, -(-len(values) // _POINTS))
    thin: list[float | None] = []
    for end in range(len(values), 0, -width):
        known = [value for value in values[max(0, end - width) : end] if value is not None]
        thin.append(sum(known) / len(known) if known else None)
    return thin[::-1]
