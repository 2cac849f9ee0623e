"""How much memory this process may take, and what that means for the traces it reads.

Guarantees: never raises; without a limit that can be read, the defaults of `Limits` hold. Sources: cgroup v2
(memory.max), cgroup v1 (memory.limit_in_bytes).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from fleetprof_analyzer.limits import Limits

_FILES: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# Python, numpy, boto3 and the blocks under way.
_BASE_BYTES: Final = 96 << 20
# A kept row at its peak: its columns, and what the measures sort and compare of it.
_ROW_BYTES: Final = 220


def container_limit(files: Sequence[Path] = _FILES) -> int | None:
    """The container's memory limit in bytes; None where there is none."""
    for file in files:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < 1 << 60:
            return int(text)
    return None


def limits_within(memory_bytes: int | None) -> Limits:
    """Limits that keep one trace within this memory: a trace that does not fit is refused, not killed half-way."""
    limits = Limits()
    if memory_bytes is None:
        return limits
    rows = max(0, memory_bytes - _BASE_BYTES) // _ROW_BYTES
    return replace(limits, kept_rows=max(10_000, min(limits.kept_rows, rows)))
