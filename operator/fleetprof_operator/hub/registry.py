"""Which sidecars and processes are there, as last told: the hub's only picture of the fleet.

Guarantees: one record per sidecar id; a newer stream of the same sidecar takes the older one's place; a record whose
stream stays closed for longer than a bound is forgotten. No I/O, time is passed in (Unix nanoseconds).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from fleetprof_api import hub_pb2 as pb


class Link(Protocol):
    """The way down to a connected sidecar."""

    def send(self, message: pb.HubMessage) -> None:
        """Queues a message; never blocks and never raises."""

    def close(self, why: str) -> None:
        """Ends the stream with this sentence."""


@dataclass(slots=True)
class SidecarRecord:
    """A sidecar as last told. `link` is None while its stream is closed; `lost_unix_ns` says since when."""

    sidecar_id: str
    identity: pb.Identity
    processes: dict[str, pb.Process] = field(default_factory=dict)
    connected_unix_ns: int = 0
    last_heartbeat_unix_ns: int = 0
    lost_unix_ns: int = 0
    link: Link | None = None

    def to_status(self) -> pb.SidecarStatus:
        """As the Fleet call shows it."""
        return pb.SidecarStatus(
            sidecar_id=self.sidecar_id,
            identity=self.identity,
            processes=self.processes.values(),
            connected_unix_ns=self.connected_unix_ns if self.link is not None else 0,
            last_heartbeat_unix_ns=self.last_heartbeat_unix_ns,
        )


class Registry:
    """All sidecars by id."""

    def __init__(self) -> None:
        self._records: dict[str, SidecarRecord] = {}

    def connect(self, hello: pb.Hello, link: Link, now_unix_ns: int) -> SidecarRecord:
        """Takes a sidecar's hello; an older stream of the same sidecar is closed."""
        known = self._records.get(hello.sidecar_id)
        if known is not None and known.link is not None:
            known.link.close("replaced by a newer stream of the same sidecar")
        record = SidecarRecord(
            sidecar_id=hello.sidecar_id,
            identity=hello.identity,
            processes=_by_id(hello.processes),
            connected_unix_ns=now_unix_ns,
            last_heartbeat_unix_ns=now_unix_ns,
            link=link,
        )
        self._records[hello.sidecar_id] = record
        return record

    def beat(self, record: SidecarRecord, heartbeat: pb.Heartbeat, now_unix_ns: int) -> None:
        """Takes a heartbeat: its list of processes is complete."""
        record.processes = _by_id(heartbeat.processes)
        record.last_heartbeat_unix_ns = now_unix_ns

    def disconnect(self, record: SidecarRecord, link: Link, now_unix_ns: int) -> bool:
        """Notes the end of a stream. False when a newer one has taken its place."""
        if record.link is not link or self._records.get(record.sidecar_id) is not record:
            return False
        record.link = None
        record.lost_unix_ns = now_unix_ns
        return True

    def forget(self, lost_before_unix_ns: int) -> None:
        """Drops records whose stream closed before the given time."""
        gone = [r.sidecar_id for r in self._records.values() if r.link is None and r.lost_unix_ns < lost_before_unix_ns]
        for sidecar_id in gone:
            del self._records[sidecar_id]

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

    def list(self) -> list[SidecarRecord]:
        """All records, by sidecar id."""
        return [self._records[sidecar_id] for sidecar_id in sorted(self._records)]


def _by_id(processes: Iterable[pb.Process]) -> dict[str, pb.Process]:
    return {process.process_id: process for process in processes}
