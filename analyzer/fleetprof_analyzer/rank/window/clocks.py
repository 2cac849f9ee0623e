"""Tells whether the clocks of host and device fit: work begins after its launch, and ends before a wait for it does.

Guarantees: pure; where they do not, no cause of idle time and no delay of a launch can be told.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls
from fleetprof_analyzer.trace.naming import matcher, where_name
from fleetprof_analyzer.trace.ordering import distinct, order_by
from fleetprof_analyzer.trace.trace import Category, Int64s, Rows, Trace

_TOLERANCE_NS: Final = 10_000
_LEAST_PERMILLE: Final = 20
_WAIT_FOR_DEVICE: Final = re.compile(r"(?:Device|Ctx)Synchronize")
_WAIT_FOR_STREAM: Final = re.compile(r"StreamSynchronize")
_TO_HOST: Final = re.compile(r"DtoH|DeviceToHost")


class Misfit(NamedTuple):
    """So many of all begin before their launch, or end after the host has waited for them, by this much at most."""

    off: int
    of: int
    most_ns: int
    early: bool  # before their launch; else after the wait

    def say(self) -> str:
        """It in words."""
        what = "pieces of work begin before their launch" if self.early else "waits for work end before the work does"
        return f"{self.off:,} of {self.of:,} {what}, by up to {self.most_ns / 1e6:,.3f} ms"


def find_misfit(trace: Trace, works: Sequence[DeviceWork], calls: LaunchCalls) -> Misfit | None:
    """Evidence that the clocks do not fit; None where nothing does."""
    ahead = [_ahead_of_launch(work, calls) for work in works]
    behind = [_behind_waits(trace, work, calls, alone=len(works) == 1) for work in works]
    for early, off in ((True, ahead), (False, behind)):
        off_ns = np.concatenate([*off, np.zeros(0, np.int64)])
        count = int((off_ns > _TOLERANCE_NS).sum())
        if count and 1000 * count >= _LEAST_PERMILLE * len(off_ns):
            return Misfit(count, len(off_ns), int(off_ns.max()), early)
    return None


def _ahead_of_launch(work: DeviceWork, calls: LaunchCalls) -> Int64s:
    """The time that each row whose launch is known begins before it."""
    position = calls.of(work.rows)
    known = position >= 0
    return np.asarray(calls.calls.start_ns[position[known]] - work.rows.start_ns[known])


def _behind_waits(trace: Trace, work: DeviceWork, calls: LaunchCalls, *, alone: bool) -> Int64s:
    """The time by which each wait ends before the work that it waits for does.

    A wait for the device is one for all that was launched before; a wait for a stream right behind a copy to the host,
    on the same thread, is one for that copy.
    """
    position = calls.of(work.rows)
    known = position >= 0
    every = trace.rows.select(trace.rows.category == Category.RUNTIME)
    if not known.any():
        return np.zeros(0, np.int64)
    rows, launches = work.rows.select(known), calls.calls.take(position[known])
    copies = where_name(rows, trace.names, matcher(_TO_HOST))
    found = _behind_stream_waits(trace, every, rows.select(copies), launches.select(copies))
    if not alone:
        return found
    waits = every.select(where_name(every, trace.names, matcher(_WAIT_FOR_DEVICE)))
    # What another thread is still launching as the wait begins, it need not wait for.
    order = order_by(launches.end_ns)
    ends = np.maximum.accumulate(rows.end_ns[order])
    before = np.searchsorted(launches.end_ns[order], waits.start_ns, side="right")
    return np.concatenate((found, (ends[before - 1] - waits.end_ns)[before > 0]))


def _behind_stream_waits(trace: Trace, every: Rows, copies: Rows, launches: Rows) -> Int64s:
    """Measures waits for a stream; `every` call of the runtime, `launches` those of the copies to the host."""
    every = every.take(order_by(every.place.astype(np.int64), every.start_ns))
    found = []
    for place in distinct(launches.place.astype(np.int64)).tolist():
        first, last = np.searchsorted(every.place, (place, place + 1)).tolist()
        here, mine = every.part(first, last), launches.place == place
        following = np.searchsorted(here.start_ns, launches.start_ns[mine], side="right")
        ends, following = copies.end_ns[mine][following < len(here)], following[following < len(here)]
        waits = where_name(here, trace.names, matcher(_WAIT_FOR_STREAM))[following]
        found.append((ends - here.end_ns[following])[waits])
    return np.concatenate([*found, np.zeros(0, np.int64)])
