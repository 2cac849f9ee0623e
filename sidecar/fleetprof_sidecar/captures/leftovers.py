"""Files in the traces directory that no capture waits for: they go, but never from under a Kineto that writes.

Guarantees: a finished file, or one whose process is gone or at rest, is deleted when it belongs to a capture that is
over; what nobody knows goes after a while.
"""

from collections.abc import Callable, Iterable
from typing import Final

from fleetprof_sidecar.capture.process_capture import ProcessCapture
from fleetprof_sidecar.captures.traces_directory import ORPHAN_AGE_NS, TraceFile, TracesDirectory
from fleetprof_sidecar.processes.ports import Processes

# Files of captures that are over are looked for this long: the window ends, Kineto writes, then there is no more.
_AFTERMATH_NS: Final = 300_000_000_000


class Leftovers:
    """For the captures of one sidecar; times are Unix nanoseconds."""

    def __init__(self, traces: TracesDirectory, processes: Processes) -> None:
        self._traces = traces
        self._processes = processes
        self._expected: dict[str, tuple[str, int]] = {}  # trace ids whose files are to go: the process, until when

    @property
    def are_expected(self) -> bool:
        """Tells whether the directory is worth looking at for their sake."""
        return bool(self._expected)

    def expect(self, capture: ProcessCapture, now_unix_ns: int) -> None:
        """The capture is over, and Kineto may still write for it."""
        self._expected[capture.terms.trace_id] = (capture.terms.process_id, now_unix_ns + _AFTERMATH_NS)

    def clear_away(self, file: TraceFile, captures: Iterable[ProcessCapture], now_unix_ns: int) -> None:
        """Deletes a file that none of `captures` waits for, when that can be done."""
        processes = [capture.terms.process_id for capture in captures if capture.terms.trace_id == file.stem]
        if file.stem in self._expected:
            processes.append(self._expected[file.stem][0])
        over = bool(processes) and (file.finished or all(self._is_at_rest(p, file) for p in processes))
        if over or now_unix_ns - file.modified_unix_ns > ORPHAN_AGE_NS:
            self._traces.delete(file.name)

    def drop_finished(self, capture: ProcessCapture, is_awaited: Callable[[TraceFile], bool]) -> None:
        """Deletes the finished files of a capture that is over."""
        for file in self._traces.scan():
            if file.finished and file.stem == capture.terms.trace_id and not is_awaited(file):
                self._traces.delete(file.name)

    def forget(self, now_unix_ns: int) -> None:
        """Expects no more what should have come long ago."""
        for trace_id in [trace_id for trace_id, (_, until) in self._expected.items() if until < now_unix_ns]:
            del self._expected[trace_id]

    def _is_at_rest(self, process_id: str, file: TraceFile) -> bool:
        """Tells whether Kineto will not write this file any more: the process is gone, or idle since it began it."""
        view = self._processes.get(process_id)
        if view is None:
            return True
        return not view.busy and view.last_poll_unix_ns > file.modified_unix_ns + view.poll_interval_ns
