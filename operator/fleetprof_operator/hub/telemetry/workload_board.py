"""One workload's telemetry: the latest of each of its ranks and hosts, and what that adds up to.

Guarantees: pure, time is passed in; a sidecar's report replaces its earlier one as a whole; a rank that its report does
not name any more is gone at once. It keeps about half a kilobyte for each rank, and nothing of those that are gone but
the energy that they used.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.pods import RANK_METRICS_LABEL, read_samples_per_iteration
from fleetprof_api.telemetry.figures import Aggregate, RankFigures, Throttled, WorkloadFigures
from fleetprof_api.telemetry.measures import HOST_MEASURES, LOWEST_OF, RANK_MEASURES
from fleetprof_api.throttling import THROTTLED_BY

from fleetprof_operator.hub.telemetry.value_table import ValueTable
from fleetprof_operator.hub.telemetry.worst_gpu import GpuRow, find_worst_gpu

_COUNTERS: Final = (
    "iterations",
    "last_iteration_unix_ns",
    "gpu_throttle_reasons",
    "gpu_ecc_corrected",
    "gpu_ecc_uncorrected",
)
_SMOOTHED: Final = ("gpu_iteration_joules", "gpu_sm_clock_hertz")
_SMOOTH: Final = 0.1  # the share of a new value: of a minute, at the default rate
_RANK_SOURCES: Final = {measure.source: (measure.name, measure.scale) for measure in RANK_MEASURES}
_HOST_SOURCES: Final = {measure.source: (measure.name, measure.scale) for measure in HOST_MEASURES}
_COLUMNS: Final = (*(m.name for m in RANK_MEASURES), *_COUNTERS, *(f"smooth_{name}" for name in _SMOOTHED))


@dataclass(slots=True)
class _Rank:
    """The facts of a rank beside its numbers."""

    rank: int | None
    pod: str
    node: str
    device: str
    world_size: int
    first_seen_unix_ns: int


@dataclass(slots=True)
class _Pod:
    """The latest word of a sidecar."""

    labels: Mapping[str, str]
    ranks: dict[str, _Rank]
    host: Hashable
    unreadable: tuple[int, ...]


class WorkloadBoard:
    """One workload, by namespace, kind and name."""

    def __init__(self, namespace: str, kind: str, name: str) -> None:
        self.namespace = namespace
        self.kind = kind
        self.name = name
        self._pods: dict[str, _Pod] = {}
        self._ranks = ValueTable(_COLUMNS)
        self._hosts = ValueTable([measure.name for measure in HOST_MEASURES])
        self._energy_joules = 0.0
        self._at_unix_ns = 0

    @property
    def is_empty(self) -> bool:
        """Tells whether nobody reports any more."""
        return not self._pods

    @property
    def rank_count(self) -> int:
        """The number of ranks that report."""
        return len(self._ranks)

    @property
    def wants_rank_metrics(self) -> bool:
        """Tells whether a pod of it asks for metrics of each rank."""
        return any(pod.labels.get(RANK_METRICS_LABEL) == "true" for pod in self._pods.values())

    def take(
        self,
        sidecar_id: str,
        identity: pb.Identity,
        processes: Mapping[str, pb.Process],
        report: pb.Telemetry,
        now_unix_ns: int,
    ) -> None:
        """A sidecar's report about `processes`, which its heartbeat named; others are nobody's."""
        self._at_unix_ns = now_unix_ns
        ranks: dict[str, _Rank] = {}
        for measured in report.ranks:
            process = processes.get(measured.process_id)
            if process is None or measured.process_id in ranks:
                continue
            ranks[measured.process_id] = _Rank(
                rank=process.rank if process.HasField("rank") else None,
                pod=identity.pod_name,
                node=identity.node_name or identity.host_name,
                device=process.device_name if process.device_kind not in ("", "cpu") else "",
                world_size=process.world_size,
                first_seen_unix_ns=process.first_seen_unix_ns,
            )
            self._take_rank((sidecar_id, measured.process_id), ranks[measured.process_id].rank, measured)
        before = self._pods.get(sidecar_id)
        for process_id in before.ranks if before is not None else ():
            if process_id not in ranks:
                self._ranks.remove((sidecar_id, process_id))
        if not ranks:
            self.forget(sidecar_id)
            return
        host = identity.node_name or identity.host_name or sidecar_id
        lowest = min((rank.rank for rank in ranks.values() if rank.rank is not None), default=None)
        self._hosts.put(host, lowest, _read(report.host, _HOST_SOURCES))
        self._pods[sidecar_id] = _Pod(dict(identity.labels), ranks, host, tuple(sorted(set(report.unreadable))))

    def forget(self, sidecar_id: str) -> None:
        """A sidecar is gone, and its ranks with it; a host stays while another pod tells of it."""
        pod = self._pods.pop(sidecar_id, None)
        if pod is None:
            return
        for process_id in pod.ranks:
            self._ranks.remove((sidecar_id, process_id))
        if all(other.host != pod.host for other in self._pods.values()):
            self._hosts.remove(pod.host)

    def measure(self, name: str) -> Aggregate | None:
        """One of RANK_MEASURES over the ranks that have it; None where none does."""
        return self._ranks.aggregate(name)

    def figures(self, *, with_ranks: bool = False) -> WorkloadFigures:
        """Its figures now."""
        tables = [(measure, self._ranks) for measure in RANK_MEASURES]
        tables += [(measure, self._hosts) for measure in HOST_MEASURES]
        found = {measure.name: table.aggregate(measure.name) for measure, table in tables}
        aggregates = {name: aggregate for name, aggregate in found.items() if aggregate is not None}
        members = [rank for pod in self._pods.values() for rank in pod.ranks.values()]
        gpus = sum(bool(rank.device) for rank in members)
        reasons = [int(mask) for mask in self._ranks.numbers("gpu_throttle_reasons")]
        iterations = self._ranks.numbers("iterations")
        latest = self._ranks.numbers("last_iteration_unix_ns")
        joules = aggregates.get("gpu_iteration_joules")
        samples = self._samples_per_iteration()
        return WorkloadFigures(
            namespace=self.namespace,
            kind=self.kind,
            name=self.name,
            ranks=len(self._ranks),
            world_size=max((rank.world_size for rank in members), default=0),
            gpus=gpus,
            start_unix_ns=min((rank.first_seen_unix_ns for rank in members), default=0),
            at_unix_ns=self._at_unix_ns,
            figures=aggregates,
            iterations=int(min(iterations)) if iterations else None,
            last_iteration_unix_ns=int(max(latest)) if latest else None,
            energy_joules=self._energy_joules,
            sample_joules=joules.sum / samples if joules is not None and joules.count == gpus and samples else None,
            throttled=Throttled(
                **{name: sum(bool(mask & by) for mask in reasons) for name, by in THROTTLED_BY.items()}
            ),
            ecc_corrected=_add_up(self._ranks.numbers("gpu_ecc_corrected")),
            ecc_uncorrected=_add_up(self._ranks.numbers("gpu_ecc_uncorrected")),
            lowest_shares={
                name: (aggregate.min * (aggregate.count - 1) / (aggregate.sum - aggregate.min))
                for name in LOWEST_OF
                if (aggregate := aggregates.get(name)) is not None and aggregate.sum > aggregate.min
            },
            worst_gpu=find_worst_gpu(self._gpu_rows()),
            unreadable=[pb.Source.Name(source) for source in self._unreadable()],  # type: ignore[arg-type]
            members=self.members() if with_ranks else None,
        )

    def members(self) -> list[RankFigures]:
        """Each rank now, by rank."""
        rows = []
        samples = self._samples_per_iteration()
        for sidecar_id, pod in self._pods.items():
            host = self._hosts.row(pod.host)
            for process_id, rank in pod.ranks.items():
                numbers = self._ranks.row((sidecar_id, process_id))
                values = {m.name: numbers[m.name] for m in RANK_MEASURES if m.name in numbers}
                joules = values.get("gpu_iteration_joules")
                part = joules / samples if joules is not None and samples else None
                rows.append(RankFigures(rank.rank, rank.pod, rank.node, rank.device, {**values, **host}, part))
        return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.pod))

    def _take_rank(self, key: tuple[str, str], rank: int | None, report: pb.RankTelemetry) -> None:
        values = _read(report, _RANK_SOURCES)
        for name in _COUNTERS:
            if report.HasField(name):
                values[name] = getattr(report, name)
        for name in _SMOOTHED:
            before = self._ranks.get(key, f"smooth_{name}")
            if name in values:
                values[f"smooth_{name}"] = (
                    values[name] if before is None else before + _SMOOTH * (values[name] - before)
                )
            elif before is not None:
                values[f"smooth_{name}"] = before
        self._energy_joules += report.gpu_energy_millijoules / 1000
        self._ranks.put(key, rank, values)

    def _gpu_rows(self) -> Iterable[GpuRow]:
        for sidecar_id, pod in self._pods.items():
            for process_id, rank in pod.ranks.items():
                key = (sidecar_id, process_id)
                memory = self._ranks.get(key, "gpu_memory_used_bytes")
                if rank.device and rank.rank is not None and memory is not None:
                    joules, clock = (self._ranks.get(key, f"smooth_{name}") for name in _SMOOTHED)
                    yield GpuRow(rank.rank, rank.node, rank.device, memory, joules, clock)

    def _samples_per_iteration(self) -> int:
        declared = (read_samples_per_iteration(pod.labels) for pod in self._pods.values())
        return next((samples for samples in declared if samples is not None), 0)

    def _unreadable(self) -> list[int]:
        return sorted({source for pod in self._pods.values() for source in pod.unreadable})


def _read(message: pb.RankTelemetry | pb.HostTelemetry, sources: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    values = {}
    for field, value in message.ListFields():
        source = sources.get(field.name)
        if source is not None:
            values[source[0]] = value * source[1]
    return values


def _add_up(numbers: list[float]) -> int | None:
    return int(sum(numbers)) if numbers else None
