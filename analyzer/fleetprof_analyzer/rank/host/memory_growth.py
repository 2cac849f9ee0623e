"""Memory that grows from iteration to iteration: of the process as it was sampled, of devices by allocators' own words.

Guarantees: pure; what recording itself can take is taken off, so that nothing is said of a growth that may be its own;
None where fewer than `_LEAST_STEPS` steps from one iteration to a later one are known, or it does not grow.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from fleetprof_api.report.rank_tables import MemoryGrowth
from fleetprof_api.report.recording import memory_per_event
from fleetprof_api.report.report import Iteration
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.trace.trace import Int64s, Trace

LEAST_BYTES: Final = 256 << 10  # an iteration: 2.4 GiB in 10,000
_LEAST_STEPS: Final = 6
_GIVEN_BACK: Final = 0.5  # of what it grew by: a memory that breathes
_PROCESS: Final = "process"


def measure_memory_growth(
    trace: Trace, samples: RankSamples | None, iterations: Sequence[Iteration]
) -> MemoryGrowth | None:
    """Of the device or process that grows most."""
    ends = np.array([one.start_ns + one.duration_ns for one in iterations], np.int64)
    found = [] if samples is None or trace.time_origin != "unix" else [_of_process(trace, samples, ends)]
    memory = trace.memory
    for number, device in enumerate(memory.devices):
        mine = (memory.device == number) & (memory.allocated_bytes >= 0)
        order = np.argsort(memory.at_ns[mine], kind="stable")
        at_ns, held = memory.at_ns[mine][order], memory.allocated_bytes[mine][order]
        found.append(_find(device, at_ns, held, ends, 0))
    grown = [one for one in found if one is not None]
    return max(grown, key=lambda one: one.bytes_per_iteration, default=None)


def _of_process(trace: Trace, samples: RankSamples, ends: Int64s) -> MemoryGrowth | None:
    pairs = zip(samples.thread.at_unix_ns, samples.thread.own_memory_bytes, strict=False)
    known = sorted((at, held) for at, held in pairs if held is not None)
    at_ns, held = (np.array([pair[side] for pair in known], np.int64) for side in (0, 1))
    recorded = trace.event_count * memory_per_event(stacks=len(trace.frames) > 0, shapes=bool(trace.inputs))
    return _find(_PROCESS, at_ns, held, ends, recorded // max(1, len(ends)))


def _find(of: str, at_ns: Int64s, held: Int64s, ends: Int64s, recorded: int) -> MemoryGrowth | None:
    """`recorded`: what recording takes an iteration, at most."""
    last = np.searchsorted(at_ns, ends, side="right") - 1
    # An iteration in which nothing was said belongs to the step to the next one.
    numbers = np.flatnonzero((last >= 0) & (np.diff(last, prepend=-1) > 0))
    if len(numbers) <= _LEAST_STEPS:
        return None
    values = held[last[numbers]]
    steps, of_iterations = np.diff(values), np.diff(numbers)
    beyond = steps - recorded * of_iterations
    grew = steps[steps > 0].sum()
    mean = int(beyond.sum()) // int(of_iterations.sum())
    if mean < LEAST_BYTES or -steps[steps < 0].sum() > _GIVEN_BACK * grew:
        return None
    return MemoryGrowth(
        of=of,
        bytes_per_iteration=mean,
        grown_steps=int(np.count_nonzero(beyond > 0)),
        steps=len(steps),
        first_bytes=int(values[0]),
        last_bytes=int(values[-1]),
    )
