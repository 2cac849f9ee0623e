"""A process table on a clock of the test's, with the processes' ends of its datagrams."""

from typing import Any, TypeVar

from fleetprof_sidecar.kineto.wire import RequestMessage
from fleetprof_sidecar.processes.agent_messages import AgentHello, AgentProfile, AgentReport, AgentSteps
from fleetprof_sidecar.processes.table import ProcessTable
from fleetprof_sidecar.processes.views import ProcessView
from fleetprof_sidecar.profiler import Credentials

S = 10**9
OWN = Credentials(0, 1000)  # as seen across containers

E = TypeVar("E")


class RecordedAgents:
    """The agents' socket: keeps what is sent, with the address."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, str]] = []

    def send(self, data: bytes, address: str) -> bool:
        self.sent.append((data, address))
        return True


class World:
    """A table, its clock, and the processes' ends of the datagrams."""

    def __init__(self) -> None:
        self.now = 1_000 * S
        self.agents = RecordedAgents()
        self.table = ProcessTable(self.agents, lambda: self.now)
        self.events: list[object] = []
        self.table.events.subscribe(self.events.append)
        self.configs: list[tuple[str, str]] = []
        self.clients: set[str] = set()  # every address that a Kineto client has had, and
        self.hellos: set[str] = set()  # an agent

    def poll(self, name: str, *pids: int, idle: bool = True, credentials: Credentials = OWN, taken: bool = True) -> str:
        """One request; the config that came with the answer."""
        answers = []

        def send(config: str) -> bool:
            answers.append(config)
            return taken

        request = RequestMessage(2 if idle else 0, 0, pids or (7,))
        address = f"/run/fp/dynoconfigclient{name}"
        self.clients.add(address)
        self.table.record_poll(address, request, credentials, send)
        assert len(answers) == 1
        if answers[0] and taken:
            self.configs.append((name, answers[0]))
        return answers[0]

    def hello(self, token: str, pid: int = 7, kineto: str = "", credentials: Credentials = OWN, **known: Any) -> None:
        fields: dict[str, Any] = dict.fromkeys(("rank", "local_rank", "world_size"))
        fields |= dict.fromkeys(("role", "torch", "python", "device_kind", "device_name", "device_uuid", "host"), "")
        fields |= {"ppid": 1, "uid": 1000, "restart_count": 0, "started_unix_ns": 0}
        kineto = f"dynoconfigclient{kineto}" if kineto else ""
        message = AgentHello(**{**fields, "pid": pid, "kineto": kineto, **known})
        address = f"/run/fp/fleetprofagent{token}"
        self.hellos.add(address)
        self.table.record_agent(address, message, credentials)

    def say(self, token: str, message: AgentSteps | AgentProfile | AgentReport) -> None:
        self.table.record_agent(f"/run/fp/fleetprofagent{token}", message, OWN)

    def steps(
        self,
        token: str,
        step: int,
        iteration_ns: int = S // 10,
        pid: int = 7,
        per_iteration: int = 1,
        own_profile: str = "",
    ) -> None:
        self.say(token, AgentSteps(pid, step, self.now, iteration_ns, per_iteration, own_profile=own_profile))

    def profile(self, token: str, own_profile: str, pid: int = 7) -> None:
        self.say(token, AgentProfile(pid, own_profile))

    def events_of(self, kind: type[E]) -> list[E]:
        self.table.events.dispatch()
        return [event for event in self.events if isinstance(event, kind)]

    def view(self, name: str) -> ProcessView:
        """The facts of one process, which must be there."""
        view = self.table.get(name)
        assert view is not None
        return view

    def ids(self) -> list[str]:
        return [view.process_id for view in self.table.snapshot()]
