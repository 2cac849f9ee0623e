"""Gaps of devices whose hosts are hardly fast enough: they come together, and say nothing until a host takes longer."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.lateness.excess import find_candidates
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime

LATE_RANK, LENGTH_NS, RANKS = 3, 100_000_000, 8


def table_of(seed: int, iterations: int, late: dict[int, float], *, is_silent: bool = False) -> OwnTime:
    """Devices that work for three quarters of the usual time, and hosts that take nearly as long.

    A host that the others wait for has no lead, and its device gaps; who waits gains as much. `late`: by how much the
    host of LATE_RANK takes longer in an iteration, as share of the usual time; `is_silent`: it does nothing then.
    """
    source = np.random.default_rng(seed)
    shape = (RANKS, iterations)
    host = 0.75 * (1 + 0.08 * source.standard_normal(shape))
    for iteration, more in late.items():
        host[LATE_RANK, iteration] += more
    work = 0.75 * (1 + 0.004 * source.standard_normal(shape))
    lead, gap = np.full(RANKS, 0.3), np.zeros(shape)
    for iteration in range(iterations):
        left = lead + work[:, iteration] - host[:, iteration]
        gap[:, iteration] = np.maximum(-left, 0)
        waits = gap[:, iteration].max() - gap[:, iteration]
        lead = np.minimum(np.maximum(left, 0) + waits, 0.5)
    silence = np.zeros(shape)
    if is_silent:
        silence[LATE_RANK, list(late)] = list(late.values())
    work_ns, gap_ns, host_ns = ((LENGTH_NS * values).astype(np.int64) for values in (work, gap, host))
    quiet_ns = (LENGTH_NS * np.minimum(silence, gap)).astype(np.int64)
    nothing, unknown = np.zeros(shape, np.int64), np.full(shape, np.nan)
    return OwnTime(
        role=np.zeros(RANKS, np.int64), own_ns=work_ns + gap_ns,
        parts_ns={"busy": work_ns, "data": nothing, "collection": nothing, "host": gap_ns},
        host_ns=host_ns, host_parts_ns={"data": nothing, "collection": nothing, "host": host_ns},
        pause_ns=gap_ns, quiet_ns=quiet_ns, work=unknown, clock_megahertz=unknown,
    )  # fmt: skip


PAUSES = {3: 0.4, 9: 0.5, 10: 0.4, 15: 0.45}


def found(tables: list[OwnTime]) -> list[list[int]]:
    return [[one.rank for one in find_candidates(table)] for table in tables]


@pytest.mark.parametrize("iterations", [10, 20, 50])
def test_gaps_of_a_lead_that_chance_used_up_are_no_fault(iterations: int) -> None:
    assert found([table_of(seed, iterations, {}) for seed in range(60)]) == [[]] * 60


def test_a_host_that_pauses_again_and_again_is_found_among_such_gaps() -> None:
    assert found([table_of(seed, 20, PAUSES) for seed in range(20)]) == [[LATE_RANK]] * 20


def test_pauses_of_another_host_do_not_hide_it() -> None:
    """Its noise is that of the others at the median."""
    table = table_of(1, 20, PAUSES)
    table.host_ns[LATE_RANK + 1, [2, 12]] += LENGTH_NS // 2
    assert found([table]) == [[LATE_RANK]]


@pytest.mark.parametrize("is_silent", [True, False])
def test_short_pauses_are_told_from_such_gaps_where_the_host_does_nothing(*, is_silent: bool) -> None:
    short = {6: 0.5, 13: 0.45, 40: 0.45}
    assert found([table_of(2, 50, short, is_silent=is_silent)]) == [[LATE_RANK] if is_silent else []]


def test_where_no_hosts_were_recorded_the_gaps_alone_tell() -> None:
    table = table_of(4, 20, PAUSES)
    table.host_ns[:] = 0
    assert found([table]) == [[LATE_RANK]]
