"""Verdicts over many ranks, and over many healthy jobs that are slow for a while: none is called hung."""

from collections import Counter

import pytest
from fleetprof_analyzer.stalls.verdict import judge_stall
from harness.stalls.planted_ranks import HEALTHY, hang, work_slowly

JOBS_OF_A_KIND = 50


@pytest.mark.parametrize("has_recorder", [True, False])
def test_one_of_a_thousand_ranks_is_named(has_recorder: bool) -> None:
    ranks = hang(1000, 517)
    for rank in ranks if not has_recorder else ():
        rank.collectives = []
    verdict = judge_stall(ranks)
    assert (verdict.cause, verdict.ranks, verdict.may_go_on) == ("blocked_in_line", (517,), False)
    assert [len(group.ranks) for group in verdict.groups] == [999, 1]


@pytest.mark.parametrize("kind", HEALTHY)
def test_no_healthy_slow_job_is_called_hung(kind: str) -> None:
    verdicts = [judge_stall(work_slowly(kind, seed)) for seed in range(JOBS_OF_A_KIND)]
    assert Counter(verdict.cause for verdict in verdicts if not verdict.may_go_on) == {}
