"""Samples of this process's NVIDIA device, from inside the trainer's container.

Guarantees: a field that the device, the driver or the library does not have is None and is not asked for again; the
device is the one that PyTorch names, never a neighbour; nothing but NVML is touched (no CUDA context, no setting); the
profiling counters (GPM), which a job or a monitor may use for itself, are not touched unless they are asked for.
`pynvml` is a seam: any module with its functions will do. Sources: nvml.h; GPM percentages need Hopper or later.
The fields are those of fleetprof_api.samples.DeviceColumns.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable

from fleetprof_agent.errors import pass_on, report_error

FIELDS = (
    "utilization_permille",
    "memory_utilization_permille",
    "memory_used_bytes",
    "power_milliwatts",
    "energy_millijoules",
    "temperature_celsius",
    "sm_clock_megahertz",
    "memory_clock_megahertz",
    "throttle_reasons",
    "sm_active_permille",
    "sm_occupancy_permille",
    "tensor_active_permille",
    "dram_active_permille",
)
# nvmlGpmMetricId_t
GPM_METRICS = {
    "sm_active_permille": 2,  # NVML_GPM_METRIC_SM_UTIL
    "sm_occupancy_permille": 3,  # NVML_GPM_METRIC_SM_OCCUPANCY
    "tensor_active_permille": 5,  # NVML_GPM_METRIC_ANY_TENSOR_UTIL
    "dram_active_permille": 10,  # NVML_GPM_METRIC_DRAM_BW_UTIL
}
# Of nvmlGpmMetricId_t as well, MiB/s.
GPM_RATES = {
    "pcie_sent_bytes_per_s": 20,  # NVML_GPM_METRIC_PCIE_TX_PER_SEC
    "pcie_received_bytes_per_s": 21,  # NVML_GPM_METRIC_PCIE_RX_PER_SEC
    "nvlink_received_bytes_per_s": 60,  # NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC
    "nvlink_sent_bytes_per_s": 61,  # NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC
}
MOST_RATE_MIB = 1 << 23  # 8 TiB/s: more is no rate
# What is told of the device outside captures, beside FIELDS.
HEALTH_FIELDS = ("memory_bytes", "ecc_corrected", "ecc_uncorrected", *GPM_RATES)


def load_pynvml() -> Any:
    """The pynvml module: the one handed over with the agent, else the job's own. Raises ImportError."""
    try:
        return importlib.import_module("fleetprof_agent.pynvml")
    except ImportError:
        return importlib.import_module("pynvml")


def open_device(nvml: Any, uuid: str, index: int | None, visible: str | None) -> DeviceSampler | None:
    """A sampler of the device that PyTorch calls `index` with `uuid`; None when NVML does not know it.

    `visible` is CUDA_VISIBLE_DEVICES: without a uuid it says which of the machine's devices `index` is.
    Raises what `nvml` raises when there is no driver.
    """
    nvml.nvmlInit()
    names = [uuid if uuid.startswith(("GPU-", "MIG-")) else "GPU-" + uuid] if uuid else []
    if not names and index is not None:
        entries = [entry.strip() for entry in (visible or "").split(",") if entry.strip()]
        if not entries:
            names = [str(index)]
        elif index < len(entries):
            names = [entries[index]]
    for name in names:
        try:
            if name.isdigit():
                return DeviceSampler(nvml, nvml.nvmlDeviceGetHandleByIndex(int(name)))
            return DeviceSampler(nvml, nvml.nvmlDeviceGetHandleByUUID(name))
        except nvml.NVMLError as error:
            pass_on(error)
            continue
    return None


def open_sampler(device: dict[str, Any]) -> DeviceSampler | None:
    """A sampler of what identity.read_device found; None where it cannot be sampled: another kind, no NVML.

    In the first step, which is slow in any job: loading NVML takes tens of milliseconds.
    """
    if device["device_kind"] != "cuda":
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        return open_device(load_pynvml(), device["device_uuid"], device["device_index"], visible)
    except Exception as error:  # no driver library, no pynvml: training without device samples
        pass_on(error)
        report_error()
        return None


class DeviceSampler:
    """Reads one device. Not for two threads at once."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._readers: dict[str, Callable[[], dict[str, int]]] = {
            "utilization": lambda: self._utilization(handle),
            "memory": lambda: {"memory_used_bytes": int(nvml.nvmlDeviceGetMemoryInfo(handle).used)},
            "power": lambda: {"power_milliwatts": int(nvml.nvmlDeviceGetPowerUsage(handle))},
            "energy": lambda: {"energy_millijoules": int(nvml.nvmlDeviceGetTotalEnergyConsumption(handle))},
            "temperature": lambda: {"temperature_celsius": int(nvml.nvmlDeviceGetTemperature(handle, 0))},
            "sm_clock": lambda: {"sm_clock_megahertz": int(nvml.nvmlDeviceGetClockInfo(handle, 1))},
            "memory_clock": lambda: {"memory_clock_megahertz": int(nvml.nvmlDeviceGetClockInfo(handle, 2))},
            "throttle": lambda: {"throttle_reasons": self._throttle_reasons(handle)},
            "gpm": self._gpm_metrics,
        }
        self._health_readers: dict[str, Callable[[], dict[str, int]]] = {
            "size": lambda: {"memory_bytes": int(nvml.nvmlDeviceGetMemoryInfo(handle).total)},
            # Since the driver was loaded (NVML_VOLATILE_ECC).
            "corrected": lambda: {"ecc_corrected": int(nvml.nvmlDeviceGetTotalEccErrors(handle, 0, 0))},
            "uncorrected": lambda: {"ecc_uncorrected": int(nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 0))},
        }
        self.handle = handle
        self._gpm_samples: list[Any] | None = None
        self._has_gpm_begin = False
        self._is_of_capture = False  # the latest sample

    def sample(self, *, counters: bool = False) -> dict[str, int | None]:
        """One value per field. The GPM fields are None unless `counters` are asked for.

        They tell of the time since the sample before that had them: None in the first.
        """
        values: dict[str, int | None] = dict.fromkeys(FIELDS)
        self._has_gpm_begin = self._has_gpm_begin and counters and self._is_of_capture
        self._is_of_capture = True
        found = self._read(self._readers, "" if counters else "gpm")
        values.update((name, value) for name, value in found.items() if name in values)
        return values

    def sample_health(self) -> dict[str, int]:
        """FIELDS and HEALTH_FIELDS, profiling counters among them; what is not known is left out.

        The counters tell of the time since the sample before of this kind, unless a capture came between.
        """
        self._has_gpm_begin = self._has_gpm_begin and not self._is_of_capture
        self._is_of_capture = False
        return {**self._read(self._readers, ""), **self._read(self._health_readers, "")}

    def _read(self, readers: dict[str, Callable[[], dict[str, int]]], but: str) -> dict[str, int]:
        values: dict[str, int] = {}
        for name, read in list(readers.items()):
            if name == but:
                continue
            try:
                values.update(read())
            except Exception as error:
                if self._is_permanent(error):
                    del readers[name]
        return values

    def _is_permanent(self, error: Exception) -> bool:
        # A library or driver of another age lacks functions; pynvml says so in two ways.
        return isinstance(error, (AttributeError, TypeError)) or type(error).__name__ in (
            "NVMLError_NotSupported",
            "NVMLError_FunctionNotFound",
            "NVMLError_NoPermission",
        )

    def _utilization(self, handle: Any) -> dict[str, int]:
        rates = self._nvml.nvmlDeviceGetUtilizationRates(handle)
        return {"utilization_permille": int(rates.gpu) * 10, "memory_utilization_permille": int(rates.memory) * 10}

    def _throttle_reasons(self, handle: Any) -> int:
        nvml = self._nvml
        read = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)  # since driver 535
        try:
            if read is not None:
                return int(read(handle))
        except nvml.NVMLError as error:
            if type(error).__name__ != "NVMLError_FunctionNotFound":
                raise
        return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))

    def _gpm_metrics(self) -> dict[str, int]:
        nvml = self._nvml
        if self._gpm_samples is None:
            if not nvml.nvmlGpmQueryDeviceSupport(self.handle).isSupportedDevice:
                raise AttributeError("no GPM on this device")
            self._gpm_samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        if not self._has_gpm_begin:
            nvml.nvmlGpmSampleGet(self.handle, self._gpm_samples[0])
            self._has_gpm_begin = True
            return {}
        earlier, later = self._gpm_samples
        nvml.nvmlGpmSampleGet(self.handle, later)
        self._gpm_samples = [later, earlier]
        question = nvml.c_nvmlGpmMetricsGet_t()
        question.version = nvml.NVML_GPM_METRICS_GET_VERSION
        metrics = {**GPM_METRICS, **GPM_RATES}
        question.numMetrics = len(metrics)
        question.sample1, question.sample2 = earlier, later
        for slot, metric in enumerate(metrics.values()):
            question.metrics[slot].metricId = metric
        answer = nvml.nvmlGpmMetricsGet(question)
        found = {}
        for slot, field in enumerate(metrics):
            metric = answer.metrics[slot]
            if metric.nvmlReturn:
                continue
            if field in GPM_METRICS and 0.0 <= metric.value <= 100.0:  # NaN fails the comparison
                found[field] = round(metric.value * 10)
            elif field in GPM_RATES and 0.0 <= metric.value <= MOST_RATE_MIB:
                found[field] = round(metric.value * (1 << 20))
        return found


def make_columns(samples: list[dict[str, int | None]]) -> dict[str, list[int | None]]:
    """The fields of a "device" message from samples of the same fields."""
    return {name: [sample[name] for sample in samples] for name in samples[0]}
