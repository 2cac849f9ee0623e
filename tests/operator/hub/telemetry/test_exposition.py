"""The metrics of workloads: documented, bounded, and of nothing that nobody reports."""

import re
from pathlib import Path
from typing import Any

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.telemetry.measures import LOWEST_OF, MEASURES
from fleetprof_operator.hub.telemetry import snapshot
from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.hub.telemetry.snapshot import count_left_out, take_snapshot
from harness.hub.telemetry_reports import EVERY_LABEL, S, full_board, rank, record, report
from prometheus_client import CollectorRegistry, generate_latest

ROOT = Path(__file__).parents[4]


async def expose(board: TelemetryBoard) -> str:
    registry = CollectorRegistry()
    registry.register(await take_snapshot(board))
    return generate_latest(registry).decode()


async def test_every_metric_is_documented_and_nothing_else() -> None:
    text = await expose(full_board(S))
    exposed = set(re.findall(r"^# TYPE (fleetprof_\w+) ", text, re.MULTILINE))
    page = (ROOT / "docs/metrics.md").read_text().partition("## The workloads'")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(fleetprof_workload_\w+)` \|", page, re.MULTILINE))
    assert documented == {name for name in exposed if not name.startswith("fleetprof_rank_")}
    assert {f"fleetprof_workload_{measure.name}" for measure in MEASURES} <= documented
    for measure in LOWEST_OF:
        assert f"`{measure}`" in page


async def test_series_of_one_workload() -> None:
    text = await expose(full_board(S))
    job = 'kind="Job",namespace="team",workload="llama"'
    for line in (
        f'fleetprof_workload_gpu_busy_ratio{{aggregation="mean",{job}}} 0.007',
        f"fleetprof_workload_ranks{{{job}}} 4.0",
        f"fleetprof_workload_gpu_energy_joules_total{{{job}}} 0.028",
        f'fleetprof_workload_lowest_rank{{kind="Job",measure="gpu_sm_clock_hertz",{job[11:]}}} 3.0',
        'fleetprof_workload_worst_gpu_info{kind="Job",namespace="team",node="node-0",rank="3",workload="llama"} 1.0',
        'fleetprof_rank_gpu_sample_joules{kind="Job",namespace="team",node="node-0",rank="3",workload="llama"} '
        "0.000109375",
        'fleetprof_rank_gpu_sm_clock_hertz{kind="Job",namespace="team",node="node-0",rank="3",workload="llama"} 5e+06',
    ):
        assert line in text.splitlines()
    assert 'gpu_temperature_celsius{aggregation="sum"' not in text


async def test_what_nobody_reports_has_no_series() -> None:
    board = TelemetryBoard()
    board.take(record(0, [0]), report(rank(0, iterations=5)), S)
    text = await expose(board)
    assert set(re.findall(r"^# TYPE fleetprof_(\w+) ", text, re.MULTILINE)) == {
        "workload_ranks", "workload_world_size", "workload_gpus", "workload_start_timestamp_seconds",
        "workload_iterations_total",
    }  # fmt: skip


async def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_WORKLOADS", 2)
    monkeypatch.setattr(snapshot, "MOST_RANKS", 3)
    board = TelemetryBoard()
    for number in range(5):
        ranks = list(range(number + 1))
        ranks_reported = [rank(one, iteration_ns=S) for one in ranks]
        named: Any = {"workload": pb.Workload(kind="Job", name=f"job-{number}"), "labels": EVERY_LABEL}
        board.take(record(number, ranks, **named), report(*ranks_reported), S)
    text = await expose(board)
    assert set(re.findall(r'workload="(job-\d)"', text)) == {"job-4", "job-3"}
    assert len(re.findall(r"^fleetprof_rank_iteration_seconds\{", text, re.MULTILINE)) == 3
    assert count_left_out(board) == {"workloads": 3, "ranks": 12}
