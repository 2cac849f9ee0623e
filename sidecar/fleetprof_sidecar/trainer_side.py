"""Everything that faces the trainers, made and ended together: directory, table, two endpoints, housekeeping.

Guarantees: after `start` every poll is answered; after `stop` no socket and no thread is left, and every event that
happened has been handed out.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fleetprof_agent import wire

from fleetprof_sidecar.processes.table import ProcessTable
from fleetprof_sidecar.profiler import Profiler
from fleetprof_sidecar.sockets.agent_endpoint import AgentEndpoint, make_agent_socket
from fleetprof_sidecar.sockets.directory import SocketDirectory
from fleetprof_sidecar.sockets.housekeeping import Housekeeping
from fleetprof_sidecar.sockets.kineto_profiler import KinetoProfiler

SWITCH_INTERVAL_S: Final = 0.0005
"""How long another thread of the sidecar may keep the interpreter while an answer waits, three times per answer.

With Python's default of 5 ms an answer took 32 ms (p99) beside a computing thread, with this 4 ms; Kineto waits 20 ms.
"""


class TrainerSide:
    """Serves the directory `path` between `start` and `stop`; subscribe to `table.events` before `start`."""

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], int] = time.time_ns,
        allowed_uids: frozenset[int] | None = None,
        command_launches: bool = False,
        agent: Path | None = None,
        profiler: Profiler | None = None,
    ) -> None:
        self.profiler: Profiler = profiler or KinetoProfiler()
        self.directory = SocketDirectory(path, agent)
        self._agent_socket = agent_socket = make_agent_socket(str(self.directory.path))
        self.table = ProcessTable(agent_socket, clock, command_launches=command_launches, profiler=self.profiler.facts)
        self._polls = self.profiler.listen(str(self.directory.path), self.table, allowed_uids)
        self._agents = AgentEndpoint(agent_socket, self.table, allowed_uids)
        self._housekeeping = Housekeeping(self.table, self.directory)

    def start(self) -> None:
        """Prepares the directory, then binds and serves. Raises UnusableDirectory, SocketInUse, OSError."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self.directory.prepare()
        self._housekeeping.start()
        try:
            self._agents.start()
            self._polls.start()
        except OSError:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends all threads and removes the sockets. May be repeated."""
        self._polls.stop()
        self._agents.stop()
        self._housekeeping.stop()
        self.directory.close()

    def ask_for_stacks(self, question: str) -> int:
        """Sends a question to each listener that is there, known or not; to how many."""
        data, sockets = wire.encode("look", query=question), self.directory.find_listeners()
        return sum(self._agent_socket.send(data, address) for address in sockets)

    @property
    def counters(self) -> dict[str, Counter[str]]:
        """Counts of what was refused, lost or wrong, by where it was seen: profiler, agents, table."""
        return {
            self.profiler.facts.name: self._polls.counters,
            "agents": self._agents.counters,
            "table": self.table.counters,
        }
