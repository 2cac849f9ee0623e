"""The launches of a rank's device work by its host: calls, delays, queues, and what launching by graph could save.

Guarantees: pure; quantiles are exact (nearest rank); rows without a launch call are counted apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from fleetprof_api.report.report import DeviceTime
from fleetprof_api.report.report_tables import LaunchStatistics

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.rank.measures.kernels.launch_shift import find_shifts
from fleetprof_analyzer.trace.ordering import distinct
from fleetprof_analyzer.trace.trace import Int32s, Int64s

_SLOW_CALL_NS: Final = 1_000_000
_FULL_QUEUE: Final = 1024  # of CUDA: the next call waits for room


def measure_launches(
    works: Sequence[DeviceWork], calls: LaunchCalls, devices: Sequence[DeviceTime]
) -> LaunchStatistics | None:
    """Measures one rank, `devices` being the times of `works`; None without device work."""
    if not works:
        return None
    position = np.concatenate([calls.of(work.rows) for work in works])
    start = np.concatenate([work.rows.start_ns for work in works])
    duration = np.concatenate([work.rows.duration_ns for work in works])
    stream = np.concatenate([work.rows.place for work in works])
    known = position >= 0
    unlaunched = int((~known).sum())
    if not known.any():
        return LaunchStatistics(launches=0, unlaunched=unlaunched)
    of_row = calls.calls.take(position[known])
    used = calls.calls.take(distinct(position[known]))
    delay = np.maximum(start[known] - of_row.end_ns, 0)
    queues = _measure_queues(stream[known], of_row.start_ns, start[known])
    return LaunchStatistics(
        launches=int(known.sum()),
        unlaunched=unlaunched,
        calls=len(used),
        call_p50_ns=exact_quantile(used.duration_ns, 500),
        call_p99_ns=exact_quantile(used.duration_ns, 990),
        delay_p50_ns=exact_quantile(delay, 500),
        delay_p90_ns=exact_quantile(delay, 900),
        delay_p99_ns=exact_quantile(delay, 990),
        short=int((duration[known] < of_row.duration_ns).sum()),
        slow_calls=int((used.duration_ns > _SLOW_CALL_NS).sum()),
        longest_queue=queues.longest,
        queue_p50=queues.p50,
        full_queue_ns=queues.full_ns,
        graph_saving_ns=sum(
            device.idle_ns.launching + device.idle_ns.host_operators + device.idle_ns.host_runtime
            for device in devices
            if device.idle_ns is not None
        ),
        maximum_shift_ns=sum(int(shifts[-1]) for work in works if len(shifts := find_shifts(work, calls))),
    )


def exact_quantile(values: Int64s, permille: int) -> int:
    """The value of rank ceil(permille / 1000 × n); 0 of nothing."""
    if len(values) == 0:
        return 0
    return int(np.sort(values)[-(-len(values) * permille // 1000) - 1])


@dataclass(frozen=True, slots=True)
class _Queues:
    longest: int = 0
    p50: int = 0
    full_ns: int = 0


def _measure_queues(stream: Int32s, launched: Int64s, begun: Int64s) -> _Queues:
    """Rows of one stream that were launched and had not begun; one that begins at a time has left by then."""
    waited = begun > launched
    count = int(waited.sum())
    if not count:
        return _Queues()
    place = np.concatenate((stream[waited], stream[waited]))
    times = np.concatenate((launched[waited], begun[waited]))
    change = np.concatenate((np.ones(count, np.int64), -np.ones(count, np.int64)))
    order = np.lexsort((change, times, place))
    place, times, change = place[order], times[order], change[order]
    # Each stream's changes add up to nothing, so one running sum serves all.
    waiting = np.cumsum(change)
    # A graph launches many rows at one time: each finds all of them waiting.
    last = np.flatnonzero(np.append((np.diff(times) != 0) | (np.diff(place) != 0), True))
    at_once = waiting[last[np.searchsorted(last, np.flatnonzero(change > 0))]]
    return _Queues(
        longest=int(waiting.max()),
        p50=exact_quantile(at_once, 500),
        full_ns=int(np.diff(times)[waiting[:-1] >= _FULL_QUEUE].sum()),
    )
