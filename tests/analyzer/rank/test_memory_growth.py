"""Memory that grows from iteration to iteration: of the process before its recording, or by an allocator's words."""

from collections.abc import Callable, Sequence

import pytest
from fleetprof_analyzer.rank.host.memory_growth import measure_memory_growth
from fleetprof_api.report.rank_tables import MemoryGrowth
from fleetprof_api.samples import HeldColumns, RankSamples, StepColumns
from harness.traces.written_loop import WrittenLoop

MIB = 1 << 20
MS = 1_000_000
STEADY = range(12)
EMPTY = WrittenLoop().trace()


def watched(
    held_mib: Callable[[float], float],
    *,
    steps: int = 40,
    every: float = 0.4,
    within_mib: float = 0,
    of_iteration: int = 1,
) -> MemoryGrowth | None:
    """A process that holds so much more than 400 MiB after so many steps of 10 ms, looked at every 0.4 steps.

    `within_mib`: what it takes besides in the second half of each step.
    """
    looks = [count * every for count in range(int(steps / every))]
    samples = RankSamples(
        rank=0,
        steps_per_iteration=of_iteration,
        steps=StepColumns(step=[*range(1, steps)], end_unix_ns=[10 * MS * number for number in range(1, steps)]),
        held=HeldColumns(
            at_unix_ns=[round(10 * MS * at) for at in looks],
            own_bytes=[round(MIB * (400 + held_mib(at) + within_mib * (at % 1 >= 0.5))) for at in looks],
        ),
    )
    return measure_memory_growth(EMPTY, samples, [])


def allocated(held_mib: Sequence[float]) -> MemoryGrowth | None:
    """An allocator says twice in each iteration what it has given out: 64 MiB more in the middle."""
    loop = WrittenLoop(has_samples=False)
    for number, held in enumerate(held_mib):
        for at, more in ((5, 64), (9, 0)):
            loop.events.append(
                {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 100, "s": "t",
                 "ts": 1000 * (10 * number + at),
                 "args": {"Device Type": 1, "Device Id": 0, "Bytes": 1,
                          "Total Allocated": round((held + more) * MIB), "Total Reserved": 1 << 30}}
            )  # fmt: skip
    return loop.rank().memory_growth


@pytest.mark.parametrize(("found", "of", "mib", "steps"), [
    pytest.param(watched(lambda at: 4 * at), "process", 4, 7, id="by as much in each"),
    pytest.param(watched(lambda at: 4 * at, within_mib=20), "process", 4, 7, id="and more within each"),
    pytest.param(watched(lambda at: 40 * (at // 10)), "process", 4, 7, id="in every tenth"),
    pytest.param(watched(lambda at: 4 * at, steps=8), "process", 4, 4, id="a few steps"),
    pytest.param(watched(lambda at: 4 * at, of_iteration=2), "process", 8, 7, id="two steps an iteration"),
    pytest.param(allocated([4 * at for at in STEADY]), "cuda:0", 4, 11, id="on a device"),
])  # fmt: skip
def test_what_grows(found: MemoryGrowth | None, of: str, mib: float, steps: int) -> None:
    assert found is not None
    assert (found.of, found.steps) == (of, steps)
    assert found.grown_steps <= steps
    assert found.bytes_per_iteration == pytest.approx(mib * MIB, rel=0.2)


@pytest.mark.parametrize("found", [
    pytest.param(watched(lambda at: 0), id="it stays"),
    pytest.param(watched(lambda at: 0, within_mib=200), id="it comes and goes within each"),
    pytest.param(watched(lambda at: 4 * (at % 9)), id="it breathes"),
    pytest.param(watched(lambda at: -4 * at), id="it shrinks"),
    pytest.param(watched(lambda at: 0.1 * at), id="a tenth of a MiB"),
    pytest.param(watched(lambda at: 10 * min(at, 12)), id="it warms up"),
    pytest.param(watched(lambda at: 4 * at, every=9), id="hardly looked at"),
    pytest.param(watched(lambda at: 4 * at, steps=1), id="no step is known"),
    pytest.param(allocated([0] * 12), id="an allocator that holds the same"),
    pytest.param(allocated([]), id="nothing says it"),
])  # fmt: skip
def test_what_does_not(found: MemoryGrowth | None) -> None:
    assert found is None
