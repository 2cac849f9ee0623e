"""Latency and bandwidth of transfers, and their times in groups of another size."""

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.operations import KINDS
from fleetprof_analyzer.whatif.scaling.transfers import GroupTransfers, find_latency, regroup


def transfers(kind: str, members: int, times: dict[int, int]) -> GroupTransfers:
    count = len(times)
    return GroupTransfers(
        np.full(count, KINDS.index(kind)), np.array([*times]), np.array([*times.values()]), np.full(count, members)
    )


LATENCIES = [
    # (by elements the time, members) -> latency, told?
    ({1_000_000: 120_000, 4_000_000: 420_000}, 4, [20_000, 20_000], True),
    ({1_000_000: 120_000, 1_100_000: 420_000}, 4, [9_000, 9_000], False),  # sizes too alike for a line
    ({-1: 100_000}, 8, [21_000], False),
    ({-1: 30_000}, 8, [15_000], False),  # half of it at the most
    ({1: 18_000, 5_000_000: 400_000}, 8, [18_000, 18_000], True),  # a loss is latency alone
]


@pytest.mark.parametrize(("times", "members", "expected", "is_known"), LATENCIES)
def test_latency_by_sizes(times: dict[int, int], members: int, expected: list[int], is_known: bool) -> None:
    found, known = find_latency(transfers("all_reduce", members, times))
    assert found.tolist() == pytest.approx(expected, abs=1)
    assert known is is_known


REGROUPED = [
    ("all_reduce", 4, 2, 100_000, 10_000, (100_000, 90_000 * (7 / 8) / (3 / 4) + 10_000 * 7 / 3)),
    ("all_gather", 4, 2, 100_000, 10_000, (90_000 * (7 / 8) / (3 / 4) + 10_000, 90_000 * 7 / 6 + 10_000 * 7 / 3)),
    ("all_reduce", 8, 0.5, 100_000, 0, (100_000 * (3 / 4) / (7 / 8), 100_000)),
]


@pytest.mark.parametrize(("kind", "members", "factor", "now", "latency", "expected"), REGROUPED)
def test_transfers_of_other_groups(
    kind: str, members: int, factor: float, now: int, latency: int, expected: tuple[float, float]
) -> None:
    least, most = regroup(transfers(kind, members, {1_000_000: now}), np.array([latency]), factor)
    assert (int(least[0]), int(most[0])) == pytest.approx(expected, abs=1)
