"""Tables of what runs now: of jobs, or of the ranks of one job.

Guarantees: pure; a column that nobody has a figure for is left out; text that came from elsewhere is shown as it is,
never as markup.
"""

from collections.abc import Callable, Sequence
from typing import Final

from fleetprof_api.plain_text import make_printable
from fleetprof_api.quantities import duration, size
from fleetprof_api.telemetry.figures import FleetFigures, RankFigures, WorkloadFigures
from rich.table import Table
from rich.text import Text

RANKS_SHOWN: Final = 200
"""Of one job's ranks, the slowest of more: whoever wants all of them takes `-o json`."""


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.0f} %"


def _rate(per_second: float) -> str:
    return f"{per_second:.3g}"


def _duration(seconds: float) -> str:
    return duration(int(seconds * 1e9))


def _watts(watts: float) -> str:
    return f"{watts:.0f} W" if watts < 10_000 else f"{watts / 1000:.1f} kW"


def _joules(joules: float) -> str:
    return f"{joules:.3g} J" if joules < 10_000 else f"{joules / 1000:.1f} kJ"


def _clock(hertz: float) -> str:
    return f"{hertz / 1e6:.0f} MHz"


def _bandwidth(bytes_per_s: float) -> str:
    return f"{size(int(bytes_per_s))}/s"


def _size(size_bytes: float) -> str:
    return size(int(size_bytes))


# Heading, measure, how a value is said. Of a job the mean is shown, the sum where `_SUMS` says so.
_COLUMNS: Final[tuple[tuple[str, str, Callable[[float], str]], ...]] = (
    ("ITER/S", "iterations_per_second", _rate),
    ("ITERATION", "iteration_seconds", _duration),
    ("GPU", "gpu_busy_ratio", _percent),
    ("SM", "gpu_sm_active_ratio", _percent),
    ("TENSOR", "gpu_tensor_active_ratio", _percent),
    ("DRAM", "gpu_dram_active_ratio", _percent),
    ("GPU MEM", "gpu_memory_used_bytes", _size),
    ("CLOCK", "gpu_sm_clock_hertz", _clock),
    ("POWER", "gpu_power_watts", _watts),
    ("ENERGY/ITER", "gpu_iteration_joules", _joules),
    ("CPU", "host_cpu_busy_ratio", _percent),
    ("CPU WAIT", "host_cpu_pressure_ratio", _percent),
    ("MEM", "host_memory_used_ratio", _percent),
    ("NET IN", "host_network_receive_bytes_per_second", _bandwidth),
    ("NET OUT", "host_network_transmit_bytes_per_second", _bandwidth),
    ("IB", "host_infiniband_link_ratio", _percent),
)
_SUMS: Final = ("gpu_power_watts", "gpu_iteration_joules", "gpu_memory_used_bytes")
_LAGS_BELOW: Final = 0.9


def draw_jobs(fleet: FleetFigures) -> Table:
    """A row for each workload."""
    shown = [column for column in _COLUMNS if any(column[1] in job.figures for job in fleet.workloads)]
    table = Table("JOB", "NAMESPACE", "RANKS", *(name for name, _, _ in shown), "NOTE", box=None, pad_edge=False)
    for job in fleet.workloads:
        cells = [f"{job.kind}/{job.name}", job.namespace, f"{job.ranks}/{job.world_size or job.ranks}"]
        for _, measure, say in shown:
            figure = job.figures.get(measure)
            cells.append("" if figure is None else say(figure.sum if measure in _SUMS else figure.mean))
        table.add_row(*(Text(make_printable(cell)) for cell in [*cells, _note(job)]))
    return table


def draw_ranks(job: WorkloadFigures) -> Table:
    """A row for each rank of a workload, the slowest RANKS_SHOWN of more."""
    members: Sequence[RankFigures] = job.members or ()
    if len(members) > RANKS_SHOWN:
        members = sorted(members, key=lambda one: one.values.get("iterations_per_second", 0.0))[:RANKS_SHOWN]
    shown = [column for column in _COLUMNS if any(column[1] in member.values for member in members)]
    table = Table("RANK", "POD", "NODE", *(name for name, _, _ in shown), box=None, pad_edge=False)
    for member in members:
        cells = ["" if member.rank is None else str(member.rank), member.pod, member.node]
        cells += [say(member.values[measure]) if measure in member.values else "" for _, measure, say in shown]
        table.add_row(*(Text(make_printable(cell)) for cell in cells))
    return table


def summarise(job: WorkloadFigures) -> str:
    """One line about a workload."""
    parts = [f"{job.ranks} ranks"] if job.ranks != 1 else ["1 rank"]
    for name, measure, say in _COLUMNS:
        if (figure := job.figures.get(measure)) is not None:
            parts.append(f"{name.lower()} {say(figure.sum if measure in _SUMS else figure.mean)}")
    return f"{job.kind}/{job.name}: {', '.join(parts)}"


def _note(job: WorkloadFigures) -> str:
    notes = []
    if job.worst_gpu is not None:
        notes.append(f"worst GPU: rank {job.worst_gpu.rank} on {job.worst_gpu.node}")
    for measure, word in (("gpu_sm_clock_hertz", "clock"), ("gpu_busy_ratio", "GPU")):
        share, figure = job.lowest_shares.get(measure), job.figures.get(measure)
        if share is not None and share < _LAGS_BELOW and figure is not None and figure.lowest_rank is not None:
            notes.append(f"rank {figure.lowest_rank}: {word} {share:.0%} of its peers'")
    for word, number in (("hot", job.throttled.thermal), ("power-capped", job.throttled.power)):
        if number:
            notes.append(f"{number} GPUs {word}")
    return "; ".join(notes)
