"""A report's tables: which there are, what their columns mean, and what of a report stands where."""

from typing import Any

import msgspec
import pytest
from fleetprof_api.report.heterogeneity import Heterogeneity, RankTable
from fleetprof_api.report.idle_causes import IdleCauses
from fleetprof_api.report.report import (
    DeviceTime,
    HostSeries,
    Iteration,
    Rank,
    Report,
    RequestInfo,
    Series,
    TimeBreakdown,
    UnreadableReport,
)
from fleetprof_api.report.report_tables import Histogram, KernelStatistics, Stages, StageTime
from fleetprof_api.report.stragglers import Evidence, Straggler, Stragglers
from fleetprof_api.tables import Table, columns_of, list_tables
from fleetprof_api.tables.layout import join, unit_of
from fleetprof_api.tables.words import WORDS

TABLES = {table.name: table for table in list_tables()}
START = 1_790_857_026_123_456_789  # passes 2^53

TIME = TimeBreakdown(span=100, compute=60, exposed_communication=25, exposed_memory=5, idle=10)
REPORT = Report(
    title="llama",
    request=RequestInfo(uid="u-1", asked_iterations=2),
    ranks=[
        Rank(
            rank=0,
            source="r0.json",
            kind="gpu",
            time_basis="device",
            time_ns=TIME,
            idle_ns=IdleCauses(launching=10),
            devices=[DeviceTime(device="0", time_ns=TIME), DeviceTime(device="1", time_ns=TIME)],
            start_ns=START,
            iterations=[Iteration(index=7, start_ns=START, duration_ns=50)],
            stages=Stages(stages=[StageTime(stage="forward", time_ns=30)], iterations=1, inferred=["loss", "other"]),
            device_series=[Series(name="power", unit="W", at_unix_ns=[START, START + 1], values=[300.5, None])],
        ),
        Rank(rank=None, source="w1.json", kind="cpu", time_basis="host", time_ns=TimeBreakdown()),
    ],
    stragglers=Stragglers(
        verdict="straggler",
        ranks=[
            Straggler(
                rank=3,
                lateness_ns=9,
                cause="host",
                evidence=[Evidence(measure="host", value=2.0, usual=1.0, unit="ms", iterations=[1, 2])],
            )
        ],
    ),
    hosts=[HostSeries(host_name="a", ranks=[0, 1], series=[Series(name="cpu", unit="%", at_unix_ns=[1], values=[5])])],
    heterogeneity=[
        Heterogeneity(
            kind="gpu", ranks=[0, None], iterations=[7, 8], iterations_by="index", recorded=2,
            tables=[RankTable(measure="duration", unit="ns", values=[[50, None], [60]])],
        )
    ],
    kernels=[
        KernelStatistics(
            name="gemm", work_class="compute", count=3, total_ns=6, mean_ns=2, min_ns=1, max_ns=3, deviation_ns=1,
            p50_ns=2, p90_ns=3, p99_ns=3, ranks=1, histogram=Histogram(from_ns=[1, 2], counts=[1, 2]),
        )
    ],
)  # fmt: skip


def table(name: str, *columns: str, report: Report = REPORT) -> list[tuple[Any, ...]]:
    """The rows of a table, as far as these columns go."""
    found = columns_of(report, TABLES[name])
    return list(zip(*(found[column] for column in columns), strict=True))


def test_tables_and_columns_have_names_of_their_own() -> None:
    assert len(TABLES) == len(list_tables())
    for one in list_tables():
        names = [column.name for column in one.columns]
        assert len(set(names)) == len(names), one.name


@pytest.mark.parametrize("one", list_tables(), ids=lambda one: one.name)
def test_every_table_and_column_says_what_it_means(one: Table) -> None:
    assert one.meaning
    silent = [column.name for column in one.columns if not column.meaning]
    assert not silent, "give the field a Meta(description=…), or its name a word in api/fleetprof_api/tables/words.py"


def test_every_word_is_used() -> None:
    used = {w for t in list_tables() for c in t.columns for w in (f"{t.name}.{c.name}", c.name, *c.path[-1:])}
    assert WORDS.keys() <= used


@pytest.mark.parametrize(
    ("parent", "field", "column", "unit"),
    [
        ("", "rank", "rank", ""),
        ("time_ns", "idle", "time_idle_ns", "ns"),
        ("launches", "call_p50_ns", "launches_call_p50_ns", "ns"),
        ("time_ns", "share_permille", "time_share_permille", "‰"),
        ("request", "armed_unix_ns", "request_armed_unix_ns", "Unix ns"),
        ("", "bytes_per_s", "bytes_per_s", "bytes/s"),
        ("", "bytes", "bytes", "bytes"),
    ],
)
def test_the_unit_of_a_column_is_the_end_of_its_name(parent: str, field: str, column: str, unit: str) -> None:
    assert join(parent, field) == column
    assert unit_of(column) == unit


def test_structs_within_a_row_are_columns_and_what_is_missing_is_none() -> None:
    assert table("ranks", "rank", "source", "time_compute_ns", "idle_launching_ns", "start_ns", "stages_inferred") == [
        (0, "r0.json", 60, 10, START, ["loss", "other"]),
        (None, "w1.json", 0, None, 0, None),
    ]


@pytest.mark.parametrize(
    ("name", "columns", "rows"),
    [
        ("report", ("title", "request_uid", "request_asked_iterations"), [("llama", "u-1", 2)]),
        ("devices", ("rank", "source", "device", "time_idle_ns"), [(0, "r0.json", "0", 10), (0, "r0.json", "1", 10)]),
        ("iterations", ("rank", "index", "start_ns", "duration_ns"), [(0, 7, START, 50)]),
        ("stages", ("rank", "source", "stage", "time_ns"), [(0, "r0.json", "forward", 30)]),
        (
            "device_series",
            ("rank", "name", "unit", "at_unix_ns", "value"),
            [(0, "power", "W", START, 300.5), (0, "power", "W", START + 1, None)],
        ),
        ("stragglers", ("rank", "cause"), [(3, "host")]),
        ("stragglers_evidence", ("rank", "measure", "iterations"), [(3, "host", [1, 2])]),
        ("hosts", ("host_name", "ranks"), [("a", [0, 1])]),
        ("hosts_series", ("host_name", "name", "value"), [("a", "cpu", 5.0)]),
        ("heterogeneity", ("kind", "ranks", "iterations"), [("gpu", [0, None], [7, 8])]),
        ("heterogeneity_tables", ("kind", "measure", "unit", "box_median"), [("gpu", "duration", "ns", None)]),
        (
            "heterogeneity_values",
            ("kind", "measure", "rank", "iteration", "value"),
            [
                ("gpu", "duration", 0, 7, 50), ("gpu", "duration", 0, 8, None),
                ("gpu", "duration", None, 7, 60), ("gpu", "duration", None, 8, None),
            ],
        ),
        ("kernels", ("name", "count"), [("gemm", 3)]),
        (
            "kernels_histogram",
            ("name", "work_class", "from_ns", "count"),
            [("gemm", "compute", 1, 1), ("gemm", "compute", 2, 2)],
        ),
        ("problems", ("kind",), []),
    ],
)  # fmt: skip
def test_each_list_of_the_report_is_a_table(name: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    assert table(name, *columns) == rows


def test_nothing_of_a_report_is_left_out() -> None:
    def leaves(value: Any) -> set[Any]:
        if isinstance(value, dict):
            return set().union(*map(leaves, value.values()))
        return set().union(*map(leaves, value)) if isinstance(value, list) else {value}

    shown = leaves([list(columns_of(REPORT, one).values()) for one in list_tables()])
    assert leaves(msgspec.to_builtins(REPORT)) <= shown


def test_cells_beyond_the_lists_that_name_them_have_no_place() -> None:
    wide = RankTable(measure="duration", unit="ns", values=[[1, 2, 3], [4]])
    only = Heterogeneity(kind="gpu", ranks=[0], iterations=[7], iterations_by="index", recorded=1, tables=[wide])
    assert table("heterogeneity_values", "rank", "value", report=Report(heterogeneity=[only])) == [(0, 1)]


def test_lists_of_unequal_length_end_in_rows_with_nothing() -> None:
    host = HostSeries(host_name="a", ranks=[], series=[Series(name="cpu", unit="%", at_unix_ns=[1, 2], values=[5.0])])
    assert table("hosts_series", "at_unix_ns", "value", report=Report(hosts=[host])) == [(1, 5.0), (2, None)]


def test_a_number_that_no_table_can_hold_is_refused() -> None:
    with pytest.raises(UnreadableReport, match=r"made_unix_ns in report must fit into 64 bits"):
        columns_of(Report(made_unix_ns=1 << 63), TABLES["report"])
