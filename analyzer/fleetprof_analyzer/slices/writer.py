"""Writes the slices of a report.

Guarantees: pure but for its log; each is within its bytes (`SLICES`): where its rows are too many, there are fewer, and
it counts those that are left out; one that cannot be made costs its part of the page, never the report; texts are those
of the report, which are printable; the same report gives the same bytes.
"""

import gzip
import logging
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from fleetprof_api.report.report import Report
from fleetprof_api.slices.slice import Slice
from fleetprof_api.slices.table import SLICES

from fleetprof_analyzer.slices import iterations, kernel_spread, kernels, ranks, samples, stragglers, tables
from fleetprof_analyzer.slices.head import make_head
from fleetprof_analyzer.slices.overview import make_overview
from fleetprof_analyzer.slices.whatif import make_whatif

log = logging.getLogger(__name__)

_LEVEL: Final = 6
MAKERS: Final[Mapping[str, Callable[[Report, int], Slice]]] = {
    "head": make_head,
    "overview": make_overview,
    "idle": tables.make_idle,
    "ranks": ranks.make_ranks,
    "stragglers": stragglers.make_stragglers,
    "iterations": iterations.make_iterations,
    "stages": tables.make_stages,
    "kernels": kernels.make_kernels,
    "rank_kernels": kernels.make_rank_kernels,
    "kernel_spread": kernel_spread.make_kernel_spread,
    "communication": tables.make_communication,
    "launches": tables.make_launches,
    "memory": tables.make_memory,
    "samples": samples.make_samples,
    "modules": tables.make_modules,
    "whatif": make_whatif,
}
"""By name of the slice: makes it of a report, with at most so many rows."""


def write_slices(report: Report) -> dict[str, bytes]:
    """All slices that can be made, by name, as gzip of JSON. Raises MemoryError."""
    written = {}
    for name in SLICES:
        try:
            written[name] = gzip.compress(encode_slice(report, name), _LEVEL, mtime=0)
        except MemoryError:
            raise
        except Exception:
            log.exception("the slice %s of a report cannot be made", name)
    return written


def encode_slice(report: Report, name: str) -> bytes:
    """One slice as JSON within its bytes. Raises ValueError where not even its fixed parts fit."""
    kind = SLICES[name]
    most = kind.most_rows
    while True:
        data = msgspec.json.encode(MAKERS[name](report, most))
        if len(data) <= kind.most_bytes:
            return data
        if not most:
            raise ValueError(f"slice {name}: {len(data):,} bytes without a row, {kind.most_bytes:,} are allowed")
        # By the bytes that are too many, for rows are of one size mostly; at least a tenth goes.
        most = min(most * 9 // 10, most * kind.most_bytes // len(data))
