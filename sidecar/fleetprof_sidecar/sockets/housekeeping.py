"""The slow half of the trainer side, in one thread: tells subscribers what happened, and finds what polls do not show.

Guarantees: events reach the subscribers in order and within moments; a process's end is noticed about a second later
where its pid or its socket file shows it; /proc is read here, never by the thread that answers Kineto.
"""

import threading
import time
from typing import Final

from fleetprof_agent.process.memory import ProcessMemory

from fleetprof_sidecar.processes.proc_files import read_environment
from fleetprof_sidecar.processes.table import ProcessTable
from fleetprof_sidecar.processes.views import Whereabouts
from fleetprof_sidecar.sockets.directory import SocketDirectory
from fleetprof_sidecar.sockets.liveness import ProcessHandle, has_listener

LOOK_EVERY_S: Final = 1.0
COLLECT_EVERY_S: Final = 60.0
MEMORY_EVERY_S: Final = 10.0


class Housekeeping:
    """Serves one table between `start` and `stop`."""

    def __init__(self, table: ProcessTable, directory: SocketDirectory) -> None:
        self._table = table
        self._directory = directory
        self._handles: dict[str, ProcessHandle] = {}
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to look and to dispatch."""
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="housekeeping", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the events that wait. May be repeated."""
        if self._thread is None:
            return
        self._stopping = True
        self._table.events.wake()
        self._thread.join()
        self._thread = None
        for handle in self._handles.values():
            handle.close()
        self._handles.clear()

    def _serve(self) -> None:
        look_at = collect_at = memory_at = time.monotonic()
        while not self._stopping:
            self._table.events.wait(max(0.0, look_at - time.monotonic()))
            self._table.events.dispatch()
            now = time.monotonic()
            if now >= look_at:
                look_at = now + LOOK_EVERY_S
                self.look()
            if now >= memory_at:
                memory_at = now + MEMORY_EVERY_S
                self.look_at_memory()
            if now >= collect_at:
                collect_at = now + COLLECT_EVERY_S
                self._directory.collect_garbage()
        self._table.events.dispatch()

    def look(self) -> None:
        """Looks once at every process from outside, and lets time pass in the table."""
        here = self._table.whereabouts()
        for process in here:
            self._look_at(process)
        known = {process.process_id for process in here}
        for process_id in [process_id for process_id in self._handles if process_id not in known]:
            self._handles.pop(process_id).close()
        self._table.expire()

    def look_at_memory(self) -> None:
        """Reads what processes without an agent may still take, where their pid is one of ours."""
        for process in self._table.whereabouts():
            if process.visible_pid and not process.agent_address:
                headroom = ProcessMemory(process.visible_pid).headroom_bytes()
                self._table.record_headroom(process.process_id, headroom)

    def _look_at(self, process: Whereabouts) -> None:
        if not process.examined:
            self._table.record_environment(process.process_id, read_environment(process.visible_pid))
        handle = self._handles.get(process.process_id)
        if handle is None or handle.pid != process.visible_pid:
            if handle is not None:
                handle.close()
            handle = self._handles[process.process_id] = ProcessHandle(process.visible_pid)
        if handle.has_exited() or (process.client_address and has_listener(process.client_address) is False):
            self._table.record_exit(process.process_id)
        elif process.agent_address and not has_listener(process.agent_address):
            self._table.record_agent_exit(process.process_id, process.agent_address)
