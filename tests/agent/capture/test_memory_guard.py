"""Recordings that are too much for what the job may still take: before it, while it grows, not once it is written."""

from typing import Any

import pytest
from fleetprof_agent.capture.memory_guard import BLIND_BYTES, FLOOR_BYTES, MIB, WRITE_FACTOR, MemoryGuard
from fleetprof_api.report import recording

GIB = 1 << 30
MS = 10**6
ARM = {"first_step": 100, "last_step": 119}


class Process:
    """Memory that tests set."""

    def __init__(self, resident: int = 700 * MIB, headroom: int = 4 * GIB) -> None:
        self.resident, self.highest, self.headroom, self.kept = resident, resident, headroom, 0
        self.given_back = 0

    def resident_bytes(self) -> int:
        return self.resident

    def peak_bytes(self) -> int:
        self.highest = max(self.highest, self.resident)
        return self.highest

    def headroom_bytes(self) -> int:
        return self.headroom

    def give_back(self) -> bool:
        self.given_back += 1
        self.resident -= self.kept
        return True

    def take(self, size: int) -> None:
        self.resident += size
        self.headroom -= size

    def guard(self, **arm: Any) -> MemoryGuard:
        return MemoryGuard({**ARM, **arm}, self, self.give_back)


def test_the_floor_is_the_one_that_hub_and_sidecar_count_with() -> None:
    assert FLOOR_BYTES == recording.FLOOR_BYTES


@pytest.mark.parametrize(
    ("needed", "headroom", "short"),
    [
        (0, BLIND_BYTES + FLOOR_BYTES, False),
        (0, BLIND_BYTES + FLOOR_BYTES - 1, True),
        (GIB, GIB + FLOOR_BYTES, False),
        (GIB, GIB + FLOOR_BYTES - 1, True),
        (GIB, 0, False),  # nobody knows what is left
    ],
)
@pytest.mark.parametrize("step", [10, 105])
def test_what_the_writing_will_need_must_be_there_from_the_beginning(
    needed: int, headroom: int, short: bool, step: int
) -> None:
    guard = Process(headroom=headroom).guard(memory_needed_bytes=needed)
    assert guard.look(1, step) is short
    if short:
        assert guard.shortage == {
            "headroom_bytes": headroom,
            "needed_bytes": (needed or BLIND_BYTES) + FLOOR_BYTES,
            "recording": step > 99,
        }


def test_ranks_that_record_beside_it_need_as_much() -> None:
    arm = {"memory_needed_bytes": GIB, "ranks": 4}
    assert not Process(headroom=4 * GIB + FLOOR_BYTES).guard(**arm).look(1, 10)
    assert Process(headroom=4 * GIB + FLOOR_BYTES - 1).guard(**arm).look(1, 10)


@pytest.mark.parametrize(
    ("by_the_other", "short"),
    [(0, False), (GIB // 2, False), (GIB, False), (GIB + 1, True)],  # of its GiB; beyond that it takes this one's
)
@pytest.mark.parametrize("step", [98, 105])
def test_what_a_rank_beside_it_took_meanwhile_is_not_needed_again(by_the_other: int, short: bool, step: int) -> None:
    process = Process(headroom=2 * GIB + FLOOR_BYTES)
    guard = process.guard(memory_needed_bytes=GIB, ranks=2)
    assert not guard.look(1, 10)
    process.headroom -= by_the_other
    assert guard.look(2, step) is short
    if step > 99 and not short:
        process.take(10 * MIB)
        assert not guard.look(3, step)


def test_what_was_taken_already_is_not_needed_again() -> None:
    process = Process(headroom=GIB + FLOOR_BYTES)
    guard = process.guard(memory_needed_bytes=GIB)
    assert not guard.look(1, 98)
    process.take(100 * MIB)
    assert not guard.look(2, 105)


def test_the_jobs_own_growth_counts_while_it_waits_and_while_it_records() -> None:
    process = Process(headroom=GIB + FLOOR_BYTES)
    guard = process.guard(memory_needed_bytes=GIB)
    assert not guard.look(1, 90)
    process.take(1)
    assert guard.look(2, 91)


@pytest.mark.parametrize(
    ("needed", "grown", "headroom", "short"),
    [
        (0, 17 * MIB, GIB, False),
        (0, 45 * MIB, GIB, True),  # twelve times as much will be needed, and nobody had said so
        (0, 15 * MIB, 500 * MIB, False),  # the job's own
        (GIB, 200 * MIB, GIB, False),  # as estimated
        (GIB, 300 * MIB, 4 * GIB, True),  # three times as many events as estimated
        (GIB, 300 * MIB, 8 * GIB, False),
    ],
)
def test_a_recording_that_grows_faster_than_estimated_is_reckoned_by_its_growth(
    needed: int, grown: int, headroom: int, short: bool
) -> None:
    process = Process(headroom=headroom + grown)
    guard = process.guard(memory_needed_bytes=needed)
    guard.look(1, 98)
    process.take(grown)
    assert guard.look(2, 110) is short


def test_what_is_being_written_cannot_be_stopped_and_is_not() -> None:
    process = Process()
    guard = process.guard(memory_needed_bytes=GIB)
    guard.look(1, 98)
    process.headroom = 1
    assert not guard.look(2, 119)


def test_a_window_by_time_begins_and_ends_by_the_clock() -> None:
    process = Process(headroom=FLOOR_BYTES - 1)
    guard = process.guard(first_step=None, last_step=None, start_unix_ns=10, end_unix_ns=20)
    assert guard.look(9, 5)
    assert not guard.has_begun
    assert guard.look(10, 5)
    assert guard.has_begun
    assert not guard.look(20, 5)


def test_the_next_look_comes_before_growth_can_use_up_what_is_left() -> None:
    process, now, dropped_at = Process(headroom=2 * GIB), 0, 0
    guard = process.guard()
    guard.look(now, 99 - 1)
    rate = 100 * MIB / 10**9  # per ns: the fastest that was seen is 60 MiB/s
    while not dropped_at:
        step = max(1, guard.due - now)
        now += step
        process.take(int(rate * step))
        dropped_at = now if guard.look(now, 110) else 0
    # A drop takes 0.3 s, in which the recording goes on, and as much memory as writing: the floor is still untouched.
    process.take(int(0.3 * 10**9 * rate))
    grown = process.resident - 700 * MIB
    assert process.headroom > FLOOR_BYTES + WRITE_FACTOR * grown


@pytest.mark.parametrize(
    ("kept", "given_back", "after"), [(500 * MIB, 1, 700 * MIB), (31 * MIB, 0, 731 * MIB), (0, 0, 700 * MIB)]
)
def test_what_remains_is_given_back_and_measured(kept: int, given_back: int, after: int) -> None:
    process = Process()
    guard = process.guard()
    guard.look(1, 98)
    process.take(2 * GIB)
    process.peak_bytes()
    process.take(kept - 2 * GIB)
    process.kept = kept
    assert guard.finish() == {
        "before_bytes": 700 * MIB,
        "peak_bytes": 700 * MIB + 2 * GIB,
        "after_bytes": after,
    }
    assert process.given_back == given_back


def test_a_peak_from_before_the_recording_is_not_the_recordings() -> None:
    process = Process()
    process.highest = 9 * GIB
    guard = process.guard()
    guard.look(1, 98)
    process.take(100 * MIB)
    guard.look(2, 105)
    assert guard.finish()["peak_bytes"] == 800 * MIB
