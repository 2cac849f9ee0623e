"""`--tables`: the tables of a report as Parquet files, from traces or from the store; what is in the way is said."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger
from fleetprof_api.report.report import Rank, Report, TimeBreakdown, write_report
from fleetprof_api.tables import list_tables
from fleetprof_cli.local.state import StateDirectory
from harness.traces.planted.traces import plant
from msgspec import json

RANK = Rank(rank=5, source="ranks/5/trace.json.gz", kind="gpu", time_basis="device", time_ns=TimeBreakdown(idle=7))


def test_the_tables_of_traces(fleetprof: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "rank3.json").write_text(plant(rank=3).text())
    result = fleetprof("analyze", tmp_path / "rank3.json", "-o", "json", "--tables", tmp_path / "tables")
    assert result.returncode == 0, result.stderr
    assert f"tables to {tmp_path / 'tables'}" in result.stderr
    assert pyarrow.parquet.read_table(tmp_path / "tables/ranks.parquet")["rank"].to_pylist() == [3]


def test_the_tables_of_a_capture(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], state: StateDirectory, tmp_path: Path
) -> None:
    for key, data in (
        (keys.ledger_key("default", "u-1"), json.encode(Ledger(uid="u-1", name="llama", namespace="default"))),
        (keys.report_key("default", "u-1"), write_report(Report(ranks=[RANK]))),
    ):
        path = state.default_store / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    result = fleetprof("report", "llama", "-o", "path", "--tables", tmp_path / "tables")
    assert result.returncode == 0, result.stderr
    assert pyarrow.parquet.read_table(tmp_path / "tables/ranks.parquet")["time_idle_ns"].to_pylist() == [7]


def test_a_folder_that_cannot_be_written_is_named(
    fleetprof: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "rank3.json").write_text(plant(rank=3).text())
    (tmp_path / "file").write_text("")
    result = fleetprof("analyze", tmp_path / "rank3.json", "-o", "json", "--tables", tmp_path / "file/below")
    assert result.returncode == 1
    assert f"cannot write to {tmp_path / 'file/below'}: Not a directory" in result.stderr


def test_tables_and_columns_are_listed(fleetprof: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    listed = [line.split()[0] for line in fleetprof("tables").stdout.splitlines()]
    assert listed == [table.name for table in list_tables()]
    assert fleetprof("tables", "findings").stdout.splitlines()[3].split("  ")[0] == "gain_permille"
    (one,) = json.decode(fleetprof("tables", "findings", "-o", "json").stdout.encode())
    assert one["columns"][3] == {
        "name": "gain_permille",
        "type": "integer",
        "unit": "‰",
        "meaning": "of the time of the devices (or iteration) that could be saved at most",
    }
    refused = fleetprof("tables", "nothing")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no table 'nothing'" in refused.stderr
