"""The finished traces that wait for compression: `children.compress` runs as a child, a few at a time.

Guarantees: what the children write at the same time fits into the spool.
"""

import asyncio
import os
import subprocess
from typing import Final

import msgspec
from fleetprof_api.ledger import Reason
from fleetprof_api.process.import_path import module_command, own_environment

from fleetprof_sidecar.capture.events import FileChecked, FileRejected
from fleetprof_sidecar.capture.process_capture import ProcessCapture, StoredFile
from fleetprof_sidecar.captures.traces_directory import TracesDirectory
from fleetprof_sidecar.children.compress import CompressionResult, refusal
from fleetprof_sidecar.delivery.spool import NoRoom, Spool
from fleetprof_sidecar.sockets.shared_files import UnexpectedFile

# gzip of anything is at most this much longer than the thing itself.
_GZIP_OVERHEAD_BYTES: Final = 1 << 16


class CompressionQueue:
    """Turns finished traces into files of the spool. A child needs a quarter of the machine's cores at most."""

    def __init__(self, spool: Spool, traces: TracesDirectory) -> None:
        self._spool = spool
        self._traces = traces
        self._slots = max(1, min(4, (os.cpu_count() or 1) // 4))
        self._running = 0
        self._reserved_bytes = 0
        self._changed = asyncio.Condition()

    async def compress(self, capture: ProcessCapture, now_unix_ns: int) -> FileChecked | FileRejected:
        """Verifies and compresses the capture's finished file; what is in the spool then is named in the answer."""
        needed = capture.trace_bytes + _GZIP_OVERHEAD_BYTES
        async with self._changed:
            # Others' reservations shrink when they end: only when alone does the room left decide.
            await self._changed.wait_for(
                lambda: self._running == 0 or (self._running < self._slots and self._room_bytes() >= needed)
            )
            self._running += 1
            limit = min(needed, self._room_bytes())
            self._reserved_bytes += limit
        try:
            answer = await self._open_and_run(capture, limit)
            return self._judge(capture, answer, self._spool.trace_path(capture).name, now_unix_ns)
        finally:
            async with self._changed:
                self._running -= 1
                self._reserved_bytes -= limit
                self._changed.notify_all()

    def _room_bytes(self) -> int:
        try:
            return max(0, self._spool.room_bytes() - self._reserved_bytes)
        except NoRoom:
            return 0

    async def _open_and_run(self, capture: ProcessCapture, limit_bytes: int) -> CompressionResult:
        uid = capture.terms.uid
        try:
            source = self._traces.open(capture.file_name, uid if uid >= 0 else None)
        except UnexpectedFile as problem:
            return refusal(Reason.CORRUPT_TRACE, f"the object in the trace's place was not read: {problem}")
        except OSError as problem:
            return refusal(Reason.INTERNAL, f"the trace cannot be read: {problem.strerror}")
        try:
            return await self._run(capture, source, limit_bytes)
        finally:
            os.close(source)

    async def _run(self, capture: ProcessCapture, source: int, limit_bytes: int) -> CompressionResult:
        try:
            self._spool.room_bytes()
        except NoRoom as full:
            return refusal(full.reason, str(full))
        target = self._spool.trace_path(capture)
        child = await asyncio.create_subprocess_exec(
            *module_command(
                "fleetprof_sidecar.children.compress",
                str(target),
                f"--max-trace-bytes={capture.terms.max_trace_bytes}",
                f"--limit-bytes={limit_bytes}",
            ),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=own_environment(),
        )
        try:
            out, problem = await child.communicate()
        except asyncio.CancelledError:
            child.kill()
            await child.wait()
            raise
        try:
            answer = msgspec.json.decode(out, type=CompressionResult)
        except msgspec.DecodeError:
            last_line = problem.decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
            return refusal(Reason.INTERNAL, f"compression ended with {child.returncode}: {last_line[0]}")
        if answer["failure"] == Reason.SPOOL_FULL:
            return self._name_what_is_full(answer)
        return answer

    def _name_what_is_full(self, answer: CompressionResult) -> CompressionResult:
        # The limit given to the child is the lesser of the spool's and the volume's room.
        try:
            self._spool.room_bytes()
        except NoRoom as full:
            return refusal(full.reason, str(full))
        return answer

    @staticmethod
    def _judge(
        capture: ProcessCapture, answer: CompressionResult, target_name: str, now_unix_ns: int
    ) -> FileChecked | FileRejected:
        if answer["failure"]:
            return FileRejected(capture.file_name, Reason(answer["failure"]), answer["message"], now_unix_ns)
        return FileChecked(
            name=capture.file_name,
            trace_id=answer["trace_id"],
            trace_bytes=answer["trace_bytes"],
            stored=StoredFile(
                name=target_name,
                size_bytes=answer["size_bytes"],
                sha256=answer["sha256"],
                part_sizes=answer["part_sizes"],
                part_sha256=answer["part_sha256"],
            ),
            at_unix_ns=now_unix_ns,
            optimizer_step=answer["optimizer_step"],
            events=answer["events"],
        )
