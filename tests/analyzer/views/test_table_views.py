"""Views of operators that launch, peak memory, waits for batches, and idle causes by iteration."""

from typing import Any

import pytest
from fleetprof_analyzer.slices.writer import encode_slice
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_analyzer.words.causes import add_iterations, longest_iteration
from fleetprof_analyzer.words.launches import add_copies
from fleetprof_analyzer.words.tables import list_data_loading, list_memory, list_operators
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.rank_tables import MemoryPeak, OperatorLaunches
from fleetprof_api.report.report import Iteration, KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import CopyStatistics, LaunchStatistics
from harness.reports.page_text import page_text

MS = 10**6


def rank(number: int | None = 0, **more: Any) -> Rank:
    return Rank(rank=number, source="t", kind="gpu", time_basis="device", time_ns=TimeBreakdown(), **more)


def iteration(index: int, host_ms: int, launching_ms: int = 0) -> Iteration:
    idle_ns = IdleCauses(host=host_ms * MS, host_python=host_ms * MS, launching=launching_ms * MS)
    return Iteration(index=index, start_ns=0, duration_ns=100 * MS, idle_ns=idle_ns)


def peak(device: str, allocated: int | None, reserved: int | None = None) -> MemoryPeak:
    return MemoryPeak(device=device, allocated_bytes=allocated, reserved_bytes=reserved)


@pytest.mark.parametrize(
    ("of_ranks", "expected"),
    [
        ([(3 << 20, 10**9)], "3.00 MiB"),
        ([(3 << 20, None)], "3.00 MiB"),  # rows without a duration
        ([(0, 0)], "0 bytes"),
        ([(0, None)], "size not recorded"),
        ([(0, None), (0, None)], "size not recorded"),
        ([(3 << 20, 10**9), (0, None)], "at least 3.00 MiB"),
    ],
)
def test_copies_without_a_size_are_no_copies_of_0_bytes(of_ranks: list[tuple[int, int | None]], expected: str) -> None:
    ranks = []
    for number, (size_bytes, rate) in enumerate(of_ranks):
        copy = CopyStatistics(kind="HtoD", pageable=True, count=2, total_ns=MS, bytes=size_bytes, bytes_per_s=rate)
        ranks.append(rank(number, copies=[copy], launches=LaunchStatistics(launches=5)))
    assert [copies.size for copies in add_copies(ranks)] == [expected]
    report = Report(ranks=ranks)
    assert f"× HtoD, pageable: {expected}" in render_text(report, 100)
    assert f'"size":"{expected}"' in page_text(report)


@pytest.mark.parametrize(
    ("peaks", "line"),
    [
        ([[peak("cuda:0", 2 << 30, 3 << 30)], [peak("cuda:0", 5 << 30)]],
         "Peak memory: 5.00 GiB allocated on cuda:0, rank 1; the lowest of 2 2.00 GiB"),
        ([[peak("cuda:0", 2 << 30, 3 << 30), peak("cpu", 9 * 10**9)]],
         "Peak memory: 2.00 GiB allocated, 3.00 GiB reserved on cuda:0, rank 0"),
        ([[peak("cpu", 9 << 20)]], "Peak memory: 9.00 MiB allocated on cpu, rank 0"),
        ([[peak("cuda:0", None)]], ""),
        ([[]], ""),
    ],
)  # fmt: skip
def test_the_highest_peak_is_named(peaks: list[list[MemoryPeak]], line: str) -> None:
    report = Report(ranks=[rank(number, memory=of_rank) for number, of_rank in enumerate(peaks)])
    assert "".join(list_memory(report)) == line
    assert ('"peaks":[]' not in page_text(report)) == bool(line)


def test_the_longest_wait_for_batches_is_named() -> None:
    assert list_data_loading(Report(ranks=[rank()])) == []
    ranks = [rank(0, data_loading_ns=5 * MS), rank(1, data_loading_ns=50 * MS, iterations=[iteration(1, 0)] * 2)]
    assert list_data_loading(Report(ranks=ranks)) == [
        "Waiting for batches: at most 50.0 ms, 25.0 % of its iterations (rank 1)"
    ]


def test_operators_show_what_they_launched_themselves() -> None:
    operators = [
        OperatorLaunches(name="aten::<b>mm\x1b[1m", calls=2, own_launches=3, own_device_ns=7 * MS, launches=3),
        OperatorLaunches(name="aten::linear", calls=2, launches=3, device_ns=7 * MS),
    ]
    report = Report(launching_operators=operators)
    heading, line = list_operators(report, 80)
    assert line.split()[:4] == ["7.00", "ms", "3", "×"]
    assert "aten::<b>mm" in line
    assert "\x1b" not in line
    assert "aten::linear" in page_text(report)
    assert heading in render_text(report, 100)


def test_iterations_are_added_up_over_ranks_by_their_number() -> None:
    ranks = [rank(0, iterations=[iteration(7, 2, 1), iteration(8, 2)]), rank(1, iterations=[iteration(8, 4)])]
    found = add_iterations(ranks)
    assert [(index, idle, causes.host, causes.launching) for index, idle, causes in found] == [
        (7, 3 * MS, 2 * MS, MS), (8, 6 * MS, 6 * MS, 0),
    ]  # fmt: skip
    assert add_iterations([rank(0, iterations=[Iteration(index=1, start_ns=0, duration_ns=9)])]) == []


@pytest.mark.parametrize(
    ("idle_ms", "words"),
    [
        ([2, 2, 9, 2], "most in iteration 2: 9.00 ms, of it host 100.0 %"),
        ([2, 2, 2, 2], ""),  # no more than elsewhere
        ([2, 9], ""),  # too few to tell
        ([], ""),
    ],
)
def test_an_iteration_that_stands_apart_is_named(idle_ms: list[int], words: str) -> None:
    ranks = [rank(0, iterations=[iteration(index, host_ms) for index, host_ms in enumerate(idle_ms)])]
    assert longest_iteration(ranks) == words
    time_ns = TimeBreakdown(span=100 * MS, compute=90 * MS, idle=10 * MS)
    total = KindTotal(
        kind="gpu", time_basis="device", ranks=1, time_ns=time_ns, idle_ns=IdleCauses(host=10 * MS, host_python=10 * MS)
    )
    report = Report(totals=[total], ranks=ranks)
    assert words in render_text(report, 100)
    assert encode_slice(report, "idle").count(b'"iteration":') == len(idle_ms)
