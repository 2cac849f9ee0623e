"""The process table on a clock of the test's: which ends are one process, and what is shown of it."""

from typing import Any

import pytest
from fleetprof_sidecar.hub.messages import make_process
from fleetprof_sidecar.processes.agent_messages import AgentReport
from fleetprof_sidecar.processes.events import Gone
from fleetprof_sidecar.processes.roles import Environment, Role
from fleetprof_sidecar.processes.views import StepView
from fleetprof_sidecar.profiler import Credentials
from harness.sidecar.process_world import World

S = 10**9


def test_an_agent_joins_the_client_that_it_names(world: World) -> None:
    world.poll("A", 7)
    world.poll("B", 7)  # another container of the pod, the same pid there
    world.hello("x", kineto="B", rank=4)
    assert {view.process_id: view.rank for view in world.table.snapshot()} == {"A": None, "B": 4}


def test_an_agent_without_a_name_joins_the_only_client_of_its_pid_and_user(world: World) -> None:
    world.poll("A", 7)
    world.poll("B", 8)
    world.hello("x", pid=8, rank=4)
    assert {view.process_id: view.rank for view in world.table.snapshot()} == {"A": None, "B": 4}


def test_where_two_clients_have_its_pid_an_agent_without_a_name_stays_alone(world: World) -> None:
    world.poll("A", 7)
    world.poll("B", 7)
    world.hello("x")
    assert world.ids() == ["A", "B", "fleetprofagentx"]


def test_the_order_of_arrival_does_not_matter(world: World) -> None:
    # As after a restart of the sidecar: the agent's report comes before the next poll.
    world.hello("x", kineto="A", rank=4)
    assert world.ids() == ["A"]
    assert world.view("A").polls_kineto is False
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
def test_nobody_joins_a_client_by_its_name_alone(world: World, impostor: dict[str, Any]) -> None:
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=4, **impostor)
    assert [(view.process_id, view.has_agent) for view in world.table.snapshot()] == [("A", False)]
    assert world.table.counters["refused_agents"] == 1


def test_nobody_keeps_a_name_from_its_owner(world: World) -> None:
    world.hello("x", kineto="A", credentials=Credentials(0, 1001))
    world.poll("A", 7)
    assert [(view.process_id, view.has_agent, view.uid) for view in world.table.snapshot()] == [("A", False, 1000)]


def test_a_socket_path_that_changed_hands_is_not_believed(world: World) -> None:
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
    assert [event.orderly_end for event in world.events_of(Gone)] == [False]


def test_an_agent_that_is_not_known_yet_is_asked_who_it_is(world: World) -> None:
    world.steps("x", 5)
    assert [address for _, address in world.agents.sent] == ["/run/fp/fleetprofagentx"]
    assert b'"t":"query"' in world.agents.sent[0][0]
    assert world.ids() == []


def test_the_view_shows_what_is_known(world: World) -> None:
    for _ in range(2):
        world.poll("A", 7)
        world.now += S
    world.poll("A", 7, idle=False)
    world.hello("x", kineto="A", rank=4, local_rank=1, world_size=8, torch="2.15.0", restart_count=2, host="n1")
    world.steps("x", 50)
    view = world.view("A")
    assert (view.pid, view.uid, view.role, view.candidate, view.busy) == (7, 1000, Role.TRAINER, True, True)
    assert (view.rank, view.local_rank, view.world_size, view.rank_source) == (4, 1, 8, "RANK_AGENT")
    assert (view.torch_version, view.restart_count, view.host_name) == ("2.15.0", 2, "n1")
    assert (view.first_seen_unix_ns, view.last_poll_unix_ns, view.poll_interval_ns) == (1000 * S, 1002 * S, S)
    assert view.step == StepView(50, 1002 * S, S // 10, 1)


def test_without_the_agent_the_environment_names_the_rank(world: World) -> None:
    world.poll("A", 7)
    world.table.record_environment("A", Environment(rank=3, local_rank=3, world_size=4, restart_count=1))
    view = world.view("A")
    assert (view.rank, view.rank_source, view.role, view.restart_count) == (3, "RANK_ENVIRON", Role.TRAINER, 1)


def test_after_a_pause_the_hub_is_told_no_poll_interval_until_polls_are_regular_again(world: World) -> None:
    intervals = []
    for seconds in (1, 1, 1, 6, 1):
        world.poll("A", 7)
        intervals.append(make_process(world.view("A")).poll_interval_ns)
        world.now += seconds * S
    world.poll("A", 7)
    intervals.append(make_process(world.view("A")).poll_interval_ns)
    assert intervals == [0, 0, S, S, 0, S]
    assert world.view("A").poll_interval_ns == S
