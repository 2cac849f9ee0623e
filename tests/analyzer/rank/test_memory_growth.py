"""Memory that grows from iteration to iteration, by samples of the process or by an allocator's words."""

from collections.abc import Sequence

import pytest
from harness.traces.written_loop import WrittenLoop

MIB = 1 << 20
HELD = 400 * MIB
STEADY = range(12)


def sampled(held_mib: Sequence[float], in_iterations: Sequence[int] = STEADY, rows: int = 0) -> WrittenLoop:
    """The process has so much more than 400 MiB at the end of each; `rows`: operators recorded in each, besides."""
    loop = WrittenLoop()
    for number in range(12 if rows else 0):
        for count in range(rows):
            loop.add("aten::add", 10 * number + 0.001 * count, 0.0005)
    loop.memory_ms = [(10 * number + 9.9, HELD + round(held_mib[number] * MIB)) for number in in_iterations]
    return loop


def allocated(held_mib: Sequence[float], device: int = 0) -> WrittenLoop:
    """An allocator says twice in each iteration what it has given out: 64 MiB more in the middle."""
    loop = WrittenLoop(has_samples=False)
    for number, held in enumerate(held_mib):
        for at, more in ((5, 64), (9, 0)):
            loop.events.append(
                {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 100, "s": "t",
                 "ts": 1000 * (10 * number + at),
                 "args": {"Device Type": 1, "Device Id": device, "Bytes": 1,
                          "Total Allocated": round((held + more) * MIB), "Total Reserved": 1 << 30}}
            )  # fmt: skip
    return loop


@pytest.mark.parametrize(("loop", "of", "mib", "grown", "steps"), [
    pytest.param(sampled([4 * at for at in STEADY]), "process", 4, 11, 11, id="by as much in each"),
    pytest.param(sampled([4 * at for at in STEADY], range(8)), "process", 4, 7, 7, id="eight sampled"),
    pytest.param(sampled([8 * (at // 2) for at in STEADY], range(1, 12)), "process", 4, 5, 10, id="in every second"),
    pytest.param(sampled([4 * at for at in STEADY], [0, 1, 2, 3, 5, 7, 8, 11]), "process", 4, 7, 7, id="with gaps"),
    pytest.param(allocated([4 * at for at in STEADY]), "cuda:0", 4, 11, 11, id="on a device"),
])  # fmt: skip
def test_what_grows(loop: WrittenLoop, of: str, mib: float, grown: int, steps: int) -> None:
    found = loop.rank().memory_growth
    assert found is not None
    assert (found.of, found.grown_steps, found.steps) == (of, grown, steps)
    assert found.bytes_per_iteration == pytest.approx(mib * MIB, rel=0.02)


@pytest.mark.parametrize("loop", [
    pytest.param(sampled([0] * 12), id="it stays"),
    pytest.param(sampled([4 * (at % 4) for at in STEADY]), id="it breathes"),
    pytest.param(sampled([-4.0 * at for at in STEADY]), id="it shrinks"),
    pytest.param(sampled([0.1 * at for at in STEADY]), id="a tenth of a MiB"),
    pytest.param(sampled([4 * at for at in STEADY], rows=2500), id="as the recording of 2,500 rows does"),
    pytest.param(sampled([4 * at for at in STEADY], [0, 5, 11]), id="hardly sampled"),
    pytest.param(allocated([0] * 12), id="an allocator that holds the same"),
    pytest.param(WrittenLoop(), id="nothing says it"),
])  # fmt: skip
def test_what_does_not(loop: WrittenLoop) -> None:
    assert loop.rank().memory_growth is None
