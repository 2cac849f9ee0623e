"""Device samples taken by the sidecar itself, for trainers without the agent: NVML behind a seam.

Guarantees: no device, no driver, a driver that fails: no samples and no error. How one device is read is the agent's
(fleetprof_agent.samples.nvml), so that both sources give the same columns.
"""

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fleetprof_agent.samples.nvml import DeviceSampler

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One sample of one device; keys of `values` are columns of DeviceColumns."""

    at_unix_ns: int
    device: int  # NVML's index among the devices visible to this process
    values: dict[str, int | None]


class DeviceSource(Protocol):
    """The source of device samples; the real one is `NvmlSource`, tests have a recorded one."""

    def read(self, now_unix_ns: int, *, counters: bool) -> list[DeviceReading]:
        """All devices now; empty where there are none. `counters`: with their profiling counters."""


class NvmlSource:
    """NVML, opened at the first read. One that cannot be opened stays silent for good: drivers do not appear later."""

    def __init__(self, load: Callable[[], Any] = lambda: importlib.import_module("pynvml")) -> None:
        self._load = load
        self._samplers: list[DeviceSampler] | None = None

    def read(self, now_unix_ns: int, *, counters: bool) -> list[DeviceReading]:
        """All devices that NVML shows."""
        if self._samplers is None:
            self._samplers = self._open()
        return [
            DeviceReading(now_unix_ns, device, sampler.sample(counters=counters))
            for device, sampler in enumerate(self._samplers)
        ]

    def _open(self) -> list[DeviceSampler]:
        try:
            nvml = self._load()
            nvml.nvmlInit()
            count = int(nvml.nvmlDeviceGetCount())
            return [DeviceSampler(nvml, nvml.nvmlDeviceGetHandleByIndex(device)) for device in range(count)]
        except Exception as error:
            # NVMLError, a missing module or library alike: this host shows us no NVIDIA device.
            log.info("no device samples from here: %s", error)
            return []
