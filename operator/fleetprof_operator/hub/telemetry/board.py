"""The telemetry of all workloads: what sidecars report, kept until they are gone.

Guarantees: pure, time is passed in; a sidecar's rows live with its record in the registry, so that a pod that comes
again and again as another keeps one set of them, and `holdings` bounds and counts them; a workload is forgotten
FORGOTTEN_NS after its last report. Where not all can be told, each namespace has a fair share (`fair_shares`).
"""

from collections.abc import Iterator
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.telemetry.figures import Aggregate, WorkloadFigures

from fleetprof_operator.hub.settings import SECOND_NS
from fleetprof_operator.hub.sidecars.sidecar_registry import SidecarRecord
from fleetprof_operator.hub.telemetry.workload_board import WorkloadBoard

FORGOTTEN_NS: Final = 60 * SECOND_NS
"""How long a lost sidecar's last report stands: as long as a restart of the sidecar or the network may take."""
Key = tuple[str, str, str]
"""Namespace, kind and name of a workload."""


def find_key(identity: pb.Identity) -> Key:
    """The key of the telemetry that a sidecar tells: its workload's, or that of its pod where it has none."""
    workload = identity.workload
    if workload.name:
        return identity.namespace, workload.kind, workload.name
    return identity.namespace, "Pod", identity.pod_name or identity.host_name


class TelemetryBoard:
    """The latest telemetry of all workloads."""

    def __init__(self) -> None:
        self._workloads: dict[Key, WorkloadBoard] = {}
        self._of_sidecar: dict[str, tuple[Key, int]] = {}  # by the time of the latest report, oldest first
        self.reports = 0

    def __len__(self) -> int:
        return len(self._workloads)

    def take(self, record: SidecarRecord, report: pb.Telemetry, now_unix_ns: int) -> None:
        """A sidecar's report."""
        self.reports += 1
        sidecar_id, key = record.sidecar_id, find_key(record.identity)
        known = self._of_sidecar.pop(sidecar_id, None)
        if known is not None and known[0] != key:
            self._drop(sidecar_id, known[0])
        workload = self._workloads.get(key)
        if workload is None:
            workload = self._workloads[key] = WorkloadBoard(*key)
        workload.take(sidecar_id, record.identity, record.processes, report, now_unix_ns)
        if workload.is_empty:
            del self._workloads[key]
        else:
            self._of_sidecar[sidecar_id] = key, now_unix_ns

    def sweep(self, now_unix_ns: int) -> None:
        """Forgets sidecars that have been silent for FORGOTTEN_NS."""
        while self._of_sidecar:
            sidecar_id, (key, at_unix_ns) = next(iter(self._of_sidecar.items()))
            if now_unix_ns - at_unix_ns <= FORGOTTEN_NS:
                return
            del self._of_sidecar[sidecar_id]
            self._drop(sidecar_id, key)

    def forget(self, sidecar_id: str) -> None:
        """A sidecar is not known any more."""
        known = self._of_sidecar.pop(sidecar_id, None)
        if known is not None:
            self._drop(sidecar_id, known[0])

    def boards(self) -> list[WorkloadBoard]:
        """All workloads, the largest first."""
        return sorted(self._workloads.values(), key=lambda one: (-one.rank_count, one.namespace, one.kind, one.name))

    def workloads(self) -> Iterator[WorkloadFigures]:
        """The figures of each workload now, the largest first."""
        return (board.figures() for board in self.boards())

    def measure(self, key: Key, name: str) -> Aggregate | None:
        """One of RANK_MEASURES of one workload; None where nobody tells it."""
        workload = self._workloads.get(key)
        return workload.measure(name) if workload is not None else None

    def _drop(self, sidecar_id: str, key: Key) -> None:
        workload = self._workloads[key]
        workload.forget(sidecar_id)
        if workload.is_empty:
            del self._workloads[key]
