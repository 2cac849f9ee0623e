"""The devices that NVML shows, and hosts without a driver."""

from types import SimpleNamespace

from fleetprof_sidecar.samples.device import NvmlSource


class NVMLError(Exception):
    """As pynvml's."""


def test_no_driver_means_no_samples_and_no_error() -> None:
    def no_driver() -> None:
        raise NVMLError("Driver Not Loaded")

    assert NvmlSource(lambda: SimpleNamespace(nvmlInit=no_driver)).read(1, counters=False) == []

    def no_module() -> None:
        raise ModuleNotFoundError("pynvml")

    assert NvmlSource(no_module).read(1, counters=False) == []


def test_every_visible_device_is_read() -> None:
    nvml = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetPowerUsage=lambda handle: 100 + handle,
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=50, memory=20),
    )
    readings = NvmlSource(lambda: nvml).read(9, counters=False)
    assert [(r.device, r.at_unix_ns, r.values["power_milliwatts"]) for r in readings] == [(0, 9, 100), (1, 9, 101)]
    assert readings[0].values["utilization_permille"] == 500
    assert readings[0].values["temperature_celsius"] is None
