"""Samples the host, and devices that no agent watches: slowly, and at the capture's rate while one is taken."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable
from typing import Final, Protocol

from fleetprof_api.samples import HostColumns

from fleetprof_sidecar.samples.device import DeviceReading, DeviceSource
from fleetprof_sidecar.samples.host import HostHistory, HostReading, HostSource

_IDLE_INTERVAL_NS: Final = 10_000_000_000


class DeviceRecorders(Protocol):
    """The sink of device samples: `RankRecorders`."""

    def wants_devices(self) -> bool:
        """Tells whether anybody needs them now."""

    def add_devices(self, readings: Iterable[DeviceReading]) -> None:
        """Takes one sample of each device."""


class Sampler:
    """Samples while `run` runs."""

    def __init__(
        self,
        host: HostSource,
        devices: DeviceSource,
        recorders: DeviceRecorders,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._host = host
        self._devices = devices
        self._recorders = recorders
        self._clock = clock
        self._history = HostHistory()
        self._captures: dict[Hashable, int] = {}
        self._with_counters: set[Hashable] = set()
        self._changed = asyncio.Event()
        self.latest_host = HostReading(at_unix_ns=0)
        self.latest_devices: list[DeviceReading] = []

    def begin(self, capture: Hashable, interval_ns: int, *, counters: bool = False) -> None:
        """Samples at least every `interval_ns` until `end`, with the devices' profiling counters if asked to."""
        self._captures[capture] = interval_ns
        if counters:
            self._with_counters.add(capture)
        self._changed.set()

    def end(self, capture: Hashable) -> None:
        """The capture needs no more samples; repeating it is no error."""
        self._captures.pop(capture, None)
        self._with_counters.discard(capture)

    def host_columns(self, begin_unix_ns: int, end_unix_ns: int) -> HostColumns:
        """The host within [begin, end], as far as it was sampled."""
        return self._history.columns(begin_unix_ns, end_unix_ns)

    async def run(self) -> None:
        """Samples until cancelled."""
        while True:
            self.latest_host = self._host.read(self._clock())
            self._history.add(self.latest_host)
            if self._recorders.wants_devices():
                # The driver may take milliseconds per device.
                self.latest_devices = await asyncio.to_thread(
                    self._devices.read, self._clock(), counters=bool(self._with_counters)
                )
                self._recorders.add_devices(self.latest_devices)
            else:
                self.latest_devices = []
            interval_ns = min(self._captures.values(), default=_IDLE_INTERVAL_NS)
            self._changed.clear()
            try:
                async with asyncio.timeout(interval_ns / 1e9):
                    await self._changed.wait()
            except TimeoutError:
                continue
