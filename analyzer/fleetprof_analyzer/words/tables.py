"""Tables of a report as lines for a terminal: operators that launch device work, peak memory, waits, asked classes.

Guarantees: a few rows of each, the largest first; nothing where a table is empty; names of a trace are shown plainly.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

from fleetprof_api.quantities import duration, share, size
from fleetprof_api.report.rank_tables import MemoryPeak
from fleetprof_api.report.report import Rank, Report

from fleetprof_analyzer.words.text import plain, rank_name

_FEW: Final = 5


def list_operators(report: Report, width: int) -> list[str]:
    """Operators of the host whose own launches took the device's time."""
    lines = []
    for row in report.launching_operators[:_FEW]:
        if row.own_launches:
            numbers = f"  {duration(row.own_device_ns):>10} {row.own_launches:>8} ×   "
            lines.append(numbers + plain(row.name, max(20, width - len(numbers))))
    return ["Operators that launched it (device time and rows of their own launches)", *lines] if lines else []


def list_asked_classes(report: Report, width: int) -> list[str]:
    """The classes of kernels that were asked for."""
    classes = [f"{plain(entry.pattern, 60)} is {entry.work_class}" for entry in report.asked_kernel_classes]
    return wrap(f"Classes of kernels from the request: {', '.join(classes)}", width) if classes else []


def list_memory(report: Report) -> list[str]:
    """The device with the highest peak, and whose it is."""
    peaks = sort_peaks(report.ranks)
    if not peaks:
        return []
    rank, peak = peaks[0]
    kept = "" if peak.reserved_bytes is None else f", {size(peak.reserved_bytes)} reserved"
    more = f"; the lowest of {len(peaks)} {size(peaks[-1][1].allocated_bytes or 0)}" if len(peaks) > 1 else ""
    return [f"Peak memory: {size(peak.allocated_bytes or 0)} allocated{kept} on {peak.device}, rank {rank}{more}"]


def sort_peaks(ranks: Sequence[Rank]) -> list[tuple[str, MemoryPeak]]:
    """(rank, peak) of every device whose peak is known, the highest first; the host's only where there is no other."""
    known = [(rank_name(rank.rank), peak) for rank in ranks for peak in rank.memory if peak.allocated_bytes is not None]
    devices = [item for item in known if item[1].device != "cpu"] or known
    return sorted(devices, key=lambda item: -(item[1].allocated_bytes or 0))


def list_data_loading(report: Report) -> list[str]:
    """The rank that waited longest for batches."""
    known = [(rank.data_loading_ns, rank) for rank in report.ranks if rank.data_loading_ns]
    if not known:
        return []
    longest, rank = max(known, key=lambda item: item[0])
    whole = sum(iteration.duration_ns for iteration in rank.iterations)
    of = f", {share(min(longest, whole), whole)} of its iterations" if whole else ""
    return [f"Waiting for batches: at most {duration(longest)}{of} (rank {rank_name(rank.rank)})"]
