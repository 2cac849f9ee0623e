"""The tables as DataFrames: types that do not depend on the content, and words for whoever looks."""

import re
import subprocess
import sys
from pathlib import Path
from typing import IO

import msgspec
import pandas
import pytest
from fleetprof import Profile, Tables
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from fleetprof_api.tables import list_tables

START = 1_790_857_026_123_456_789  # passes 2^53
REPORT = Report(
    title="job\x1b[31m",
    ranks=[
        Rank(rank=0, source="a.json", kind="gpu", time_basis="device", time_ns=TimeBreakdown(idle=7), start_ns=START),
        Rank(rank=None, source="b.json", kind="cpu", time_basis="host", time_ns=TimeBreakdown()),
    ],
    findings=[Finding(kind="python", message="the \x07 GPU waits", gain_permille=120)],
)


class Nowhere:
    address = "nowhere"

    def open(self, source: str) -> IO[bytes]:
        raise AssertionError(source)

    def path(self, source: str) -> Path:
        raise AssertionError(source)


def test_integers_stay_integers_also_where_one_is_missing() -> None:
    ranks = Tables(REPORT)["ranks"]
    assert str(ranks.dtypes["rank"]) == "Int64"
    assert ranks["rank"].tolist() == [0, pandas.NA]
    assert ranks["start_ns"].tolist() == [START, 0]
    assert ranks["time_idle_ns"].sum() == 7


@pytest.mark.parametrize("name", [table.name for table in list_tables()])
def test_an_empty_table_has_the_columns_and_types_of_a_full_one(name: str) -> None:
    empty, full = Tables(Report())[name], Tables(REPORT)[name]
    assert list(empty.columns) == list(full.columns)
    assert empty.dtypes.equals(full.dtypes)
    assert list(Tables(REPORT).describe(name).index) == list(full.columns)


def test_tables_are_a_mapping_with_attributes() -> None:
    tables = Tables(REPORT)
    assert tables.ranks is tables["ranks"]
    assert list(tables) == [table.name for table in list_tables()]
    assert "kernels" in dir(tables)
    with pytest.raises(KeyError, match="there is no table 'nothing'; there are report, "):
        tables["nothing"]
    with pytest.raises(AttributeError, match="there is no table 'nothing'"):
        tables.nothing  # noqa: B018
    assert re.search(r"^ranks +2 rows  One trace", repr(tables), re.MULTILINE)


def test_a_profile_shows_itself_without_control_characters() -> None:
    shown = repr(Profile(REPORT, Nowhere()))
    assert shown.startswith("job\N{REPLACEMENT CHARACTER}[31m: 2 ranks, from nowhere\n")
    assert "12.0 % at most: The \N{REPLACEMENT CHARACTER} GPU waits" in shown
    assert ".tables: report, ranks, findings" in shown
    assert not {"\x1b", "\x07"} & set(shown)


def test_in_a_notebook_it_is_the_same_as_text_in_html() -> None:
    hostile = msgspec.structs.replace(REPORT, title="<script>alert(1)</script>")
    shown = Profile(hostile, Nowhere())._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;: 2 ranks, from nowhere" in shown
    assert "12.0 %</td><td style='text-align: left'>The \N{REPLACEMENT CHARACTER} GPU waits" in shown
    assert "<code>ranks</code>" in shown
    assert "<script" not in shown
    tables = Tables(REPORT)._repr_html_()
    assert "<code>ranks</code></td><td>2</td><td style='text-align: left'>One trace" in tables


def test_findings_and_stragglers_are_tables() -> None:
    profile = Profile(REPORT, Nowhere())
    assert profile.findings["kind"].tolist() == ["python"]
    assert profile.stragglers.empty


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, fleetprof; print([m for m in ('pandas', 'pyarrow', 'hta', 'boto3', 'grpc', 'numba')"
        " if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_without_pandas_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        _ = Tables(REPORT).ranks
