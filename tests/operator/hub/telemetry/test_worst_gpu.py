"""The GPU that is called the worst, on planted ones."""

from typing import Any

import pytest
from fleetprof_operator.hub.telemetry.worst_gpu import GpuRow, find_worst_gpu
from hypothesis import given
from hypothesis import strategies as st

GIB = 2**30


def row(rank: int, **fields: Any) -> GpuRow:
    usual: dict[str, Any] = {
        "node": f"n{rank}",
        "device": "H100",
        "iteration_joules": 100.0 + rank % 3,
        "sm_clock_hertz": 1.98e9,
        "memory_used_bytes": 60 * GIB,
    }
    return GpuRow(rank, **(usual | fields))


PEERS = [row(rank) for rank in range(7)]


@pytest.mark.parametrize(
    ("odd", "worst"),
    [
        ([row(7, iteration_joules=115.0)], 7),
        ([row(7, sm_clock_hertz=1.5e9)], 7),
        ([row(7, iteration_joules=115.0), row(8, iteration_joules=130.0)], 8),
        ([row(7, iteration_joules=108.0)], None),
        ([row(7, sm_clock_hertz=1.9e9)], None),
        ([row(7, iteration_joules=80.0, sm_clock_hertz=2.1e9)], None),
        ([row(7, iteration_joules=150.0, memory_used_bytes=30 * GIB)], None),
        ([row(7, iteration_joules=150.0, device="A100")], None),
        ([row(7, iteration_joules=None, sm_clock_hertz=None)], None),
    ],
    ids=[
        "more energy", "a lower clock", "the worse of two", "hardly more energy", "hardly slower", "better than all",
        "other work", "another model", "unknown",
    ],
)  # fmt: skip
def test_the_worst_gpu(odd: list[GpuRow], worst: int | None) -> None:
    found = find_worst_gpu([*PEERS, *odd])
    assert (found.rank if found else None) == worst
    if found:
        assert found.node == f"n{worst}"


def test_few_peers_and_peers_that_all_differ_have_no_worst() -> None:
    assert find_worst_gpu([row(0), row(1), row(2, iteration_joules=200.0)]) is None
    assert find_worst_gpu([row(rank, iteration_joules=100.0 + 20 * rank) for rank in range(8)]) is None


@given(st.permutations(range(8)))
def test_the_order_of_ranks_does_not_matter(order: list[int]) -> None:
    rows = [*PEERS, row(7, iteration_joules=120.0)]
    assert find_worst_gpu([rows[index] for index in order]) == find_worst_gpu(rows)
