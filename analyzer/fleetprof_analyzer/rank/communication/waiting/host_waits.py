"""The spans in which a rank's host waits for its device or for an operation, and in which it goes on beside them.

Most traces do not say it: it is told from what the host launched meanwhile. Guarantees: pure.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from fleetprof_analyzer.rank.communication.chain.awaited import find_awaited
from fleetprof_analyzer.rank.communication.chain.chain import Host
from fleetprof_analyzer.rank.communication.chain.host_chain import HostWaits
from fleetprof_analyzer.rank.communication.sources import OperationSource
from fleetprof_analyzer.trace.trace import ROUNDED_NS, Bools, Int64s

_SYNCHRONISED_SHARE: Final = 0.9
_OFTEN: Final = 0.5  # of the iterations


def read_host(source: OperationSource, position: Int64s) -> Host | None:
    """The host's launches and waits; None where they were not recorded. `position` numbers the program's operations."""
    if source.row_launch_ns is None or source.waits is None:
        return None
    start, end = source.waits.known
    row = np.searchsorted(source.row_launch_ns, start).astype(np.int64)
    place = _places_of_calls(start, source.launch_ns, position)
    # A launch call that ended as this one began may seem to overlap it, by what times are rounded to.
    launched = np.searchsorted(source.row_launch_ns, start + ROUNDED_NS, side="right").astype(np.int64)
    awaited = find_awaited(start, end, launched, source.row_end_ns, place, source.tolerance_ns)
    waits = HostWaits(start, end, row, awaited)
    return Host(source.row_launch_ns, source.launch_ns, waits, _held(source))


def host_leads(source: OperationSource) -> bool:
    """Tells whether the host goes on while its device communicates.

    Where it never does, it waits in a way that was not recorded, and its time is no own time.
    """
    passed = _launched_meanwhile(source)[~source.on_host]
    return len(passed) > 0 and float(passed.mean()) >= 1 - _SYNCHRONISED_SHARE


def follows_chain(source: OperationSource, reached_ns: Int64s, kind: npt.NDArray[np.int8]) -> Bools:
    """Tells if an operation begins only after the chain: always on a device, on its host where the host waits for it.

    The host waits where it makes a call that does, since its last operation; where calls were not recorded, where it
    is never ahead of its device.
    """
    follows = ~source.on_host
    if source.kind == "cpu":
        return np.ones(len(follows), np.bool_)
    launch, waits = source.launch_ns, None if source.waits is None else source.waits.known[1]
    if waits is None:
        waited = launch >= reached_ns
    else:
        hosts = np.flatnonzero(source.on_host)
        since = np.concatenate((launch[:1], launch[hosts[:-1]])) if len(hosts) else launch[:0]
        waited = np.zeros(len(launch), np.bool_)
        waited[hosts] = np.searchsorted(waits, launch[hosts]) > np.searchsorted(waits, since)
    for one in np.unique(kind[source.on_host]):
        here = source.on_host & (kind == one)
        # The window's first one tells nothing: no work before it was recorded.
        not_first = here & (np.arange(len(here)) > 0)
        follows[here] = not_first.any() and waited[not_first].mean() >= _SYNCHRONISED_SHARE
    return follows


def passes_chain(
    source: OperationSource, reached_ns: Int64s, previous_end_ns: Int64s, position: Int64s, host: Host | None
) -> Bools:
    """Tells whether an operation of a device begins beside the chain, as what is gathered ahead for the next layer.

    What waits for the chain never begins before it. The iterations are taken together, and what launch and stream leave
    unexplained must be less than what the chain would. `position` numbers the operations of the program, -1: none.
    """
    passes = np.zeros(len(position), np.bool_)
    ready = previous_end_ns if host is None else np.maximum(previous_end_ns, host.launch_ns)
    early = np.maximum(reached_ns - source.start_ns, 0)
    known = ready > np.iinfo(np.int64).min
    late = np.where(known, np.maximum(source.start_ns - np.where(known, ready, 0), 0), 0)
    for one in np.unique(position[position >= 0]):
        here = ~source.on_host & (position == one)
        often = here.any() and (early[here] > source.tolerance_ns).mean() >= _OFTEN
        passes[here] = often and bool(known[here].all()) and float(early[here].sum()) > float(late[here].sum())
    return passes


def _places_of_calls(start_ns: Int64s, launch_ns: Int64s, position: Int64s) -> Int64s:
    """The same number for the same call of the program: the n-th since the operation before; -1 where there is none."""
    before = np.searchsorted(launch_ns, start_ns) - 1
    nth = np.arange(len(before)) - np.searchsorted(before, before)
    known = (before >= 0) & (position[before] >= 0)
    return np.where(known, position[before] * (int(nth.max(initial=0)) + 1) + nth, -1)


def _held(source: OperationSource) -> Bools:
    """Operations of the host's backends that the host itself waits for: it launches nothing before their end."""
    passed = _launched_meanwhile(source)
    held = np.zeros(len(passed), np.bool_)
    if source.on_host.any():
        held[source.on_host] = passed[source.on_host].mean() <= 1 - _SYNCHRONISED_SHARE
    return held


def _launched_meanwhile(source: OperationSource) -> Bools:
    """Tells whether the host launched something between an operation's launch and its end."""
    assert source.row_launch_ns is not None
    launched = np.sort(np.concatenate((source.row_launch_ns, source.launch_ns)))
    end = source.start_ns + source.duration_ns - source.tolerance_ns
    return np.asarray(np.searchsorted(launched, source.launch_ns, side="right") < np.searchsorted(launched, end))
