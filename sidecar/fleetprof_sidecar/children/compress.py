"""Verifies and compresses one finished trace: `python -m fleetprof_sidecar.children.compress DST … < SRC`.

A child and not a thread: it runs at the lowest CPU priority, and an idle-priority thread that holds the interpreter's
lock would delay the answers to Kineto's polls.

Guarantees: one pass over the file in bounded memory, whatever is in it; DST appears whole or not at all; the answer is
one JSON object on stdout (`CompressionResult`), also for a file that is refused, with exit code 0; it ends by itself
when its parent is gone. SRC is written by the trainer and so untrusted: the sidecar has opened it and found a regular
file (shared_files.py), so that no name is looked up here, and what stands at the name meanwhile does not matter.
"""

import argparse
import contextlib
import errno
import hashlib
import json
import os
import re
import sys
import zlib
from pathlib import Path
from typing import IO, Any, Final, TypedDict

from fleetprof_api.errors import FleetprofError
from fleetprof_api.memory_shortage import HELPER, go_first

PART_BYTES: Final = 8 << 20
_CHUNK_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 4 << 20
_TAIL_BYTES: Final = 256 << 10
_LEVEL: Final = 6
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
# Slices and begin events: what is measured. Metadata ("M") and the instants ("i") that Kineto marks its window with are
# in every trace, also where nothing ran.
_MEASURED: Final = re.compile(rb'"ph"\s*:\s*"[XBb]"')
# PyTorch records one per step of a torch.optim.Optimizer.
_OPTIMIZER_STEP: Final = re.compile(rb'"name"\s*:\s*"Optimizer\.step#')
_TRACE_ID: Final = re.compile(rb'"trace_id"\s*:\s*"([^"\\]{0,200})"')
_LAST_EVENT: Final = re.compile(rb"\}\s*\]")
_GZIP_WINDOW: Final = 31
# Every event has one; metadata too, a few dozen of them.
_PHASE: Final = b'"ph":'


class CompressionResult(TypedDict):
    """The result on stdout. `failure`: "", or a name of fleetprof_api.ledger.Reason, and then only `message` counts."""

    failure: str
    message: str
    trace_id: str
    trace_bytes: int
    size_bytes: int
    sha256: str
    part_sizes: list[int]
    part_sha256: list[str]
    optimizer_step: bool
    events: int


class UnusableTrace(FleetprofError):
    """The file cannot be used, or has no room. `reason` as in CompressionResult.failure."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TraceCheck:
    """Looks at a trace as it streams by: its id, how many events and whether optimizer steps, whether it is whole.

    What Kineto of torch 2.13 writes is not always valid JSON (names are not escaped), so only the frame is checked: the
    top-level members before and after `traceEvents`, and that the array between them is closed.
    """

    def __init__(self) -> None:
        self._head = b""
        self._head_done = False
        self._rest = b""
        self._tail = b""
        self._measured = False
        self.optimizer_step = False
        self.events = 0
        self._ids: list[str] = []

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes. Raises UnusableTrace when this cannot be a trace."""
        if not self._head_done:
            self._head += chunk
            match = _EVENTS.search(self._head)
            if match is None and len(self._head) > _HEAD_BYTES:
                raise UnusableTrace(
                    "CorruptTrace", f"no traceEvents in the first {_HEAD_BYTES} bytes: not a Chrome trace"
                )
            if match is None:
                return
            self._head_done = True
            self._ids += _ids_of(self._head[: match.start()] + b'"traceEvents":[]}')
            chunk = self._head[match.end() :]
            self._head = b""
        window = self._rest + chunk
        self.events += (self._rest[1 - len(_PHASE) :] + chunk).count(_PHASE)
        self._measured = self._measured or _MEASURED.search(window) is not None
        self.optimizer_step = self.optimizer_step or _OPTIMIZER_STEP.search(window) is not None
        self._rest = window[-32:]
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def finish(self) -> str:
        """The trace id, after the last byte. Raises UnusableTrace."""
        if not self._head_done:
            what = "the file is empty" if not self._head.strip() else "the file ends before its events"
            raise UnusableTrace("EmptyTrace" if not self._head.strip() else "CorruptTrace", what)
        if not self._measured:
            closed = re.match(rb"\s*\]", self._tail) is not None or _LAST_EVENT.search(self._tail) is not None
            if closed:
                raise UnusableTrace("EmptyTrace", "the trace holds no events: nothing was running in the window")
            raise UnusableTrace("CorruptTrace", "the file ends before its first event is complete")
        # The array of events is the last whose elements are objects; a string list of warnings may follow it.
        closings = list(_LAST_EVENT.finditer(self._tail))
        end = _members(b'{"traceEvents":[' + self._tail[closings[-1].end() - 1 :]) if closings else None
        if end is None:
            raise UnusableTrace(
                "CorruptTrace", "the file is cut off: the disk was full, or the process ended while writing"
            )
        if "No Valid Trace Events" in json.dumps(end):
            raise UnusableTrace("EmptyTrace", "the profiler found no valid events in the window")
        self._ids += [str(end["trace_id"])] if "trace_id" in end else []
        if len(set(self._ids)) > 1:
            raise UnusableTrace("WrongTrace", f"the file carries several trace ids: {sorted(set(self._ids))[:4]}")
        return self._ids[0] if self._ids else ""


def _ids_of(head: bytes) -> list[str]:
    members = _members(head)
    if members is not None:
        return [str(members["trace_id"])] if "trace_id" in members else []
    # A quote in the job's name breaks the JSON before the events (docs/kineto-protocol.md#the-trace-file).
    return [found.decode(errors="replace") for found in _TRACE_ID.findall(head)]


def _members(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text.decode(errors="replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class PartedWriter:
    """Writes a file and computes its size and SHA-256, whole and per part of PART_BYTES.

    Raises UnusableTrace, OSError.
    """

    def __init__(self, file: IO[bytes], limit_bytes: int) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        self._whole = hashlib.sha256()
        self._part = hashlib.sha256()
        self.size_bytes = 0
        self.part_sizes: list[int] = []
        self.part_sha256: list[str] = []
        self._in_part = 0

    def write(self, data: bytes) -> None:
        """Appends `data`, hashing it whole and by part. Raises UnusableTrace when the spool's limit is passed."""
        if self.size_bytes + len(data) > self._limit_bytes:
            raise UnusableTrace("SpoolFull", f"the compressed trace needs more than the {self._limit_bytes} bytes left")
        self._file.write(data)
        self._whole.update(data)
        self.size_bytes += len(data)
        view = memoryview(data)
        while view:
            piece = view[: PART_BYTES - self._in_part]
            self._part.update(piece)
            self._in_part += len(piece)
            view = view[len(piece) :]
            if self._in_part == PART_BYTES:
                self._close_part()

    def finish(self) -> str:
        """Closes the last part; the SHA-256 of the whole (hex)."""
        if self._in_part:
            self._close_part()
        return self._whole.hexdigest()

    def _close_part(self) -> None:
        self.part_sizes.append(self._in_part)
        self.part_sha256.append(self._part.hexdigest())
        self._part = hashlib.sha256()
        self._in_part = 0


def compress_file(trace: IO[bytes], target: Path, *, max_trace_bytes: int, limit_bytes: int) -> CompressionResult:
    """Verifies `trace` and writes it to `target` as gzip.

    Raises UnusableTrace and OSError; then `target` is not there.
    """
    parent = os.getppid()
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    check, engine = TraceCheck(), zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    trace_bytes = 0
    try:
        with partial.open("xb") as file:
            writer = PartedWriter(file, limit_bytes)
            while chunk := trace.read(_CHUNK_BYTES):
                if os.getppid() != parent:
                    raise UnusableTrace("Internal", "the sidecar is gone")
                trace_bytes += len(chunk)
                if 0 < max_trace_bytes < trace_bytes:
                    raise UnusableTrace("TraceTooLarge", f"more than the {max_trace_bytes} bytes that were allowed")
                check.feed(chunk)
                writer.write(engine.compress(chunk))
            trace_id = check.finish()
            writer.write(engine.flush())
            sha256 = writer.finish()
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    return CompressionResult(
        failure="",
        message="",
        trace_id=trace_id,
        trace_bytes=trace_bytes,
        size_bytes=writer.size_bytes,
        sha256=sha256,
        part_sizes=writer.part_sizes,
        part_sha256=writer.part_sha256,
        optimizer_step=check.optimizer_step,
        events=check.events,
    )


def refusal(reason: str, message: str) -> CompressionResult:
    """The answer about a file that cannot be used."""
    return CompressionResult(
        failure=reason,
        message=message[:400],
        trace_id="",
        trace_bytes=0,
        size_bytes=0,
        sha256="",
        part_sizes=[],
        part_sha256=[],
        optimizer_step=False,
        events=0,
    )


def take_lowest_priority() -> None:
    """Runs this process only when nothing else wants the CPU, as far as the system lets it.

    When memory is short, the kernel ends it first.
    """
    go_first(HELPER)
    with contextlib.suppress(OSError):
        os.nice(19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    """Compresses the file on stdin and prints the CompressionResult."""
    parser = argparse.ArgumentParser(prog="python -m fleetprof_sidecar.children.compress")
    parser.add_argument("target", type=Path)
    parser.add_argument("--max-trace-bytes", type=int, default=0, help="refuse a longer trace; 0: any length")
    parser.add_argument("--limit-bytes", type=int, required=True, help="most bytes that may be written")
    arguments = parser.parse_args()
    take_lowest_priority()
    try:
        with os.fdopen(os.dup(0), "rb", buffering=0) as trace:
            answer = compress_file(
                trace, arguments.target, max_trace_bytes=arguments.max_trace_bytes, limit_bytes=arguments.limit_bytes
            )
    except UnusableTrace as problem:
        answer = refusal(problem.reason, str(problem))
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        answer = refusal("DiskFull" if full else "Internal", f"{error.strerror or error}")
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
