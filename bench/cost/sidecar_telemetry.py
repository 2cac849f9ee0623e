"""The cost of telemetry's dearer sources in a sidecar: a DCGM exporter that it asks, counters read every millisecond.

The exporter is a server here that answers what one of version 3.3 tells of eight GPUs, with its default counters and
those that docs/telemetry.md names. All else is as it runs: the sidecar of `fleetprof run`, its hub, simulated trainers.
The millisecond is counted and not built: docs/limits.md says why.
"""

import os
import time
from collections.abc import Callable

from cost.idle_cost import SIDECAR_PROCESSES, measure_sidecar
from figures import Figure
from fleetprof_sidecar.telemetry.dcgm_exporter import EVERY_S
from harness.http_answers import answering
from harness.training.local_system import Local

GPUS = 8
_SECTION = "telemetry"
_ASKS = 4
_MS_READS = 2000
_GAUGES = (
    *("DEV_SM_CLOCK", "DEV_MEM_CLOCK", "DEV_MEMORY_TEMP", "DEV_GPU_TEMP", "DEV_POWER_USAGE"),
    *("DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_PCIE_REPLAY_COUNTER", "DEV_GPU_UTIL", "DEV_MEM_COPY_UTIL", "DEV_ENC_UTIL"),
    *("DEV_DEC_UTIL", "DEV_XID_ERRORS", "DEV_FB_FREE", "DEV_FB_USED", "DEV_NVLINK_BANDWIDTH_TOTAL"),
    *("DEV_VGPU_LICENSE_STATUS", "DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_CORRECTABLE_REMAPPED_ROWS"),
    *("DEV_ROW_REMAP_FAILURE", "PROF_GR_ENGINE_ACTIVE", "PROF_SM_ACTIVE", "PROF_SM_OCCUPANCY"),
    *("PROF_PIPE_TENSOR_ACTIVE", "PROF_DRAM_ACTIVE", "PROF_PCIE_TX_BYTES", "PROF_PCIE_RX_BYTES"),
)  # fmt: skip


def write_page() -> bytes:
    """The exporter's answer."""
    lines = []
    for name in _GAUGES:
        metric = f"DCGM_FI_{name}"
        lines += [f"# HELP {metric} What the field says of one GPU.", f"# TYPE {metric} gauge"]
        for gpu in range(GPUS):
            lines.append(
                f'{metric}{{gpu="{gpu}",UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e{gpu:02}",pci_bus_id="00000000:0{gpu}'
                f':00.0",device="nvidia{gpu}",modelName="NVIDIA A100-SXM4-80GB",Hostname="node-7",container="trainer",'
                f'namespace="team-vision",pod="llama-worker-{gpu}-x7k2p"}} 0.{gpu}14512'
            )
    return ("\n".join(lines) + "\n").encode()


def count_millisecond(read: Callable[[], object]) -> float:
    """Processor time of a thread that wakes every millisecond and reads, µs for each."""
    began, due = time.thread_time_ns(), time.monotonic_ns()
    for _ in range(_MS_READS):
        due += 1_000_000
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        read()
    return (time.thread_time_ns() - began) / _MS_READS / 1e3


def _measure_millisecond() -> list[Figure]:
    files = [os.open(path, os.O_RDONLY) for path in ("/proc/stat", "/proc/net/dev")]
    try:
        ways: dict[str, Callable[[], object]] = {
            "wake up and read nothing": lambda: None,
            "read the first line of /proc/stat": lambda: os.pread(files[0], 256, 0),
            "read that and /proc/net/dev": lambda: [os.pread(file, 4096, 0) for file in files],
        }
        return [
            Figure(_SECTION, f"every millisecond: {name}", f"{took:.0f} µs of CPU, {took / 10:.1f} % of a core")
            for name, took in ((name, min(count_millisecond(way) for _ in range(3))) for name, way in ways.items())
        ]
    finally:
        for file in files:
            os.close(file)


def measure(local: Local) -> list[Figure]:
    """The cost of a sidecar that asks a DCGM exporter: memory, and a share of a core."""
    with answering(200, write_page()) as (address, requests):
        local.environment["FLEETPROF_DCGM_URL"] = f"{address}/metrics"
        rss, cpu = measure_sidecar(local, SIDECAR_PROCESSES, _ASKS * EVERY_S, "cuda")
    assert len(requests) >= _ASKS, "the sidecar asks the exporter"
    served = f"sidecar with {SIDECAR_PROCESSES} processes that asks a DCGM exporter of {GPUS} GPUs"
    return [
        Figure(_SECTION, f"{served}: memory", f"{rss:.1f} MiB RSS", "<= 64 MiB", rss <= 64),
        Figure(_SECTION, f"{served}: CPU", f"{cpu:.2f} % of a core", "<= 0.5 %", cpu <= 0.5),
        *_measure_millisecond(),
    ]
