"""The call of each collective of the device, where its launch was not recorded."""

from dataclasses import replace

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.chain.described import described_by_host
from fleetprof_analyzer.rank.communication.launches import launch_times
from fleetprof_analyzer.trace.trace import COLUMNS, NO_ROWS, Category, Collective, Rows, Trace, TraceMetadata

Call = tuple[int, str, str]  # start, collective, group
Kernel = tuple[int, int, str]  # start, stream, name
NOTHING = None


def reduces(count: int) -> list[Call]:
    return [(10 * number, "allreduce", "a") for number in range(1, count + 1)]


def reducing(count: int) -> list[Kernel]:
    return [(10 * number + 5, 20, "AllReduce") for number in range(1, count + 1)]


AHEAD: list[Call] = [(10, "allreduce", "tp"), (20, "allreduce", "tp"), (30, "allreduce", "dp"), (40, "allreduce", "tp")]
PAIR: list[Call] = [(10, "send", "there"), (20, "recv", "back")]
Case = tuple[list[Call], list[Kernel], list[int | None]]
CASES: dict[str, Case] = {
    "in order": (reduces(2), reducing(2), [0, 1]),
    "each group on a stream of its own": (
        AHEAD,
        [(15, 20, "AllReduce"), (50, 20, "AllReduce"), (45, 24, "AllReduce"), (60, 20, "AllReduce")],
        [0, 1, 2, 3],
    ),
    "kinds of one group on two streams": (
        [(10, "_allgather_base", "a"), (20, "_reduce_scatter_base", "a"), (30, "_allgather_base", "a")],
        [(50, 20, "AllGather_RING_LL"), (25, 24, "ReduceScatter"), (60, 20, "AllGather_RING_LL")],
        [0, 1, 2],
    ),
    "a kernel that says no kind": (
        [(10, "allreduce", "a"), (20, "broadcast", "a")],
        [(15, 20, "Generic_4"), (25, 20, "Generic_4")],
        [0, 1],
    ),
    "launched before the recording": (
        reduces(15),
        [(5, 20, "AllReduce"), *reducing(15)],
        [NOTHING, *range(15)],
    ),
    "the last kernels are missing": (reduces(15), reducing(14), [*range(14)]),
    "a wait runs nothing": ([(10, "allreduce", "a"), (12, "wait", "a")], [(15, 20, "AllReduce")], [0]),
    "a kernel before its call": (reduces(2), [(5, 20, "AllReduce"), (15, 20, "AllReduce")], [NOTHING] * 2),
    "sends and receives that order tells apart": (PAIR, [(15, 31, "SendRecv"), (25, 33, "SendRecv")], [0, 1]),
    "sends and receives that fit either way": (PAIR, [(25, 31, "SendRecv"), (30, 33, "SendRecv")], [NOTHING] * 2),
    "another kind": ([(10, "allreduce", "a")], [(15, 20, "AllGather")], [NOTHING]),
}


def trace_of(calls: list[Call], kernels: list[Kernel], launched: dict[int, int]) -> Trace:
    """Calls of 4 ns; `launched`: kernel -> when a runtime row launched it."""
    starts = [*(call[0] for call in calls), *(kernel[0] for kernel in kernels), *launched.values()]
    counts = len(calls), len(kernels), len(launched)
    names = ["record_param_comms", "launch", *(f"ncclDevKernel_{kernel[2]}(ncclDevKernelArgs)" for kernel in kernels)]
    columns = {column: np.full(len(starts), -1, getattr(NO_ROWS, column).dtype) for column in COLUMNS}
    columns["category"] = np.repeat((Category.OPERATOR, Category.KERNEL, Category.RUNTIME), counts).astype(np.int8)
    columns["name"] = np.array([0] * counts[0] + list(range(2, 2 + counts[1])) + [1] * counts[2], np.int32)
    columns["place"] = np.array([0] * counts[0] + [kernel[1] for kernel in kernels] + [0] * counts[2], np.int32)
    columns["start_ns"] = np.array(starts, np.int64)
    columns["duration_ns"] = np.repeat((4, 100, 1), counts).astype(np.int64)
    columns["collective"] = np.array([*range(counts[0]), *[-1] * (counts[1] + counts[2])], np.int32)
    columns["correlation"] = np.array([*[-1] * counts[0], *range(counts[1]), *launched], np.int64)
    collectives = [
        Collective(name=name, group_name=group, sequence=number) for number, (_, name, group) in enumerate(calls)
    ]
    places = [(str(place), "") for place in range(64)]
    return Trace("r", TraceMetadata(), Rows(**columns), names, places, collectives=collectives)


def described(trace: Trace) -> tuple[list[int | None], list[int]]:
    """(the call of each kernel, when it was launched)."""
    kernels = trace.rows.select(trace.rows.on_device)
    host = trace.rows.select(~trace.rows.on_device)
    found, launch = described_by_host(trace, kernels, launch_times(trace, kernels), host)
    return [None if one < 0 else one for one in found.collective.tolist()], launch.called.tolist()


@pytest.mark.parametrize(("calls", "kernels", "truth"), CASES.values(), ids=CASES)
def test_without_launches_the_order_tells_the_call(
    calls: list[Call], kernels: list[Kernel], truth: list[int | None]
) -> None:
    found, launched = described(trace_of(calls, kernels, {}))
    assert found == truth
    if NOTHING not in truth:
        assert launched == [calls[one][0] for one in truth if one is not None]


def test_a_launch_that_is_missing_takes_the_call_between_its_neighbors() -> None:
    kernels = [(10 * n + 50, 20, "AllReduce") for n in range(4)]
    trace = trace_of([(10 * n, "allreduce", "a") for n in range(4)], kernels, {0: 1, 1: 11, 3: 31})
    assert described(trace) == ([0, 1, 2, 3], [1, 11, 20, 31])


def test_what_a_kernel_says_of_its_group_tells_the_stream() -> None:
    calls: list[Call] = [(10, "allreduce", "a"), (20, "allreduce", "b")]
    trace = trace_of(calls, [(25, 20, "AllReduce"), (26, 24, "AllReduce")], {})
    assert described(trace)[0] == [None, None]
    collective = trace.rows.collective.copy()
    collective[2:4] = 1, 0
    telling = replace(trace, rows=Rows(**{c: getattr(trace.rows, c) for c in COLUMNS} | {"collective": collective}))
    assert described(telling) == ([1, 0], [20, 10])
