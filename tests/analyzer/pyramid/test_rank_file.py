"""A rank's file: nothing is lost at the finest level, and each level above shows the longest of what it stands for."""

from collections import defaultdict

import msgspec
import numpy as np
import pytest
from fleetprof_analyzer.trace.trace import Category
from harness.timelines.timeline_files import Row, make_trace, read_level, write_rows, write_trace
from harness.timelines.timeline_reader import RankFile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

rows_of_a_trace = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5000), st.integers(0, 900), st.integers(0, 5)), min_size=1, max_size=150
)
# Monkeypatched once, the same for every example.
with_small_tiles = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@given(rows_of_a_trace)
@with_small_tiles
@pytest.mark.usefixtures("small_tiles")
def test_every_event_is_found_at_the_finest_level(rows: list[Row]) -> None:
    file = RankFile(write_rows(rows))
    origin = int(file.header.origin_ns)
    tracks, lanes = file.header.tracks, file.header.lanes
    names = file.header.names.text
    found = [
        (int(tracks.name[lanes.track[lane]]), start + origin, duration, int(names[name].removeprefix("aten::op")))
        for lane, start, duration, name, _ in read_level(file, len(file.header.levels) - 1)
    ]
    assert sorted(found) == sorted(rows)


@given(rows_of_a_trace)
@with_small_tiles
@pytest.mark.usefixtures("small_tiles")
def test_each_level_keeps_the_longest_of_each_lane_and_bucket_and_counts_add_up(rows: list[Row]) -> None:
    file = RankFile(write_rows(rows))
    finest = read_level(file, len(file.header.levels) - 1)
    for number, level in enumerate(file.header.levels[:-1]):
        expected: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        for lane, start, duration, name, _ in finest:
            expected[lane, start // level.bucket_ns].append((-duration, start, name))
        kept = {
            (lane, start // level.bucket_ns): ((-duration, start, name), count)
            for lane, start, duration, name, count in read_level(file, number)
        }
        assert kept == {key: (min(each), len(each)) for key, each in expected.items()}


@given(rows_of_a_trace)
@with_small_tiles
@pytest.mark.usefixtures("small_tiles")
def test_a_tile_begins_with_what_is_still_there_of_each_lane(rows: list[Row]) -> None:
    file = RankFile(write_rows(rows))
    for number, level in enumerate(file.header.levels):
        of_level = read_level(file, number)
        for at, (begin, carried) in enumerate(zip(level.tiles.start_ns, level.tiles.carried, strict=True)):
            tile = file.tile(number, at)
            found = [(int(tile["lane"][n]), int(tile["start_ns"][n])) for n in range(carried)]
            there = [(lane, start) for lane, start, length, _, _ in of_level if start < begin < start + length]
            assert found == sorted(there)


def test_a_large_trace_has_levels_and_the_coarsest_is_one_request() -> None:
    random = np.random.default_rng(7)
    starts = np.sort(random.integers(0, 10**9, 60_000))
    rows = [(int(n % 3), int(start), int(random.integers(1, 5000)), n % 7) for n, start in enumerate(starts)]
    file = RankFile(write_rows(rows))
    first, *_, last = file.header.levels
    assert (first.bucket_ns > 0, last.bucket_ns, last.rows) == (True, 0, 60_000)
    assert first.rows <= 16_384
    assert sum(first.tiles.length) < 200_000
    assert max(max(level.tiles.rows) for level in file.header.levels) < 10_000


def test_times_that_pass_32_bits_are_exact() -> None:
    rows = [(0, 0, 9_000_000_000_000, 0), (0, 5, 3, 1), (1, 8_999_999_999_999, 1, 2)]
    assert sorted(row[1:3] for row in read_level(RankFile(write_rows(rows)), 0)) == sorted(row[1:3] for row in rows)


def test_equal_traces_give_equal_bytes() -> None:
    rows = [(n % 2, n * 7 % 100, 50, n % 3) for n in range(200)]
    assert write_rows(rows) == write_rows(rows)


def test_names_have_a_class_a_count_and_a_total() -> None:
    names = RankFile(write_rows([(0, 0, 10, 0), (0, 20, 30, 1), (0, 60, 5, 1)])).header.names
    found = list(zip(names.text, names.count, names.total_ns, strict=True))
    assert found == [("aten::op1", 2, 35), ("aten::op0", 1, 10)]


def test_a_long_name_has_a_short_form() -> None:
    trace = make_trace([(0, 0, 10, 0)], Category.KERNEL)
    trace.names[0] = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, " + "x" * 5000
    )
    names = RankFile(write_trace(trace)).header.names
    assert names.short == ["add float (vectorized elementwise)"]
    assert len(names.text[0]) == 2000


@pytest.mark.parametrize(
    ("beside", "expected"),
    [((0, 0, 1, 1), "communication_exposed"), ((0, 0, 100, 1), "communication_overlapped")],
    ids=["nothing computes", "computed beside it"],
)
def test_a_collective_is_exposed_where_nothing_computes_beside_it(beside: Row, expected: str) -> None:
    trace = make_trace([beside, (1, 10, 50, 0)], Category.KERNEL)
    trace.names[:] = ["ncclDevKernel_AllReduce", "gemm"]
    trace.places[:] = [("0", "7"), ("0", "20")]
    header = RankFile(write_trace(trace)).header
    assert dict(zip(header.names.text, (header.classes[c] for c in header.names.cls), strict=True)) == {
        "ncclDevKernel_AllReduce": expected,
        "gemm": "compute",
    }
    assert header.tracks.kind == ["stream", "stream"]


def test_the_header_is_plain_json_columns() -> None:
    header = RankFile(write_rows([(0, 0, 10, 0)])).header
    assert msgspec.json.decode(msgspec.json.encode(header))["lanes"] == {"track": [0], "depth": [0]}
