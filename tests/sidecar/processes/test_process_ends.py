"""Silence and ends of processes, and what subscribers hear of them, on a clock of the test's."""

import pytest
from fleetprof_sidecar.processes.agent_messages import AgentReport
from fleetprof_sidecar.processes.events import BusyChanged, Gone
from fleetprof_sidecar.processes.records import LOST_NS
from harness.sidecar.process_world import World

S = 10**9


@pytest.mark.parametrize(
    ("interval", "busy", "lost_after"),
    [(S, False, LOST_NS), (5 * S, False, 15 * S), (S, True, 5 * LOST_NS)],
    ids=["12 s", "three intervals", "longer while it traces"],
)
def test_a_process_that_falls_silent_is_gone_after_a_while(
    world: World, interval: int, busy: bool, lost_after: int
) -> None:
    for _ in range(10):
        world.now += interval
        world.poll("A", 7)
    world.poll("A", 7, idle=not busy)
    measured = world.view("A").poll_interval_ns
    world.now += lost_after - 3 * (interval - measured)
    world.table.expire()
    assert world.ids() == ["A"]
    world.now += 3 * interval
    world.table.expire()
    assert world.ids() == []
    assert [event.orderly_end for event in world.events_of(Gone)] == [False]


def test_an_agent_alone_may_be_silent(world: World) -> None:
    world.hello("x", kineto="A", rank=0)
    world.now += 3600 * S
    world.table.expire()
    assert world.ids() == ["A"]
    world.table.record_agent_exit("A", "/run/fp/fleetprofagentx")
    assert world.ids() == []


def test_an_agent_that_closes_leaves_its_process(world: World) -> None:
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=0)
    world.table.record_agent_exit("A", "/run/fp/fleetprofagentx")
    assert world.view("A").has_agent is False
    assert world.table.send_to_agent("A", "query") is False
    world.hello("y", kineto="A", rank=0)
    assert world.view("A").has_agent is True


def test_a_farewell_is_remembered_until_the_end(world: World) -> None:
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=0)
    world.say("x", AgentReport(7, "bye", {"capture": "", "reason": "exit"}))
    world.table.record_agent_exit("A", "/run/fp/fleetprofagentx")
    world.table.record_exit("A")
    assert [event.orderly_end for event in world.events_of(Gone)] == [True]


def test_busy_is_told_once_each_way(world: World) -> None:
    for idle in (True, False, False, True, True):
        world.poll("A", 7, idle=idle)
    assert [event.busy for event in world.events_of(BusyChanged)] == [True, False]


def test_a_subscriber_that_fails_is_counted_and_others_are_still_told(world: World) -> None:
    def fail(_event: object) -> None:
        raise RuntimeError("ours")

    world.table.events.subscribe(fail)
    later: list[object] = []
    world.table.events.subscribe(later.append)
    world.poll("A", 7)
    assert world.table.events.dispatch() == len(later) == 1
    assert world.table.counters["subscriber_errors"] == 1


def test_only_messages_to_agents_are_sent(world: World) -> None:
    world.poll("A", 7)
    world.hello("x", kineto="A", rank=0)
    assert world.table.send_to_agent("A", "cancel", capture="c") is True
    assert world.table.send_to_agent("nobody", "cancel", capture="c") is False
    with pytest.raises(ValueError, match="not a message to an agent"):
        world.table.send_to_agent("A", "hello")
