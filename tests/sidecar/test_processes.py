"""The process table on a clock of the test's: joining, orders, silence, and what holds whatever happens."""

from typing import ClassVar

import pytest
from fleetprof_sidecar.agent_messages import AgentHello, AgentReport, AgentSteps
from fleetprof_sidecar.hub_messages import make_process
from fleetprof_sidecar.kineto_wire import RequestMessage
from fleetprof_sidecar.process_records import LOST_NS, SETTLED_NS
from fleetprof_sidecar.processes import (
    BusyChanged,
    Credentials,
    Delivered,
    Expired,
    Gone,
    OrderRefused,
    ProcessTable,
    Role,
    StepView,
)
from fleetprof_sidecar.roles import Environment
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

S = 10**9
OWN = Credentials(0, 1000)  # as seen across containers


class World:
    """A table, its clock, and the processes' ends of the datagrams."""

    def __init__(self) -> None:
        self.now = 1_000 * S
        self.table = ProcessTable(lambda: self.now)
        self.events: list[object] = []
        self.table.subscribe(self.events.append)
        self.configs: list[tuple[str, str]] = []
        self.to_agents: list[tuple[bytes, str]] = []
        self.table.attach_agent_sender(lambda data, address: self.to_agents.append((data, address)) or True)

    def poll(self, name: str, *pids: int, idle: bool = True, credentials: Credentials = OWN, taken: bool = True) -> str:
        """One request; the config that came with the answer."""
        answers = []

        def send(config: str) -> bool:
            answers.append(config)
            return taken

        request = RequestMessage(2 if idle else 0, 0, pids or (7,))
        self.table.record_poll(f"/run/fp/dynoconfigclient{name}", request, credentials, send)
        assert len(answers) == 1
        if answers[0] and taken:
            self.configs.append((name, answers[0]))
        return answers[0]

    def hello(self, token: str, pid: int = 7, kineto: str = "", credentials: Credentials = OWN, **known) -> None:
        unknown = dict.fromkeys(("rank", "local_rank", "world_size"))
        texts = dict.fromkeys(("role", "torch", "python", "device_kind", "device_name", "device_uuid", "host"), "")
        numbers = {"ppid": 1, "uid": 1000, "restart_count": 0, "started_unix_ns": 0}
        kineto = f"dynoconfigclient{kineto}" if kineto else ""
        message = AgentHello(**{**unknown, **texts, **numbers, "pid": pid, "kineto": kineto, **known})
        self.table.record_agent(f"/run/fp/fleetprofagent{token}", message, credentials)

    def say(self, token: str, message: AgentSteps | AgentReport) -> None:
        self.table.record_agent(f"/run/fp/fleetprofagent{token}", message, OWN)

    def steps(self, token: str, step: int, iteration_ns: int = S // 10, pid: int = 7, per_iteration: int = 1) -> None:
        self.say(token, AgentSteps(pid, step, self.now, iteration_ns, per_iteration))

    def told(self, kind: type) -> list:
        self.table.dispatch_events()
        return [event for event in self.events if isinstance(event, kind)]

    def ids(self) -> list[str]:
        return [view.process_id for view in self.table.snapshot()]


@pytest.fixture
def world() -> World:
    return World()


# ---------------------------------------------------------------- one record for a process's two ends


def test_an_agent_joins_the_client_that_it_names(world):
    world.poll("A", 7)
    world.poll("B", 7)  # another container of the pod, the same pid there
    world.hello("x", kineto="B", rank=4)
    assert {view.process_id: view.rank for view in world.table.snapshot()} == {"A": None, "B": 4}


def test_an_agent_without_a_name_joins_the_only_client_of_its_pid_and_user(world):
    world.poll("A", 7)
    world.poll("B", 8)
    world.hello("x", pid=8, rank=4)
    assert {view.process_id: view.rank for view in world.table.snapshot()} == {"A": None, "B": 4}


def test_where_two_clients_have_its_pid_an_agent_without_a_name_stays_alone(world):
    world.poll("A", 7)
    world.poll("B", 7)
    world.hello("x")
    assert world.ids() == ["A", "B", "fleetprofagentx"]


def test_the_order_of_arrival_does_not_matter(world):
    # As after a restart of the sidecar: the agent's report comes before the next poll.
    world.hello("x", kineto="A", rank=4)
    assert world.ids() == ["A"]
    assert world.table.get("A").polls_kineto is False
    world.poll("A", 7)
    world.hello("y", pid=8, rank=5)
    world.poll("B", 8)
    assert {view.process_id: view.rank for view in world.table.snapshot()} == {"A": 4, "fleetprofagenty": 5}
    assert all(view.polls_kineto and view.has_agent for view in world.table.snapshot())


@pytest.mark.parametrize(
    "impostor",
    [{"pid": 8}, {"credentials": Credentials(0, 1001)}, {"credentials": Credentials(9, 1000)}],
    ids=["another pid (a forked child)", "another user", "another process, says the kernel"],
)
def test_nobody_joins_a_client_by_its_name_alone(world, impostor):
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=4, **impostor)
    assert [(view.process_id, view.has_agent) for view in world.table.snapshot()] == [("A", False)]
    assert world.table.counters["refused_agents"] == 1


def test_nobody_keeps_a_name_from_its_owner(world):
    world.hello("x", kineto="A", credentials=Credentials(0, 1001))
    world.poll("A", 7)
    assert [(view.process_id, view.has_agent, view.uid) for view in world.table.snapshot()] == [("A", False, 1000)]


def test_a_socket_path_that_changed_hands_is_not_believed(world):
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=4)
    world.table.mark_trainer("A")
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert world.poll("A", 7, credentials=Credentials(0, 1001)) == ""
    world.table.record_agent(
        "/run/fp/fleetprofagentx", AgentReport(7, "bye", {"capture": "", "reason": "exit"}), Credentials(0, 1001)
    )
    assert world.table.counters["credentials_changed"] == 2
    world.table.record_exit("A")
    assert [event.farewell for event in world.told(Gone)] == [False]


def test_an_agent_that_is_not_known_yet_is_asked_who_it_is(world):
    world.steps("x", 5)
    assert [address for _, address in world.to_agents] == ["/run/fp/fleetprofagentx"]
    assert b'"t":"query"' in world.to_agents[0][0]
    assert world.ids() == []


def test_the_view_shows_what_is_known(world):
    for _ in range(2):
        world.poll("A", 7)
        world.now += S
    world.poll("A", 7, idle=False)
    world.hello("x", kineto="A", rank=4, local_rank=1, world_size=8, torch="2.15.0", restart_count=2, host="n1")
    world.steps("x", 50)
    view = world.table.get("A")
    assert (view.pid, view.uid, view.role, view.candidate, view.busy) == (7, 1000, Role.TRAINER, True, True)
    assert (view.rank, view.local_rank, view.world_size, view.rank_source) == (4, 1, 8, "RANK_AGENT")
    assert (view.torch_version, view.restart_count, view.host_name) == ("2.15.0", 2, "n1")
    assert (view.first_seen_unix_ns, view.last_poll_unix_ns, view.poll_interval_ns) == (1000 * S, 1002 * S, S)
    assert view.step == StepView(50, 1002 * S, S // 10, 1)


def test_without_the_agent_the_environment_names_the_rank(world):
    world.poll("A", 7)
    world.table.record_environment("A", Environment(rank=3, local_rank=3, world_size=4, restart_count=1))
    view = world.table.get("A")
    assert (view.rank, view.rank_source, view.role, view.restart_count) == (3, "RANK_ENVIRON", Role.TRAINER, 1)


def test_after_a_pause_the_hub_is_told_no_poll_interval_until_polls_are_regular_again(world):
    told = []
    for seconds in (1, 1, 1, 6, 1):
        world.poll("A", 7)
        told.append(make_process(world.table.get("A")).poll_interval_ns)
        world.now += seconds * S
    world.poll("A", 7)
    told.append(make_process(world.table.get("A")).poll_interval_ns)
    assert told == [0, 0, S, S, 0, S]
    assert world.table.get("A").poll_interval_ns == S


# ---------------------------------------------------------------- orders


def trainer(world: World, name: str = "A", step: int | None = None) -> None:
    world.poll(name, 7)
    if step is None:
        world.table.mark_trainer(name)
    else:
        world.hello("x", kineto=name, rank=0)
        world.steps("x", step)


def refusal(world: World, name: str, **options) -> str:
    with pytest.raises(OrderRefused) as refused:
        world.table.place_order(name, "config", world.now + 60 * S, options.pop("first_step", None), **options)
    return refused.value.reason


def test_an_order_goes_out_with_the_next_idle_poll_and_only_once(world):
    trainer(world)
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert [world.poll("A", 7, idle=idle) for idle in (False, True, True)] == ["", "config", ""]
    assert [event.process_id for event in world.told(Delivered)] == ["A"]
    assert world.table.withdraw_order("A") is False


def test_an_order_that_the_kernel_did_not_take_waits_for_the_next_poll(world):
    trainer(world)
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert world.poll("A", 7, taken=False) == "config"
    assert world.told(Delivered) == []
    assert world.poll("A", 7) == "config"
    assert len(world.told(Delivered)) == 1


@pytest.mark.parametrize(
    ("idle", "why"), [([], "time"), ([False, False], "busy"), ([False], "busy")], ids=["silent", "busy", "busy once"]
)
def test_an_order_expires_at_its_deadline_with_what_was_seen(world, idle, why):
    trainer(world)
    world.table.place_order("A", "config", world.now + 5 * S, None)
    for answer in idle:
        world.now += S
        assert world.poll("A", 7, idle=answer) == ""
    world.now = 1005 * S
    world.table.expire()
    assert [event.why for event in world.told(Expired)] == [why]
    assert world.poll("A", 7) == ""


def test_a_poll_after_the_deadline_gets_nothing_even_before_anybody_looked(world):
    trainer(world)
    world.table.place_order("A", "config", world.now + 5 * S, None)
    world.now += 5 * S
    assert world.poll("A", 7) == ""
    assert [event.why for event in world.told(Expired)] == ["time"]


# Steps last 100 ms; at the poll the process was last heard of at step 50.
@pytest.mark.parametrize(
    ("first_step", "warmup_steps", "silent_ns", "delivered"),
    [
        (53, 0, 0, True),
        (52, 0, 0, False),  # Kineto would have to begin with step 50
        (10, 0, 0, False),
        (63, 10, 0, True),
        (62, 10, 0, False),
        (63, 0, S, True),
        (62, 0, S, False),
        # Silent for longer than a stepping agent can be: the training stalls, and the count is not carried further.
        (65, 0, 60 * S, True),
        (64, 0, 60 * S, False),
    ],
)
def test_an_order_is_not_given_to_a_process_that_is_too_far(world, first_step, warmup_steps, silent_ns, delivered):
    trainer(world, step=50)
    world.table.place_order("A", "config", world.now + 600 * S, first_step, warmup_steps=warmup_steps)
    world.now += silent_ns
    assert world.poll("A", 7) == ("config" if delivered else "")
    assert [event.why for event in world.told(Expired)] == ([] if delivered else ["step"])


@pytest.mark.parametrize(
    ("view", "elapsed_ns", "step"),
    [
        (StepView(50, 0, 0, 1), S, 50),
        (StepView(50, 0, S // 10, 1), 0, 50),
        (StepView(50, 0, S // 10, 1), S // 4, 52),
        (StepView(50, 0, S // 5, 2), S // 4, 52),
        (StepView(50, S, S // 10, 1), 0, 50),
        (StepView(50, 0, 30 * S, 1), 31 * S, 51),
    ],
)
def test_the_latest_step_is_carried_on(view, elapsed_ns, step):
    assert view.latest_step(elapsed_ns) == step


def test_a_start_by_step_needs_a_step_to_count_from(world):
    trainer(world)
    assert refusal(world, "A", first_step=10) == "NotStepping"
    world.hello("x", kineto="A")
    world.steps("x", 0)
    assert refusal(world, "A", first_step=10) == "NotStepping"
    world.steps("x", 1)
    world.table.place_order("A", "config", world.now + S, 10)


def test_who_is_refused_and_why(world):
    assert refusal(world, "nobody") == "Unknown"
    world.poll("run", 5)
    world.poll("A", 7, 5)
    world.poll("w", 9, 7, 5)
    world.hello("x", kineto="A", rank=0)
    assert [refusal(world, name, chosen=True) for name in ("run", "w")] == ["Launcher", "Worker"]
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert refusal(world, "A") == "Outstanding"
    world.hello("y", pid=20, rank=1)
    assert refusal(world, "fleetprofagenty") == "NotPolling"


def test_an_unknown_process_must_have_been_here_for_a_while_and_be_chosen(world):
    world.poll("A", 7)
    assert refusal(world, "A", chosen=True) == "NotChosen"
    for _ in range(SETTLED_NS // S):
        world.now += S
        world.poll("A", 7)
    world.table.expire()
    assert world.table.get("A").candidate is True
    assert refusal(world, "A") == "NotChosen"
    world.table.place_order("A", "config", world.now + 60 * S, None, chosen=True)
    assert world.poll("A", 7) == "config"


def test_who_turns_out_to_be_a_launcher_loses_its_order(world):
    world.poll("A", 7)
    for _ in range(SETTLED_NS // S):
        world.now += S
        world.poll("A", 7)
    world.table.place_order("A", "config", world.now + 60 * S, None, chosen=True)
    world.poll("B", 8, 7)
    world.hello("x", pid=8, kineto="B", rank=0)
    assert world.poll("A", 7) == ""
    assert [event.why for event in world.told(Expired)] == ["role"]


# ---------------------------------------------------------------- silence and ends


@pytest.mark.parametrize(
    ("interval", "busy", "lost_after"),
    [(S, False, LOST_NS), (5 * S, False, 15 * S), (S, True, 5 * LOST_NS)],
    ids=["12 s", "three intervals", "longer while it traces"],
)
def test_a_process_that_falls_silent_is_gone_after_a_while(world, interval, busy, lost_after):
    for _ in range(10):
        world.now += interval
        world.poll("A", 7)
    world.poll("A", 7, idle=not busy)
    measured = world.table.get("A").poll_interval_ns
    world.now += lost_after - 3 * (interval - measured)
    world.table.expire()
    assert world.ids() == ["A"]
    world.now += 3 * interval
    world.table.expire()
    assert world.ids() == []
    assert [event.farewell for event in world.told(Gone)] == [False]


def test_an_agent_alone_may_be_silent(world):
    world.hello("x", kineto="A", rank=0)
    world.now += 3600 * S
    world.table.expire()
    assert world.ids() == ["A"]
    world.table.record_agent_exit("A", "/run/fp/fleetprofagentx")
    assert world.ids() == []


def test_an_agent_that_closes_leaves_its_process(world):
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=0)
    world.table.record_agent_exit("A", "/run/fp/fleetprofagentx")
    assert world.table.get("A").has_agent is False
    assert world.table.send_to_agent("A", "query") is False
    world.hello("y", kineto="A", rank=0)
    assert world.table.get("A").has_agent is True


def test_a_farewell_is_remembered_until_the_end(world):
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=0)
    world.say("x", AgentReport(7, "bye", {"capture": "", "reason": "exit"}))
    world.table.record_agent_exit("A", "/run/fp/fleetprofagentx")
    world.table.record_exit("A")
    assert [event.farewell for event in world.told(Gone)] == [True]


def test_busy_is_told_once_each_way(world):
    for idle in (True, False, False, True, True):
        world.poll("A", 7, idle=idle)
    assert [event.busy for event in world.told(BusyChanged)] == [True, False]


def test_a_subscriber_that_fails_is_counted_and_others_are_still_told(world):
    def fail(_event):
        raise RuntimeError("ours")

    world.table.subscribe(fail)
    later = []
    world.table.subscribe(later.append)
    world.poll("A", 7)
    assert world.table.dispatch_events() == len(later) == 1
    assert world.table.counters["subscriber_errors"] == 1


def test_only_messages_to_agents_are_sent(world):
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=0)
    assert world.table.send_to_agent("A", "cancel", capture="c") is True
    assert world.table.send_to_agent("nobody", "cancel", capture="c") is False
    with pytest.raises(ValueError, match="not a message to an agent"):
        world.table.send_to_agent("A", "hello")


# ---------------------------------------------------------------- whatever happens


class Anything(RuleBasedStateMachine):
    """A launcher (pid 1), two trainers (2, 3) and a worker (4, of 2), in any order of events."""

    PIDS: ClassVar = {"L": (1,), "T": (2, 1), "U": (3, 1), "W": (4, 2, 1)}

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.orders = 0
        self.withdrawn = 0
        self.refused_roles: list[Role] = []

    @rule(name=st.sampled_from("LTUW"), idle=st.booleans(), taken=st.booleans())
    def poll(self, name, idle, taken):
        self.world.poll(name, *self.PIDS[name], idle=idle, taken=taken)

    @rule(name=st.sampled_from("TU"), step=st.integers(0, 100), named=st.booleans())
    def report(self, name, step, named):
        pid = self.PIDS[name][0]
        self.world.hello(name, pid=pid, kineto=name if named else "", rank=0)
        self.world.steps(name, step, pid=pid)

    @rule(name=st.sampled_from("LTUW"), first_step=st.none() | st.integers(2, 120), chosen=st.booleans())
    def place(self, name, first_step, chosen):
        try:
            self.world.table.place_order(
                name, f"order {self.orders}", self.world.now + 20 * S, first_step, chosen=chosen
            )
        except OrderRefused:
            return
        self.orders += 1

    @rule(name=st.sampled_from("LTUW"))
    def withdraw(self, name):
        self.withdrawn += self.world.table.withdraw_order(name)

    @rule(seconds=st.integers(0, 30))
    def pass_time(self, seconds):
        self.world.now += seconds * S

    @rule()
    def expire(self):
        self.world.table.expire()

    @rule(name=st.sampled_from("LTUW"))
    def end(self, name):
        self.world.table.record_exit(name)

    @rule(name=st.sampled_from("TU"))
    def close_agent(self, name):
        self.world.table.record_agent_exit(name, f"/run/fp/fleetprofagent{name}")

    @precondition(lambda self: self.orders)
    @invariant()
    def every_order_ends_at_most_once(self):
        delivered, expired = self.world.told(Delivered), self.world.told(Expired)
        texts = [config for _, config in self.world.configs]
        assert len(texts) == len(set(texts)) == len(delivered)
        assert len(delivered) + len(expired) + self.withdrawn <= self.orders

    @invariant()
    def nobody_below_a_trainer_or_above_one_is_served(self):
        views = {view.process_id: view for view in self.world.table.snapshot()}
        stepped = {name for name in "TU" if name in views and views[name].has_agent}
        if stepped and "L" in views:
            assert views["L"].role is Role.LAUNCHER
        if "T" in stepped and "W" in views:
            assert views["W"].role is Role.WORKER
        for view in views.values():
            if view.role in (Role.LAUNCHER, Role.WORKER):
                assert not view.candidate

    @invariant()
    def addresses_and_records_agree(self):
        table = self.world.table
        for process_id, process in table._processes.items():
            assert process.process_id == process_id
            assert process.kineto is not None or process.agent is not None
            assert process.kineto is None or table._by_kineto[process.kineto.address] is process
            assert process.agent is None or table._by_agent[process.agent.address] is process
        assert set(map(id, table._by_kineto.values())) <= set(map(id, table._processes.values()))
        assert set(map(id, table._by_agent.values())) <= set(map(id, table._processes.values()))


Anything.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnything = Anything.TestCase
