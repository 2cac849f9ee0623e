"""The places of a device's idle time: between which work on which streams and which operators, in which line of code.

Of each cause its longest gaps are looked at, and the pair of names that holds most of their time is kept. Guarantees:
pure; at most one place of each cause on each device, none of causes that make no finding.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from fleetprof_api.report.report_tables import IdlePlace

from fleetprof_analyzer.rank.host.code_of_spans import find_code
from fleetprof_analyzer.rank.host.track import Track
from fleetprof_analyzer.rank.measures.devices import DeviceWork
from fleetprof_analyzer.rank.measures.idle.gaps import NEVER, Gaps
from fleetprof_analyzer.rank.measures.kernels.kernels import short_name
from fleetprof_analyzer.rank.measures.kernels.launch_calls import LaunchCalls, Positions
from fleetprof_analyzer.trace.classes import is_host_annotation
from fleetprof_analyzer.trace.naming import where_name
from fleetprof_analyzer.trace.trace import Bools, Category, Int64s, Rows, Trace

_LEAST_PERMILLE: Final = 20  # the least that is a finding
_MOST_GAPS: Final = 200
_Work = tuple[str, str]
"""Its name and its stream."""
_NO_WORK: Final[_Work] = ("", "")


class LongGaps(NamedTuple):
    """The longest gaps of one cause on one device, and the time of that cause in each, ns, shape (n,)."""

    kind: str
    gaps: Gaps
    time_ns: Int64s


def choose_longest(kinds: dict[str, Int64s], gaps: Gaps, span_ns: int) -> list[LongGaps]:
    """The longest gaps of each kind, given as ns in each of the gaps; none of kinds that have little of the span."""
    chosen = []
    for kind, time_ns in kinds.items():
        if 1000 * int(time_ns.sum()) < _LEAST_PERMILLE * span_ns or span_ns <= 0:
            continue
        count = len(time_ns) - min(len(time_ns), _MOST_GAPS)
        at = np.sort(np.argpartition(time_ns, count)[count:]) if count else np.arange(len(time_ns))
        at = at[time_ns[at] > 0]
        chosen.append(LongGaps(kind, gaps.select(at), time_ns[at]))
    return chosen


def find_idle_places(
    trace: Trace, work: DeviceWork, calls: LaunchCalls, chosen: Sequence[LongGaps], track: Track | None
) -> list[IdlePlace]:
    """The place of each kind; `track`: samples of the training thread, None where it was not sampled."""
    if not chosen:
        return []
    borders, operators = _Borders(trace, work.rows, calls, chosen), _HostOperators(trace)
    found = [_find_place(trace, one, borders, operators, track) for one in chosen]
    return sorted(found, key=lambda place: (-place.time_ns, place.kind))


def _find_place(
    trace: Trace, one: LongGaps, borders: "_Borders", operators: "_HostOperators", track: Track | None
) -> IdlePlace:
    """The place of most of these gaps' time, and what the host did in the longest of those that lie there."""
    (ended, began), mine = _choose_neighbours(one, borders)
    gaps, time_ns = one.gaps.select(mine), one.time_ns[mine]
    longest = int(time_ns.argmax())
    thread = int(gaps.thread[longest])
    operator, after, before = operators.around(thread, int(gaps.call_start_ns[longest]))
    until = np.clip(gaps.call_start_ns, gaps.begin_ns, gaps.end_ns).tolist()
    spans = [(start, end) for start, end in zip(gaps.begin_ns.tolist(), until, strict=True) if end > start]
    return IdlePlace(
        kind=one.kind,
        time_ns=int(time_ns.sum()),
        count=len(time_ns),
        start_ns=int(gaps.begin_ns[longest]),
        duration_ns=int(gaps.end_ns[longest] - gaps.begin_ns[longest]),
        after_work=ended[0],
        after_stream=ended[1],
        before_work=began[0],
        before_stream=began[1],
        operator=operator,
        after=after,
        before=before,
        place=find_code(trace, thread, track, spans) if spans else None,
    )


def _choose_neighbours(one: LongGaps, borders: "_Borders") -> tuple[tuple[_Work, _Work], Bools]:
    """The work before and after the gaps that hold most of the time together, and which gaps these are."""
    pairs = list(zip(map(borders.ends_at, one.gaps.begin_ns.tolist()),
                     map(borders.begins_at, one.gaps.end_ns.tolist()), strict=True))  # fmt: skip
    times: Counter[tuple[_Work, _Work]] = Counter()
    for pair, time_ns in zip(pairs, one.time_ns.tolist(), strict=True):
        times[pair] += time_ns
    most = min(times, key=lambda pair: (-times[pair], pair))
    return most, np.array([pair == most for pair in pairs])


class _Borders:
    """The device's work that ends where one of the gaps begins, and that begins where one ends."""

    def __init__(self, trace: Trace, rows: Rows, calls: LaunchCalls, chosen: Sequence[LongGaps]) -> None:
        ending = rows.take(_find_times(rows.end_ns, [one.gaps.begin_ns for one in chosen]))
        # Of the longest work; what takes no time counts only where nothing else ends then.
        ending = _first_of_each(ending, ending.end_ns, ending.duration_ns == 0, ending.start_ns)
        self._ending = _name(trace, ending, ending.end_ns)
        beginning = rows.take(_find_times(rows.start_ns, [one.gaps.end_ns for one in chosen]))
        call = calls.of(beginning)
        launched = np.full(len(call), NEVER, np.int64)
        launched[call >= 0] = calls.calls.start_ns.take(call[call >= 0])
        beginning = _first_of_each(beginning, beginning.start_ns, launched, beginning.correlation)
        self._beginning = _name(trace, beginning, beginning.start_ns)

    def ends_at(self, at_ns: int) -> _Work:
        """The name of the longest work that ends then; empty where none does."""
        return self._ending.get(at_ns, _NO_WORK)

    def begins_at(self, at_ns: int) -> _Work:
        """The name of the work that begins then and that was launched first; empty where none does."""
        return self._beginning.get(at_ns, _NO_WORK)


class _HostOperators:
    """The operators of host threads, each thread's taken out of the trace once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._of_thread: dict[int, Rows] = {}

    def around(self, thread: int, call_ns: int) -> tuple[str, str, str]:
        """(innermost operator around a call, the last that ended before, the outermost around it or the next one).

        Empty where the thread is not known (-1), or has none.
        """
        if thread < 0:
            return "", "", ""
        rows = self._select(thread)
        start, end = rows.start_ns, rows.end_ns
        around = np.flatnonzero((start <= call_ns) & (call_ns < end))
        begin = int(start[around].min()) if len(around) else call_ns
        ended, coming = np.flatnonzero(end <= begin), np.flatnonzero(start >= begin)

        def name(at: int) -> str:
            return short_name(self._trace.names[rows.name[at]])

        inner = name(int(around[start[around].argmax()])) if len(around) else ""
        # Of operators that end or begin together the outermost is meant.
        after = name(int(ended[np.lexsort((start[ended], -end[ended]))[0]])) if len(ended) else ""
        following = name(int(coming[np.lexsort((-end[coming], start[coming]))[0]])) if len(coming) else ""
        return inner, after, following

    def _select(self, thread: int) -> Rows:
        if thread not in self._of_thread:
            rows = self._trace.rows
            rows = rows.select((rows.place == thread) & (rows.category == Category.OPERATOR))
            self._of_thread[thread] = rows.select(~where_name(rows, self._trace.names, is_host_annotation))
        return self._of_thread[thread]


def _find_times(times_ns: Int64s, wanted_ns: Sequence[Int64s]) -> Positions:
    """The positions in `times_ns` of the times that one of `wanted_ns` holds."""
    wanted = np.unique(np.concatenate(wanted_ns))
    at = np.minimum(np.searchsorted(wanted, times_ns), len(wanted) - 1)
    return np.flatnonzero(wanted.take(at) == times_ns) if len(wanted) else np.zeros(0, np.intp)


def _first_of_each(rows: Rows, times_ns: Int64s, *keys: Int64s | Bools) -> Rows:
    """The first of the rows of each time by these keys, then in their order."""
    order = np.lexsort((*reversed(keys), times_ns))
    ordered = times_ns.take(order)
    return rows.take(order[np.append(True, ordered[1:] != ordered[:-1])[: len(order)]])


def _name(trace: Trace, rows: Rows, times_ns: Int64s) -> dict[int, _Work]:
    """Names and streams of rows by their times."""
    names = {number: short_name(trace.names[number]) for number in set(rows.name.tolist())}
    return {
        time: (names[name], trace.places[place][1])
        for time, name, place in zip(times_ns.tolist(), rows.name.tolist(), rows.place.tolist(), strict=True)
    }
