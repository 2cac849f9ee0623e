"""Processes that may have an order and the time at which it leaves, on a clock of the test's."""

from typing import Any

import pytest
from fleetprof_sidecar.processes.events import BusyChanged, Delivered, Expired, OwnProfileBegan
from fleetprof_sidecar.processes.records import SETTLED_NS
from fleetprof_sidecar.processes.views import OrderRefused, StepView
from harness.sidecar.process_world import World

S = 10**9


def trainer(world: World, name: str = "A", step: int | None = None) -> None:
    world.poll(name, 7)
    if step is None:
        world.table.mark_trainer(name)
    else:
        world.hello("x", kineto=name, rank=0)
        world.steps("x", step)


def refusal(world: World, name: str, **options: Any) -> str:
    with pytest.raises(OrderRefused) as refused:
        world.table.place_order(name, "config", world.now + 60 * S, options.pop("first_step", None), **options)
    return refused.value.reason


def test_an_order_goes_out_with_the_next_idle_poll_and_only_once(world: World) -> None:
    trainer(world, step=1)
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert [world.poll("A", 7, idle=idle) for idle in (False, True, True)] == ["", "config", ""]
    assert [event.process_id for event in world.events_of(Delivered)] == ["A"]
    assert world.table.withdraw_order("A") is False


def test_an_order_that_the_kernel_did_not_take_waits_for_the_next_poll(world: World) -> None:
    trainer(world)
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert world.poll("A", 7, taken=False) == "config"
    assert world.events_of(Delivered) == []
    assert world.poll("A", 7) == "config"
    assert len(world.events_of(Delivered)) == 1


@pytest.mark.parametrize(
    ("idle", "why"), [([], "time"), ([False, False], "busy"), ([False], "busy")], ids=["silent", "busy", "busy once"]
)
def test_an_order_expires_at_its_deadline_with_what_was_seen(world: World, idle: list[bool], why: str) -> None:
    trainer(world, step=1)
    world.table.place_order("A", "config", world.now + 5 * S, None)
    for answer in idle:
        world.now += S
        assert world.poll("A", 7, idle=answer) == ""
    world.now = 1005 * S
    world.table.expire()
    assert [event.why for event in world.events_of(Expired)] == [why]
    assert world.poll("A", 7) == ""


@pytest.mark.parametrize(("silent_s", "last_poll_s"), [(5, 1000), (60, 0)], ids=["it still polls", "it fell silent"])
def test_an_order_that_expires_tells_when_its_process_last_polled(
    world: World, silent_s: int, last_poll_s: int
) -> None:
    trainer(world)
    world.table.place_order("A", "config", world.now + 5 * S, None)
    world.now += silent_s * S
    world.table.expire()
    assert [event.last_poll_unix_ns for event in world.events_of(Expired)] == [last_poll_s * S]


@pytest.mark.parametrize("step", [None, 17])
def test_a_process_that_becomes_busy_tells_its_step(world: World, step: int | None) -> None:
    trainer(world, step=step)
    world.poll("A", 7, idle=False)
    assert [(event.busy, event.step) for event in world.events_of(BusyChanged)] == [(True, step)]


def test_a_poll_after_the_deadline_gets_nothing_even_before_anybody_looked(world: World) -> None:
    trainer(world)
    world.table.place_order("A", "config", world.now + 5 * S, None)
    world.now += 5 * S
    assert world.poll("A", 7) == ""
    assert [event.why for event in world.events_of(Expired)] == ["time"]


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
        (75, 0, 60 * S, True),
        (74, 0, 60 * S, False),
    ],
)
def test_an_order_is_not_given_to_a_process_that_is_too_far(
    world: World, first_step: int, warmup_steps: int, silent_ns: int, delivered: bool
) -> None:
    trainer(world, step=50)
    world.table.place_order("A", "config", world.now + 600 * S, first_step, warmup_steps=warmup_steps)
    world.now += silent_ns
    assert world.poll("A", 7) == ("config" if delivered else "")
    assert [event.why for event in world.events_of(Expired)] == ([] if delivered else ["step"])


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
def test_the_latest_step_is_carried_on(view: StepView, elapsed_ns: int, step: int) -> None:
    assert view.latest_step(elapsed_ns) == step


def test_a_start_by_step_needs_a_step_to_count_from(world: World) -> None:
    trainer(world)
    assert refusal(world, "A", first_step=10) == "NotStepping"
    world.hello("x", kineto="A")
    world.steps("x", 0)
    assert refusal(world, "A", first_step=10) == "NotStepping"
    world.steps("x", 1)
    world.table.place_order("A", "config", world.now + S, 10)


def test_who_is_refused_and_why(world: World) -> None:
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


def test_an_unknown_process_must_have_been_here_for_a_while_and_be_chosen(world: World) -> None:
    world.poll("A", 7)
    assert refusal(world, "A", chosen=True) == "NotChosen"
    for _ in range(SETTLED_NS // S):
        world.now += S
        world.poll("A", 7)
    world.table.expire()
    assert world.view("A").candidate is True
    assert refusal(world, "A") == "NotChosen"
    world.table.place_order("A", "config", world.now + 60 * S, None, chosen=True)
    assert world.poll("A", 7) == "config"


def test_who_turns_out_to_be_a_launcher_loses_its_order(world: World) -> None:
    world.poll("A", 7)
    for _ in range(SETTLED_NS // S):
        world.now += S
        world.poll("A", 7)
    world.table.place_order("A", "config", world.now + 60 * S, None, chosen=True)
    world.poll("B", 8, 7)
    world.hello("x", pid=8, kineto="B", rank=0)
    assert world.poll("A", 7) == ""
    assert [event.why for event in world.events_of(Expired)] == ["role"]


@pytest.mark.parametrize("phase", ["warmup", "active"])
def test_an_order_waits_for_the_gap_between_the_cycles_of_the_jobs_own_profiler(world: World, phase: str) -> None:
    trainer(world, step=1)
    world.profile("x", phase)
    world.table.place_order("A", "config", world.now + 60 * S, None)
    view = world.view("A")
    assert (view.busy, view.own_profile, view.profiles_itself) == (True, phase, True)
    assert world.poll("A", 7) == ""  # idle by Kineto's word, which may be older than the agent's
    world.profile("x", "")
    assert world.poll("A", 7) == "config"
    assert len(world.events_of(OwnProfileBegan)) == 1


def test_an_order_that_met_only_the_jobs_own_profiler_says_so(world: World) -> None:
    trainer(world, step=1)
    world.table.place_order("A", "config", world.now + 5 * S, None)
    world.profile("x", "warmup")
    world.now += 6 * S
    world.table.expire()
    assert [event.why for event in world.events_of(Expired)] == ["own"]


def test_what_a_lost_word_said_the_next_report_says_again(world: World) -> None:
    trainer(world, step=1)
    world.steps("x", 2, own_profile="active")
    world.steps("x", 3, own_profile="active")
    world.profile("x", "active")
    assert len(world.events_of(OwnProfileBegan)) == 1
    assert world.view("A").own_profile == "active"


@pytest.mark.attack
def test_without_the_agent_a_job_that_profiles_itself_has_no_order(world: World) -> None:
    """Its profile may meet the end of ours, and Kineto dies of that."""
    trainer(world)
    world.poll("A", 7, idle=False)  # nobody has ordered anything
    assert refusal(world, "A") == "ProfilesItself"
    world.hello("x", kineto="A", rank=0)
    world.steps("x", 1)
    world.table.place_order("A", "config", world.now + 60 * S, None)


@pytest.mark.attack
def test_without_the_agent_an_order_is_taken_back_from_a_job_that_begins_to_profile_itself(world: World) -> None:
    trainer(world)
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert [world.poll("A", 7, idle=idle) for idle in (False, True)] == ["", ""]
    assert [event.why for event in world.events_of(Expired)] == ["own"]


def test_a_process_that_is_busy_with_our_order_does_not_count_as_profiling_itself(world: World) -> None:
    trainer(world)
    world.table.place_order("A", "config", world.now + 60 * S, None)
    assert world.poll("A", 7) == "config"
    world.now += 5 * S
    world.poll("A", 7, idle=False)
    world.poll("A", 7)
    assert world.view("A").profiles_itself is False
    world.table.place_order("A", "config", world.now + 60 * S, None)
