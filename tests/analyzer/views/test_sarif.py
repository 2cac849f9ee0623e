"""Lines of a report as SARIF: findings as warnings, lines that call modules as notes."""

import json
from pathlib import PurePosixPath
from typing import Any

from fleetprof_analyzer.views.sarif import render_sarif
from fleetprof_api.report.code_place import PlaceInCode
from fleetprof_api.report.findings import Finding
from fleetprof_api.report.module_tree import ModuleNode, ModuleTimes, ModuleTree
from fleetprof_api.report.report import Report

MS = 1_000_000


def node(name: str, milliseconds: float, file: str, line: int) -> ModuleNode:
    times = ModuleTimes(host_ns=int(milliseconds * MS))
    return ModuleNode(name=name, depth=0, calls=2, forward=times, call_file=file, call_line=line, saved_bytes=3_000_000)


REPORT = Report(
    findings=[
        Finding(kind="synchronization", message="the host waits", advice="leave it out", gain_permille=123,
                place=PlaceInCode(file="/job/train loop.py", line=9)),
        Finding(kind="python", message="no line is known"),
    ],
    module_tree=ModuleTree(
        whole=ModuleTimes(host_ns=100 * MS),
        nodes=[
            node("Net\x1b", 60, "/job/model.py", 14), node("Loss", 10, "/usr/lib/loss.py", 3),
            node("Tiny", 0.5, "a.py", 1),
        ],
    ),
)  # fmt: skip


def results_of(report: Report, folder: PurePosixPath | None = None) -> list[tuple[Any, ...]]:
    log = json.loads(render_sarif(report, folder))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    found = []
    for result in run["results"]:
        assert result["ruleId"] in ids
        (location,) = result["locations"]
        place = location["physicalLocation"]
        line = place["region"]["startLine"]
        found.append((result["level"], place["artifactLocation"]["uri"], line, result["message"]["text"]))
    return found


def test_findings_and_lines_stand_at_their_place() -> None:
    assert results_of(REPORT, PurePosixPath("/job")) == [
        ("warning", "train%20loop.py", 9, "The host waits (12.3 % at most). Leave it out"),
        (
            "note", "model.py", 14,
            "Net�: 60.0 % of an iteration's work (60.0 ms, 2 calls), 2.86 MiB saved for backward.",
        ),
        (
            "note", "file:///usr/lib/loss.py", 3,
            "Loss: 10.0 % of an iteration's work (10.0 ms, 2 calls), 2.86 MiB saved for backward.",
        ),
    ]  # fmt: skip


def test_a_report_without_lines_has_no_results() -> None:
    assert results_of(Report()) == []
