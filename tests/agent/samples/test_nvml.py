"""Device samples over recorded NVML modules, and over the real pynvml's structures."""

import math
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from fleetprof_agent.samples.nvml import FIELDS, GPM_METRICS, GPM_RATES, open_device
from fleetprof_api.samples import DeviceColumns


class Recorded:
    """An H100's NVML answers; `without` names functions that are not supported."""

    NVMLError = pynvml.NVMLError
    NVML_GPM_METRICS_GET_VERSION = pynvml.NVML_GPM_METRICS_GET_VERSION
    c_nvmlGpmMetricsGet_t = pynvml.c_nvmlGpmMetricsGet_t  # noqa: N815

    def __init__(self, *without: str, has_gpm: bool = True, gpm: "dict[int, float] | None" = None) -> None:
        self.calls: list[str] = []
        self._without = without
        self._has_gpm = has_gpm
        self._gpm = {2: 87.65, 3: 41.0, 5: 33.3, 10: 12.0} if gpm is None else gpm

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml") or name in self._without:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            return self._answer(name, arguments)

        return call

    def _answer(self, name: str, arguments: "tuple[Any, ...]") -> Any:
        match name:
            case "nvmlDeviceGetHandleByUUID":
                if arguments[0] not in ("GPU-aa", "MIG-cc"):
                    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
                return arguments[0]
            case "nvmlDeviceGetHandleByIndex":
                return arguments[0]
            case "nvmlDeviceGetUtilizationRates":
                return SimpleNamespace(gpu=93, memory=40)
            case "nvmlDeviceGetMemoryInfo":
                return SimpleNamespace(used=7 * 2**30, total=80 * 2**30)
            case "nvmlDeviceGetTotalEccErrors":
                return {0: 5, 1: 1}[arguments[1]]
            case "nvmlDeviceGetClockInfo":
                return {1: 1980, 2: 2619}[arguments[1]]
            case "nvmlGpmQueryDeviceSupport":
                return SimpleNamespace(isSupportedDevice=self._has_gpm)
            case "nvmlGpmSampleAlloc":
                return pynvml.c_nvmlGpmSample_t()
            case "nvmlGpmMetricsGet":
                for slot in range(arguments[0].numMetrics):
                    metric = arguments[0].metrics[slot]
                    metric.nvmlReturn = 0 if metric.metricId in self._gpm else 3
                    metric.value = self._gpm.get(metric.metricId, 0.0)
                return arguments[0]
        numbers = {
            "nvmlDeviceGetPowerUsage": 412_345,
            "nvmlDeviceGetTotalEnergyConsumption": 9_876_543_210,
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetCurrentClocksEventReasons": 4,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 8,
        }
        return numbers.get(name)


WHOLE = {
    "utilization_permille": 930,
    "memory_utilization_permille": 400,
    "memory_used_bytes": 7 * 2**30,
    "power_milliwatts": 412_345,
    "energy_millijoules": 9_876_543_210,
    "temperature_celsius": 61,
    "sm_clock_megahertz": 1980,
    "memory_clock_megahertz": 2619,
    "throttle_reasons": 4,
    "sm_active_permille": 876,
    "sm_occupancy_permille": 410,
    "tensor_active_permille": 333,
    "dram_active_permille": 120,
}


def sample_twice(nvml: Any) -> "dict[str, int | None]":
    """The second sample: GPM tells of the time between two."""
    sampler = open_device(nvml, "aa", 0, None)
    assert sampler is not None
    first = sampler.sample(counters=True)
    assert all(first[field] is None for field in GPM_METRICS)
    return sampler.sample(counters=True)


def test_fields_are_those_of_the_contract() -> None:
    assert ("at_unix_ns", *FIELDS) == DeviceColumns.__struct_fields__


def test_whole_sample() -> None:
    assert sample_twice(Recorded()) == WHOLE


@pytest.mark.parametrize(
    ("nvml", "missing"),
    [
        (Recorded("nvmlDeviceGetPowerUsage"), ["power_milliwatts"]),
        (Recorded("nvmlDeviceGetUtilizationRates"), ["utilization_permille", "memory_utilization_permille"]),
        (Recorded(has_gpm=False), list(GPM_METRICS)),
        (Recorded("nvmlGpmQueryDeviceSupport"), list(GPM_METRICS)),
        (Recorded(gpm={2: 87.65, 3: 41.0, 5: math.nan}), ["tensor_active_permille", "dram_active_permille"]),
    ],
    ids=["no power", "no utilization", "before Hopper", "old library", "odd values"],
)
def test_what_is_not_there_is_none(nvml: Recorded, missing: list[str]) -> None:
    assert sample_twice(nvml) == WHOLE | dict.fromkeys(missing)


def test_profiling_counters_are_left_alone_unless_asked_for() -> None:
    nvml = Recorded()
    sampler = open_device(nvml, "aa", 0, None)
    assert sampler is not None
    for _ in range(3):
        assert sampler.sample() == WHOLE | dict.fromkeys(GPM_METRICS)
    assert [call for call in nvml.calls if "Gpm" in call] == []


def test_profiling_counters_tell_of_one_capture_only() -> None:
    """The first sample of each capture that asks for them begins anew: not one of them spans the time in between."""
    nvml = Recorded()
    sampler = open_device(nvml, "aa", 0, None)
    assert sampler is not None
    readings = [sampler.sample(counters=counters)["sm_active_permille"] for counters in (True, True, False, True, True)]
    assert readings == [None, 876, None, None, 876]
    assert nvml.calls.count("nvmlGpmSampleAlloc") == 2


def test_older_driver_says_throttle_reasons_by_the_older_name() -> None:
    assert sample_twice(Recorded("nvmlDeviceGetCurrentClocksEventReasons"))["throttle_reasons"] == 8


def test_what_is_not_supported_is_not_asked_again() -> None:
    nvml = Recorded(has_gpm=False)
    sampler = open_device(nvml, "aa", 0, None)
    assert sampler is not None
    for _ in range(5):
        sampler.sample(counters=True)
    assert nvml.calls.count("nvmlGpmQueryDeviceSupport") == 1


@pytest.mark.parametrize(
    ("uuid", "index", "visible", "handle"),
    [
        ("aa", 5, "0,1", "GPU-aa"),  # PyTorch's own word
        ("GPU-aa", None, None, "GPU-aa"),
        ("zz", 0, None, None),  # unknown to NVML: no neighbour instead
        ("", 1, None, 1),
        ("", 1, "6,7", 7),
        ("", 0, "GPU-aa,GPU-bb", "GPU-aa"),
        ("", 0, "MIG-cc", "MIG-cc"),
        ("", 2, "6,7", None),
        ("", None, None, None),
    ],
)
def test_device_is_the_one_of_pytorch(uuid: str, index: "int | None", visible: "str | None", handle: Any) -> None:
    sampler = open_device(Recorded(), uuid, index, visible)
    assert (None if sampler is None else sampler.handle) == handle


def test_machine_without_a_driver() -> None:
    """The real library on this machine, if it has no NVIDIA driver: the agent goes on without samples."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        with pytest.raises(pynvml.NVMLError):
            open_device(pynvml, "", 0, None)
    else:
        sampler = open_device(pynvml, "", 0, None)
        assert sampler is not None
        assert sampler.sample()["memory_used_bytes"] is not None


# ---------------------------------------------------------------- outside captures

RATES = {20: 1.5, 21: 2.0, 60: 1000.0, 61: 900.25}
MIB = 1 << 20


def sample_health_twice(nvml: Any) -> "dict[str, int]":
    sampler = open_device(nvml, "aa", 0, None)
    assert sampler is not None
    assert not set(sampler.sample_health()) & {*GPM_METRICS, *GPM_RATES}
    return sampler.sample_health()


def test_health_is_all_that_the_device_tells() -> None:
    nvml = Recorded(gpm={2: 87.65, 3: 41.0, 5: 33.3, 10: 12.0} | RATES)
    assert sample_health_twice(nvml) == WHOLE | {
        "memory_bytes": 80 * 2**30,
        "ecc_corrected": 5,
        "ecc_uncorrected": 1,
        "pcie_sent_bytes_per_s": 3 * MIB // 2,
        "pcie_received_bytes_per_s": 2 * MIB,
        "nvlink_received_bytes_per_s": 1000 * MIB,
        "nvlink_sent_bytes_per_s": 3601 * MIB // 4,
    }


@pytest.mark.parametrize("odd", [math.nan, -1.0, 1e12], ids=["not a number", "negative", "beyond any link"])
def test_health_leaves_out_what_is_not_there_or_odd(odd: float) -> None:
    nvml = Recorded("nvmlDeviceGetTotalEccErrors", gpm={2: odd, 20: odd})
    assert not set(sample_health_twice(nvml)) & {"ecc_corrected", "ecc_uncorrected", *GPM_METRICS, *GPM_RATES}


def test_counters_of_a_capture_and_of_health_never_span_each_other() -> None:
    sampler = open_device(Recorded(), "aa", 0, None)
    assert sampler is not None
    readings = [
        (sampler.sample(counters=True) if of_capture else sampler.sample_health()).get("sm_active_permille")
        for of_capture in (False, False, True, True, False, False)
    ]
    assert readings == [None, 876, None, 876, None, 876]
