"""Samples of the late rank's device reach verdict and advice, and are not asked for again."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.findings.registry import find_findings
from fleetprof_analyzer.job.stragglers.sampled_device import find_sampled_device
from fleetprof_analyzer.views.answer.answer import give_answer
from fleetprof_api.report.energy import WorstGpu
from fleetprof_api.report.report import Report, Series
from fleetprof_api.report.stragglers import Evidence
from harness.reference.written_reports import LOADING, SLOW, job, late

MEGAHERTZ = Evidence(measure="clock of the device", value=1480, usual=2000, unit="MHz")
WORST = WorstGpu(rank=5, node_name="node-1", device_name="H100", sm_clock_permille=740, peers=7)
GPU = {"sm_clock": [1480.0, 1480.0]}
LIMITED = GPU | {"throttled_by_power": [0.0, 100.0]}
SLOWER = "which is slower than the others"
DRAIN = "drain the node node-1, and check power limit, temperature and cooling of the GPU of rank 5"


def sampled(of_ranks: Mapping[int, Mapping[str, Sequence[float]]], straggler: Any = SLOW, **more: Any) -> Report:
    """Eight ranks on two nodes, of which these were sampled, with the sentences of their findings."""
    report = job(late(straggler), ranks=8, **more)
    ranks = []
    for rank in report.ranks:
        assert rank.rank is not None
        series = [
            Series(name=name, unit="", at_unix_ns=list(range(len(values))), values=[*values])
            for name, values in of_ranks.get(rank.rank, {}).items()
        ]
        ranks.append(msgspec.structs.replace(rank, node_name=f"node-{rank.rank // 4}", device_series=series))
    report = msgspec.structs.replace(report, ranks=ranks)
    findings = find_findings(report, late_device=find_sampled_device(report))
    return msgspec.structs.replace(report, findings=findings)


LIMITED_ALL = dict.fromkeys(range(8), LIMITED)
SAMPLED: dict[str, tuple[Report, str, str]] = {
    "lower by its late iterations": (
        sampled({5: GPU}, msgspec.structs.replace(SLOW, cause="throttling", evidence=[MEGAHERTZ])),
        "its GPU, which runs at 0.74 times the clock of its peers.",
        DRAIN,
    ),
    "lower by all samples, for power": (
        sampled({5: LIMITED, 0: GPU}, worst_gpu=WORST),
        "its GPU, which runs at 0.74 times the clock of its peers, throttled by power.",
        DRAIN,
    ),
    "throttled, its clock not known": (
        sampled({5: {"throttled_by_hw_thermal": [100.0]}, 0: {"power": [600.0]}}),
        "its GPU, which is throttled by hw thermal, more than its peers.",
        DRAIN,
    ),
    "all at their power limit": (sampled(LIMITED_ALL), SLOWER, "run rank 5 on another GPU"),
    "sampled, and nothing seen": (sampled({5: GPU}), SLOWER, "run rank 5 on another GPU"),
    "another GPU is the worst": (
        sampled({5: GPU}, worst_gpu=msgspec.structs.replace(WORST, rank=1)),
        SLOWER,
        "run rank 5 on another GPU",
    ),
    "late by its loader": (sampled({2: LIMITED}, LOADING), "wait for its data loading", "look at what train.py:41"),
}


@pytest.mark.parametrize("case", SAMPLED)
def test_the_verdict_says_what_was_sampled_and_does_not_ask_for_it_again(case: str) -> None:
    report, why, advice = SAMPLED[case]
    answer = give_answer(report)
    assert why in answer.sentence
    assert answer.next_step.startswith(advice)
    assert "DeviceMetrics" not in answer.next_step


def test_samples_are_asked_for_where_there_are_none() -> None:
    assert "--collect DeviceMetrics" in give_answer(sampled({0: GPU})).next_step
