"""The figures of the jobs of a namespace now, as the policies see it: a seam, and the hub's side of it.

Guarantees: read from memory, never from the network; what nobody measures is None, never 0.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Protocol

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.policy import JobSelector
from fleetprof_api.telemetry.figures import Aggregate

from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord


@dataclass(frozen=True, slots=True)
class Job:
    """A training job: a workload of a namespace whose pods have the sidecar."""

    namespace: str
    api_version: str
    kind: str
    name: str

    def text(self) -> str:
        """`Job/llama`: how status, Events and people name it."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigures:
    """One job now. `iteration` is that of the rank furthest behind; `activity_permille` the mean over the ranks' GPUs;
    `lowest` the rank of the lowest activity and its share of the mean in permille.
    """

    job: Job
    ranks: int
    began_unix_ns: int
    pod: str = ""  # the name of one of its pods
    iteration: int | None = None
    iteration_ns: int | None = None
    activity_permille: int | None = None
    lowest: tuple[int, int] | None = None


class FiguresSource(Protocol):
    """A source of the jobs that are there, and their figures now."""

    def list_jobs(self, namespace: str, selector: JobSelector | None) -> list[JobFigures]:
        """The jobs of a namespace of whose pods one has these labels; all when None."""

    def find_job(self, namespace: str, *, kind: str = "", name: str = "", pod: str = "") -> Job | None:
        """The job of this kind and name, or that has this pod."""

    def list_pods(self) -> dict[Job, str]:
        """All jobs of all namespaces, each with the name of one of its pods."""


ReadMeasure = Callable[[Job, str], Aggregate | None]
"""The telemetry of a job by the name of its metric, without `fleetprof_workload_`; None: nobody measures it."""
_ACTIVITY: Final = ("gpu_sm_active_ratio", "gpu_busy_ratio")


class HubFigures:
    """The figures that sidecars tell the hub. `list_sidecars` gives those of a namespace, of all for ""."""

    def __init__(
        self,
        list_sidecars: Callable[[str], Iterable[SidecarRecord]],
        read_measure: ReadMeasure,
    ) -> None:
        self._list_sidecars = list_sidecars
        self._read_measure = read_measure

    def list_jobs(self, namespace: str, selector: JobSelector | None) -> list[JobFigures]:
        """See FiguresSource."""
        sidecars: dict[Job, list[SidecarRecord]] = {}
        chosen: set[Job] = set()
        for record in self._list_sidecars(namespace):
            job = _job_of(record)
            if job is not None and record.link is not None:
                sidecars.setdefault(job, []).append(record)
                if selector is None or selector.matches(dict(record.identity.labels)):
                    chosen.add(job)
        found = (self._read(job, records) for job, records in sidecars.items() if job in chosen)
        return [figures for figures in found if figures is not None]

    def find_job(self, namespace: str, *, kind: str = "", name: str = "", pod: str = "") -> Job | None:
        """See FiguresSource."""
        for record in self._list_sidecars(namespace):
            job = _job_of(record)
            if job is None or record.link is None:
                continue
            if (kind, name) == (job.kind, job.name) or (pod and record.identity.pod_name == pod):
                return job
        return None

    def list_pods(self) -> dict[Job, str]:
        """See FiguresSource."""
        found: dict[Job, str] = {}
        for record in self._list_sidecars(""):
            job = _job_of(record)
            if job is not None and record.link is not None:
                found[job] = record.identity.pod_name
        return found

    def _read(self, job: Job, records: Sequence[SidecarRecord]) -> JobFigures | None:
        trainers = [p for r in records for p in r.processes.values() if p.role == pb.TRAINER]
        if not trainers:
            return None
        steps = [p.step for p in trainers if p.HasField("step")]
        times = [step.iteration_ns for step in steps if step.iteration_ns]
        read = (self._read_measure(job, name) for name in _ACTIVITY)
        activity = next((measure for measure in read if measure is not None), None)
        return JobFigures(
            job=job,
            ranks=len(trainers),
            began_unix_ns=min(process.first_seen_unix_ns for process in trainers),
            pod=records[0].identity.pod_name,
            # A rank that has made no iteration yet holds all of them back.
            iteration=min(s.step // max(1, s.steps_per_iteration) for s in steps)
            if len(steps) == len(trainers)
            else None,
            iteration_ns=int(median(times)) if times else None,
            activity_permille=round(1000 * activity.mean) if activity else None,
            lowest=_find_lowest(activity) if activity else None,
        )


def _find_lowest(measure: Aggregate) -> tuple[int, int] | None:
    if measure.mean <= 0 or measure.lowest_rank is None:
        return None
    return measure.lowest_rank, round(1000 * measure.min / measure.mean)


def _job_of(record: SidecarRecord) -> Job | None:
    identity = record.identity
    if not identity.HasField("workload"):
        return None
    workload = identity.workload
    return Job(identity.namespace, workload.api_version, workload.kind, workload.name)
