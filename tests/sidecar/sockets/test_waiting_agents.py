"""An agent before its process's first optimizer step: known, and nothing more; in any order with Kineto's client."""

from collections.abc import Callable
from typing import Any

import pytest
from fleetprof_agent import wire
from fleetprof_sidecar.hub.messages import make_process
from fleetprof_sidecar.processes.agent_messages import AgentReport
from fleetprof_sidecar.processes.events import AgentMessage, Changed, Gone
from fleetprof_sidecar.processes.roles import Environment, Role
from fleetprof_sidecar.processes.views import OrderRefused
from fleetprof_sidecar.profiler import Credentials

S = 10**9


def begin(world: Any) -> None:
    """Process A, pid 7, begins to import PyTorch: nobody knows Kineto's socket yet."""
    world.hello("x", role=wire.WAITING, rank=4, world_size=8)


def wait(world: Any, **known: Any) -> None:
    """The agent of process A, pid 7, has been loaded."""
    world.hello("x", kineto="A", role=wire.WAITING, rank=4, world_size=8, **known)


def step(world: Any, **known: Any) -> None:
    """Process A makes its first optimizer step."""
    world.hello("x", kineto="A", role=wire.TRAINER, rank=4, world_size=8, **known)
    world.steps("x", 1)


def poll(world: Any) -> None:
    world.poll("A", 7)


@pytest.mark.parametrize(
    ("happened", "role", "polls", "has_agent", "waits"),
    [
        ([begin, poll], Role.UNKNOWN, True, False, True),
        ([begin, poll, wait, step], Role.TRAINER, True, True, False),
        ([wait], Role.UNKNOWN, False, False, True),
        ([wait, poll], Role.UNKNOWN, True, False, True),
        ([poll, wait], Role.UNKNOWN, True, False, True),
        ([wait, poll, step], Role.TRAINER, True, True, False),
        ([poll, wait, step], Role.TRAINER, True, True, False),
        ([wait, step, poll], Role.TRAINER, True, True, False),
        ([poll, step], Role.TRAINER, True, True, False),  # its first word was lost
        ([step, poll], Role.TRAINER, True, True, False),
    ],
)
def test_what_is_known_of_a_process(
    world: Any, happened: list[Callable[[Any], None]], role: Role, polls: bool, has_agent: bool, waits: bool
) -> None:
    for event in happened:
        event(world)
    (view,) = world.table.snapshot()
    assert (view.process_id, view.role, view.polls_kineto) == ("A", role, polls)
    assert (view.has_agent, view.agent_waits) == (has_agent, waits)
    assert (view.rank, view.world_size) == (4, 8)
    assert view.rank_source == ("RANK_AGENT" if has_agent else "RANK_ENVIRON")
    process = make_process(view)
    assert (process.has_agent, process.agent_waits, process.HasField("step")) == (has_agent, waits, has_agent)


def test_a_process_that_has_not_polled_yet_has_the_name_of_its_agent_until_it_does(world: Any) -> None:
    begin(world)
    assert world.ids() == ["fleetprofagentx"]
    poll(world)
    assert world.ids() == ["A"]
    assert [event.process_id for event in world.events_of(Gone)] == ["fleetprofagentx"]
    begin(world)  # once more: the same
    assert world.ids() == ["A"]


def test_the_first_step_is_told(world: Any) -> None:
    poll(world)
    wait(world)
    before = len(world.events_of(Changed))
    step(world)
    assert len(world.events_of(Changed)) > before


@pytest.mark.parametrize(
    ("environment", "role"),
    [
        (Environment(rank=4, local_rank=0), Role.TRAINER),
        (Environment(launcher_program=True), Role.LAUNCHER),
        (None, Role.UNKNOWN),
    ],
    ids=["a rank", "a launcher", "not visible"],
)
def test_roles_are_what_they_are_without_it(world: Any, environment: Environment | None, role: Role) -> None:
    poll(world)
    world.table.record_environment("A", environment)
    assert world.table.get("A").role is role
    wait(world)
    world.table.expire()
    assert world.table.get("A").role is role


def test_who_begot_a_trainer_and_whom_it_begot_are_told_apart_though_all_wait(world: Any) -> None:
    for name, pids in {"L": (5,), "A": (7, 5), "W": (9, 7, 5)}.items():
        world.poll(name, *pids)
        world.hello(name, pid=pids[0], kineto=name, role=wire.WAITING, rank=None if name == "L" else 4)
    assert {view.role for view in world.table.snapshot()} == {Role.UNKNOWN}
    world.hello("A", pid=7, kineto="A", role=wire.TRAINER, rank=4)
    views = {view.process_id: view for view in world.table.snapshot()}
    assert {name: view.role for name, view in views.items()} == {
        "L": Role.LAUNCHER,
        "A": Role.TRAINER,
        "W": Role.WORKER,
    }
    assert (views["W"].rank, views["W"].agent_waits) == (None, True)


def test_it_gets_no_command_and_its_process_no_order_for_a_step(world: Any) -> None:
    poll(world)
    wait(world)
    world.table.mark_trainer("A")
    assert world.table.send_to_agent("A", "arm", capture="c") is False
    with pytest.raises(OrderRefused) as refused:
        world.table.place_order("A", "config", world.now + 60 * S, 10)
    assert refused.value.reason == "NotStepping"
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert world.poll("A", 7) == "config"


def test_a_word_of_its_process_that_was_overtaken_asks_for_the_whole(world: Any) -> None:
    poll(world)
    wait(world)
    world.steps("x", 5)
    assert [address for data, address in world.agents.sent if b'"query"' in data] == ["/run/fp/fleetprofagentx"]
    assert world.table.get("A").step is None


def test_its_end_is_no_farewell(world: Any) -> None:
    poll(world)
    wait(world)
    world.table.record_agent_exit("A", "/run/fp/fleetprofagentx")
    assert world.table.get("A").agent_waits is False
    world.table.record_exit("A")
    assert [event.orderly_end for event in world.events_of(Gone)] == [False]


def test_nobody_else_can_wait_in_its_name(world: Any) -> None:
    poll(world)
    wait(world, credentials=Credentials(0, 1001))
    assert [(view.process_id, view.agent_waits) for view in world.table.snapshot()] == [("A", False)]
    world.say("x", AgentReport(7, "bye", {"capture": "", "reason": "exit"}))
    assert world.table.get("A") is not None


def test_it_is_heard_about_its_stacks_and_about_nothing_else(world: Any) -> None:
    poll(world)
    wait(world)
    world.say("x", AgentReport(7, "threads", {"query": "q"}))
    assert [event.fields for event in world.events_of(AgentMessage)] == [{"t": "threads", "query": "q"}]
    assert world.agents.sent == []
    world.say("x", AgentReport(7, "armed", {"capture": "c"}))
    assert len(world.events_of(AgentMessage)) == 1
    assert len(world.agents.sent) == 1  # it is asked who it is
