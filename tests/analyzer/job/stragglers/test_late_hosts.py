"""Equal lateness of the ranks of one host is one finding about the host, and one late rank of a host is that rank."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fleetprof_analyzer.capture.folder import analyze_directory
from fleetprof_analyzer.job.stragglers.hosts import name_hosts
from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_analyzer.views.terminal.report import render_text
from fleetprof_api.ledger import LedgerEntry, RankState
from fleetprof_api.report.report import Rank, TimeBreakdown
from fleetprof_api.report.stragglers import Stragglers
from harness.traces.planted.faults import NO_FAULTS, draw, operations_of
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, json_of, traces_of
from harness.traces.straggler_sections import stragglers_of

DATA = JobShape(dp=16, layers=3, launch_share=0.8)
TENSOR = JobShape(dp=2, tp=8, layers=2, launch_share=0.8)
SHARDED = JobShape(dp=16, sharded=True, layers=2, launch_share=0.8)
FOUR = JobShape(dp=32, layers=2, launch_share=0.8)
STAGES = JobShape(dp=8, pp=2, microbatches=4, layers=2, launch_share=0.8)
CAUSES = {"gpus": "slow_gpu", "cpus": "host", "loader": "data_loading"}
SECOND, THIRD = list(range(8, 16)), list(range(16, 24))
GAIN_OFF = 0.04


def in_eights(shape: JobShape) -> dict[int, str]:
    return {rank: f"gpu-{rank // 8}" for rank in range(shape.ranks)}


def plant(shape: JobShape, kind: str, ranks: Sequence[int]) -> PlantedFault:
    """All of these ranks slow by the same."""
    late = np.ones((shape.ranks, shape.iterations))
    if kind == "gpus":
        late[ranks] = 1.25
        return PlantedFault("slow_gpu", ranks[0], device=late)
    if kind == "cpus":
        late[ranks] = 2.5
        return PlantedFault("slow_host", ranks[0], host=late)
    late[:] = 0
    late[ranks] = 15_000
    return PlantedFault("data_loader", ranks[0], data_us=late)


def judged(
    shape: JobShape, kind: str, ranks: Sequence[int], hosts: Mapping[int, str] | None = None, seed: int = 1
) -> tuple[Stragglers, float]:
    """(the section, the true gain)."""
    job = PlantedJob(shape, plant(shape, kind, ranks), seed)
    operations = operations_of(job, traces_of(job, Clarity(), seed))
    found = stragglers_of(operations, (), in_eights(shape) if hosts is None else hosts)
    assert found is not None
    return found, 1 - PlantedJob(shape, PlantedFault(), seed).length_ns / job.length_ns


@pytest.mark.parametrize("kind", CAUSES)
@pytest.mark.parametrize("shape", [DATA, TENSOR, SHARDED], ids=["data", "tensor", "sharded"])
def test_a_slow_host_of_two(shape: JobShape, kind: str) -> None:
    found, gain = judged(shape, kind, SECOND)
    assert found.verdict == "straggler"
    assert sorted(one.rank for one in found.ranks) == SECOND
    assert [(host.name, host.ranks, host.captured, host.others, host.cause) for host in found.hosts] == [
        ("gpu-1", SECOND, 8, 1, CAUSES[kind])
    ]
    assert found.gain == pytest.approx(gain, abs=GAIN_OFF)
    assert found.reason == (
        "the others wait for the node gpu-1 (ranks 8 to 15); only one other node does the same work, so this is the "
        "slower of two"
    )


@pytest.mark.parametrize("kind", CAUSES)
def test_two_slow_hosts_of_four(kind: str) -> None:
    found, gain = judged(FOUR, kind, [*SECOND, *THIRD])
    assert sorted((host.name, tuple(host.ranks), host.others) for host in found.hosts) == [
        ("gpu-1", tuple(SECOND), 2), ("gpu-2", tuple(THIRD), 2),
    ]  # fmt: skip
    assert found.gain == pytest.approx(gain, abs=GAIN_OFF)


def test_ranks_of_a_late_host_that_add_little_are_named_with_it() -> None:
    """One is a quarter slower and seven are by 7 %, of which each costs less than a quarter of the first."""
    late = np.ones((DATA.ranks, DATA.iterations))
    late[SECOND] = 1.07
    late[SECOND[0]] = 1.25
    job = PlantedJob(DATA, PlantedFault("slow_gpu", SECOND[0], device=late), 1)
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 1)), (), in_eights(DATA))
    assert found is not None
    assert [host.ranks for host in found.hosts] == [SECOND]


def test_more_late_ranks_on_late_hosts_than_are_tried_one_by_one() -> None:
    shape = replace(FOUR, dp=48)
    found, gain = judged(shape, "gpus", list(range(24)), {rank: f"gpu-{rank // 12}" for rank in range(48)})
    assert [len(host.ranks) for host in found.hosts] == [12, 12]
    assert found.gain == pytest.approx(gain, abs=GAIN_OFF)


def test_a_slow_host_beside_a_slow_rank_elsewhere() -> None:
    found, _ = judged(FOUR, "gpus", [*SECOND, 17])
    assert [host.name for host in found.hosts] == ["gpu-1"]
    assert found.reason == "the others wait for the node gpu-1 (ranks 8 to 15), and then for rank 17 on gpu-2"


@pytest.mark.parametrize("kind", CAUSES)
def test_seven_of_eight_late_ranks_are_the_host_too(kind: str) -> None:
    found, _ = judged(DATA, kind, SECOND[1:])
    assert [(host.ranks, host.captured) for host in found.hosts] == [(SECOND[1:], 8)]


@pytest.mark.parametrize("kind", CAUSES)
def test_one_late_rank_of_a_host_is_that_rank(kind: str) -> None:
    found, gain = judged(DATA, kind, [10])
    assert found.hosts == []
    assert [(one.rank, one.host, one.cause) for one in found.ranks] == [(10, "gpu-1", CAUSES[kind])]
    assert found.reason == "the others wait for rank 10 on gpu-1"
    assert found.gain == pytest.approx(gain, abs=GAIN_OFF)


HOSTS_THAT_SAY_NOTHING: dict[str, dict[int, str]] = {
    "one rank each": {rank: f"pod-{rank}" for rank in range(16)},
    "all on one": dict.fromkeys(range(16), "gpu-0"),
    "not known": {},
    "known of some": dict.fromkeys(range(8), "gpu-0"),
}


@pytest.mark.parametrize("case", HOSTS_THAT_SAY_NOTHING)
def test_where_hosts_say_nothing_ranks_are_named_alone(case: str) -> None:
    found, _ = judged(DATA, "loader", [3, 4], HOSTS_THAT_SAY_NOTHING[case])
    assert found.hosts == []
    assert sorted(one.rank for one in found.ranks) == [3, 4]
    shown = {"pod-3", "pod-4"} if case == "one rank each" else {""}
    assert {one.host for one in found.ranks} == shown


def test_a_heavy_stage_is_no_fault_of_the_host_that_runs_it() -> None:
    device = np.ones((STAGES.ranks, STAGES.iterations))
    last = STAGES.stage(1)
    device[last] = 1.5
    job = PlantedJob(STAGES, PlantedFault("heavier_stage", stage=1, device=device), 1)
    hosts = {rank: "gpu-1" if rank in last else "gpu-0" for rank in range(STAGES.ranks)}
    found = stragglers_of(operations_of(job, traces_of(job, Clarity(), 1)), (), hosts)
    assert found is not None
    assert (found.verdict, found.hosts) == ("heavy_stage", [])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", NO_FAULTS)
def test_hosts_make_no_fault_of_what_is_none(kind: str, seed: int) -> None:
    _, traces, job = draw(kind, seed, (DATA, TENSOR, SHARDED, STAGES))
    found = stragglers_of(operations_of(job, traces), (), in_eights(job.shape))
    assert found is not None
    assert (found.ranks, found.hosts) == ([], [])


def test_a_folder_of_traces_says_node_in_its_first_sentence(tmp_path: Path) -> None:
    shape = JobShape(dp=4, layers=2)
    job = PlantedJob(shape, plant(shape, "gpus", [2, 3]), 1)
    for number, trace in enumerate(traces_of(job, Clarity(), 1)):
        head = json.loads(json_of(trace)) | {"host_name": f"gpu-0{number // 2}"}
        (tmp_path / f"rank{number}.json").write_text(json.dumps(head))
    report = analyze_directory(tmp_path)
    answer = give_answer(report)
    assert answer.sentence.startswith("The node gpu-01 (ranks 2 and 3) holds the job up (the slower of two): ")
    assert answer.next_step.startswith("drain the node gpu-01, or look at it: power limit")
    assert "Node gpu-01: 2 of its 2 ranks are late (slow GPU)." in render_text(report)


def rank(number: int, node: str, machine: str) -> Rank:
    return Rank(
        rank=number, source="t", kind="gpu", time_basis="device", time_ns=TimeBreakdown(), host_name=machine,
        node_name=node,
    )  # fmt: skip


@pytest.mark.parametrize(("ranks", "nodes", "hosts"), [
    ([rank(0, "gpu-0", "pod-0"), rank(1, "gpu-1", "pod-1")], {}, {0: "gpu-0", 1: "gpu-1"}),
    ([rank(0, "", "pod-0"), rank(1, "", "pod-1")], {0: "gpu-0", 1: "gpu-0"}, {0: "gpu-0", 1: "gpu-0"}),
    ([rank(0, "", "box-0"), rank(1, "", "box-1")], {}, {0: "box-0", 1: "box-1"}),
    ([rank(0, "gpu-0", "pod-0"), rank(1, "", "pod-1")], {}, {0: "pod-0", 1: "pod-1"}),  # one kind of name for all
    ([rank(0, "gpu-0", "pod-0"), rank(1, "", "")], {}, {}),
])  # fmt: skip
def test_a_host_is_the_node_else_the_machine(ranks: list[Rank], nodes: dict[int, str], hosts: dict[int, str]) -> None:
    ledger = [
        LedgerEntry(rank=number, process_id="p", state=RankState.UPLOADED, node_name=node)
        for number, node in nodes.items()
    ]
    assert name_hosts(ranks, ledger) == hosts
