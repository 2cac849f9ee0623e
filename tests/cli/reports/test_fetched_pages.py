"""A fetched page links the traces that were fetched with it."""

import re
from pathlib import Path

import pytest
from fleetprof_api.report.report import write_report
from fleetprof_cli.reports.fetched_page import link_traces
from harness.reference.written_reports import job


@pytest.mark.parametrize("fetched", [[0, 1, 2, 3], [1], []])
def test_the_page_is_made_anew_for_the_folder(tmp_path: Path, fetched: list[int]) -> None:
    (tmp_path / "report.json").write_bytes(write_report(job()))
    (tmp_path / "report.html").write_text("<p>as it was stored</p>")
    for rank in fetched:
        (tmp_path / f"ranks/{rank}").mkdir(parents=True)
        (tmp_path / f"ranks/{rank}/trace.json.gz").write_bytes(b"trace")
    link_traces(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert re.findall(r'<a href="([^"]*)"', page) == [f"./ranks/{rank}/trace.json.gz" for rank in fetched]


@pytest.mark.parametrize("report", [None, b'{"schema_version": 99}', b"\xff"])
def test_where_there_is_no_readable_report_the_page_stays(tmp_path: Path, report: bytes | None) -> None:
    if report is not None:
        (tmp_path / "report.json").write_bytes(report)
    (tmp_path / "report.html").write_text("<p>as it was stored</p>")
    link_traces(tmp_path)
    assert (tmp_path / "report.html").read_text() == "<p>as it was stored</p>"
