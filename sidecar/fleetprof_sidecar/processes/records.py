"""The process table's record of one process, and what follows from that alone.

Guarantees: no clock, no lock, no I/O; the table calls everything here under its lock and passes the time in.
"""

from dataclasses import dataclass, field
from typing import Final

from fleetprof_sidecar.processes.agent_messages import AgentHello, AgentSteps
from fleetprof_sidecar.processes.mean_pace import MeanPace
from fleetprof_sidecar.processes.rhythm import PollRhythm
from fleetprof_sidecar.processes.roles import Environment, Role, RoleEvidence, RoleVerdict
from fleetprof_sidecar.processes.views import OrderRefused, ProcessView, StepView, Whereabouts
from fleetprof_sidecar.profiler import Credentials

SETTLED_NS: Final = 10 * 10**9
LOST_NS: Final = 12 * 10**9
LOST_INTERVALS: Final = 3
LOST_WITH_AGENT_NS: Final = 3600 * 10**9  # a child that was forked behind Python's back may keep the agent's socket
BUSY_PATIENCE: Final = 5  # a process that traces gets this many times longer before its silence counts as its end
OURS_NS: Final = 120 * 10**9  # from an order's delivery to the end of what it began, at the latest
_UNDECIDED: Final = RoleVerdict(Role.UNKNOWN, candidate=False)


@dataclass(slots=True)
class Order:
    """A config that waits for its process's next idle poll."""

    config: str
    deliver_until_unix_ns: int
    last_delivery_step: int | None  # Kineto would begin later than asked when it hears of it after this step
    saw_busy: bool = False
    saw_own_profile: bool = False

    def obstacle(self, idle: bool, step: StepView | None, now_unix_ns: int) -> str:
        """The reason why it can never be given any more: "time", "busy", "own" or "step"; "" while it can."""
        self.saw_busy = self.saw_busy or not idle
        if now_unix_ns >= self.deliver_until_unix_ns:
            return self.missed
        if idle and self.last_delivery_step is not None and step is not None:
            too_far = step.latest_step(now_unix_ns) > self.last_delivery_step
            return ("own" if self.saw_own_profile else "step") if too_far else ""
        return ""

    @property
    def missed(self) -> str:
        """The reason why its time is over."""
        if self.saw_own_profile:
            return "own"
        return "busy" if self.saw_busy else "time"


@dataclass(slots=True)
class ProfilerClient:
    """A process's socket, by which it asks for orders. `pids`: itself, then its ancestors, in its own pid namespace."""

    address: str
    pids: tuple[int, ...]
    credentials: Credentials
    busy: bool = False
    last_poll_unix_ns: int = 0
    rhythm: PollRhythm = field(default_factory=PollRhythm)

    def note_poll(self, now_unix_ns: int) -> None:
        """Notes when it polled, and learns its rhythm from it."""
        if self.last_poll_unix_ns:
            self.rhythm.note(now_unix_ns - self.last_poll_unix_ns)
        self.last_poll_unix_ns = now_unix_ns

    def is_silent(self, now_unix_ns: int) -> bool:
        """Tells whether it has not polled for so long that the process must have ended."""
        patience = max(LOST_NS, int(LOST_INTERVALS * self.rhythm.interval_ns))
        return now_unix_ns - self.last_poll_unix_ns > (patience * BUSY_PATIENCE if self.busy else patience)


@dataclass(slots=True)
class AgentClient:
    """A process's agent. `pid`: in its own pid namespace."""

    address: str
    pid: int
    credentials: Credentials
    hello: AgentHello
    step: StepView | None = None
    headroom_bytes: int = 0
    own_profile: str = ""
    pace: MeanPace = field(default_factory=MeanPace)


def is_same_process(client: ProfilerClient, agent: AgentClient) -> bool:
    """Tells whether both ends can be one process's: its own word on the pid and the kernel's on pid and uid agree."""
    return client.pids[0] == agent.pid and client.credentials == agent.credentials


@dataclass(slots=True)
class ProcessRecord:
    """One process; it has a client of its profiler or an agent, usually both."""

    process_id: str
    first_seen_unix_ns: int
    client: ProfilerClient | None = None
    agent: AgentClient | None = None
    environment: Environment | None = None
    examined: bool = False
    stepped: bool = False  # it has stepped an optimizer at some time: nothing but a trainer does
    orderly_end: bool = False
    verdict: RoleVerdict = _UNDECIDED
    order: Order | None = None
    headroom_bytes: int = 0  # of memory, as seen from here; its agent knows better
    last_delivery_unix_ns: int = 0
    profiles_itself: bool = False  # a profile of the job's own was seen at some time

    @property
    def credentials(self) -> Credentials:
        """The kernel's word on who it is."""
        peer = self.client or self.agent
        assert peer is not None
        return peer.credentials

    @property
    def step(self) -> StepView | None:
        """Its progress, if an agent reports it."""
        return self.agent.step if self.agent is not None else None

    @property
    def own_profile(self) -> str:
        """The state of the job's own profiler, if an agent says it."""
        return self.agent.own_profile if self.agent is not None else ""

    @property
    def is_in_danger(self) -> bool:
        """Tells whether a trace of ours could meet the job's own profile, and no agent would keep them apart.

        Kineto dies of a profile that begins while an on-demand trace is being ended (fleetprof_agent.profiler.kineto).
        """
        return self.profiles_itself and not self.has_agent

    def take_own_profile(self, phase: str) -> bool:
        """Its agent says what the job's own profiler is at. True when that has begun or ended."""
        assert self.agent is not None
        changes = bool(phase) is not bool(self.agent.own_profile)
        self.agent.own_profile = phase
        self.profiles_itself = self.profiles_itself or bool(phase)
        if self.order is not None and phase:
            self.order.saw_own_profile = True
        return changes

    def take_busy(self, busy: bool, now_unix_ns: int) -> None:
        """The profiler's slot is taken, or free again: long after our last order, and before the first, not by us."""
        assert self.client is not None
        self.client.busy = busy
        if busy and now_unix_ns - self.last_delivery_unix_ns > OURS_NS:
            self.profiles_itself = True

    @property
    def has_agent(self) -> bool:
        """Tells whether an agent serves it: from its first optimizer step on."""
        return self.agent is not None and not self.agent.hello.waits

    @property
    def pids(self) -> tuple[int, ...]:
        """Itself and its ancestors as far as they are known; an agent knows its parent only."""
        if self.client is not None:
            return self.client.pids
        assert self.agent is not None
        return self.agent.pid, self.agent.hello.ppid

    def take_hello(self, hello: AgentHello) -> None:
        """Its agent says who it is, and from the first optimizer step on that it is a trainer."""
        assert self.agent is not None
        self.agent.hello = hello
        self.stepped = self.stepped or not hello.waits

    def take_steps(self, steps: AgentSteps) -> bool:
        """Its agent tells its progress. True when from now on a capture can begin with a step of it."""
        assert self.agent is not None
        before, self.agent.headroom_bytes = self.agent.step, steps.headroom_bytes
        self.agent.pace.note(steps.step, steps.at_unix_ns)
        self.agent.step = StepView(
            steps.step,
            steps.at_unix_ns,
            steps.iteration_ns,
            steps.per_iteration,
            steps.fastest_iteration_ns,
            self.agent.pace.step_ns,
        )
        return bool(steps.iteration_ns) and (before is None or not before.iteration_ns)

    def polls(self, now_unix_ns: int) -> bool:
        """Tells whether it asks for configs."""
        return self.client is not None and not self.client.is_silent(now_unix_ns)

    def is_lost(self, now_unix_ns: int) -> bool:
        """Tells whether it fell silent for good. An agent alone may be silent: its socket tells when it is gone.

        One that is stopped by a signal is silent, and is there.
        """
        if self.client is None or not self.client.is_silent(now_unix_ns):
            return False
        return not self.has_agent or now_unix_ns - self.client.last_poll_unix_ns > LOST_WITH_AGENT_NS

    def check_order(self, now_unix_ns: int, first_step: int | None, *, chosen: bool) -> None:
        """Raises OrderRefused when it may not be given an order; see ProcessTable.place_order."""
        name, role = self.process_id, self.verdict.role
        if role is Role.LAUNCHER:
            raise OrderRefused("Launcher", f"process {name} starts other training processes; it is never traced")
        if role is Role.WORKER:
            raise OrderRefused("Worker", f"process {name} works for a training process; it is never traced")
        if not self.verdict.candidate:
            raise OrderRefused(
                "NotChosen",
                f"nothing shows yet that process {name} is a training process and not a launcher or a data-loader "
                "worker; load the agent in it, or try again when it has been here for 10 s",
            )
        if role is Role.UNKNOWN and not chosen:
            raise OrderRefused("NotChosen", f"the role of process {name} is unknown; choose it explicitly")
        if not self.polls(now_unix_ns):
            raise OrderRefused(
                "NotPolling", f"process {name} does not ask for configs; is KINETO_USE_DAEMON=1 set in it?"
            )
        if first_step is not None and (self.step is None or self.step.step < 1):
            # Kineto would make it a trace by time: 500 ms, seconds later.
            raise OrderRefused(
                "NotStepping", f"process {name} has not reported an optimizer step; start by time instead"
            )
        if self.is_in_danger:
            raise OrderRefused(
                "ProfilesItself",
                f"process {name} profiles itself, and a trace of ours that meets its profile may end the job where "
                "nothing keeps them apart; load the agent",
            )
        if self.order is not None:
            raise OrderRefused("Outstanding", f"another order for process {name} is not delivered yet")

    def evidence(self, now_unix_ns: int) -> RoleEvidence:
        """The facts that its role is inferred from."""
        return RoleEvidence(
            key=self.process_id,
            pids=self.pids,
            stepped=self.stepped,
            settled=now_unix_ns - self.first_seen_unix_ns >= SETTLED_NS,
            environment=self.environment,
        )

    def whereabouts(self) -> Whereabouts:
        """The places where it can be looked at from outside."""
        return Whereabouts(
            self.process_id,
            self.client.address if self.client is not None else "",
            self.agent.address if self.agent is not None else "",
            self.credentials.pid,
            self.examined,
        )

    def view(self, now_unix_ns: int) -> ProcessView:
        """The view for others. The agent's word on the rank is better than the environment's."""
        client, agent = self.client, self.agent
        hello = agent.hello if agent is not None else None
        environment = self.environment or Environment()
        # An agent that waits knows the same variables, and alone does where /proc cannot be seen.
        inherited = environment if environment.rank is not None or hello is None else hello
        rank, local_rank, world_size, source = None, None, None, "RANK_UNKNOWN"
        if hello is not None and hello.rank is not None and self.has_agent:
            rank, local_rank, world_size, source = hello.rank, hello.local_rank, hello.world_size, "RANK_AGENT"
        elif inherited.rank is not None and self.verdict.role is not Role.WORKER:
            rank, local_rank, world_size = inherited.rank, inherited.local_rank, inherited.world_size
            source = "RANK_ENVIRON"
        return ProcessView(
            process_id=self.process_id,
            pid=self.pids[0],
            uid=self.credentials.uid,
            role=self.verdict.role,
            candidate=self.verdict.candidate,
            rank=rank,
            local_rank=local_rank,
            world_size=world_size,
            rank_source=source,
            polls_kineto=self.polls(now_unix_ns),
            has_agent=self.has_agent,
            agent_waits=hello is not None and hello.waits,
            busy=(client is not None and client.busy) or bool(self.own_profile),
            own_profile=self.own_profile,
            profiles_itself=self.profiles_itself,
            torch_version=hello.torch if hello is not None else "",
            python_version=hello.python if hello is not None else "",
            device_kind=hello.device_kind if hello is not None else "",
            device_name=hello.device_name if hello is not None else "",
            device_uuid=hello.device_uuid if hello is not None else "",
            host_name=hello.host if hello is not None else "",
            restart_count=hello.restart_count if hello is not None else environment.restart_count,
            first_seen_unix_ns=self.first_seen_unix_ns,
            last_poll_unix_ns=client.last_poll_unix_ns if client is not None else 0,
            poll_interval_ns=int(client.rhythm.interval_ns) if client is not None else 0,
            poll_lateness_ns=int(client.rhythm.lateness_ns) if client is not None else 0,
            polls_steadily=client is not None and client.rhythm.is_steady,
            step=self.step,
            memory_headroom_bytes=agent.headroom_bytes if agent is not None else self.headroom_bytes,
        )
