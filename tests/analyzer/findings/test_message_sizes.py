"""Larger messages are advised only where several could become one."""

import pytest
from fleetprof_analyzer.findings.exposed_communication import judge_exposed
from fleetprof_api.report.report_tables import CommunicationStatistics
from fleetprof_api.report.stragglers import Stragglers

KIB = 1024


@pytest.mark.parametrize(
    ("size", "calls_of_each", "iterations", "is_told"),
    [
        (4 * KIB, 10, 10, False),  # one message an iteration
        (4 * KIB, 12, 10, False),  # and a few beside them
        (4 * KIB, 20, 10, True),
        (4 * KIB, 610, 10, True),
        (4 * KIB, 1, 10, False),  # accumulation: not even one
        (25 * KIB * KIB, 10, 10, True),  # fewer bytes help in any case
        (4 * KIB, 10, 0, True),  # iterations are not marked
    ],
)
def test_one_small_message_an_iteration_could_not_be_larger(
    size: int, calls_of_each: int, iterations: int, is_told: bool
) -> None:
    row = CommunicationStatistics(
        kind="all_reduce", message_bytes=size, count=2 * calls_of_each, total_ns=90, min_ns=1, overlapped_ns=0, ranks=2
    )
    verdict = Stragglers(verdict="nobody", transfer_share=0.8)
    found = judge_exposed(verdict, [row], exposed=0.5, ranks=2, waits_for_cores=False, iterations=iterations)
    assert found.mean_bytes == (size if is_told else None)
