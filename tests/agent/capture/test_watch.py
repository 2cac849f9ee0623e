"""The agent around a capture, step by step in given time."""

from typing import Any

import pytest
from fleetprof_agent import wire
from fleetprof_agent.capture.watch import CANCEL_DROPS, MOST_SAMPLES, SECOND_NS, CaptureWatch, InvalidArm
from fleetprof_agent.steps.ring import MASK, StepRing

ARM = {"t": "arm", "capture": "c1", "until_unix_ns": 100 * SECOND_NS, "sample_interval_ns": SECOND_NS // 10}
CANCEL = {"t": "cancel", "capture": "c1"}


class World:
    """The watch's surroundings, recorded."""

    def __init__(self) -> None:
        self.ring = StepRing()
        self.sent: list[dict[str, Any]] = []
        self.is_reachable = True
        self.can_drop = True
        self.drops = 0
        self.samples = 0

    def send(self, kind: str, **fields: Any) -> bool:
        if self.is_reachable:
            self.sent.append(wire.decode(wire.encode(kind, **fields), wire.FROM_AGENT))
        return self.is_reachable

    def sample(self) -> "dict[str, int | None]":
        self.samples += 1
        return {"power_milliwatts": self.samples, "dram_active_permille": None}

    def drop_trace(self) -> bool:
        self.drops += 1
        return self.can_drop

    def step(self, rows: int) -> None:
        for _ in range(rows):
            self.ring.step[self.ring.count & MASK] = self.ring.count + 1
            self.ring.end_unix_ns[self.ring.count & MASK] = self.ring.count * 10
            self.ring.count += 1

    def watch(self, **changed: Any) -> CaptureWatch:
        return CaptureWatch({**ARM, **changed}, 0, self.ring, self.send, self.sample, self.drop_trace)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.sent if message["t"] == kind]


@pytest.fixture
def world() -> World:
    return World()


def run(watch: CaptureWatch, start: int, end: int) -> int:
    """Ticks whenever it wants to be called, until `end` or its own; returns the time."""
    now = start
    while now < end and not watch.is_over:
        now = max(watch.tick(now), now + 1)
    return now


def test_each_order_to_watch_is_answered(world: World) -> None:
    watch = world.watch()
    watch.obey(ARM, 0)
    watch.obey(ARM, 1)
    assert [message["capture"] for message in world.of("armed")] == ["c1", "c1"]


def test_samples_at_the_rate_that_was_asked_for(world: World) -> None:
    watch = world.watch()
    run(watch, 0, 3 * SECOND_NS)
    watch.flush()
    rows = [at for message in world.of("device") for at in message["at_unix_ns"]]
    assert rows == [n * SECOND_NS // 10 for n in range(30)]
    assert world.of("device")[0]["power_milliwatts"][:3] == [1, 2, 3]
    assert world.of("device")[0]["dram_active_permille"][0] is None


def test_sampling_is_never_faster_than_the_floor(world: World) -> None:
    run(world.watch(sample_interval_ns=0), 0, SECOND_NS)
    assert world.samples <= 101


def test_steps_before_and_during_are_sent_once_and_in_order(world: World) -> None:
    world.step(2000)
    watch = world.watch()
    now = 0
    for _ in range(5):
        world.step(700)
        now = run(watch, now, now + SECOND_NS)
    watch.obey({"t": "done", "capture": "c1", "after_ns": SECOND_NS}, now)
    world.step(5)
    run(watch, now, now + 10 * SECOND_NS)
    steps = [step for message in world.of("times") for step in message["step"]]
    assert steps == list(range(2000 - 512 + 1, 2000 + 3500 + 5 + 1))
    assert watch.is_over
    assert not watch.is_armed


def test_what_cannot_be_sent_waits(world: World) -> None:
    watch = world.watch()
    world.step(10)
    world.is_reachable = False
    now = run(watch, 0, 3 * SECOND_NS)
    world.is_reachable = True
    run(watch, now, now + SECOND_NS + 1)
    assert [step for message in world.of("times") for step in message["step"]] == list(range(1, 11))
    assert world.of("device")[0]["at_unix_ns"][0] == 0


def test_memory_is_bounded_while_nobody_listens(world: World) -> None:
    world.is_reachable = False
    watch = world.watch(sample_interval_ns=10_000_000, until_unix_ns=2**62)
    run(watch, 0, 60 * SECOND_NS)
    world.is_reachable = True
    watch.flush()
    assert sum(len(message["at_unix_ns"]) for message in world.of("device")) <= MOST_SAMPLES


def test_it_ends_by_itself(world: World) -> None:
    watch = world.watch()
    assert run(watch, 0, 200 * SECOND_NS) < 101 * SECOND_NS
    assert watch.is_over
    assert watch.is_armed  # nobody said that the trace is written: an exit is still looked at


def test_it_ends_when_the_sidecar_is_gone(world: World) -> None:
    world.step(1)
    watch = world.watch()
    world.is_reachable = False
    assert run(watch, 0, 200 * SECOND_NS) < 104 * SECOND_NS
    assert watch.is_over


def test_far_away_end_is_not_believed(world: World) -> None:
    watch = world.watch(until_unix_ns=2**62)
    assert run(watch, 0, 5000 * SECOND_NS) < 3700 * SECOND_NS


def test_cancel_drops_twice_and_answers_once(world: World) -> None:
    """An order may be on its way to Kineto while the first drop happens."""
    watch = world.watch()
    watch.obey(CANCEL, 0)
    watch.obey(CANCEL, 0)
    now = run(watch, 0, 100 * SECOND_NS)
    assert (world.drops, len(world.of("cancelled"))) == (2, 1)
    assert SECOND_NS // 10 <= now < SECOND_NS
    assert watch.is_over
    assert not watch.is_armed


def test_cancel_waits_for_the_profiler_of_the_job(world: World) -> None:
    watch = world.watch()
    watch.obey(CANCEL, 0)
    world.can_drop = False
    now = run(watch, 0, 2 * SECOND_NS)
    assert world.of("cancelled") == []
    world.can_drop = True
    run(watch, now, now + SECOND_NS)
    assert len(world.of("cancelled")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"capture": ""},
        {"capture": None},
        {"capture": "x" * 65},
        {"until_unix_ns": -1},
        {"until_unix_ns": "soon"},
        {"until_unix_ns": 2**70},
        {"sample_interval_ns": 0.5},
        {"sample_interval_ns": None},
        {"sample_interval_ns": True},
    ],
)
def test_wrong_orders_are_refused(world: World, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArm, match=next(iter(wrong))):
        world.watch(**wrong)


class Guard:
    """A memory guard of which tests say what it finds."""

    def __init__(self, *, short_at: int, begins_at: int) -> None:
        self.due = 0
        self.shortage = {"headroom_bytes": 5, "needed_bytes": 9, "recording": False}
        self.has_begun = False
        self.finished = 0
        self._short_at, self._begins_at = short_at, begins_at

    def look(self, now: int, step: int) -> bool:
        self.due = now + SECOND_NS // 10
        self.has_begun = now >= self._begins_at
        return now >= self._short_at

    def finish(self) -> "dict[str, int]":
        self.finished += 1
        return {"before_bytes": 1, "peak_bytes": 3, "after_bytes": 2}


def guarded(world: World, guard: Guard) -> CaptureWatch:
    return CaptureWatch(ARM, 0, world.ring, world.send, None, world.drop_trace, guard)  # type: ignore[arg-type]


def test_a_recording_that_needs_too_much_is_dropped_told_and_measured(world: World) -> None:
    guard = Guard(short_at=2 * SECOND_NS, begins_at=SECOND_NS)
    watch = guarded(world, guard)
    ended = run(watch, 0, 9 * SECOND_NS)
    assert (watch.is_over, world.drops) == (True, CANCEL_DROPS)
    assert ended < 3 * SECOND_NS
    kinds = [message["t"] for message in world.sent if message["t"] != "times"]
    assert (kinds[0], kinds[-2:]) == ("short", ["cancelled", "memory"])
    assert (world.of("short")[0]["headroom_bytes"], world.of("memory")[0]["peak_bytes"]) == (5, 3)


def test_one_that_has_not_begun_is_told_and_left_to_the_sidecar(world: World) -> None:
    guard = Guard(short_at=0, begins_at=99 * SECOND_NS)
    watch = guarded(world, guard)
    run(watch, 0, SECOND_NS)
    assert (len(world.of("short")) > 1, world.drops) == (True, 0)
    watch.obey({"t": "done", "capture": "c1"}, SECOND_NS)
    run(watch, SECOND_NS, 2 * SECOND_NS)
    assert (watch.is_over, guard.finished, world.of("memory")) == (True, 0, [])


def test_memory_is_measured_once_after_the_trace_is_written_and_not_in_the_hook(world: World) -> None:
    guard = Guard(short_at=99 * SECOND_NS, begins_at=0)
    watch = guarded(world, guard)
    run(watch, 0, SECOND_NS)
    watch.obey({"t": "done", "capture": "c1", "after_ns": SECOND_NS}, SECOND_NS)
    assert guard.finished == 0  # obey may run in an optimizer step, tick never does
    run(watch, SECOND_NS, 3 * SECOND_NS)
    assert (guard.finished, world.of("memory")[0]["after_bytes"], world.drops) == (1, 2, 0)
