"""The known processes: one record for the profiler's client and the agent of each, found by any of their names.

Guarantees: no lock, no clock, no I/O; the process table calls everything here under its lock and passes the time in.
Every record is found by its id and by the address of each end that it has, and by nothing else; each change is told.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from fleetprof_sidecar.processes.agent_messages import AgentHello
from fleetprof_sidecar.processes.event_queue import EventQueue
from fleetprof_sidecar.processes.events import Changed, Gone, ProcessEvent
from fleetprof_sidecar.processes.peers import find_agent_for, find_client_for
from fleetprof_sidecar.processes.records import AgentClient, ProcessRecord, ProfilerClient
from fleetprof_sidecar.processes.roles import infer_roles
from fleetprof_sidecar.profiler import Credentials

MAX_PROCESSES: Final = 1024
_KINETO_PREFIX: Final = "dynoconfigclient"


class ProcessIndex:
    """`events` gets every change, `counters` refused_clients and refused_agents; `command_launches`: roles.py."""

    def __init__(self, events: EventQueue[ProcessEvent], counters: Counter[str], *, command_launches: bool) -> None:
        self._events = events
        self._counters = counters
        self._command_launches = command_launches
        self._by_id: dict[str, ProcessRecord] = {}
        self._by_client: dict[str, ProcessRecord] = {}
        self._by_agent: dict[str, ProcessRecord] = {}
        self._roles_stale = False  # inferred when somebody looks: a poll must not wait for it

    def __iter__(self) -> Iterator[ProcessRecord]:
        """All, in the order in which they were first seen."""
        return iter(list(self._by_id.values()))

    def get(self, process_id: str) -> ProcessRecord | None:
        """None when no process has this id."""
        return self._by_id.get(process_id)

    def of_client(self, address: str) -> ProcessRecord | None:
        """The process whose client has this address."""
        return self._by_client.get(address)

    def of_agent(self, address: str) -> ProcessRecord | None:
        """The process whose agent has this address."""
        return self._by_agent.get(address)

    def note_change(self) -> None:
        """Something is known of a process that roles depend on."""
        self._roles_stale = True

    def add_client(
        self, address: str, pids: tuple[int, ...], credentials: Credentials, now: int
    ) -> ProcessRecord | None:
        """A new client of a profiler: the record of its process. None: it is refused, and counted."""
        name = PurePosixPath(address).name
        client = ProfilerClient(address, pids, credentials)
        process, impostors = find_agent_for(name, client, self._by_id.values())
        for impostor in impostors:  # the client gets its own record
            self._counters["refused_agents"] += 1
            self.remove(impostor, now)
        process_id = name.removeprefix(_KINETO_PREFIX)
        if process is not None and process.agent is not None and process.agent.hello.waits:
            self._rename(process, process_id, now)
        if process is None:
            if len(self._by_id) >= MAX_PROCESSES or process_id in self._by_id:
                self._counters["refused_clients"] += 1
                return None
            process = self._by_id[process_id] = ProcessRecord(process_id, now)
        process.client = client
        self._by_client[address] = process
        self._events.put(Changed(process.process_id, now))
        self._roles_stale = True
        return process

    def add_agent(self, address: str, hello: AgentHello, credentials: Credentials, now: int) -> ProcessRecord | None:
        """A new agent: the record of its process. None: it is refused, and counted."""
        agent = AgentClient(address, hello.pid, credentials, hello)
        process = find_client_for(agent, self._by_id.values())
        if process is None:
            # Named after Kineto's socket when it is known, so that the id is the same after a restart of the sidecar.
            process_id = hello.kineto.removeprefix(_KINETO_PREFIX) or PurePosixPath(address).name
            if len(self._by_id) >= MAX_PROCESSES or process_id in self._by_id:
                self._counters["refused_agents"] += 1
                return None
            process = self._by_id[process_id] = ProcessRecord(process_id, now)
        process.agent = agent
        process.take_hello(hello)
        self._roles_stale = True
        self._by_agent[address] = process
        self._events.put(Changed(process.process_id, now))
        return process

    def remove(self, process: ProcessRecord, now: int) -> None:
        """The process has ended."""
        del self._by_id[process.process_id]
        if process.client is not None:
            self._by_client.pop(process.client.address, None)
        if process.agent is not None:
            self._by_agent.pop(process.agent.address, None)
        self._roles_stale = True
        self._events.put(Gone(process.process_id, now, process.orderly_end))

    def _rename(self, process: ProcessRecord, process_id: str, now: int) -> None:
        """Its agent spoke before Kineto's socket was there: no order and no rank has named it yet."""
        if process_id in self._by_id:
            return
        del self._by_id[process.process_id]
        self._events.put(Gone(process.process_id, now, orderly_end=False))
        process.process_id = process_id
        self._by_id[process_id] = process

    def drop_agent(self, process: ProcessRecord, now: int) -> None:
        """The agent has left its process."""
        if process.agent is not None:
            self._by_agent.pop(process.agent.address, None)
            process.agent = None
            self._events.put(Changed(process.process_id, now))

    def refresh_roles(self, now: int) -> None:
        """Infers them anew if something has changed since."""
        if self._roles_stale:
            self.infer_roles(now)

    def infer_roles(self, now: int) -> None:
        """Decides every process's role from what is known now."""
        self._roles_stale = False
        evidence = [process.evidence(now) for process in self._by_id.values()]
        verdicts = infer_roles(evidence, command_launches=self._command_launches)
        for process in self._by_id.values():
            verdict = verdicts[process.process_id]
            if verdict != process.verdict:
                process.verdict = verdict
                self._events.put(Changed(process.process_id, now))
