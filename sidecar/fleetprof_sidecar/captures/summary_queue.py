"""The ranks that wait for their summary: `children.summarise` runs as a child, one at a time.

Guarantees: the summary is in the spool, or a sentence says why there is none.
"""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from fleetprof_api.process.import_path import module_command, own_environment
from fleetprof_api.process.memory import CONTAINER_LIMITS, container_limit

from fleetprof_sidecar.capture.events import SummaryReady
from fleetprof_sidecar.capture.process_capture import ProcessCapture
from fleetprof_sidecar.delivery.spool import NoRoom, Spool

_MOST_BYTES: Final = 100_000
_MOST_MEMORY_BYTES: Final = 4 << 30


class SummaryQueue:
    """Turns a trace and the samples in the spool into the rank's summary there."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._turn = asyncio.Lock()

    async def make(self, capture: ProcessCapture, now_unix_ns: int) -> SummaryReady:
        """The summary, or why there is none. Only one child runs at a time: it may need much memory."""
        async with self._turn:
            data, problem = await self._run(capture)
        if not data:
            return SummaryReady(None, problem, now_unix_ns)
        try:
            return SummaryReady(self._spool.write_summary(capture, data), "", now_unix_ns)
        except (NoRoom, OSError) as full:
            return SummaryReady(None, str(full), now_unix_ns)

    async def _run(self, capture: ProcessCapture) -> tuple[bytes, str]:
        """The summary's bytes, or none and a sentence."""
        assert capture.trace is not None
        terms = capture.terms
        words = [str(self._spool.path_of(capture.trace.name)), f"--parent={os.getpid()}", f"--rank={terms.rank}"]
        words.append(f"--memory-bytes={memory_for_a_child()}")
        if capture.samples is not None:
            words.append(f"--samples={self._spool.path_of(capture.samples.name)}")
        if terms.first_step is not None:
            words.append(f"--first-step={terms.first_step}")
        if terms.kernel_classes:
            words.append(f"--kernel-classes={msgspec.json.encode(terms.kernel_classes).decode()}")
        if terms.iteration_range:
            words.append(f"--iteration-range={terms.iteration_range}")
        if terms.asked_iterations:
            words.append(f"--iterations={terms.asked_iterations}")
        child = await asyncio.create_subprocess_exec(
            *module_command("fleetprof_sidecar.children.summarise", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A pool of threads per core would cost more memory than the work needs.
            env=own_environment() | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        try:
            # At the lowest priority it may take long beside a busy job: the capture's own deadline ends it.
            data, errors = await child.communicate()
        except asyncio.CancelledError:
            child.kill()
            await child.wait()
            raise
        if child.returncode == 0 and 0 < len(data) <= _MOST_BYTES:
            return data, ""
        lines = errors.decode(errors="replace").strip().splitlines()[-1:]
        return b"", lines[0][:300] if lines else f"the analyzer ended with {child.returncode}"


def memory_for_a_child(files: Sequence[Path] = CONTAINER_LIMITS) -> int:
    """Bytes that a child may take: half of the container's limit, so that the sidecar itself is never in danger."""
    limit_bytes = container_limit(files)
    return _MOST_MEMORY_BYTES if limit_bytes is None else min(_MOST_MEMORY_BYTES, limit_bytes // 2)
