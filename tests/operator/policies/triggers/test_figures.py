"""The figures of a job for policies: what the hub's sidecars and their telemetry tell, planted here rank by rank."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.policies.triggers.figures import HubFigures, Job
from harness.hub.telemetry_reports import S, rank, record, report

LLAMA = Job("team", "batch/v1", "Job", "llama")


class _Up:
    """A link that nothing is sent on."""

    def send(self, message: pb.HubMessage) -> None: ...

    def close(self, why: str) -> None: ...


@pytest.mark.parametrize(
    ("reports", "activity_permille", "lowest"),
    [
        (
            [rank(0, gpu_busy_permille=900, gpu_sm_active_permille=300), rank(1, gpu_sm_active_permille=100)],
            200,  # SMs go before the driver's utilisation, which hides idle ones
            (1, 500),
        ),
        ([rank(0, gpu_busy_permille=900), rank(1, gpu_busy_permille=300)], 600, (1, 500)),
        ([rank(0, gpu_busy_permille=900), rank(1)], 900, (0, 1000)),  # one that tells nothing is no zero
        ([rank(0, gpu_busy_permille=0), rank(1, gpu_busy_permille=0)], 0, None),  # no share of nothing
        ([rank(0, iterations=7), rank(1, iterations=7)], None, None),  # without a GPU
        ([], None, None),  # no telemetry
    ],
)
def test_the_activity_of_a_job_s_gpus(
    reports: Sequence[pb.RankTelemetry], activity_permille: int | None, lowest: tuple[int, int] | None
) -> None:
    sidecar = record(0, [0, 1], workload=pb.Workload(api_version="batch/v1", kind="Job", name="llama"))
    board = TelemetryBoard()
    board.take(sidecar, report(*reports), 50 * S)
    figures = HubFigures(
        lambda namespace: [replace(sidecar, link=_Up())],
        lambda job, name: board.measure((job.namespace, job.kind, job.name), name),
    )
    for process in sidecar.processes.values():
        process.role = pb.TRAINER
    [job] = figures.list_jobs("team", None)
    assert (job.job, job.ranks) == (LLAMA, 2)
    assert (job.activity_permille, job.lowest) == (activity_permille, lowest)
