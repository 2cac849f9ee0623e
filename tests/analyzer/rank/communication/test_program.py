"""Iterations that nothing marks are what repeats: operations together with what a rank does between them."""

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.chain.program import assign_iterations
from fleetprof_analyzer.rank.iterations import Iterations

NAMES = [7, 1, 2, 1]  # hashes of what was launched before each of four buckets: the optimizer, then backward
COUNTS = [30, 4, 4, 4]
FEW = 12


@pytest.mark.parametrize(
    ("operation", "names", "counts", "length"),
    [
        ([1, 2, 3], [1, 1, 1], [4, 4, 4], 3),  # the operations tell it
        ([1] * 4, NAMES, COUNTS, 4),  # buckets of one group
        ([1, 2], [7, 1, 2, 1], [30, 4, 4, 4], 4),  # micro-batches that communicate
        ([1] * 4, None, COUNTS, 4),  # other kernels each time, as many
        ([1, 2], None, None, 2),  # nothing repeats but the operations
    ],
)
def test_the_shortest_pattern_is_an_iteration(
    operation: list[int], names: list[int] | None, counts: list[int] | None, length: int
) -> None:
    count = FEW * length
    random = np.random.default_rng(1)
    tokens = [
        random.integers(1 << 30, size=count) if one is None else np.resize(np.array(one, np.int64), count)
        for one in (names, counts)
    ]
    for one in tokens:
        one[0] = -1  # cut by the window's edge
    repeated = np.resize(np.array(operation, np.int64), count)
    indices, iteration = assign_iterations(Iterations(), np.arange(count), repeated, tokens)
    assert indices == list(range(FEW))
    assert iteration.tolist() == np.repeat(np.arange(FEW), length).tolist()
