"""The sidecars and processes that are there, by their last heartbeat: the hub's only picture of the fleet.

Guarantees: one record per sidecar id, and one per pod that a token proved, whatever ids its sidecars take; a newer
stream takes the older one's place; of a sidecar whose stream is closed only the name is kept, for a while, and no more
of them per namespace than there may be streams; what is kept has limits per sidecar and per namespace (`holdings`).
No I/O, time is passed in (Unix nanoseconds).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from fleetprof_api.hub import hub_pb2 as pb

from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.sidecars.holdings import (
    LOST_RECORD_BYTES,
    RECORD_BYTES,
    TELEMETRY_BYTES,
    Holdings,
    estimate_bytes,
)


class Link(Protocol):
    """The way down to a connected sidecar."""

    def send(self, message: pb.HubMessage) -> None:
        """Queues a message; never blocks and never raises."""

    def close(self, why: str) -> None:
        """Ends the stream with this sentence."""


@dataclass(slots=True)
class SidecarRecord:
    """A sidecar as last heartbeat. `link` is None while its stream is closed; `lost_unix_ns` says since when."""

    sidecar_id: str
    identity: pb.Identity
    processes: dict[str, pb.Process] = field(default_factory=dict)
    connected_unix_ns: int = 0
    last_heartbeat_unix_ns: int = 0
    lost_unix_ns: int = 0
    link: Link | None = None
    version: str = ""
    ahead_ns: tuple[int, ...] = ()  # its clock before the hub's, by its latest two messages that say the time

    @property
    def clock_ahead_ns(self) -> int:
        """Its clock before the hub's, at least: a message that was long on its way lets a clock look late."""
        return max(self.ahead_ns, default=0)

    def note_clock(self, at_unix_ns: int, now_unix_ns: int) -> None:
        """It says what time it is; 0: it does not."""
        if at_unix_ns > 0:
            self.ahead_ns = (*self.ahead_ns[-1:], at_unix_ns - now_unix_ns)

    def to_status(self) -> pb.SidecarStatus:
        """As the Fleet call shows it."""
        return pb.SidecarStatus(
            sidecar_id=self.sidecar_id,
            identity=self.identity,
            processes=self.processes.values(),
            connected_unix_ns=self.connected_unix_ns if self.link is not None else 0,
            last_heartbeat_unix_ns=self.last_heartbeat_unix_ns,
            clock_ahead_ns=self.clock_ahead_ns,
            version=self.version,
        )


class SidecarRegistry:
    """All sidecars by id, connected or lost; of the lost ones so many as a namespace may have streams."""

    def __init__(self, settings: HubSettings | None = None) -> None:
        settings = settings or HubSettings()
        self._records: dict[str, SidecarRecord] = {}
        self._of_namespace: dict[str, dict[str, SidecarRecord]] = {}
        self._of_pod: dict[str, str] = {}  # uid that a token proved → sidecar
        self._lost: dict[str, SidecarRecord] = {}  # by the time of their loss
        self._max_lost = settings.max_streams_per_namespace
        self.on_drop: Callable[[str], None] = lambda sidecar_id: None
        """Told the id of a sidecar that is not known any more: what else is kept of it goes with it."""
        self.holdings = Holdings(settings.max_sidecar_bytes, settings.max_namespace_bytes)

    def connect(self, hello: pb.Hello, link: Link, now_unix_ns: int, *, proved_pod_uid: str = "") -> SidecarRecord:
        """Takes a sidecar's hello; an older stream of the same sidecar, or of the same pod, is closed.

        Raises OverBudget.
        """
        namespace, sidecar_id = hello.identity.namespace, hello.sidecar_id
        # Copies: a part of a message keeps all of it in memory.
        identity = pb.Identity()
        identity.CopyFrom(hello.identity)
        heartbeat = pb.Heartbeat(processes=hello.processes)
        self._make_room(namespace, sidecar_id, _weigh(identity, heartbeat))
        self.holdings.hold(namespace, sidecar_id, _weigh(identity, heartbeat))
        known = self._records.get(sidecar_id)
        if known is not None and known.link is not None:
            known.link.close("replaced by a newer stream of the same sidecar")
        if proved_pod_uid:
            earlier = self._records.get(self._of_pod.get(proved_pod_uid, sidecar_id))
            if earlier is not None and earlier.sidecar_id != sidecar_id:
                if earlier.link is not None:
                    earlier.link.close("replaced by a newer stream of the same pod")
                self._drop(earlier)
            self._of_pod[proved_pod_uid] = sidecar_id
        record = SidecarRecord(
            sidecar_id=sidecar_id,
            identity=identity,
            processes=_by_id(heartbeat.processes),
            connected_unix_ns=now_unix_ns,
            last_heartbeat_unix_ns=now_unix_ns,
            link=link,
            version=hello.version,
        )
        record.note_clock(hello.at_unix_ns, now_unix_ns)
        self._lost.pop(sidecar_id, None)
        self._records[sidecar_id] = record
        self._of_namespace.setdefault(namespace, {})[sidecar_id] = record
        return record

    def beat(self, record: SidecarRecord, heartbeat: pb.Heartbeat, now_unix_ns: int) -> None:
        """Takes a heartbeat: its list of processes is complete. Raises OverBudget."""
        if self._records.get(record.sidecar_id) is not record:
            return  # replaced, and not yet heartbeat
        self.holdings.hold(record.identity.namespace, record.sidecar_id, _weigh(record.identity, heartbeat))
        record.processes = _by_id(heartbeat.processes)
        record.last_heartbeat_unix_ns = now_unix_ns
        record.note_clock(heartbeat.at_unix_ns, now_unix_ns)

    def disconnect(self, record: SidecarRecord, link: Link, now_unix_ns: int) -> bool:
        """Notes the end of a stream. False when a newer one has taken its place."""
        if record.link is not link or self._records.get(record.sidecar_id) is not record:
            return False
        record.link = None
        record.lost_unix_ns = now_unix_ns
        # Its telemetry stands for a while yet.
        size_bytes = LOST_RECORD_BYTES + TELEMETRY_BYTES * len(record.processes) + 2 * record.identity.ByteSize()
        record.processes = {}
        self._lost[record.sidecar_id] = record
        self.holdings.hold(record.identity.namespace, record.sidecar_id, size_bytes)
        if len(self._lost) <= self._max_lost:
            return True
        lost_there = [r for r in self._of_namespace[record.identity.namespace].values() if r.link is None]
        if len(lost_there) > self._max_lost:
            self._drop(min(lost_there, key=lambda r: r.lost_unix_ns))
        return True

    def forget(self, lost_before_unix_ns: int) -> None:
        """Drops records whose stream closed before the given time."""
        while self._lost:
            oldest = next(iter(self._lost.values()))
            if oldest.lost_unix_ns >= lost_before_unix_ns:
                return
            self._drop(oldest)

    def find(self, sidecar_id: str) -> SidecarRecord | None:
        """The record of a sidecar, connected or not."""
        return self._records.get(sidecar_id)

    def send(self, sidecar_id: str, message: pb.HubMessage) -> bool:
        """Sends to a sidecar. False when it is not connected."""
        record = self._records.get(sidecar_id)
        if record is None or record.link is None:
            return False
        record.link.send(message)
        return True

    def list_of(self, namespace: str) -> list[SidecarRecord]:
        """The sidecars of one namespace, by sidecar id."""
        records = self._of_namespace.get(namespace, {})
        return [records[sidecar_id] for sidecar_id in sorted(records)]

    def list(self) -> list[SidecarRecord]:
        """All records, by sidecar id."""
        return [self._records[sidecar_id] for sidecar_id in sorted(self._records)]

    def _make_room(self, namespace: str, sidecar_id: str, wanted_bytes: int) -> None:
        """Drops lost sidecars of the namespace, the oldest first, before one that is there is turned away."""
        if self.holdings.room_in(namespace, sidecar_id) >= wanted_bytes:
            return
        for record in [r for r in self._lost.values() if r.identity.namespace == namespace]:
            self._drop(record)
            if self.holdings.room_in(namespace, sidecar_id) >= wanted_bytes:
                return

    def _drop(self, record: SidecarRecord) -> None:
        sidecar_id, namespace = record.sidecar_id, record.identity.namespace
        del self._records[sidecar_id]
        self._lost.pop(sidecar_id, None)
        self.holdings.release(sidecar_id)
        neighbours = self._of_namespace[namespace]
        del neighbours[sidecar_id]
        if not neighbours:
            del self._of_namespace[namespace]
        if self._of_pod.get(record.identity.pod_uid) == sidecar_id:
            del self._of_pod[record.identity.pod_uid]
        self.on_drop(sidecar_id)


def _weigh(identity: pb.Identity, heartbeat: pb.Heartbeat) -> int:
    elements = len(heartbeat.processes) + len(heartbeat.devices)
    kept_bytes = RECORD_BYTES + TELEMETRY_BYTES * len(heartbeat.processes)
    return kept_bytes + 2 * identity.ByteSize() + estimate_bytes(heartbeat.ByteSize(), elements)


def _by_id(processes: Iterable[pb.Process]) -> dict[str, pb.Process]:
    return {process.process_id: process for process in processes}
