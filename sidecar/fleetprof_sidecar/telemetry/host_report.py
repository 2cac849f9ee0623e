"""The host's telemetry: rates between two readings of its counters, and what its links could carry.

Guarantees: what cannot be read is absent, never 0; a counter that goes backwards (an interface that was made anew)
counts as no news. Time is passed in.
"""

from pathlib import Path

from fleetprof_api.hub import hub_pb2 as pb

from fleetprof_sidecar.samples.host import HostSource
from fleetprof_sidecar.samples.links import NetworkLink, read_infiniband, read_network
from fleetprof_sidecar.samples.pressure import read_pressure

Links = dict[str, NetworkLink]


class HostReport:
    """From report to report. Reads below `proc` and `sys`, which tests replace."""

    def __init__(self, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> None:
        self._proc = proc
        self._sys = sys
        self._source = HostSource(proc, sys)
        self._at_unix_ns = 0
        self._network: Links | None = None
        self._infiniband: Links | None = None

    def make(self, now_unix_ns: int) -> tuple[pb.HostTelemetry, set[pb.Source.ValueType]]:
        """The host now, and the Sources that it does not have."""
        message, unreadable = pb.HostTelemetry(), set[pb.Source.ValueType]()
        reading = self._source.read(now_unix_ns)
        if reading.cpu_busy_permille is not None:
            message.cpu_busy_permille = reading.cpu_busy_permille
        if reading.memory_available_bytes is not None and reading.memory_total_bytes:
            used = reading.memory_total_bytes - reading.memory_available_bytes
            message.memory_used_permille = 1000 * max(0, used) // reading.memory_total_bytes
        if (waited := read_pressure(self._proc, "cpu")) is not None:
            message.cpu_pressure_permille = waited
        else:
            unreadable.add(pb.PRESSURE)
        if (waited := read_pressure(self._proc, "memory")) is not None:
            message.memory_pressure_permille = waited
        if (waited := read_pressure(self._proc, "io")) is not None:
            message.io_pressure_permille = waited
        network, infiniband = read_network(self._proc, self._sys), read_infiniband(self._sys)
        span_ns = now_unix_ns - self._at_unix_ns if self._at_unix_ns else 0
        received, sent, share = measure_links(self._network, network, span_ns)
        if received is not None and sent is not None:
            message.network_received_bytes_per_s, message.network_sent_bytes_per_s = received, sent
        if share is not None:
            message.network_link_permille = share
        received, sent, share = measure_links(self._infiniband, infiniband, span_ns)
        if received is not None and sent is not None:
            message.infiniband_received_bytes_per_s, message.infiniband_sent_bytes_per_s = received, sent
        if share is not None:
            message.infiniband_link_permille = share
        if not network or not any(link.bytes_per_s for link in network.values()):
            unreadable.add(pb.NETWORK_SPEED)
        if infiniband is None:
            unreadable.add(pb.INFINIBAND)
        self._at_unix_ns, self._network, self._infiniband = now_unix_ns, network, infiniband
        return message, unreadable


def measure_links(before: Links | None, now: Links | None, span_ns: int) -> tuple[int | None, int | None, int | None]:
    """(received, sent) in bytes per second over all links, and the permille of the busiest one's busier direction.

    None: not known; links that came meanwhile do not count.
    """
    if before is None or now is None or span_ns <= 0:
        return None, None, None
    received = sent = 0
    share: int | None = None
    for name, link in now.items():
        earlier = before.get(name)
        if earlier is None:
            continue
        more_received, more_sent = link.received_bytes - earlier.received_bytes, link.sent_bytes - earlier.sent_bytes
        if more_received < 0 or more_sent < 0:
            continue
        received += more_received
        sent += more_sent
        if link.bytes_per_s:
            part = max(more_received, more_sent) * 10**12 // (link.bytes_per_s * span_ns)
            share = max(share or 0, min(1000, part))
    return received * 10**9 // span_ns, sent * 10**9 // span_ns, share
