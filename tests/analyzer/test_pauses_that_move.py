"""Pauses that go around the ranks, and those that a full machine makes on every rank now and then."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.imbalance import _pauses
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime

MS = 1_000_000
RAN_MS, WAITED_MS = 12, 30


def table_of(pauses: list[str], *, sampled: bool = True, waited_ms: int = WAITED_MS) -> OwnTime:
    """A row for each rank: 40 ms of pause where it has an x, in no operator; 12 ms on a core, and waits for one."""
    paused = np.array([[40 * MS if one == "x" else 0 for one in row] for row in pauses], np.int64)
    ran, waited = np.full_like(paused, RAN_MS * MS), np.full_like(paused, waited_ms * MS)
    own = paused + ran + waited
    nothing, unsaid = np.zeros_like(own), np.full(own.shape, np.nan)
    parts = {"busy": ran + waited, "data": nothing, "collection": nothing, "host": paused}
    samples = {"ran_ns": ran.astype(float), "waited_ns": waited.astype(float)} if sampled else {}
    return OwnTime(
        np.zeros(len(own), np.int64), own, parts, nothing, parts, nothing, nothing, unsaid, unsaid, **samples
    )


@pytest.mark.parametrize(("pauses", "moves"), [
    (["x.x.x.x.x.", ".x.x.x.x.x"], True),
    (["x...x...", ".x...x..", "..x...x.", "...x...x"], True),
    (["x.......", "...x....", ".....x..", "......x."], False),  # each is held up once
    (["x...x...", "........", ".....x..", "......x."], False),  # one rank twice
    (["x...............x...", ".....x..........x...", "....................", "....................",], False),
    (["........", "........"], False),
])  # fmt: skip
@pytest.mark.parametrize("waited_ms", [WAITED_MS, 3])
def test_pauses_that_come_again_on_half_of_the_ranks_move(pauses: list[str], moves: bool, waited_ms: int) -> None:
    assert _pauses(table_of(pauses, waited_ms=waited_ms)) == moves


@pytest.mark.parametrize(("waited_ms", "moves"), [(3, True), (30, False)])
def test_without_samples_pauses_stand_beside_the_rest_of_the_own_time(waited_ms: int, moves: bool) -> None:
    assert _pauses(table_of(["x.x.x.x.", ".x.x.x.x"], sampled=False, waited_ms=waited_ms)) == moves
