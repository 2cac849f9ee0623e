"""The measures of telemetry: the one table of their names, units and sources.

Guarantees: a name is that of the metric without `fleetprof_workload_` (docs/metrics.md#the-workloads); its last words
are the unit, a base unit of Prometheus; `source` is the field of RankTelemetry or HostTelemetry in hub.proto.
"""

from enum import StrEnum
from typing import Final

import msgspec


class Whose(StrEnum):
    """The owner of one value."""

    RANK = "rank"
    HOST = "host"


class Measure(msgspec.Struct, frozen=True):
    """`scale` turns the source's unit into that of the name. `adds`: the sum over ranks means something as well."""

    name: str
    source: str
    scale: float
    help: str
    whose: Whose = Whose.RANK
    adds: bool = False


_PERMILLE: Final = 1e-3

MEASURES: Final = (
    Measure("iteration_seconds", "iteration_ns", 1e-9, "Median of the latest training iterations."),
    Measure("iterations_per_second", "iteration_rate_microhertz", 1e-6, "Training iterations a second."),
    Measure("gpu_busy_ratio", "gpu_busy_permille", _PERMILLE, "Time with a kernel on the GPU (NVML utilisation)."),
    Measure("gpu_sm_active_ratio", "gpu_sm_active_permille", _PERMILLE, "SMs with a warp on them (GPM)."),
    Measure("gpu_sm_occupancy_ratio", "gpu_sm_occupancy_permille", _PERMILLE, "Warps on SMs of what fits (GPM)."),
    Measure("gpu_tensor_active_ratio", "gpu_tensor_active_permille", _PERMILLE, "Tensor cores at work (GPM)."),
    Measure("gpu_dram_active_ratio", "gpu_dram_active_permille", _PERMILLE, "DRAM bandwidth in use (GPM)."),
    Measure("gpu_memory_used_bytes", "gpu_memory_used_bytes", 1.0, "GPU memory in use.", adds=True),
    Measure("gpu_memory_bytes", "gpu_memory_bytes", 1.0, "GPU memory in all.", adds=True),
    Measure("gpu_power_watts", "gpu_power_milliwatts", 1e-3, "Power of the GPU.", adds=True),
    Measure("gpu_temperature_celsius", "gpu_temperature_celsius", 1.0, "Temperature of the GPU."),
    Measure("gpu_sm_clock_hertz", "gpu_sm_clock_megahertz", 1e6, "Clock of the SMs."),
    Measure("gpu_memory_clock_hertz", "gpu_memory_clock_megahertz", 1e6, "Clock of the GPU's memory."),
    Measure(
        "gpu_nvlink_receive_bytes_per_second", "gpu_nvlink_received_bytes_per_s", 1.0, "NVLink, in (GPM).", adds=True
    ),
    Measure(
        "gpu_nvlink_transmit_bytes_per_second", "gpu_nvlink_sent_bytes_per_s", 1.0, "NVLink, out (GPM).", adds=True
    ),
    Measure("gpu_pcie_receive_bytes_per_second", "gpu_pcie_received_bytes_per_s", 1.0, "PCIe, in (GPM).", adds=True),
    Measure("gpu_pcie_transmit_bytes_per_second", "gpu_pcie_sent_bytes_per_s", 1.0, "PCIe, out (GPM).", adds=True),
    Measure(
        "gpu_iteration_joules", "gpu_iteration_energy_millijoules", 1e-3, "Energy of a training iteration.", adds=True
    ),
    Measure("host_cpu_busy_ratio", "cpu_busy_permille", _PERMILLE, "Cores of the host at work.", Whose.HOST),
    Measure("host_memory_used_ratio", "memory_used_permille", _PERMILLE, "Memory of the host in use.", Whose.HOST),
    Measure("host_cpu_pressure_ratio", "cpu_pressure_permille", _PERMILLE, "Time tasks waited for a core.", Whose.HOST),
    Measure(
        "host_memory_pressure_ratio", "memory_pressure_permille", _PERMILLE, "Time tasks waited for memory.", Whose.HOST
    ),
    Measure("host_io_pressure_ratio", "io_pressure_permille", _PERMILLE, "Time tasks waited for a disk.", Whose.HOST),
    Measure(
        "host_network_receive_bytes_per_second",
        "network_received_bytes_per_s",
        1.0,
        "Network, in.",
        Whose.HOST,
        adds=True,
    ),
    Measure(
        "host_network_transmit_bytes_per_second",
        "network_sent_bytes_per_s",
        1.0,
        "Network, out.",
        Whose.HOST,
        adds=True,
    ),
    Measure(
        "host_network_link_ratio",
        "network_link_permille",
        _PERMILLE,
        "Share of the busiest link's speed in use.",
        Whose.HOST,
    ),
    Measure(
        "host_infiniband_receive_bytes_per_second",
        "infiniband_received_bytes_per_s",
        1.0,
        "InfiniBand, in.",
        Whose.HOST,
        adds=True,
    ),
    Measure(
        "host_infiniband_transmit_bytes_per_second",
        "infiniband_sent_bytes_per_s",
        1.0,
        "InfiniBand, out.",
        Whose.HOST,
        adds=True,
    ),
    Measure(
        "host_infiniband_link_ratio",
        "infiniband_link_permille",
        _PERMILLE,
        "Share of the busiest port's speed in use.",
        Whose.HOST,
    ),
)
RANK_MEASURES: Final = tuple(measure for measure in MEASURES if measure.whose is Whose.RANK)
HOST_MEASURES: Final = tuple(measure for measure in MEASURES if measure.whose is Whose.HOST)
LOWEST_OF: Final = ("iterations_per_second", "gpu_busy_ratio", "gpu_sm_active_ratio", "gpu_sm_clock_hertz")
"""Those of which the lowest rank is named: a rank that is lower than its peers holds them up."""
IN_HISTORY: Final = (
    "iterations_per_second",
    "iteration_seconds",
    "gpu_busy_ratio",
    "gpu_sm_active_ratio",
    "gpu_tensor_active_ratio",
    "gpu_memory_used_bytes",
    "gpu_power_watts",
    "gpu_iteration_joules",
    "host_cpu_busy_ratio",
    "host_cpu_pressure_ratio",
    "host_network_link_ratio",
    "host_infiniband_link_ratio",
)
"""Those of which a day is kept."""
