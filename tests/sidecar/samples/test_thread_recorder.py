"""Agents' words on the training thread as a rank's samples, whatever they say and in which order."""

from itertools import permutations
from typing import Any

import pytest
from fleetprof_api.samples import CodePlace, RankSamples
from fleetprof_sidecar.samples.thread_recorder import ThreadRecorder

COUNTERS = {"ran_ns": [1, 2], "waited_ns": [3, 4], "process_ran_ns": [5, 6], "process_waited_ns": [None, 8]}
CORES = {"usable_cores": 2, "cpu_limit_millicores": 1500, "torch_threads": 1}
PLACES = {
    "first": 0,
    "file": ["t.py", "t.py"],
    "function": ["main", "load"],
    "line": [9, 3],
    "generator": [False, True],
}
STACKS = {"first": 0, "stacks": [[1, 0], [0]]}
ROWS: dict[str, Any] = {"at_unix_ns": [20, 10], "stack": [1, 0], **COUNTERS, "involuntary_switches": [0, 0], **CORES}
SAID = [("places", PLACES), ("stacks", STACKS), ("thread", ROWS)]


def recorded(*messages: tuple[str, dict[str, Any]]) -> RankSamples:
    recorder = ThreadRecorder()
    for kind, fields in messages:
        recorder.add(kind, fields)
    samples = RankSamples(rank=0)
    recorder.fill(samples)
    return samples


@pytest.mark.parametrize("order", list(permutations(SAID)))
def test_samples_are_in_order_whatever_the_order_of_the_messages(order: Any) -> None:
    samples = recorded(*order, *order)
    assert samples.places == [
        CodePlace(file="t.py", function="main", line=9),
        CodePlace(file="t.py", function="load", line=3, generator=True),
    ]
    assert samples.stacks == [[1, 0], [0]]
    assert (samples.thread.at_unix_ns, samples.thread.stack) == ([10, 20], [0, 1])
    assert (samples.thread.ran_ns, samples.thread.process_waited_ns) == ([2, 1], [8, None])
    assert (samples.usable_cores, samples.cpu_limit_millicores, samples.torch_threads) == (2, 1500, 1)


def test_looks_at_memory_are_in_order() -> None:
    held = recorded(("held", {"at_unix_ns": [9, 3], "own_bytes": [8192, 4096]})).held
    assert (held.at_unix_ns, held.own_bytes) == ([3, 9], [4096, 8192])


@pytest.mark.parametrize(
    ("messages", "stacks", "stack"),
    [
        (SAID[1:], [], [None, None]),
        (SAID[2:], [], [None, None]),
        (
            [("places", {**PLACES, "first": 1}), ("stacks", {"first": 1, "stacks": [[2, 1]]}), SAID[2]],
            [[1, 0]],
            [None, 0],
        ),
        ([SAID[0], ("stacks", {"first": 0, "stacks": [[7], [1]]}), SAID[2]], [[1]], [None, 0]),
    ],
    ids=["no places", "no stacks", "later ones only", "a place that was never told"],
)
def test_what_was_not_told_is_nobodys(messages: Any, stacks: list[list[int]], stack: list[int | None]) -> None:
    samples = recorded(*messages)
    assert (samples.stacks, samples.thread.stack) == (stacks, stack)
    assert all(number < len(samples.places) for one in samples.stacks for number in one)


@pytest.mark.attack
def test_it_is_bounded() -> None:
    rows = [
        (
            "thread",
            {
                name: [value + at for value in values] if name == "at_unix_ns" else values
                for name, values in ROWS.items()
            },
        )
        for at in range(0, 100_000, 100)
    ]
    lines = {"first": 1023, "file": ["t.py"] * 50, "function": ["f"] * 50, "line": [1] * 50, "generator": [False] * 50}
    samples = recorded(*rows * 6, ("places", lines), ("stacks", {"first": 1023, "stacks": [[1023]] * 50}))
    assert len(samples.thread.at_unix_ns) == len(samples.thread.stack) <= 4096
    assert (len(samples.places), samples.stacks) == (1, [[0]])
