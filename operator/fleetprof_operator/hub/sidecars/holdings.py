"""The memory that the hub uses for each pod and each namespace: both have a share that they cannot exceed.

Guarantees: pure; what is kept is never more than the limits allow, whatever comes; a share that is refused leaves the
books as they were. The bytes are estimates of the memory that messages take, not of their length on the wire.
"""

from collections import Counter

from fleetprof_api.errors import FleetprofError

from fleetprof_operator.hub.sidecars.message_weight import ELEMENT_WEIGHT

RECORD_BYTES = 32 << 10  # of a stream and its record: measured, gRPC's part is most of it
LOST_RECORD_BYTES = 2 << 10
TELEMETRY_BYTES = 1 << 10  # of a process, whose telemetry lives with its record (`hub.telemetry`)


class OverBudget(FleetprofError):
    """More would be kept than there is room for; the sentence is sent back to the sidecar."""


def estimate_bytes(length_bytes: int, elements: int) -> int:
    """The memory that a message of this length with so many elements takes."""
    return length_bytes + elements * ELEMENT_WEIGHT


class Holdings:
    """The bytes by owner (a sidecar) and namespace."""

    def __init__(self, max_bytes: int, max_namespace_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_namespace_bytes = max_namespace_bytes
        self._of: dict[str, tuple[str, int]] = {}
        self._in_namespace = Counter[str]()

    @property
    def total_bytes(self) -> int:
        """Over all namespaces and owners."""
        return self._in_namespace.total()

    def room_in(self, namespace: str, owner: str) -> int:
        """The bytes that an owner may hold before its namespace's share is used up."""
        return self._max_namespace_bytes - self._in_namespace[namespace] + self._of.get(owner, ("", 0))[1]

    def hold(self, namespace: str, owner: str, size_bytes: int) -> None:
        """From now on the owner holds so much, in place of what it held. Raises OverBudget."""
        if size_bytes > self._max_bytes:
            raise OverBudget(
                f"the hub would keep {size_bytes >> 10} KiB of this sidecar, at most {self._max_bytes >> 10}; it sees "
                "too many processes, or their texts are too long"
            )
        if size_bytes > self.room_in(namespace, owner):
            raise OverBudget(
                f"the hub keeps {self._in_namespace[namespace] >> 20} MiB of namespace {namespace}, at most "
                f"{self._max_namespace_bytes >> 20}; this sidecar waits until others of the namespace have ended"
            )
        self.release(owner)
        self._of[owner] = namespace, size_bytes
        self._in_namespace[namespace] += size_bytes

    def release(self, owner: str) -> None:
        """The owner holds nothing any more."""
        namespace, held_bytes = self._of.pop(owner, ("", 0))
        self._in_namespace[namespace] -= held_bytes
        if not self._in_namespace[namespace]:
            del self._in_namespace[namespace]
