"""Ranks with the same work, the GPU that a report names, and what it says of energy."""

from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.job.energy import add_energy, find_worst_gpu
from fleetprof_analyzer.job.equal_work import group_equal_work
from fleetprof_analyzer.rank.measures.kernels.kernels import OTHER, KernelGroup
from fleetprof_analyzer.trace.classes import WorkClass
from fleetprof_analyzer.words.energy import list_energy
from fleetprof_api.report.energy import Energy, WorstGpu
from fleetprof_api.report.report import Iteration, Rank, Report, Series, TimeBreakdown


def kernel(name: str, count: int, mean_ns: int = 1000, work: WorkClass = WorkClass.COMPUTE) -> KernelGroup:
    return KernelGroup(
        name=name, work_class=work, count=count, total_ns=count * mean_ns, min_ns=mean_ns, max_ns=mean_ns, spread=0.0,
        buckets={},
    )  # fmt: skip


WORK = [kernel("gemm", 100, 10_000), kernel("add", 200)]


@pytest.mark.parametrize(
    ("device", "kernels", "same"),
    [
        ("H100", WORK, True),
        ("H100", [kernel("gemm", 100, 12_000), kernel("add", 200, 1200)], True),
        ("H100", [kernel("gemm", 101, 10_000), kernel("add", 202)], True),
        ("H100", [*WORK, kernel("ncclDevKernel_AllReduce", 90, 50_000, WorkClass.COMMUNICATION)], True),
        ("H100", [*WORK, kernel(OTHER, 900, 50_000)], True),
        ("H100", [*WORK, kernel("rare", 1)], True),
        ("A100", WORK, False),
        ("H100", [kernel("gemm", 104, 10_000), kernel("add", 200)], False),
        ("H100", [*WORK, kernel("softmax", 100, 10_000)], False),
        ("H100", [kernel("gemm", 100, 10_000)], False),
    ],
    ids=[
        "alike", "slower", "a cut window", "communication", "unnamed", "a rare kernel", "another model", "more often",
        "one kernel more", "one kernel less",
    ],
)  # fmt: skip
def test_work_is_the_same_where_the_kernels_are(device: str, kernels: list[KernelGroup], same: bool) -> None:
    groups = group_equal_work([(0, "H100", WORK), (1, device, kernels)])
    assert groups == ([[0, 1]] if same else [[0], [1]])


def test_ranks_without_kernels_are_in_no_group() -> None:
    assert group_equal_work([(0, "H100", WORK), (1, "H100", []), (2, "H100", WORK)]) == [[0, 2]]


def gpu(number: int, energy_mj: int | None = None, clock: float | None = None, **fields: Any) -> Rank:
    usual: dict[str, Any] = {"device_name": "H100", "node_name": f"node-{number}", "host_name": f"pod-{number}"}
    clocks = [] if clock is None else [Series(name="sm_clock", unit="MHz", at_unix_ns=[1, 2], values=[clock, None])]
    return Rank(
        rank=number, source=f"r{number}", kind="gpu", time_basis="device", time_ns=TimeBreakdown(), index_from="agent",
        iterations=[Iteration(index=k, start_ns=0, duration_ns=1, energy_mj=energy_mj) for k in range(2)],
        device_series=clocks, **(usual | fields),
    )  # fmt: skip


def worst(node_name: str, energy_permille: int | None, sm_clock_permille: int | None) -> WorstGpu:
    return WorstGpu(
        rank=5, node_name=node_name, device_name="H100", energy_permille=energy_permille,
        sm_clock_permille=sm_clock_permille, peers=5,
    )  # fmt: skip


PEERS = [gpu(number, 100_000 + 100 * number, 1980.0) for number in range(5)]


@pytest.mark.parametrize(
    ("odd", "kernels", "found"),
    [
        (gpu(5, 120_000, 1980.0), WORK, worst("node-5", 1197, 1000)),
        (gpu(5, None, 1500.0, node_name=""), WORK, worst("pod-5", None, 758)),
        (gpu(5, 120_000, 1980.0), [kernel("softmax", 9)], None),
        (gpu(5, 120_000, 1980.0, device_name="A100"), WORK, None),
        (gpu(5, 104_000, 1980.0), WORK, None),
        (gpu(5), WORK, None),
    ],
    ids=["more energy", "a lower clock", "other kernels", "another model", "hardly more", "unknown"],
)  # fmt: skip
def test_the_gpu_that_is_worse_than_its_peers(odd: Rank, kernels: list[KernelGroup], found: WorstGpu | None) -> None:
    assert find_worst_gpu([*PEERS, odd], {**dict.fromkeys(range(5), WORK), 5: kernels}) == found


@pytest.mark.parametrize(
    ("labels", "world_size", "samples"),
    [([64, 64], 2, 64), ([64, None], None, 64), ([64, 128], 2, None), ([64, 64], 3, None), ([None, None], 2, None)],
    ids=["told", "told by one", "told differently", "a rank is missing", "not told"],
)
def test_samples_of_an_iteration(labels: list[int | None], world_size: int | None, samples: int | None) -> None:
    ranks = [
        gpu(k, 7, samples_per_iteration=declaration, world_size=world_size) for k, declaration in enumerate(labels)
    ]
    energy = add_energy(ranks)
    assert energy is not None
    assert (energy.mean_mj, energy.samples_per_iteration) == (14, samples)


def test_a_peer_whose_figure_is_unknown_is_none() -> None:
    ranks = [*PEERS, gpu(5, 120_000, 1980.0), gpu(6, None, 1980.0), gpu(7)]
    assert find_worst_gpu(ranks, dict.fromkeys(range(8), WORK)) == worst("node-5", 1197, 1000)


@pytest.mark.parametrize(
    ("energy_permille", "sm_clock_permille", "phrase"),
    [
        (1197, 1000, "takes 1.20 times the energy of an iteration of 5 others"),
        (1000, 758, "runs at 0.76 times the clock of 5 others"),
        (None, 950, "runs at 0.95 times the clock of 5 others"),
        (1100, 910, "takes 1.10 times the energy of an iteration and runs at 0.91 times the clock of 5 others"),
        (1050, 980, "is worse than the median of 5 others"),
    ],
    ids=["more energy", "a lower clock", "energy is unknown", "both", "by another rule than ours"],
)
def test_only_what_is_worse_is_named(energy_permille: int | None, sm_clock_permille: int | None, phrase: str) -> None:
    (sentence,) = list_energy(Report(worst_gpu=worst("node-5", energy_permille, sm_clock_permille)))
    assert sentence.startswith(f"The GPU of rank 5 on node node-5 {phrase} with the same kernels: drain the node")


def test_what_is_said_of_energy() -> None:
    report = Report(
        energy=Energy(
            ranks=2, iterations=[0], iterations_by="index", energy_mj=[64_000], mean_mj=64_000, samples_per_iteration=64
        ),
        ranks=[gpu(0, sample_energy_uj=400_000), gpu(1, sample_energy_uj=600_000), gpu(2)],
        worst_gpu=worst("node\x1b-5", 1197, 910),
    )
    assert list_energy(report) == [
        "64.0 J per iteration, 1.00 J per training sample, over the sampled devices of 2 ranks.",
        "The energy of one training sample is, by rank, between 400 mJ (rank 0) and 600 mJ (rank 1).",
        "The GPU of rank 5 on node node�-5 takes 1.20 times the energy of an iteration and runs at 0.91 times the "
        "clock of 5 others with the same kernels: drain the node and check the GPU and its cooling.",
    ]
    assert list_energy(msgspec.structs.replace(report, energy=None, worst_gpu=None, ranks=report.ranks[1:])) == []
