"""The graph of a whole job, and its replay: every wait is computed anew from the lengths of work alone.

Nodes: events of hosts (a wait has two: the host comes, the host goes on), ends of rows, starts of a collective's
members, and the collective itself, which ends on all of them when the last has come and its transfer is over. An edge
says how long after one node another happens at the least. Guarantees: pure; the same lengths give the same times.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from fleetprof_api.errors import FleetprofError

from fleetprof_analyzer.trace.classes import WorkClass
from fleetprof_analyzer.trace.trace import Bools, Int64s
from fleetprof_analyzer.whatif.replay.course import HostEvent, RankCourse, classes_of
from fleetprof_analyzer.whatif.replay.stream_times import time_streams

Floats = npt.NDArray[np.float64]
_NONE: Final = np.zeros(0, np.int64)
_NEVER: Final = float(np.iinfo(np.int64).min // 4)


_KINDS: Final = ("host", "compute", "communication", "copies", "waits")
_KIND_OF_CLASS: Final = {WorkClass.COMPUTE: 1, WorkClass.COMMUNICATION: 2, WorkClass.MEMORY: 3}


class CircularWork(FleetprofError):
    """Work seems to wait for itself: the recording does not say enough to replay it."""


@dataclass(frozen=True, slots=True)
class Meetings:
    """Collectives over the ranks: of each member its rank, its operation there, its collective, and how much later than
    the others it ends; their transfers."""

    rank: Int64s
    operation: Int64s
    collective: Int64s
    transfer_ns: Int64s
    late_ns: Int64s


@dataclass(frozen=True, slots=True)
class Lengths:
    """The changes of a scenario: hosts' own times and rows' durations by rank, and the collectives' transfers."""

    host_ns: list[Int64s]
    row_ns: list[Int64s]
    transfer_ns: Int64s


@dataclass(slots=True)
class _Edges:
    source: list[Int64s] = field(default_factory=list)
    target: list[Int64s] = field(default_factory=list)
    after_ns: list[Int64s] = field(default_factory=list)
    guessed: list[Bools] = field(default_factory=list)

    def add(self, source: Int64s, target: Int64s, after_ns: Int64s | int, *, guessed: bool = False) -> None:
        self.source.append(source)
        self.target.append(target)
        self.after_ns.append(np.broadcast_to(np.asarray(after_ns, np.int64), source.shape))
        self.guessed.append(np.full(len(source), guessed))


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The nodes of one rank: of its events as the host comes and goes on, and of its rows' ends and starts."""

    came: Int64s
    left: Int64s
    ends: Int64s
    starts: Int64s


class JobGraph:
    """The graph of the courses of all ranks. `begins_ns`: what is taken off each rank's clock. Raises CircularWork."""

    def __init__(
        self, courses: Sequence[RankCourse], meetings: Meetings, begins_ns: Int64s, *, proven: bool = True
    ) -> None:
        self.courses, self.meetings = list(courses), meetings
        known = {id(one): time_streams(one, proven=proven) for one in {id(one): one for one in courses}.values()}
        self.times = [known[id(one)] for one in courses]
        self.begins_ns = begins_ns
        self._numbers: list[_Numbers] = []
        count = 0
        for number, course in enumerate(courses):
            meets = np.zeros(len(course.rows), np.bool_)
            meets[self.rows_of(number)[1]] = True
            count = self._number(course, meets, count)
        self._first_meeting = count
        self._count = count + len(meetings.transfer_ns)
        self._floor = np.full(self._count, _NEVER)
        self._kind = self._kinds()
        edges = _Edges()
        for number in range(len(self.courses)):
            self._add_host(number, edges)
            self._add_rows(number, edges)
            self._add_meetings(number, edges)
        self._order(edges)

    def _number(self, course: RankCourse, meets: Bools, first: int) -> int:
        events, rows = len(course.host), len(course.rows)
        waits = course.host.kind == HostEvent.WAIT
        came = first + np.arange(events) + np.cumsum(waits) - waits
        left = came + waits
        first += events + int(waits.sum())
        ends = first + np.arange(rows)
        first += rows
        starts = np.where(meets, first + np.cumsum(meets) - 1, ends)
        self._numbers.append(_Numbers(came, left, ends, starts))
        return first + int(meets.sum())

    def stricter(self) -> "JobGraph":
        """The same in which collectives also wait for what they were never seen to wait for, nor not to."""
        return JobGraph(self.courses, self.meetings, self.begins_ns, proven=False)

    def _kinds(self) -> Int64s:
        """The kind of each node's own time, positions in `_KINDS`."""
        kind = np.full(self._count, _KINDS.index("communication"), np.int64)
        for course, nodes in zip(self.courses, self._numbers, strict=True):
            kind[nodes.came] = kind[nodes.left] = _KINDS.index("host")
            kind[nodes.starts] = _KINDS.index("waits")
            kind[nodes.ends] = [_KIND_OF_CLASS[one] for one in classes_of(course)]
        return kind

    def rows_of(self, number: int) -> tuple[Int64s, Int64s]:
        """(members of collectives, the rows of one rank that they are)."""
        here = np.flatnonzero(self.meetings.rank == number)
        rows = self.courses[number].rows
        row_of = np.full(int(max(rows.operation.max(initial=-1), self.meetings.operation.max(initial=-1))) + 2, -1)
        has = rows.operation >= 0
        row_of[rows.operation[has]] = np.flatnonzero(has)
        row = row_of[self.meetings.operation[here]]
        found = row >= 0
        return here[found], row[found]

    def _add_host(self, number: int, edges: _Edges) -> None:
        course, nodes, begin = self.courses[number], self._numbers[number], int(self.begins_ns[number])
        host = course.host
        if len(host):
            self._floor[nodes.came[0]] = host.begin_ns[0] - begin
        edges.add(nodes.left[:-1], nodes.came[1:], 0)
        wait = np.flatnonzero(host.kind == HostEvent.WAIT)
        inside = host.left_ns - host.arrived_ns
        binds = host.binds[wait]
        edges.add(nodes.came[wait], nodes.left[wait], np.where(binds, 0, inside[wait]))
        joined = wait[host.row[wait] >= 0]
        ended = course.rows.end_ns[host.row[joined]]
        returns = host.left_ns[joined] - ended
        binding = host.binds[joined]
        usual = int(np.median(returns[binding])) if binding.any() else 0
        edges.add(
            nodes.ends[host.row[joined]], nodes.left[joined],
            np.where(binding, returns, np.minimum(usual, returns)),
        )  # fmt: skip

    def _add_rows(self, number: int, edges: _Edges) -> None:
        course, nodes, times = self.courses[number], self._numbers[number], self.times[number]
        rows, launch = course.rows, course.host.launch
        launched = np.flatnonzero(launch >= 0)
        edges.add(nodes.came[launch[launched]], nodes.starts[launched], times.latency_ns)
        followed = np.flatnonzero(times.previous >= 0)
        edges.add(nodes.ends[times.previous[followed]], nodes.starts[followed], times.gap_ns[followed])
        found = times.dependencies
        edges.add(nodes.ends[found.earlier], nodes.starts[found.later], found.gap_ns, guessed=True)
        rests = times.rests
        self._floor[nodes.starts[rests]] = rows.start_ns[rests] - self.begins_ns[number]

    def _add_meetings(self, number: int, edges: _Edges) -> None:
        member, row = self.rows_of(number)
        nodes, meeting = self._numbers[number], self._first_meeting + self.meetings.collective[member]
        edges.add(nodes.starts[row], meeting, 0)
        edges.add(meeting, nodes.ends[row], self.meetings.late_ns[member])

    def _order(self, edges: _Edges) -> None:
        source, target, after = (np.concatenate(one) for one in (edges.source, edges.target, edges.after_ns))
        guessed = np.concatenate(edges.guessed)
        for kept in (np.ones(len(source), np.bool_), ~guessed):
            order = _topological(source[kept], target[kept], self._count)
            if order is not None:
                break
        else:
            raise CircularWork
        by_target = np.argsort(target[kept], kind="stable")
        self._source = source[kept][by_target].tolist()
        self._after = after[kept][by_target].tolist()
        self._bounds = np.searchsorted(target[kept][by_target], np.arange(self._count + 1)).tolist()
        self._sequence = order

    def as_recorded(self) -> Lengths:
        """The lengths of the recording itself."""
        rows = []
        for number, course in enumerate(self.courses):
            durations = course.rows.duration_ns.copy()
            durations[self.rows_of(number)[1]] = 0
            rows.append(durations)
        return Lengths([one.host.own_ns for one in self.courses], rows, self.meetings.transfer_ns)

    def replay(self, lengths: Lengths) -> "GraphTimes":
        """The moment of each node with these lengths, ns since the window's begin."""
        base = np.zeros(self._count)
        for number in range(len(self.courses)):
            nodes, times = self._numbers[number], self.times[number]
            base[nodes.came] = lengths.host_ns[number]
            base[nodes.ends] = lengths.row_ns[number]
            base[nodes.starts] += times.lag_ns
        base[self._first_meeting :] = lengths.transfer_ns
        values: list[float] = self._floor.tolist()
        bounds, source, after = self._bounds, self._source, self._after
        own = base.tolist()
        for node in self._sequence:
            most = values[node]
            for edge in range(bounds[node], bounds[node + 1]):
                moment = values[source[edge]] + after[edge]
                if moment > most:
                    most = moment
            values[node] = most + own[node]
        at = np.array(values)
        return GraphTimes(
            [at[one.left] for one in self._numbers],
            [at[one.ends] for one in self._numbers],
            at,
        )

    def bounds(self, outcome: "GraphTimes") -> dict[str, float]:
        """The parts of the job's time, by the chain of nodes that each waited for the one before, ns by kind."""
        values = outcome.at
        found = dict.fromkeys(_KINDS, 0.0)
        node = int(values.argmax())
        while node >= 0:
            begin, before = float(self._floor[node]), -1
            for edge in range(self._bounds[node], self._bounds[node + 1]):
                moment = float(values[self._source[edge]]) + self._after[edge]
                if moment > begin:
                    begin, before = moment, self._source[edge]
            found[_KINDS[self._kind[node]]] += float(values[node]) - begin
            if before >= 0:
                found["waits"] += begin - float(values[before])
            node = before
        return found

    def recorded(self) -> "GraphTimes":
        """The moment of each node as it was recorded."""
        begins = self.begins_ns.tolist()
        return GraphTimes(
            [(one.host.left_ns - begin).astype(np.float64) for one, begin in zip(self.courses, begins, strict=True)],
            [(one.rows.end_ns - begin).astype(np.float64) for one, begin in zip(self.courses, begins, strict=True)],
        )

    def iteration_times(self, outcome: "GraphTimes") -> Floats:
        """The length of each iteration, ns, mean over the ranks, shape (iterations,); of none the window's length."""
        every = [
            _iteration_times(course, events, ends)
            for course, events, ends in zip(self.courses, outcome.left_ns, outcome.ends_ns, strict=True)
        ]
        least = min(len(one) for one in every)
        return np.asarray(np.mean([one[len(one) - least :] for one in every], axis=0))


@dataclass(frozen=True, slots=True)
class GraphTimes:
    """The moments of each rank at which its host leaves each event, and at which its rows end."""

    left_ns: list[Floats]
    ends_ns: list[Floats]
    at: Floats = field(default_factory=lambda: np.zeros(0))  # of each node; none of what was recorded


def _iteration_times(course: RankCourse, left_ns: Floats, ends_ns: Floats) -> Floats:
    """From the last work of one iteration to that of the next; from the begin where no work was recorded before it."""
    moments = []
    at = left_ns[course.borders]
    rows = course.rows
    if len(at) < 2:
        last = max(float(ends_ns.max(initial=0)), float(left_ns[-1]) if len(left_ns) else 0.0)
        first = float((ends_ns - rows.duration_ns).min()) if len(ends_ns) else 0.0
        return np.array([last - min(first, float(left_ns[0]) if len(left_ns) else first)])
    cuts = [begin for begin, _ in course.bounds] + [course.bounds[-1][1]]
    before = np.searchsorted(rows.called_ns, cuts)
    latest = np.maximum.accumulate(ends_ns) if len(ends_ns) else ends_ns
    on_device = course.kind == "gpu"
    for number, moment in enumerate(at):
        passed = int(before[number]) if on_device else 0
        moments.append(float(latest[passed - 1]) if passed else float(moment))
    if on_device and before[0] == 0 and len(at) > 2:
        moments = moments[1:]
    return np.diff(moments)


def _topological(source: Int64s, target: Int64s, count: int) -> list[int] | None:
    """The nodes so that each comes behind those before it; None where they are in a circle."""
    by_source = np.argsort(source, kind="stable")
    targets = target[by_source].tolist()
    bounds = np.searchsorted(source[by_source], np.arange(count + 1)).tolist()
    missing = np.bincount(target, minlength=count).tolist()
    order = [node for node, left in enumerate(missing) if not left]
    for node in order:
        for edge in range(bounds[node], bounds[node + 1]):
            following = targets[edge]
            missing[following] -= 1
            if not missing[following]:
                order.append(following)
    return order if len(order) == count else None


def no_meetings() -> Meetings:
    """The times of a job whose ranks meet nobody who was captured."""
    return Meetings(_NONE, _NONE, _NONE, _NONE, _NONE)
