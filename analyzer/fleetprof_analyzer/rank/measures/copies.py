"""Memory copies and sets of a rank by direction, with bandwidth.

Guarantees: pure; counts and times are exact sums over the rank's memory rows; bytes are those that rows say.
"""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from fleetprof_api.report.report_tables import CopyStatistics

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.trace.naming import used_names
from fleetprof_analyzer.trace.trace import Category, Trace

_DIRECTIONS: Final = (
    ("HtoD", re.compile(r"HtoD|HostToDevice")),
    ("DtoH", re.compile(r"DtoH|DeviceToHost")),
    ("DtoD", re.compile(r"DtoD|DeviceToDevice")),
    ("PtoP", re.compile(r"PtoP|PeerToPeer")),
    ("HtoH", re.compile(r"HtoH|HostToHost")),
)
_PAGEABLE: Final = re.compile(r"Pageable")
_MEMSET: Final = ("memset", False)
_KINDS: Final = [(kind, pageable) for kind, _ in _DIRECTIONS for pageable in (False, True)] + [
    _MEMSET,
    ("other", False),
]


def measure_copies(trace: Trace, works: Sequence[DeviceWork]) -> list[CopyStatistics]:
    """One entry per direction and kind of host memory, the longest first."""
    sums: dict[tuple[str, bool], list[int]] = {}
    for work in works:
        rows = work.rows.select(np.isin(work.rows.category, (Category.MEMCPY, Category.MEMSET)))
        by_name = np.zeros(len(trace.names), np.int8)
        for name in used_names(rows):
            by_name[name] = _KINDS.index(_kind(trace.names[name]))
        kinds = np.where(rows.category == Category.MEMSET, np.int8(_KINDS.index(_MEMSET)), by_name[rows.name])
        for number, key in enumerate(_KINDS):
            mine = kinds == number
            if not mine.any():
                continue
            sized = mine & (rows.detail >= 0)
            total = sums.setdefault(key, [0, 0, 0, 0])
            total[0] += int(mine.sum())
            total[1] += int(rows.duration_ns[mine].sum())
            total[2] += int(rows.detail[sized].sum())
            total[3] += int(rows.duration_ns[sized].sum())
    made = [
        CopyStatistics(
            kind=kind,
            pageable=pageable,
            count=count,
            total_ns=total_ns,
            bytes=size,
            bytes_per_s=size * 10**9 // sized_ns if sized_ns else None,
        )
        for (kind, pageable), (count, total_ns, size, sized_ns) in sums.items()
    ]
    return sorted(made, key=lambda copy: (-copy.total_ns, copy.kind, copy.pageable))


def _kind(name: str) -> tuple[str, bool]:
    for kind, pattern in _DIRECTIONS:
        if pattern.search(name):
            return kind, _PAGEABLE.search(name) is not None
    return "other", False
