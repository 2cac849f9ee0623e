"""More work and a slow device, told apart by the kernels that both sides run, whatever their shapes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from fleetprof_analyzer.job.stragglers.causes.unequal_work import find_more_on_device
from fleetprof_analyzer.job.stragglers.lateness.candidate import Candidate, LatePattern
from fleetprof_analyzer.job.stragglers.lateness.own_time import OwnTime
from fleetprof_analyzer.job.stragglers.search.same_kernels import Kernels, compare_speed
from fleetprof_analyzer.rank.communication.operations import Signature

ITERATIONS = 8
LENGTHS = (0.7, 0.9, 1.0, 1.4)  # of batches, beside a usual one


@dataclass(frozen=True)
class Launches:
    """A kernel's launches in one iteration: for so many threads each, taking so many µs each."""

    name: str
    threads: Sequence[float]
    us: Sequence[float]


def fixed(name: str, calls: int, us: float, threads: float = 1000) -> Launches:
    return Launches(name, [threads] * calls, [us] * calls)


def by_length(name: str, *, more: float = 1.0, slower: float = 1.0, says: bool = True, start_us: float = 0) -> Launches:
    """A launch for each of the batches."""
    threads = [1000.0 * more * length for length in LENGTHS]
    us = [slower * (start_us + 100 * more * length) for length in LENGTHS]
    return Launches(name, threads if says else [1000.0] * len(us), us)


def sign(kernels: Sequence[Launches]) -> list[Signature]:
    signatures = []
    for one in kernels:
        x, y = np.array(one.threads), 1000 * np.array(one.us)
        sums = [float(len(x)), *(ITERATIONS * float(each) for each in (x.sum(), x @ x, x @ y, y.sum()))]
        signatures.append(Signature(hash(one.name), ITERATIONS * len(x), ITERATIONS * sums[0], *sums[1:]))
    return signatures


NORM = fixed("norm", 5, 20)
MORE = [by_length("gemm", more=1.3), by_length("norm", more=1.3), fixed("adam", 2, 50)]
USUAL = [by_length("gemm"), by_length("norm"), fixed("adam", 2, 50)]
SLOW = [by_length("gemm", slower=1.3), by_length("norm", slower=1.3), fixed("adam", 2, 65)]
SLOW_AND_SHORT = [by_length(name, slower=1.3, more=0.9) for name in ("gemm", "norm")] + [fixed("adam", 2, 65)]
# Matrix products on as many blocks whatever their work.
MORE_INSIDE = [by_length("gemm", more=1.3, says=False), by_length("norm", more=1.3)]
USUAL_INSIDE = [by_length("gemm", says=False), by_length("norm")]
SLOW_INSIDE = [by_length("gemm", slower=1.3, says=False), by_length("norm", slower=1.3)]


@pytest.mark.parametrize(("mine", "theirs", "factor"), [
    (MORE, USUAL, 1.0),
    (SLOW, USUAL, 1.3),
    (SLOW_AND_SHORT, USUAL, 1.3),
    (MORE_INSIDE, USUAL_INSIDE, 1.0),
    (SLOW_INSIDE, USUAL_INSIDE, 1.3),
    # Small launches take as long as a launch takes.
    ([by_length("gemm", more=0.5, start_us=100)], [by_length("gemm", start_us=100)], 1.0),
    ([fixed("gemm", 10, 130)], [fixed("gemm", 10, 100)], 1.3),
    ([fixed("gemm", 13, 100)], [fixed("gemm", 10, 100)], 1.0),
    ([fixed("gemm", 10, 130, threads=1300)], [fixed("gemm", 10, 100)], 1.0),
    # Another kernel for the same work, as an autotuner chooses; more of them are more work.
    ([fixed("gemm_128", 10, 130), NORM], [fixed("gemm_256", 10, 100), NORM], 1400 / 1100),
    ([fixed("gemm_128", 14, 130), NORM], [fixed("gemm_256", 10, 100), NORM], 1.0),
    ([by_length("gemm", more=1.3), by_length("tuned_2", more=1.3)], [by_length("gemm"), by_length("tuned_4")], 1.0),
    # Launches that say no shape.
    ([fixed("gemm", 10, 130, threads=0)], [fixed("gemm", 10, 100, threads=0)], 1.3),
])  # fmt: skip
def test_the_speed_of_a_device(mine: Sequence[Launches], theirs: Sequence[Launches], factor: float) -> None:
    others = Kernels.of([sign(theirs)] * 3)
    speed = compare_speed(sign(mine), others)
    assert speed is not None
    assert speed.factor == pytest.approx(factor, abs=0.01)
    again = compare_speed(sign(mine), Kernels.of([sign(theirs)] * 2 + [sign(mine), sign(theirs)]).without(sign(mine)))
    assert again is not None
    assert again.factor == pytest.approx(speed.factor)


def test_devices_without_a_kernel_in_common_have_no_speed() -> None:
    assert compare_speed(sign([fixed("gemm", 10, 130)]), Kernels.of([sign([fixed("conv", 10, 100)])])) is None


def work_ns(kernels: Sequence[Launches]) -> float:
    return 1000 * sum(sum(one.us) for one in kernels)


@pytest.mark.parametrize(("mine", "theirs", "host_us", "more"), [
    (MORE, USUAL, 0, True),
    (SLOW, USUAL, 0, False),
    (SLOW_INSIDE, USUAL_INSIDE, 0, False),
    (MORE_INSIDE, USUAL_INSIDE, 0, True),
    (MORE, USUAL, 800, False),  # its host holds it up for longer
    ([*USUAL, fixed("extra", 3, 100)], USUAL, 0, True),
    ([*USUAL, fixed("extra", 3, 100)], USUAL, 800, False),
    ([by_length("gemm"), by_length("gemm"), by_length("norm")], [by_length("gemm"), by_length("norm")], 0, True),
])  # fmt: skip
def test_more_work_on_a_device(mine: Sequence[Launches], theirs: Sequence[Launches], host_us: int, more: bool) -> None:
    work = np.array([[work_ns(kernels)] * ITERATIONS for kernels in (mine, *[theirs] * 3)])
    busy = work.astype(np.int64)
    own, nothing, unsaid = busy.copy(), np.zeros_like(busy), np.full(busy.shape, np.nan)
    own[0] += 1000 * host_us
    table = OwnTime(
        np.zeros(4, np.int64), own, {"busy": busy}, nothing, {}, nothing, nothing, work, unsaid,
        signatures=[sign(mine), *[sign(theirs)] * 3],
    )  # fmt: skip
    found = find_more_on_device(table, Candidate(0, LatePattern.PERSISTENT, 0.3, np.ones(ITERATIONS, np.bool_)))
    assert (found is not None) == more
    if found is not None:
        assert (found.calls, found.usual_calls) == tuple(
            sum(len(one.us) for one in kernels) for kernels in (mine, theirs)
        )
