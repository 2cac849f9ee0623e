"""For which of its device's rows a host waits that goes on before all it launched has ended, told from when calls
return.
"""

import numpy as np
import pytest
from fleetprof_analyzer.rank.communication.chain.awaited import find_awaited
from fleetprof_analyzer.rank.communication.chain.chain import ChainWork, Host, build_chain, find_joins
from fleetprof_analyzer.rank.communication.chain.host_chain import HostWaits

US = 1000
TOLERANCE_NS = 2 * US
ITERATION_US = 1000
# Each iteration launches five rows of 100 µs in its first 50 µs and makes one call; its device begins at once.
ROWS, ROW_US, CALL_US = 5, 100, 50


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def awaited(returns_us: list[int], device_late_us: list[int] | None = None, *, same_place: bool = True) -> list[int]:
    """Tells of each iteration's call, which returns so long after the iteration's begin: how many of its rows it waits
    for, -1: not known. The rows run so much later than usual.
    """
    count = len(returns_us)
    begin = np.arange(count) * ITERATION_US
    late = np.array(device_late_us or [0] * count)
    ends = (begin[:, None] + late[:, None] + ROW_US * np.arange(1, ROWS + 1)).reshape(-1)
    row_end = US * np.concatenate(([0], ends))
    row = ROWS * np.arange(1, count + 1)
    place = np.zeros(count, np.int64) if same_place else np.full(count, -1)
    found = find_awaited(US * (begin + CALL_US), US * (begin + np.array(returns_us)), row, row_end, place, TOLERANCE_NS)
    return [int(rows) if rows < 0 else int(rows) - ROWS * number for number, rows in enumerate(found)]


CALLS = {
    "right behind the second of five rows": ([204, 205, 203, 208], [0, 0, 0, 0], [2, 2, 2, 2]),
    "one came so late that it waited for nothing": ([204, 205, 203, 52], [0, 0, 0, -400], [2, 2, 2, 2]),
    "all of them came so late": ([52, 52, 52, 52], [-400, -400, -400, -400], [-1, -1, -1, -1]),
    "only one waited, which chance does": ([204, 52, 52, 52], [0, -400, -400, -400], [-1, -1, -1, -1]),
    "for all rows: no part": ([504, 505, 503, 508], [0, 0, 0, 0], [-1, -1, -1, -1]),
    "at any time, as for work of another stream": ([231, 262, 344, 275], [0, 0, 0, 0], [-1, -1, -1, -1]),
    "behind one row, and once sooner": ([204, 205, 203, 104], [0, 0, 0, 0], [-1, -1, -1, -1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_returns_right_behind_one_row_waited_for_it(name: str) -> None:
    returns_us, late_us, rows = CALLS[name]
    assert awaited(returns_us, late_us) == rows


def test_nothing_is_known_of_calls_that_are_at_no_place_of_the_program() -> None:
    assert awaited([204, 205, 203, 208], same_place=False) == [-1, -1, -1, -1]


def test_the_host_goes_on_at_the_end_of_what_it_waited_for() -> None:
    """Four rows of 100; the host launches three, waits until the first has ended, and launches the fourth."""
    starts, ends = ints(5, 105, 205, 305), ints(5, 105, 205, 305, 405)
    waits = HostWaits(ints(30), ints(107), ints(3), ints(1))
    host = Host(ints(0, 10, 20, 115), ints(120), waits, np.zeros(1, np.bool_))
    work = ChainWork(starts, ends, ints(4), ints(405), ints(500), tolerance_ns=0, host=host)
    chain = build_chain(work, find_joins(work, ints(-1)))
    # The end of the first row, the call, the operation's launch.
    assert chain.mark_awaits.tolist() == [-1, 1, 0]
    assert chain.mark_waits.tolist() == [False, True, False]
    assert chain.passed.tolist() == [True, True, False]
    # To the call it took 30 from the launch of the first row, and to the operation 15 from that row's end.
    assert chain.host.host_ns.tolist() == [0, 30, 15]
    assert chain.own_ns.tolist() == [0, 200, 100]
