"""The views of launches and copies, and of ranks that recorded a sample only."""

from typing import Any

import pytest
from fleetprof_analyzer.slices.writer import encode_slice
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_analyzer.words.launches import add_copies, list_launches, list_sampled
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import KindTotal, Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import CopyStatistics, LaunchStatistics
from harness.reports.page_text import page_text

MS = 10**6


def rank(number: int, **more: Any) -> Rank:
    time_ns = TimeBreakdown(span=100 * MS, compute=60 * MS, idle=40 * MS)
    return Rank(rank=number, source="t", kind="gpu", time_basis="device", time_ns=time_ns, **more)


def launches(delay_us: int, short: int, saving_ms: int) -> LaunchStatistics:
    return LaunchStatistics(
        launches=100, calls=100, delay_p50_ns=delay_us * 1000, delay_p99_ns=9 * delay_us * 1000, short=short,
        graph_saving_ns=saving_ms * MS, longest_queue=7, queue_p50=3,
    )  # fmt: skip


def copy(kind: str, size: int, rate: int | None, *, pageable: bool = False) -> CopyStatistics:
    return CopyStatistics(kind=kind, pageable=pageable, count=2, total_ns=MS, bytes=size, bytes_per_s=rate)


def test_launches_are_added_up_over_ranks() -> None:
    ranks = [rank(0, launches=launches(5, 10, 20)), rank(1, launches=launches(8, 30, 10)), rank(2)]
    report = Report(ranks=ranks)
    assert list_launches(report) == [
        "Launches and copies",
        "  from call to start 5.00 µs in the middle, 99 % within 72.0 µs",
        "  20.0 % of the work runs shorter than its call; CUDA graphs could save at most 15.0 %",
    ]
    assert page_text(report).count('"longest_queue":7') == 2
    assert list_launches(Report(ranks=[rank(0)])) == []


def test_copies_are_added_up_by_direction() -> None:
    ranks = [
        rank(0, copies=[copy("HtoD", 100, 10), copy("HtoD", 5, 1, pageable=True)]),
        rank(1, copies=[copy("HtoD", 200, 30), copy("memset", 0, None)]),
        rank(2, copies=[copy("HtoD", 300, 20)]),
    ]
    found = [(c.words, c.count, c.total_ns // MS, c.size, c.bytes_per_s) for c in add_copies(ranks)]
    assert found == [
        ("HtoD", 6, 3, "600 bytes", 20),
        ("HtoD, pageable", 2, 1, "5 bytes", 1),
        ("memset", 2, 1, "size not recorded", None),
    ]  # fmt: skip
    assert "HtoD, pageable" in page_text(Report(ranks=ranks))


@pytest.mark.parametrize(
    ("recorded", "line"),
    [
        ([14, 980, None], "Rank 0: the trace has only a sample of the operators"),
        ([14] * 10, "Rank 0, 1, 2, 3, 4, 5, 6, 7, …: the trace has only a sample of the operators"),
        ([500, None], ""),
    ],
)
def test_ranks_that_recorded_a_sample_are_marked(recorded: list[int | None], line: str) -> None:
    ranks = [
        rank(number, recorded_permille=permille, launches=launches(5, 1, 1)) for number, permille in enumerate(recorded)
    ]
    assert bool(list_sampled(ranks)) == bool(line)
    idle = IdleCauses(host=40 * MS, host_python=40 * MS)
    total = KindTotal(kind="gpu", time_basis="device", ranks=len(ranks), time_ns=ranks[0].time_ns, idle_ns=idle)
    report = Report(totals=[total], ranks=ranks)
    assert line in render_text(report, 100)
    assert (b'"sampled":[]' not in encode_slice(report, "launches")) == bool(line)
