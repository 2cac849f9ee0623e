"""Distributions as bars: every duration in one bar, equal factors of time."""

import msgspec
import numpy as np
import pytest
from fleetprof_analyzer.rank.measures.kernels.distribution import (
    count_buckets_by,
    count_in_spans,
    list_pieces,
    to_density,
    to_histogram,
)
from fleetprof_analyzer.slices.distributions import count_bars
from fleetprof_analyzer.slices.writer import encode_slice
from fleetprof_api.report.rank_tables import DeviceWorkStatistics
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from fleetprof_api.report.report_tables import Histogram
from fleetprof_api.slices.kernels import RankKernelSlice
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = {"count": 3, "total_ns": 9, "mean_ns": 3, "min_ns": 1, "max_ns": 5, "deviation_ns": 1, "p50_ns": 3,
           "p90_ns": 5, "p99_ns": 5}  # fmt: skip


@pytest.mark.parametrize(
    ("from_ns", "counts", "bars"),
    [
        ([1000], [7], [7, 0, 0, 0]),
        ([1000, 2000, 4000, 8000], [1, 2, 3, 4], [1, 2, 3, 4]),  # doubled each time: a bar each
        ([1000, 1030, 8000], [1, 2, 4], [3, 0, 0, 4]),
        ([0, 8], [1, 1], [1, 0, 0, 1]),
        ([], [], []),
    ],
)
def test_equal_steps_are_equal_factors(from_ns: list[int], counts: list[int], bars: list[int]) -> None:
    assert count_bars(Histogram(from_ns=from_ns, counts=counts), 4) == bars


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40))
def test_every_duration_is_in_one_bar(durations: list[int]) -> None:
    histogram = to_histogram(count_buckets_by(np.zeros(len(durations), np.int64), np.array(durations, np.int64))[0])
    assert sum(count_bars(histogram)) == len(durations)


def count(durations: list[int]) -> dict[int, int]:
    return count_buckets_by(np.zeros(len(durations), np.int64), np.array(durations, np.int64))[0]


@pytest.mark.parametrize(
    ("durations", "low", "high", "density"),
    [
        ([0, 1, 1, 23], 0, 24, [250, 500, *[0] * 21, 250]),
        ([0, 1, 1, 40], 0, 24, [250, 500, *[0] * 22]),  # above the last span: not drawn
        ([0, 2], 0, 48, [500, 500, *[0] * 22]),
        ([7, 7], 7, 7, []),
    ],
)
def test_a_rank_keeps_a_kernels_distribution_in_spans(
    durations: list[int], low: int, high: int, density: list[int]
) -> None:
    assert to_density(count(durations), low, high) == density


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40), st.integers(1, 60))
def test_spans_hold_what_the_buckets_of_a_report_hold(durations: list[int], spans: int) -> None:
    pieces = list(list_pieces(to_histogram(count(durations))))
    found = count_in_spans(pieces, 0, max(end for _, end, _ in pieces), spans)
    assert sum(found) == pytest.approx(len(durations))


def test_each_ranks_longest_kernels_stand_beside_each_other() -> None:
    work = [
        DeviceWorkStatistics(name=name, work_class="compute", density=[], **NUMBERS)
        for name in ("(all)", "gemm", "a", "b", "c")
    ]
    ranks = [
        Rank(rank=number, source="t", kind="gpu", time_basis="device", time_ns=TimeBreakdown(), device_work=work)
        for number in (0, 1)
    ]
    slice_ = msgspec.json.decode(encode_slice(Report(ranks=ranks), "rank_kernels"), type=RankKernelSlice)
    assert [(one.rank, [row.name for row in one.work]) for one in slice_.ranks] == [
        (number, ["(all)", "gemm", "a", "b", "c"]) for number in (0, 1)
    ]
