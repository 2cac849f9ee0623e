"""The report's tables as Parquet files: what was in the report comes back, with types, units and meanings."""

import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from fleetprof_analyzer.views.parquet import PyArrowMissing, write_tables
from fleetprof_api.report.report import Rank, Report, TimeBreakdown
from fleetprof_api.tables import columns_of, list_tables

START = 1_790_857_026_123_456_789  # passes 2^53
REPORT = Report(
    title="llama",
    ranks=[
        Rank(rank=0, source="a.json", kind="gpu", time_basis="device", time_ns=TimeBreakdown(idle=7), start_ns=START),
        Rank(rank=None, source="b.json", kind="cpu", time_basis="host", time_ns=TimeBreakdown()),
    ],
    whole_traces=[0],
)


def test_every_table_comes_back_as_it_was(tmp_path: Path) -> None:
    written = write_tables(REPORT, tmp_path / "tables")
    assert [path.name for path in written] == [f"{table.name}.parquet" for table in list_tables()]
    assert sorted(written) == sorted((tmp_path / "tables").iterdir())
    for table, path in zip(list_tables(), written, strict=True):
        assert pyarrow.parquet.read_table(path).to_pydict() == columns_of(REPORT, table)


def test_types_follow_the_layout_even_where_a_table_is_empty(tmp_path: Path) -> None:
    write_tables(Report(), tmp_path)
    ranks = pyarrow.parquet.read_schema(tmp_path / "ranks.parquet")
    assert ranks.field("rank").type == pyarrow.int64()
    assert ranks.field("rank").nullable
    assert ranks.field("source").type == pyarrow.string()
    assert not ranks.field("source").nullable
    assert ranks.field("stages_inferred").type == pyarrow.list_(pyarrow.string())
    assert pyarrow.parquet.read_metadata(tmp_path / "findings.parquet").num_rows == 0


def test_unit_and_meaning_travel_in_the_file(tmp_path: Path) -> None:
    write_tables(REPORT, tmp_path)
    schema = pyarrow.parquet.read_schema(tmp_path / "ranks.parquet")
    assert schema.field("time_idle_ns").metadata[b"unit"] == b"ns"
    assert schema.field("time_idle_ns").metadata[b"meaning"] == b"none of them"
    assert schema.metadata[b"fleetprof.table"] == b"ranks"
    assert schema.metadata[b"fleetprof.schema_version"] == b"1"


def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PyArrowMissing, match="pip install pyarrow"):
        write_tables(REPORT, tmp_path)
    assert not list(tmp_path.iterdir())
