"""The processes that this sidecar serves: one record joins a process's client, which asks for orders, and its agent.

Guarantees: thread-safe; a record is keyed by socket addresses, never by a pid (containers of one pod repeat pids);
`process_id` stays the same from the process's first poll on, and across a restart of the sidecar when its socket
is known, because it is made from that socket's name. A config leaves only in answer to an idle poll, at most once, to a
process that may have one: a trainer, or one of unknown role that the caller chose explicitly (roles.py says which can
be chosen); never a launcher or a worker. Nothing here blocks, reads a file or calls a subscriber: events are queued,
and housekeeping.py hands them out and brings what /proc and the sockets say.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from fleetprof_agent import wire
from fleetprof_api.profiler import KINETO, ProfilerFacts

from fleetprof_sidecar.processes.agent_messages import (
    AgentDatagram,
    AgentHello,
    AgentProfile,
    AgentReport,
    AgentSteps,
)
from fleetprof_sidecar.processes.event_queue import EventQueue
from fleetprof_sidecar.processes.events import (
    AgentMessage,
    BusyChanged,
    Changed,
    Delivered,
    Expired,
    OwnProfileBegan,
    ProcessEvent,
)
from fleetprof_sidecar.processes.index import ProcessIndex
from fleetprof_sidecar.processes.ports import AgentSender
from fleetprof_sidecar.processes.records import Order, ProcessRecord
from fleetprof_sidecar.processes.roles import Environment, Role
from fleetprof_sidecar.processes.views import OrderRefused, ProcessView, Whereabouts
from fleetprof_sidecar.profiler import Credentials, Poll


class ProcessTable:
    """See the module. All times are Unix nanoseconds of `clock`; everything may be called from any thread.

    `events`: what happens to the processes, for who subscribes there; housekeeping hands it out.
    """

    def __init__(
        self,
        agents: AgentSender,
        clock: Callable[[], int] = time.time_ns,
        *,
        command_launches: bool = False,
        profiler: ProfilerFacts = KINETO,
    ) -> None:
        """`agents`: where messages to agents go; `command_launches`: see roles.infer_roles; `profiler`: who polls."""
        self._agents = agents
        self._clock = clock
        self._lead_steps = profiler.steps_before_first
        self._lock = threading.RLock()
        self.counters: Counter[str] = Counter()
        self.events: EventQueue[ProcessEvent] = EventQueue(self.counters)
        self.processes = ProcessIndex(self.events, self.counters, command_launches=command_launches)

    # ------------------------------------------------------------ for the capture side

    def snapshot(self) -> list[ProcessView]:
        """All processes, in the order in which they were first seen."""
        now = self._clock()
        with self._lock:
            self.processes.refresh_roles(now)
            return [process.view(now) for process in self.processes]

    def get(self, process_id: str) -> ProcessView | None:
        """One process, or None when it is gone or was never here."""
        now = self._clock()
        with self._lock:
            self.processes.refresh_roles(now)
            process = self.processes.get(process_id)
            return None if process is None else process.view(now)

    def place_order(
        self,
        process_id: str,
        config: str,
        deliver_until_unix_ns: int,
        first_step: int | None,
        *,
        warmup_steps: int = 0,
        chosen: bool = False,
    ) -> None:
        """Has `config` given to the process at its next idle poll; ends in Delivered, Expired or Gone.

        `first_step`: F, the first complete step that is wanted, in KinetoStepTracker's count (None for a start by
        time); the order expires with why "step" once the process is too far for Kineto to begin to warm up
        `warmup_steps` before F - 2: it would shift the window without a word (measured, PyTorch 2.13 and 2.15).
        `chosen`: the caller takes this process although its role is unknown (`ProcessView.candidate` says whether
        that is possible).
        Raises OrderRefused with reason Unknown, Launcher, Worker, NotChosen, NotPolling, NotStepping, ProfilesItself or
        Outstanding.
        """
        now = self._clock()
        with self._lock:
            self.processes.infer_roles(now)
            process = self.processes.get(process_id)
            if process is None:
                raise OrderRefused("Unknown", f"no process {process_id!r} is here; it may have ended")
            process.check_order(now, first_step, chosen=chosen)
            last_step = None if first_step is None else first_step - self._lead_steps - warmup_steps - 1
            process.order = Order(config, deliver_until_unix_ns, last_step, saw_own_profile=bool(process.own_profile))

    def withdraw_order(self, process_id: str) -> bool:
        """Takes an order back. True when there was one that had not been delivered."""
        with self._lock:
            process = self.processes.get(process_id)
            if process is None or process.order is None:
                return False
            process.order = None
            return True

    def send_to_agent(self, process_id: str, kind: str, **fields: Any) -> bool:
        """Sends one message of wire.TO_AGENT. False when the process has no agent or its socket took nothing."""
        if kind not in wire.TO_AGENT:
            raise ValueError(f"{kind!r} is not a message to an agent")
        data = wire.encode(kind, **fields)
        with self._lock:
            process = self.processes.get(process_id)
            agent = process.agent if process is not None and process.has_agent else None
            address = agent.address if agent is not None else ""
        return bool(address) and self._agents.send(data, address)

    def mark_trainer(self, process_id: str) -> None:
        """A trace of this process holds an optimizer step: it is a trainer from now on."""
        with self._lock:
            process = self.processes.get(process_id)
            if process is not None:
                process.stepped = True
                self.processes.note_change()

    # ------------------------------------------------------------ for the endpoints

    def record_poll(
        self,
        address: str,
        request: Poll,
        credentials: Credentials,
        send: Callable[[str], bool],
        waited_ns: int = 0,
    ) -> None:
        """A client asked for a config so long ago: answers through `send` (config or "") exactly once.

        `send` must not block; it returns whether the kernel took the datagram. It is called under the lock, so that an
        order is delivered or withdrawn and never both.
        """
        now = self._clock()
        with self._lock:
            process = self.processes.of_client(address)
            if process is None:
                process = self.processes.add_client(address, request.pids, credentials, now)
            if process is None or process.client is None:
                send("")
                return
            if process.client.credentials != credentials:
                # The path was taken over by somebody else after its owner: not the process that was registered.
                self.counters["credentials_changed"] += 1
                send("")
                return
            process.client.note_poll(now - waited_ns)
            if process.client.busy is request.idle:
                process.take_busy(not request.idle, now)
                step = process.step.step if process.step is not None else None
                self.events.put(BusyChanged(process.process_id, process.client.busy, now, step))
            order = self._deliverable(process, request.idle and not process.own_profile, now)
            if order is None:
                send("")
            elif send(order.config):
                process.order = None
                process.last_delivery_unix_ns = now
                self.events.put(Delivered(process.process_id, now))
            else:
                self.counters["undelivered"] += 1

    def record_agent(self, address: str, message: AgentDatagram, credentials: Credentials) -> None:
        """An agent spoke. What it says is believed only of the process whose credentials it shares."""
        now = self._clock()
        with self._lock:
            process = self.processes.of_agent(address)
            if (
                process is not None
                and process.agent is not None
                and (process.agent.credentials != credentials or process.agent.pid != message.pid)
            ):
                self.counters["credentials_changed"] += 1
                return
            is_known = process is not None and (process.has_agent or (process.agent is not None and _answers(message)))
            if not isinstance(message, AgentHello) and not is_known:
                # Its hello was lost, or the sidecar is new here: a query brings the next one.
                self._agents.send(wire.encode("query"), address)
                return
            if process is None and isinstance(message, AgentHello):
                process = self.processes.add_agent(address, message, credentials, now)
            if process is None or process.agent is None:
                return
            match message:
                case AgentHello():
                    if process.agent.hello != message:
                        process.take_hello(message)
                        self.processes.note_change()
                        self.events.put(Changed(process.process_id, now))
                case AgentSteps():
                    can_begin_with_step = process.take_steps(message)
                    self._note_own_profile(process, message.own_profile, now)
                    if can_begin_with_step:
                        self.events.put(Changed(process.process_id, now))
                case AgentProfile():
                    self._note_own_profile(process, message.own_profile, now)
                case AgentReport():
                    process.orderly_end = process.orderly_end or message.kind == "bye"
                    self.events.put(AgentMessage(process.process_id, {"t": message.kind, **message.fields}))

    # ------------------------------------------------------------ for housekeeping

    def expire(self) -> None:
        """Ends the orders whose time is over and the processes that fell silent for too long; settles open roles."""
        now = self._clock()
        with self._lock:
            for process in self.processes:
                order = process.order
                if order is not None and now >= order.deliver_until_unix_ns:
                    self._drop_order(process, order.missed, now)
                if process.is_lost(now):
                    self.processes.remove(process, now)
            self.processes.infer_roles(now)

    def whereabouts(self) -> list[Whereabouts]:
        """The places where each process can be looked at from outside."""
        with self._lock:
            return [process.whereabouts() for process in self.processes]

    def record_environment(self, process_id: str, environment: Environment | None) -> None:
        """Records the facts of /proc about a process; None: not visible from here."""
        with self._lock:
            process = self.processes.get(process_id)
            if process is not None:
                process.environment = environment
                process.examined = True
                self.processes.note_change()

    def record_headroom(self, process_id: str, headroom_bytes: int) -> None:
        """Records the memory that a process without an agent may still take of memory, as seen from here."""
        with self._lock:
            process = self.processes.get(process_id)
            if process is not None:
                process.headroom_bytes = headroom_bytes

    def record_exit(self, process_id: str) -> None:
        """The process is known to have ended."""
        with self._lock:
            process = self.processes.get(process_id)
            if process is not None:
                self.processes.remove(process, self._clock())

    def record_agent_exit(self, process_id: str, agent_address: str) -> None:
        """The agent's socket is closed; a process that has no client is gone with it."""
        with self._lock:
            process = self.processes.get(process_id)
            if process is None or process.agent is None or process.agent.address != agent_address:
                return
            if process.client is None:
                self.processes.remove(process, self._clock())
                return
            self.processes.drop_agent(process, self._clock())

    # ------------------------------------------------------------ inside, all under the lock

    def _note_own_profile(self, process: ProcessRecord, phase: str, now: int) -> None:
        if process.take_own_profile(phase):
            self.events.put(OwnProfileBegan(process.process_id, now) if phase else Changed(process.process_id, now))

    def _deliverable(self, process: ProcessRecord, idle: bool, now: int) -> Order | None:
        order = process.order
        if order is None:
            return None
        if why := order.obstacle(idle, process.step, now):
            self._drop_order(process, why, now)
            return None
        if process.is_in_danger:
            self._drop_order(process, "own", now)
            return None
        self.processes.refresh_roles(now)
        if process.verdict.role in (Role.LAUNCHER, Role.WORKER):
            # It showed what it is only after the order was placed.
            self._drop_order(process, "role", now)
            return None
        return order if idle else None

    def _drop_order(self, process: ProcessRecord, why: str, now: int) -> None:
        process.order = None
        last_poll_unix_ns = process.client.last_poll_unix_ns if process.client is not None and process.polls(now) else 0
        self.events.put(Expired(process.process_id, why, now, last_poll_unix_ns))


def _answers(message: AgentDatagram) -> bool:
    """Tells whether it belongs to an answer about stacks, which is asked for before the first step too."""
    return isinstance(message, AgentReport) and bool(message.fields.get("query"))
