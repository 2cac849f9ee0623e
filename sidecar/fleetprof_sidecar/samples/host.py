"""The host (or pod) as /proc and /sys show it: CPU, memory, network and InfiniBand counters.

Guarantees: a value that cannot be read is None and never an error. Sources: proc(5) `stat`, `meminfo`; `links`.
"""

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleetprof_api.process.memory import machine_memory
from fleetprof_api.samples import HostColumns

from fleetprof_sidecar.samples.links import NetworkLink, read_infiniband, read_network

_KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class HostReading:
    """One sample. Counters are totals since boot; differences count."""

    at_unix_ns: int
    cpu_busy_permille: int | None = None  # of all cores, since the reading before
    memory_available_bytes: int | None = None
    memory_total_bytes: int | None = None
    network_received_bytes: int | None = None
    network_sent_bytes: int | None = None
    infiniband_received_bytes: int | None = None
    infiniband_sent_bytes: int | None = None


class HostSource:
    """Reads below `proc` and `sys`, which tests replace."""

    def __init__(self, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> None:
        self._proc = proc
        self._sys = sys
        self._cpu: tuple[int, int] | None = None

    def read(self, now_unix_ns: int) -> HostReading:
        """Memory and bytes moved as they are now, the CPUs' busy share since the last reading."""
        available, total = machine_memory(self._proc / "meminfo")
        network, infiniband = read_network(self._proc), read_infiniband(self._sys)
        return HostReading(
            at_unix_ns=now_unix_ns,
            cpu_busy_permille=self._cpu_busy(),
            memory_available_bytes=available,
            memory_total_bytes=total,
            network_received_bytes=_add_up(network, "received_bytes"),
            network_sent_bytes=_add_up(network, "sent_bytes"),
            infiniband_received_bytes=_add_up(infiniband, "received_bytes"),
            infiniband_sent_bytes=_add_up(infiniband, "sent_bytes"),
        )

    def _cpu_busy(self) -> int | None:
        try:
            with (self._proc / "stat").open() as file:
                ticks = [int(value) for value in file.readline().split()[1:9]]
            whole, resting = sum(ticks), ticks[3] + ticks[4]
        except (OSError, ValueError, IndexError):
            return None
        before, self._cpu = self._cpu, (whole, resting)
        if before is None or whole <= before[0]:
            return None
        return min(1000, max(0, 1000 - 1000 * (resting - before[1]) // (whole - before[0])))


def _add_up(links: dict[str, NetworkLink] | None, counter: str) -> int | None:
    return None if links is None else sum(getattr(link, counter) for link in links.values())


class HostHistory:
    """The latest readings, for the captures that they belong to."""

    def __init__(self) -> None:
        self._readings: deque[HostReading] = deque(maxlen=_KEPT)

    def add(self, reading: HostReading) -> None:
        """Keeps one more reading."""
        self._readings.append(reading)

    def columns(self, begin_unix_ns: int, end_unix_ns: int) -> HostColumns:
        """The columns read within [begin, end]."""
        chosen = [r for r in self._readings if begin_unix_ns <= r.at_unix_ns <= end_unix_ns]
        return HostColumns(
            at_unix_ns=[r.at_unix_ns for r in chosen],
            cpu_busy_permille=[r.cpu_busy_permille for r in chosen],
            memory_available_bytes=[r.memory_available_bytes for r in chosen],
            network_received_bytes=[r.network_received_bytes for r in chosen],
            network_sent_bytes=[r.network_sent_bytes for r in chosen],
            infiniband_received_bytes=[r.infiniband_received_bytes for r in chosen],
            infiniband_sent_bytes=[r.infiniband_sent_bytes for r in chosen],
        )
