"""The needs of a recording are counted from the last one, never below what was measured, and for each option."""

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import RecordingCost, RecordingEstimate
from fleetprof_api.report.recording import FIXED_BYTES, MIB, covers, learn, need_of


def cost(**more: int) -> RecordingCost:
    return RecordingCost(**{"iterations": 10, "events": 75_450, "trace_bytes": 19_000_000, **more})


GROWN = {"memory_before_bytes": 700 * MIB, "memory_peak_bytes": 900 * MIB}


@pytest.mark.parametrize(
    ("costs", "estimate"),
    [
        ([], None),
        ([cost(iterations=0)], None),
        ([cost(events=0)], None),
        ([cost()], RecordingEstimate(events_per_iteration=7545, trace_bytes_per_iteration=1_900_000)),
        (
            [cost(), cost(events=80_001)],
            RecordingEstimate(events_per_iteration=8001, trace_bytes_per_iteration=1_900_000),
        ),
        (
            [cost(**GROWN), cost()],
            RecordingEstimate(
                events_per_iteration=7545, memory_bytes_per_iteration=20 * MIB, trace_bytes_per_iteration=1_900_000
            ),
        ),
        # A growth as small as the job's own says nothing.
        ([cost(memory_before_bytes=1, memory_peak_bytes=99 * MIB)], learn([cost()])),
        ([cost(memory_before_bytes=900 * MIB)], learn([cost()])),
    ],
)
def test_the_next_recording_is_like_the_most_of_the_last(
    costs: list[RecordingCost], estimate: RecordingEstimate | None
) -> None:
    assert learn(costs) == estimate


@pytest.mark.parametrize(
    ("estimate", "collect", "per_iteration"),
    [
        (RecordingEstimate(events_per_iteration=1000), [], 1800 * 1000),
        (RecordingEstimate(events_per_iteration=1000), ["Stacks", "DeviceMetrics"], 1800 * 1000),
        (RecordingEstimate(events_per_iteration=1000), ["Shapes"], 5000 * 1000),
        (RecordingEstimate(events_per_iteration=1000), ["Shapes", "Stacks"], 3600 * 1000),
        # What was measured counts with a quarter more, and never below what every event was seen to take.
        (RecordingEstimate(events_per_iteration=1000, memory_bytes_per_iteration=1_600_000), ["Shapes"], 2_000_000),
        (RecordingEstimate(events_per_iteration=1000, memory_bytes_per_iteration=100), [], 1_000_000),
    ],
)
def test_memory_grows_with_events_and_with_what_each_of_them_carries(
    estimate: RecordingEstimate, collect: list[str], per_iteration: int
) -> None:
    assert need_of(estimate, 7, collect).memory_bytes == FIXED_BYTES + 7 * per_iteration
    assert need_of(estimate, 7, collect).events == 7000


def test_the_trace_is_as_long_as_the_last_and_a_quarter() -> None:
    known = RecordingEstimate(events_per_iteration=1000, trace_bytes_per_iteration=400_000)
    assert need_of(known, 2, []).trace_bytes == 1_000_000
    assert need_of(RecordingEstimate(events_per_iteration=1000), 2, []).trace_bytes == 2 * 1000 * 300 * 5 // 4


def test_nothing_known_needs_nothing_that_can_be_told() -> None:
    need = need_of(RecordingEstimate(), 100, ["Shapes"])
    assert (need.events, need.memory_bytes, need.trace_bytes) == (0, 0, 0)


@pytest.mark.parametrize(
    ("collected", "collect", "enough"),
    [
        ([], [], True),
        (["Stacks"], [], True),
        ([], ["Stacks"], False),
        (["Stacks"], ["Stacks", "Shapes"], False),
        (["Stacks", "Shapes"], ["Shapes", "DeviceMetrics"], True),
        (["Device"], [], False),
        ([], ["Device"], True),
        (["Device"], ["Device"], True),
    ],
)
def test_a_recording_without_an_option_says_nothing_of_one_with_it(
    collected: list[str], collect: list[str], enough: bool
) -> None:
    assert covers(collected, collect) == enough


def test_the_estimate_is_that_of_the_protocol() -> None:
    assert set(RecordingEstimate.__struct_fields__) == {field.name for field in pb.RecordingEstimate.DESCRIPTOR.fields}
