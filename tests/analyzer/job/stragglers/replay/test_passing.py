"""Operations that begin beside their rank's chain are told from all ranks of a program, since a late host hides it."""

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.replay.passing import share_passing

# kinds of each rank's program -> which operations were seen to pass the chain, and which do
CASES = [
    (["gr", "gr", "gr"], ["..", "x.", "x."], ["x.", "x.", "x."]),
    (["gr", "gr"], ["x.", ".."], ["x.", "x."]),
    (["gr", "gr", "gr"], ["..", "..", "x."], ["..", "..", ".."]),
    (["gr", "gr", "rg"], ["x.", "..", ".."], ["x.", "x.", ".."]),  # another program
    (["gr", "gr"], ["..", ".."], ["..", ".."]),
]  # fmt: skip


@pytest.mark.parametrize(("kinds", "seen_passing", "shared"), CASES)
def test_half_of_the_ranks_of_a_program_tell(kinds: list[str], seen_passing: list[str], shared: list[str]) -> None:
    rank = np.repeat(np.arange(len(kinds)), 4)  # two iterations of two operations, the last one outside
    position = np.tile([0, 1, 0, -1], len(kinds))
    kind = np.array([ord(of[at % 2]) for of in kinds for at in range(4)])
    passing = np.array([of[at % 2] == "x" for of in seen_passing for at in range(4)])
    found = share_passing(rank, position, kind, passing).reshape(-1, 4)
    assert ["".join("x" if one else "." for one in row[:2]) for row in found] == shared
    assert not found[:, 3].any()
