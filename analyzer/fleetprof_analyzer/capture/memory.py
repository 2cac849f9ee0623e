"""The memory that this process may take, and its meaning for the traces it reads.

Guarantees: never raises; without a limit that can be read, the defaults of `TraceLimits` hold.
"""

import ctypes
import resource
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from fleetprof_api.process.memory import CONTAINER_LIMITS, MEMINFO, container_limit, machine_memory

from fleetprof_analyzer.trace.limits import TraceLimits

# With less than this a process cannot read a short trace.
_LEAST_BYTES: Final = 384 << 20
# Python, numpy, boto3 and the blocks under way.
_BASE_BYTES: Final = 96 << 20
# A kept row at its peak: its columns, and what the measures sort and compare of it.
_ROW_BYTES: Final = 220
# Of glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 128 << 20
_MAPPED_BYTES: Final = 32 << 20


def free_share(processes: int, files: Sequence[Path] = CONTAINER_LIMITS, meminfo: Path = MEMINFO) -> int | None:
    """Bytes that each of so many processes beside others' work may take; None where nobody tells.

    Four fifths of what the machine, or the container, has left for them, so that a trainer here is left alone.
    """
    available_bytes, _ = machine_memory(meminfo)
    known = [limit for limit in (container_limit(files), available_bytes) if limit is not None]
    return max(_LEAST_BYTES, min(known) * 4 // 5 // max(1, processes)) if known else None


def keep_freed_memory() -> None:
    """Lets this process keep what it frees for its next arrays: else the kernel clears each page of them anew.

    That is a tenth of an analysis. Only glibc has these settings; elsewhere nothing changes. Raises nothing.
    """
    with suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        set_option(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def limit_data(memory_bytes: int | None) -> None:
    """Ends an allocation of this process that would pass so many bytes in a MemoryError. Raises nothing."""
    if memory_bytes is not None:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


def limits_within(memory_bytes: int | None) -> TraceLimits:
    """Limits that keep one trace within this memory: a trace that does not fit is refused, not killed half-way."""
    limits = TraceLimits()
    if memory_bytes is None:
        return limits
    rows = max(0, memory_bytes - _BASE_BYTES) // _ROW_BYTES
    return replace(limits, kept_rows=max(10_000, min(limits.kept_rows, rows)))
