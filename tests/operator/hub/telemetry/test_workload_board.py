"""The sums of planted ranks' reports."""

import pytest
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.telemetry.figures import Aggregate, Throttled
from fleetprof_api.telemetry.measures import HOST_MEASURES, MEASURES, RANK_MEASURES
from fleetprof_operator.hub.telemetry.board import FORGOTTEN_NS, TelemetryBoard
from harness.hub.telemetry_reports import S, rank, record, report


def test_ranks_of_two_pods_add_up() -> None:
    board = TelemetryBoard()
    first = report(
        rank(0, gpu_busy_permille=900, gpu_power_milliwatts=500_000, iterations=70, gpu_energy_millijoules=2000),
        rank(1, gpu_busy_permille=100, gpu_throttle_reasons=0x4 | 0x20, gpu_ecc_corrected=3),
        host=pb.HostTelemetry(cpu_busy_permille=200),
        unreadable=[pb.INFINIBAND],
    )
    second = report(
        rank(2, gpu_busy_permille=800, iterations=69, gpu_energy_millijoules=1000, last_iteration_unix_ns=8),
        host=pb.HostTelemetry(cpu_busy_permille=400),
        unreadable=[pb.INFINIBAND, pb.GPU_ACTIVITY],
    )
    board.take(record(0, [0, 1]), first, 50 * S)
    board.take(record(1, [2]), second, 51 * S)
    [job] = board.workloads()
    assert (job.namespace, job.kind, job.name, job.ranks, job.world_size, job.gpus) == ("team", "Job", "llama", 3, 4, 3)
    assert job.figures["gpu_busy_ratio"] == Aggregate(mean=0.6, min=0.1, max=0.9, sum=1.8, count=3, lowest_rank=1)
    assert job.figures["gpu_power_watts"].sum == 500
    assert job.figures["host_cpu_busy_ratio"].mean == pytest.approx(0.3)
    assert set(job.figures) == {"gpu_busy_ratio", "gpu_power_watts", "host_cpu_busy_ratio"}
    assert job.lowest_shares == {"gpu_busy_ratio": pytest.approx(0.1 / 0.85)}
    assert (job.iterations, job.energy_joules, job.start_unix_ns, job.at_unix_ns) == (69, 3, 5 * S, 51 * S)
    assert (job.last_iteration_unix_ns, job.ecc_corrected, job.ecc_uncorrected) == (8, 3, None)
    assert job.throttled == Throttled(power=1, thermal=1, hardware=0)
    assert job.unreadable == ["GPU_ACTIVITY", "INFINIBAND"]
    members = board.boards()[0].members()
    assert [(one.rank, one.pod, one.node) for one in members] == [
        (0, "pod-0", "node-0"), (1, "pod-0", "node-0"), (2, "pod-1", "node-1")
    ]  # fmt: skip
    assert members[2].values == pytest.approx({"gpu_busy_ratio": 0.8, "host_cpu_busy_ratio": 0.4})


def test_every_measure_has_a_source_in_the_protocol() -> None:
    for measures, message in ((RANK_MEASURES, pb.RankTelemetry), (HOST_MEASURES, pb.HostTelemetry)):
        assert {measure.source for measure in measures} <= set(message.DESCRIPTOR.fields_by_name)
    assert len({measure.name for measure in MEASURES}) == len(MEASURES)


def test_a_report_replaces_the_one_before_and_strangers_are_nobodys() -> None:
    board, pod = TelemetryBoard(), record(0, [0, 1])
    board.take(pod, report(rank(0, iterations=1), rank(1, iterations=1), rank(9, iterations=0)), S)
    assert next(board.workloads()).ranks == 2
    board.take(pod, report(rank(1, iterations=5)), 2 * S)
    assert (next(board.workloads()).ranks, next(board.workloads()).iterations) == (1, 5)
    board.take(pod, report(), 3 * S)
    assert len(board) == 0


def test_a_silent_sidecar_is_forgotten_after_a_minute_and_a_shared_host_stays() -> None:
    board, host = TelemetryBoard(), pb.HostTelemetry(cpu_busy_permille=500)
    board.take(record(0, [0], node_name="n"), report(rank(0), host=host), 0)
    board.take(record(1, [1], node_name="n"), report(rank(1), host=host), 10 * S)
    board.sweep(FORGOTTEN_NS)
    assert next(board.workloads()).ranks == 2
    board.sweep(FORGOTTEN_NS + 1)
    [job] = board.workloads()
    assert (job.ranks, job.figures["host_cpu_busy_ratio"].count) == (1, 1)
    board.sweep(FORGOTTEN_NS + 10 * S + 1)
    assert len(board) == 0


def test_energy_of_a_sample_needs_the_samples_and_all_gpus() -> None:
    board, labels = TelemetryBoard(), {"fleetprof.io/samples-per-iteration": "64"}
    pod = record(0, [0, 1], labels=labels)
    energies = [rank(number, gpu_iteration_energy_millijoules=16_000) for number in (0, 1)]
    board.take(pod, report(*energies), S)
    assert next(board.workloads()).sample_joules == 0.5
    board.take(pod, report(energies[0], rank(1)), 2 * S)
    assert next(board.workloads()).sample_joules is None
    assert [member.sample_joules for member in board.boards()[0].members()] == [0.25, None]
    board.take(record(0, [0, 1], labels={"fleetprof.io/samples-per-iteration": "many"}), report(*energies), 3 * S)
    assert next(board.workloads()).sample_joules is None


def test_a_pod_without_a_workload_is_its_own_and_the_largest_comes_first() -> None:
    board = TelemetryBoard()
    board.take(record(0, [0], workload=None), report(rank(0)), S)
    board.take(record(1, [0, 1]), report(rank(0), rank(1)), S)
    assert [(job.kind, job.name) for job in board.workloads()] == [("Job", "llama"), ("Pod", "pod-0")]
