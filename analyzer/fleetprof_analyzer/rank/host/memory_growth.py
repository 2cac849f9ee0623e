"""Memory that grows from iteration to iteration: of the process before its recording, of devices by allocators' words.

A recording takes memory itself and keeps freed blocks from being used again: of the process nothing is told while it
lasts. Guarantees: pure; None where too little is known, or where it does not grow to the end.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.report.rank_tables import MemoryGrowth
from fleetprof_api.report.report import Iteration
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.trace.trace import Int64s, Trace

_LEAST_BYTES: Final = 256 << 10  # an iteration: 2.4 GiB in 10,000
_LEAST_IN_ALL: Final = 4 << 20
_LEAST_STEPS: Final = 4
_MOST_PARTS: Final = 8
_GIVEN_BACK: Final = 0.5  # of what it grew by: a memory that breathes
_AT_THE_END: Final = 0.3  # of the growth in the second half: one that warms up has less
_PROCESS: Final = "process"


def measure_memory_growth(
    trace: Trace, samples: RankSamples | None, iterations: Sequence[Iteration]
) -> MemoryGrowth | None:
    """The growth of the device or process that grows most."""
    ends = np.array([one.start_ns + one.duration_ns for one in iterations], np.int64)
    found = [None if samples is None else _of_process(samples)]
    memory = trace.memory
    for number, device in enumerate(memory.devices):
        mine = (memory.device == number) & (memory.allocated_bytes >= 0)
        order = np.argsort(memory.at_ns[mine], kind="stable")
        last = np.searchsorted(memory.at_ns[mine][order], ends, side="right") - 1
        # An iteration in which nothing was said belongs to the step to the next one.
        numbers = np.flatnonzero((last >= 0) & (np.diff(last, prepend=-1) > 0))
        found.append(_judge(device, numbers.astype(np.float64), memory.allocated_bytes[mine][order][last[numbers]]))
    grown = [one for one in found if one is not None]
    return max(grown, key=lambda one: one.bytes_per_iteration, default=None)


def _of_process(samples: RankSamples) -> MemoryGrowth | None:
    """By the least that was held in each of some parts of the time: within an iteration memory comes and goes."""
    steps = np.sort(np.array(samples.steps.end_unix_ns, np.int64))
    looks = sorted(zip(samples.held.at_unix_ns, samples.held.own_bytes, strict=False))
    at_ns, held = (np.array([look[side] for look in looks], np.int64) for side in (0, 1))
    ended = np.searchsorted(steps, at_ns, side="right")
    known = (ended > 0) & (ended < len(steps))
    ended, held = ended[known], held[known]
    if len(ended) == 0:
        return None
    parts = min(_MOST_PARTS, len(ended) // 2, int(ended[-1] - ended[0]))
    if parts <= _LEAST_STEPS:
        return None
    borders = np.searchsorted(ended, np.linspace(ended[0], ended[-1] + 1, parts + 1))
    chosen = [slice(first, last) for first, last in pairwise(borders.tolist()) if last > first]
    least = np.array([held[part].min() for part in chosen], np.int64)
    comes_and_goes = float(np.median([int(np.ptp(held[part])) for part in chosen]))
    if least[-1] - least[0] < comes_and_goes:
        return None
    numbers = np.array([ended[part].mean() for part in chosen]) / max(1, samples.steps_per_iteration)
    return _judge(_PROCESS, numbers, least)


def _judge(of: str, numbers: npt.NDArray[np.float64], held: Int64s) -> MemoryGrowth | None:
    """`numbers`: of the iterations at which so much was held."""
    if len(held) <= _LEAST_STEPS:
        return None
    steps, whole = np.diff(held), int(held[-1] - held[0])
    each = int(whole / (numbers[-1] - numbers[0]))
    given_back = -int(steps[steps < 0].sum())
    if each < _LEAST_BYTES or whole < _LEAST_IN_ALL or given_back > _GIVEN_BACK * int(steps[steps > 0].sum()):
        return None
    if int(held[-1] - held[len(held) // 2]) < _AT_THE_END * whole:
        return None
    return MemoryGrowth(
        of=of,
        bytes_per_iteration=each,
        grown_steps=int(np.count_nonzero(steps > 0)),
        steps=len(steps),
        first_bytes=int(held[0]),
        last_bytes=int(held[-1]),
    )
