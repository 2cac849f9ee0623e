"""`top`: figures as tables, as JSON, and of nothing."""

import json
from typing import Any

import pytest
from fleetprof_api.telemetry.figures import (
    Aggregate,
    FleetFigures,
    RankFigures,
    Throttled,
    WorkloadFigures,
    WorstGpuFigures,
)
from fleetprof_cli.messages import Failure
from fleetprof_cli.terminal.top_view import draw_top, show_top
from rich.console import Console


def same(value: float, count: int = 1) -> Aggregate:
    return Aggregate(mean=value, min=value, max=value, sum=count * value, count=count, lowest_rank=0)


def job(name: str, figures: dict[str, Aggregate], **fields: Any) -> WorkloadFigures:
    given: dict[str, Any] = {"world_size": 8, "gpus": 8, "start_unix_ns": 1, "at_unix_ns": 2}
    return WorkloadFigures(namespace="team", kind="Job", name=name, ranks=8, figures=figures, **(given | fields))


BUSY = job(
    "llama\x1b[31m",
    {"iterations_per_second": same(2.0, 8), "gpu_busy_ratio": same(0.5, 8), "gpu_power_watts": same(500.0, 8)},
    lowest_shares={"gpu_busy_ratio": 0.4},
    throttled=Throttled(thermal=2),
    worst_gpu=WorstGpuFigures(rank=3, node="n1", device="H100", joules_over_peers=1.2),
)
IDLE = job("cpu", {"iterations_per_second": same(0.0)}, gpus=0, world_size=0)
FLEET = FleetFigures(at_unix_ns=1, interval_ns=5 * 10**9, workloads=[BUSY, IDLE])


def text(figures: FleetFigures, name: str = "") -> list[list[str]]:
    console = Console(width=300)
    with console.capture() as capture:
        console.print(draw_top(figures, name, "nothing runs"))
    return [line.split() for line in capture.get().splitlines() if line.strip()]


def test_jobs_have_the_columns_that_somebody_has_a_figure_for() -> None:
    assert text(FLEET)[0] == ["JOB", "NAMESPACE", "RANKS", "ITER/S", "GPU", "POWER", "NOTE"]
    assert " ".join(text(FLEET)[1]) == (
        "Job/llama\ufffd[31m team 8/8 2 50 % 4000 W worst GPU: rank 3 on n1; rank 0: GPU 40% of its peers'; 2 GPUs hot"
    )
    assert text(FLEET)[2] == ["Job/cpu", "team", "8/8", "0"]


def test_one_job_has_its_ranks() -> None:
    members = [RankFigures(0, "pod-0", "n0", "H100", {"gpu_busy_ratio": 0.9}), RankFigures(None, "pod-1", "n1", "", {})]
    lines = text(FleetFigures(at_unix_ns=1, interval_ns=1, workloads=[job("one", {}, members=members)]), "one")
    assert lines[2:] == [["RANK", "POD", "NODE", "GPU"], ["0", "pod-0", "n0", "90", "%"], ["pod-1", "n1"]]


def test_ranks_that_are_not_told_have_a_reason() -> None:
    lines = text(FleetFigures(at_unix_ns=1, interval_ns=1, workloads=[job("one", {})]), "one")
    assert " ".join(lines[2]) == (
        'Its ranks are not shown, because its pods do not have the label fleetprof.io/rank-metrics: "true".'
    )


async def test_json_is_the_whole_document(capsys: pytest.CaptureFixture[str]) -> None:
    async def ask() -> FleetFigures:
        return FLEET

    await show_top(ask, job="", output="json", none="")
    document = json.loads(capsys.readouterr().out)
    assert document["workloads"][0]["figures"]["gpu_power_watts"]["sum"] == 4000


async def test_no_job_is_said_and_a_job_that_is_not_there_refused() -> None:
    async def ask() -> FleetFigures:
        return FleetFigures(at_unix_ns=1, interval_ns=1)

    assert text(await ask()) == [["nothing", "runs"]]
    with pytest.raises(Failure, match="no job 'x' runs now"):
        await show_top(ask, job="x", output="text", none="")
