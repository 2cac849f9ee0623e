"""The time that a rank's training thread ran and waited for a core in each iteration, from the agent's samples of it.

A thread that is ready and has no core is in no trace: operators and silences alike just take longer. Guarantees: pure;
counters are read between samples only, in proportion of the time; None where the samples do not reach.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
from fleetprof_api.samples import RankSamples

from fleetprof_analyzer.trace.trace import Int64s

_LEAST_REACHED: Final = 0.8  # of an iteration
_NONE: Final = np.zeros(0, np.int64)


class CoreWaits(msgspec.Struct, frozen=True):
    """Per iteration, ns, None where unknown; empty lists where nothing was sampled.

    `waited_ns` is the training thread's; `others_waited_ns` that of all other threads of its process, summed.
    """

    ran_ns: list[float | None] = []
    waited_ns: list[float | None] = []
    others_waited_ns: list[float | None] = []
    process_ran_ns: list[float | None] = []
    involuntary_switches: list[float | None] = []
    usable_cores: int | None = None
    cpu_limit_millicores: int | None = None
    torch_threads: int | None = None
    host_busy_permille: int | None = None  # of all cores of the host, mean over the iterations


def waits_by_iteration(samples: RankSamples | None, bounds: Sequence[tuple[int, int]]) -> CoreWaits:
    """The waits of iterations [start, end), on the clock of the samples."""
    if samples is None:
        return CoreWaits()
    thread = samples.thread
    start, end = (np.array(side, np.int64) for side in zip(*bounds, strict=True)) if bounds else (_NONE, _NONE)

    def differences(counts: list[int | None]) -> list[float | None]:
        return _differences(thread.at_unix_ns, counts, start, end)

    waited, process_waited = differences(thread.waited_ns), differences(thread.process_waited_ns)
    return CoreWaits(
        ran_ns=differences(thread.ran_ns),
        waited_ns=waited,
        others_waited_ns=[
            None if whole is None or own is None else max(whole - own, 0.0)
            for whole, own in zip(process_waited, waited, strict=False)
        ],
        process_ran_ns=differences(thread.process_ran_ns),
        involuntary_switches=differences(thread.involuntary_switches),
        usable_cores=samples.usable_cores,
        cpu_limit_millicores=samples.cpu_limit_millicores,
        torch_threads=samples.torch_threads,
        host_busy_permille=mean_busy_permille(samples, bounds),
    )


def mean_busy_permille(samples: RankSamples, bounds: Sequence[tuple[int, int]]) -> int | None:
    """The use of the host's cores from the first iteration's start to the last one's end; None: not sampled.

    A sample says it of the time since the one before.
    """
    if not bounds:
        return None
    first, last = bounds[0][0], bounds[-1][1]
    host = samples.host
    pairs = sorted(zip(host.at_unix_ns, host.cpu_busy_permille, strict=False))
    total, reached = 0.0, 0
    for (begin, _), (end, busy) in pairwise(pairs):
        inside = min(end, last) - max(begin, first)
        if busy is not None and inside > 0:
            total, reached = total + busy * inside, reached + inside
    return round(total / reached) if reached >= _LEAST_REACHED * (last - first) > 0 else None


def _differences(at_ns: list[int], counts: list[int | None], start: Int64s, end: Int64s) -> list[float | None]:
    known = sorted((at, count) for at, count in zip(at_ns, counts, strict=False) if count is not None)
    if len(known) < 2:
        return []
    origin = known[0][0]  # Unix times as floats would lose 128 ns
    at = np.array([moment - origin for moment, _ in known], np.float64)
    count = np.array([count for _, count in known], np.float64)
    first, last = np.maximum(start - origin, at[0]), np.minimum(end - origin, at[-1])
    reached = (last - first) / np.maximum(end - start, 1)
    change = np.interp(last, at, count) - np.interp(first, at, count)
    return [
        max(float(one / share), 0.0) if share >= _LEAST_REACHED else None
        for one, share in zip(change, reached, strict=True)
    ]
