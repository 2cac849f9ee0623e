"""Device samples taken by the sidecar itself, for trainers without the agent: NVML behind a seam.

Guarantees: no device, no driver, a driver that fails: no samples and no error; a value that a device does not support
is None. Source: nvml.h through pynvml (nvidia-ml-py); units as in fleetprof_api.samples.DeviceColumns.
"""

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One sample of one device; keys of `values` are columns of DeviceColumns."""

    at_unix_ns: int
    device: int  # NVML's index: that of all devices visible to this process
    values: dict[str, int | None]


class DeviceSource(Protocol):
    """Where device samples come from; the real one is `NvmlSource`, tests have a recorded one."""

    def read(self, now_unix_ns: int) -> list[DeviceReading]:
        """All devices now; empty where there are none."""


class NvmlSource:
    """NVML, opened at the first read. One that cannot be opened stays silent for good: drivers do not appear later."""

    def __init__(self, load: Callable[[], Any] = lambda: importlib.import_module("pynvml")) -> None:
        self._load = load
        self._nvml: Any = None
        self._handles: list[Any] = []
        self._tried = False

    def read(self, now_unix_ns: int) -> list[DeviceReading]:
        """All devices that NVML shows."""
        if not self._tried:
            self._open()
        readings = []
        for index, handle in enumerate(self._handles):
            readings.append(DeviceReading(now_unix_ns, index, self._read_device(handle)))
        return readings

    def close(self) -> None:
        """Lets NVML go."""
        if self._nvml is not None:
            self._attempt(self._nvml.nvmlShutdown)
        self._nvml, self._handles = None, []

    def _open(self) -> None:
        self._tried = True
        try:
            nvml = self._load()
            nvml.nvmlInit()
            count = int(nvml.nvmlDeviceGetCount())
            self._handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
            self._nvml = nvml
        except Exception as error:
            # NVMLError, a missing module or library alike: this host shows us no NVIDIA device.
            log.info("no device samples from here: %s", error)

    def _read_device(self, handle: Any) -> dict[str, int | None]:
        nvml, attempt = self._nvml, self._attempt
        rates = attempt(nvml.nvmlDeviceGetUtilizationRates, handle)
        memory = attempt(nvml.nvmlDeviceGetMemoryInfo, handle)
        return {
            "utilization_permille": None if rates is None else int(rates.gpu) * _PERMILLE_OF_PERCENT,
            "memory_utilization_permille": None if rates is None else int(rates.memory) * _PERMILLE_OF_PERCENT,
            "memory_used_bytes": None if memory is None else int(memory.used),
            "power_milliwatts": attempt(nvml.nvmlDeviceGetPowerUsage, handle),
            "energy_millijoules": attempt(nvml.nvmlDeviceGetTotalEnergyConsumption, handle),
            "temperature_celsius": attempt(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            "sm_clock_megahertz": attempt(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            "memory_clock_megahertz": attempt(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            "throttle_reasons": attempt(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
        }

    def _attempt(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except self._nvml.NVMLError:
            return None


_PERMILLE_OF_PERCENT: Final = 10
