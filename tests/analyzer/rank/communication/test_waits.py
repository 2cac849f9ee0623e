"""A host's waits are told by what they do: they end when the work ends that was launched before, again and again."""

from collections.abc import Sequence

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.launches import launch_times
from fleetprof_analyzer.rank.communication.waiting.waits import find_waits
from fleetprof_analyzer.trace.trace import COLUMNS, NO_ROWS, Category, Rows, Trace, TraceMetadata

US = 1000
ITERATION_US, LAUNCH_US, WORK_US = 2_000, 5, 900
Row = tuple[int, str, str, int, int, int]  # category, name, place, start and length in µs, correlation


def trace_of(rows: Sequence[Row]) -> Trace:
    names, places = sorted({row[1] for row in rows}), sorted({row[2] for row in rows})
    columns = {column: np.full(len(rows), -1, getattr(NO_ROWS, column).dtype) for column in COLUMNS}
    columns["category"] = np.array([row[0] for row in rows], np.int8)
    columns["name"] = np.array([names.index(row[1]) for row in rows], np.int32)
    columns["place"] = np.array([places.index(row[2]) for row in rows], np.int32)
    columns["start_ns"] = US * np.array([row[3] for row in rows], np.int64)
    columns["duration_ns"] = US * np.array([row[4] for row in rows], np.int64)
    columns["correlation"] = np.array([row[5] for row in rows], np.int64)
    return Trace("r", TraceMetadata(), Rows(**columns), names, [(place, place) for place in places])


def iterations(goes_on_us: Sequence[int], call: str = "", *, loads: bool = False) -> Trace:
    """Each launches 900 µs of work at its begin and goes on with an operator so long after that; a call between."""
    rows: list[Row] = []
    for number, after in enumerate(goes_on_us):
        begin = number * ITERATION_US
        rows += [
            (Category.RUNTIME, "launch", "thread", begin, LAUNCH_US, number),
            (Category.KERNEL, "kernel", "stream", begin + LAUNCH_US, WORK_US, number),
            (Category.OPERATOR, "aten::add", "thread", begin + after, 20, -1),
        ]
        if call:
            rows.append((Category.RUNTIME, call, "thread", begin + 50, after - 51, -1))
        if loads:
            rows.append((Category.ANNOTATION, "enumerate(DataLoader)#next", "thread", begin + 20, after - 20, -1))
    return trace_of(rows)


def waited_us(trace: Trace) -> int:
    work, host = trace.rows.select(trace.rows.on_device), trace.rows.select(~trace.rows.on_device)
    found = find_waits(host, trace.names, work, launch_times(trace, work))
    assert found is not None
    return int((found.known[1] - found.known[0]).sum()) // US


END = LAUNCH_US + WORK_US
BEHIND = [END + 3, END + 8, END + 5, END + 4]
CASES = {
    "a call that the recorder names a wait": (iterations([400] * 4, "cudaStreamSynchronize"), 4 * 349),
    "a call of any name that ends behind the work": (iterations(BEHIND, "hipMemcpyWithStream"), 3_440),
    "in no row": (iterations(BEHIND), 3_620),
    "what the thread does afterwards is its own": (iterations([END + 15, END + 16, END + 17, END + 18]), 3_660),
    "a call that returns while the work goes on": (iterations([400] * 4, "hipMemcpyWithStream"), 0),
    "a call that lasts as long as it does, whenever the work ends": (
        iterations([END + 300, END + 90, END + 240, END + 160], "writeCheckpoint"), 0,
    ),
    "twice is chance": (iterations(BEHIND[:2]), 0),
    "marked loading is no wait, whenever it ends": (iterations(BEHIND, loads=True), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_stretch_is_a_wait_if_it_ends_behind_its_work_again_and_again(name: str) -> None:
    trace, expected = CASES[name]
    assert waited_us(trace) == pytest.approx(expected, abs=4 * 16)


def test_a_thread_that_asks_again_and_again_waits() -> None:
    trace = iterations(BEHIND)
    asks: list[Row] = [
        (Category.RUNTIME, "cudaEventQuery", "thread", number * ITERATION_US + at, 2, -1)
        for number, goes_on in enumerate(BEHIND)
        for at in range(goes_on - 3, 30, -20)
    ]
    rows: list[Row] = [
        (int(category), trace.names[name], trace.places[place][0], start // US, length // US, correlation)
        for category, name, place, start, length, correlation in zip(
            *(getattr(trace.rows, column).tolist() for column in COLUMNS[:6]), strict=True
        )
    ]
    assert waited_us(trace_of([*rows, *asks])) == pytest.approx(3_610, abs=10)


LAYER_US = (300, 340, 280, 360, 310, 330, 290, 350)


@pytest.mark.parametrize(
    ("after_us", "waits"),
    [
        (LAYER_US, True),  # behind the first row of each iteration, whose second goes on
        ([250] * len(LAYER_US), False),  # whenever rows end
    ],
)
def test_a_stretch_that_ends_behind_a_part_of_its_work_is_a_wait(after_us: Sequence[int], waits: bool) -> None:
    rows: list[Row] = []
    for number, (layer, after) in enumerate(zip(LAYER_US, after_us, strict=True)):
        begin = number * ITERATION_US
        first, second = 2 * number, 2 * number + 1
        rows += [
            (Category.RUNTIME, "launch", "thread", begin, LAUNCH_US, first),
            (Category.KERNEL, "kernel", "stream", begin + LAUNCH_US, layer, first),
            (Category.RUNTIME, "launch", "thread", begin + LAUNCH_US, LAUNCH_US, second),
            (Category.KERNEL, "kernel", "stream", begin + LAUNCH_US + layer, 900, second),
            (Category.OPERATOR, "aten::add", "thread", begin + LAUNCH_US + after + 6, 20, -1),
        ]
    expected = sum(LAYER_US) if waits else 0
    assert waited_us(trace_of(rows)) == pytest.approx(expected, abs=10)


def test_nothing_is_known_without_calls() -> None:
    trace = trace_of([(Category.KERNEL, "kernel", "stream", 0, 10, 1)])
    assert find_waits(NO_ROWS, trace.names, trace.rows, launch_times(trace, trace.rows)) is None
