"""The work that a rank was given, the speed of its kernels, and the clock of its device.

Evidence for causes: more work is no fault, the same work taking longer is. Guarantees: pure; empty where unsaid.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.rank.communication.operations import Signature
from fleetprof_analyzer.trace.trace import Bools, Int64s, Rows, Shape, Trace

MOST_SIGNATURES: Final = 128
_LEAST_VARIATION: Final = 0.02  # of the threads of a kernel, over their mean
_STEEPEST: Final = 2.0  # no kernel's time grows faster than with the square of its threads
LEAST_TOLD: Final = 0.1
"""Of the time: kernels whose launches differ in size tell the pace from there on."""
_LEAST_ALONE: Final = 0.5  # of the time
_MOST_REMEMBERED: Final = 4096
_NUMBER: Final = re.compile(rb"\d{1,10}")
Bounds = Sequence[tuple[int, int]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pace:
    """The time of a kernel's launch by its threads: a line through all launches, where those differ in size."""

    fixed_ns: float
    thread_ns: float
    threads: float  # on average
    varies: bool

    def expect_ns(self, calls: float, threads: float) -> float:
        """The time that so many calls with so many threads in all take."""
        return max(calls * self.fixed_ns + threads * self.thread_ns, 0.0)


def measure_pace(launches: Signature) -> Pace:
    """The pace of the launches of one kernel, also on several ranks."""
    calls = launches.timed
    mean, mean_ns = launches.timed_threads / calls, launches.timed_ns / calls
    if mean <= 0:
        return Pace(mean_ns, 0.0, 0.0, varies=False)
    variance = launches.squared_threads / calls - mean**2
    if variance <= (_LEAST_VARIATION * mean) ** 2:
        return Pace(0.0, mean_ns / mean, mean, varies=False)
    even = mean_ns / mean
    slope = min(max((launches.threads_by_ns / calls - mean * mean_ns) / variance, 0.0), _STEEPEST * even)
    return Pace(mean_ns - slope * mean, slope, mean, varies=True)


def work_by_iteration(trace: Trace, local: Rows, overlapped: Bools, launch_ns: Int64s, bounds: Bounds) -> list[float]:
    """The time of the kernels launched in each iteration at the rank's own usual pace, ns; empty without kernels.

    It grows as their threads do; how much of it does not, all ranks together tell. The pace is that of kernels whose
    launches differ in size, where these hold enough: others may have any work inside.
    """
    if not bounds or len(local) == 0:
        return []
    at, inside = _place(launch_ns, bounds)
    timed = choose_timed(local, overlapped, launch_ns, bounds)
    threads, took_ns = _threads_of(trace, local), local.duration_ns.astype(np.float64)
    _, owner, sums = _sum_up(local, timed, threads)
    calls, all_threads, _, _, all_ns = (np.array(values) for values in sums)
    even_ns = np.divide(all_ns, all_threads, out=np.zeros(len(calls)), where=all_threads > 0)
    expected_ns = np.where(all_threads[owner] > 0, even_ns[owner] * threads, (all_ns / calls)[owner])
    varies = [measure_pace(Signature(0, 0, *values)).varies for values in zip(*sums, strict=True)]
    tell = timed & np.array(varies)[owner]
    if expected_ns[tell].sum() < LEAST_TOLD * expected_ns[timed].sum():
        tell = timed
    whole, timed_ns, expected = (
        np.bincount(at[rows], values[rows], len(bounds))
        for rows, values in ((inside, took_ns), (inside & tell, took_ns), (inside & tell, expected_ns))
    )
    return [
        float(value) for value in whole * np.divide(expected, timed_ns, out=np.ones(len(bounds)), where=timed_ns > 0)
    ]


def choose_timed(local: Rows, overlapped: Bools, launch_ns: Int64s, bounds: Bounds) -> Bools:
    """The rows whose times tell the pace: those that ran alone, if these hold half of the time in each iteration.

    Communication slows what runs beside it, and lasts longest on those who wait. But where it hides what ran in some
    iterations, all rows tell.
    """
    if not bounds:
        return np.ones(len(local), np.bool_)
    at, inside = _place(launch_ns, bounds)
    whole, alone = (
        np.bincount(at[rows], local.duration_ns[rows], len(bounds)) for rows in (inside, inside & ~overlapped)
    )
    return ~overlapped if (alone >= _LEAST_ALONE * whole).all() else np.ones(len(local), np.bool_)


def _place(launch_ns: Int64s, bounds: Bounds) -> tuple[Int64s, Bools]:
    """(the iteration of each row, which rows are within one)."""
    at = np.searchsorted(np.array([start for start, _ in bounds], np.int64), launch_ns, side="right") - 1
    return at, (at >= 0) & (launch_ns < np.array([end for _, end in bounds])[np.maximum(at, 0)])


def sign_kernels(trace: Trace, local: Rows, timed: Bools) -> list[Signature]:
    """The kernels that took the most time, by name; `timed` rows tell how long they take."""
    if len(local) == 0:
        return []
    threads = _threads_of(trace, local)
    kernels, owner, sums = _sum_up(local, timed, threads)
    count, total_ns = np.bincount(owner), np.bincount(owner, local.duration_ns)
    return [
        Signature(
            zlib.crc32(trace.names[kernels[number]].encode()), int(count[number]), *(values[number] for values in sums)
        )
        for number in np.argsort(-total_ns, kind="stable")[:MOST_SIGNATURES].tolist()
    ]


def _sum_up(local: Rows, timed: Bools, threads: Floats) -> tuple[list[int], Int64s, list[list[float]]]:
    """(names, which of them each row has, the sums of `Signature` over its timed rows, over all where it has none)."""
    names, owner = np.unique(local.name, return_inverse=True)
    telling = timed | (np.bincount(owner, timed, len(names)) == 0)[owner]
    x, y, of = threads[telling], local.duration_ns[telling].astype(np.float64), owner[telling]
    weights = (np.ones(len(of)), x, x * x, x * y, y)
    return names.tolist(), owner, [np.bincount(of, values, len(names)).tolist() for values in weights]


def _threads_of(trace: Trace, local: Rows) -> Floats:
    """Launched by each row, grid × block; 0 where it says no shape."""
    return np.array([*(_threads(shape) for shape in trace.shapes), 0.0])[local.launch_shape]


@lru_cache(_MOST_REMEMBERED)
def _threads(shape: Shape) -> float:
    return float(prod(prod(float(number) for number in _NUMBER.findall(part)) for part in shape))


def clock_by_iteration(samples: RankSamples | None, bounds: Bounds) -> list[float | None]:
    """Median of the device's clock in each iteration, MHz, from its samples; empty without samples."""
    if samples is None or not samples.device.at_unix_ns:
        return []
    pairs = zip(samples.device.at_unix_ns, samples.device.sm_clock_megahertz, strict=False)
    known = np.array([(at, clock) for at, clock in pairs if clock is not None], np.int64).reshape(-1, 2)
    medians = []
    for start, end in bounds:
        inside = known[(known[:, 0] >= start) & (known[:, 0] < end), 1]
        medians.append(float(np.median(inside)) if len(inside) else None)
    return medians
