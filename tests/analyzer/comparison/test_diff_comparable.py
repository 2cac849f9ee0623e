"""Reports that can be compared, and what is said where they cannot, or where more than one thing differs."""

from typing import Any

import msgspec
import pytest
from fleetprof_analyzer.assembly.diff import compare
from fleetprof_api.report.report import Report, RequestInfo
from harness.reference.simulated_reports import simulate


def with_request(report: Report, **fields: Any) -> Report:
    return msgspec.structs.replace(report, request=RequestInfo(**{"uid": "a"} | fields))


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (simulate(2, world_size=8), "the size of the job differs: 4 before, 8 after"),
        (simulate(2, ranks=8), "only 4 ranks are in both"),
        (simulate(2, ranks=3, world_size=4), "only 3 ranks are in both"),
        (simulate(2, device_name="NVIDIA A100"), "the device differs: NVIDIA H100 before, NVIDIA A100 after"),
        (simulate(2, kind="cpu", time_basis="host"), "before it ran on GPUs, after on CPUs only"),
        (simulate(2, iterations_from="profiler_step"), "what bounds an iteration differs"),
        (simulate(2, steps_per_iteration=2), "optimizer steps per iteration differs: 1 before, 2 after"),
        (simulate(2, recorded_permille=14), "the traces after hold a sample"),
        (simulate(2, iterations=0), "no rank of the report after lists an iteration"),
        (Report(), "no rank of the report after lists an iteration"),
    ],
)
def test_what_cannot_be_compared_is_said(after: Report, reason: str) -> None:
    diff = compare(simulate(1), after)
    assert (diff.comparable, diff.verdict, diff.measures, diff.kernels) == (False, "not_judged", [], [])
    assert [text for text in diff.reasons if text.startswith(reason)]


def test_captures_that_recorded_different_things_are_not_compared() -> None:
    before, after = simulate(1), simulate(2)
    stacks = compare(with_request(before, collect=[]), with_request(after, collect=["Stacks"]))
    assert stacks.reasons == [
        "the captures recorded different things, which changes what recording costs: nothing more before, Stacks "
        "after; capture with the same --collect"
    ]
    assert compare(with_request(before, collect=None), with_request(after, collect=["Stacks"])).comparable


def test_ranks_that_one_side_lacks_are_left_out_on_both() -> None:
    before, after = simulate(1, ranks=20), simulate(2, ranks=20)
    partial = msgspec.structs.replace(after, ranks=after.ranks[:19])
    diff = compare(before, partial)
    assert (diff.comparable, diff.before.ranks, diff.after.ranks) == (True, 19, 19)
    assert diff.notes == ["left out, since the report after lacks them: ranks 19"]


def test_traces_that_do_not_say_their_rank_are_taken_in_their_order() -> None:
    unnamed = [
        msgspec.structs.replace(report, ranks=[msgspec.structs.replace(rank, rank=None) for rank in report.ranks])
        for report in (simulate(1), simulate(2), simulate(3, ranks=5))
    ]
    assert compare(unnamed[0], unnamed[1]).comparable
    assert compare(unnamed[0], unnamed[2]).reasons == [
        "traces do not say which rank they are, and their number differs"
    ]


def test_what_else_differs_is_noted() -> None:
    before = with_request(simulate(1, first=3), target="Job/llama")
    after = with_request(simulate(2, torch_version="2.16.0"), uid="b", target="Job/gpt")
    assert compare(before, after).notes == [
        "the targets differ: Job/llama before, Job/gpt after",
        "PyTorch 2.15.0 before, 2.16.0 after",
        "the capture before begins at iteration 3: the job may still have been warming up",
    ]
    assert compare(before, before).notes[0] == "both are the same capture"
