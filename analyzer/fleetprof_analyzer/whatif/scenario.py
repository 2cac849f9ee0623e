"""Lengths of work under edits: what the recording's lengths become.

Guarantees: pure; an edit for which the recording lacks the evidence raises `NotTold` with what is missing.
"""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fleetprof_analyzer.trace.classes import is_data_loading
from fleetprof_analyzer.trace.intervals import Union, covered, covered_length, union, without
from fleetprof_analyzer.trace.trace import Int64s, Rows
from fleetprof_analyzer.whatif.edits import (
    BatchSize,
    Edit,
    Faster,
    Graphed,
    Loader,
    Network,
    NodeCount,
    NotTold,
    RankCount,
    WithoutStraggler,
)
from fleetprof_analyzer.whatif.peers import take_from_peer
from fleetprof_analyzer.whatif.replay.course import HostEvent, RankCourse
from fleetprof_analyzer.whatif.replay.graph import JobGraph, Lengths
from fleetprof_analyzer.whatif.replay.job import CapturedJob
from fleetprof_analyzer.whatif.scaling.batch import rebatch
from fleetprof_analyzer.whatif.scaling.growth import grow
from fleetprof_analyzer.whatif.scaling.transfers import latencies, say_latency

_OF_A_DOUBLING: Final = 0.06
_DEVIATIONS: Final = 2.0


@dataclass(slots=True)
class EditedJob:
    """The job as edited, and what each edit touched, in words. `others`: lengths that it may have as well.

    `mended`: by rank how much slower its rows and host may be than its peers', by themselves.
    """

    graph: JobGraph
    lengths: Lengths
    rests_on: list[str] = field(default_factory=list)
    others: list[Lengths] = field(default_factory=list)
    doubt: str = ""  # why there are others
    mended: dict[int, tuple[float, float]] = field(default_factory=dict)
    samples: float = 1.0  # of an iteration, by those as captured
    more_doubt: dict[str, float] = field(default_factory=dict)  # of the interval, by what it comes from
    quickened: dict[int, list[tuple[Union, float]]] = field(default_factory=dict)  # by rank: host's time, what is left


def slower_lengths(scenario: EditedJob) -> Lengths | None:
    """The lengths if mended ranks are as slow as they may be; None without any."""
    if not scenario.mended:
        return None
    found = scenario.lengths
    rows, hosts = list(found.row_ns), list(found.host_ns)
    for rank, (of_rows, of_hosts) in scenario.mended.items():
        rows[rank] = np.rint(rows[rank] * (1 + of_rows)).astype(np.int64)
        hosts[rank] = np.rint(hosts[rank] * (1 + of_hosts)).astype(np.int64)
    return Lengths(hosts, rows, found.transfer_ns)


def edit(job: CapturedJob, edits: list[Edit]) -> EditedJob:
    """The lengths under the edits. Raises NotTold."""
    recorded = job.graph.as_recorded()
    scenario = EditedJob(job.graph, Lengths(list(recorded.host_ns), list(recorded.row_ns), recorded.transfer_ns))
    for one in edits:
        match one:
            case Faster():
                _speed_up(job.graph, scenario, one)
            case Loader():
                _load(job.graph, scenario, one)
            case Graphed():
                _graph(job.graph, scenario, one)
            case Network():
                _transfer(job, scenario, one)
            case WithoutStraggler():
                _mend(job, scenario, one)
            case BatchSize() | RankCount() | NodeCount():
                continue
    _rebatch(job, scenario, edits)
    _resize(job, scenario, edits)
    return scenario


def _rebatch(job: CapturedJob, scenario: EditedJob, edits: list[Edit]) -> None:
    sizes = [one.size for one in edits if isinstance(one, BatchSize)]
    if not sizes:
        return
    if any(isinstance(one, RankCount) for one in edits):
        raise NotTold("another batch size and another number of ranks are not told at once")
    found = rebatch(job.graph, scenario.lengths, job.samples, sizes[-1])
    little, much = found.lengths
    transfers = _by_sum([one.transfer_ns for one in (scenario.lengths, *scenario.others)])
    scenario.lengths = Lengths(little.host_ns, little.row_ns, transfers[0])
    scenario.others = [Lengths(much.host_ns, much.row_ns, transfers[-1])]
    scenario.samples = sizes[-1] / (job.samples or sizes[-1])
    scenario.more_doubt["how work grows with the batch"] = _OF_A_DOUBLING * abs(math.log2(scenario.samples))
    scenario.rests_on.append(found.rests_on)
    scenario.doubt = "whether kernels that carry the batch grow in proportion"


def _by_sum(transfers: list[Int64s]) -> list[Int64s]:
    return sorted(transfers, key=lambda one: int(one.sum()))


def _resize(job: CapturedJob, scenario: EditedJob, edits: list[Edit]) -> None:
    """The number of ranks comes last: new ones are like those that were edited."""
    counts = [one.count for one in edits if isinstance(one, RankCount)]
    nodes = [one.count for one in edits if isinstance(one, NodeCount)]
    if not counts:
        if nodes:
            raise NotTold("nodes goes with ranks: how the same ranks would meet elsewhere is not told")
        return
    if job.unmatched:
        raise NotTold(f"which ranks meet cannot be told: {job.unmatched}")
    transfers = _by_sum([one.transfer_ns for one in (scenario.lengths, *scenario.others)])
    grown = grow(job.graph, scenario.lengths, transfers, counts[-1], nodes[-1] if nodes else None)
    scenario.mended.clear()
    scenario.graph, (scenario.lengths, *scenario.others) = grown.graph, grown.lengths
    scenario.samples = counts[-1] / len(job.graph.courses)
    scenario.more_doubt["machines differ in pace"] = grown.uneven
    scenario.rests_on += grown.rests_on
    scenario.doubt = "how transfers of larger groups run: as a ring or a tree, and with which latency"


def _shorter(times: Int64s, factor: float) -> Int64s:
    return np.rint(times / factor).astype(np.int64)


def _speed_up(graph: JobGraph, scenario: EditedJob, change: Faster) -> None:
    rows_touched, device_ns, host_ns, recorded_ns = 0, 0, 0, 0
    names: set[str] = set()
    for number, course in enumerate(graph.courses):
        exact = change.name in course.trace.names
        chosen = np.array([one == change.name if exact else change.name in one for one in course.trace.names], np.bool_)
        host = _host_rows(course)
        ranges = host.select(chosen[host.name] & (host.duration_ns > 0))
        spans = union(ranges.start_ns, ranges.end_ns)
        rows, own = scenario.lengths.row_ns[number], scenario.lengths.host_ns[number]
        hit = chosen[course.rows.name] | covered(course.rows.called_ns, spans)
        hit &= rows > 0  # collectives last as long as their transfers
        inside = _left_inside(course, spans, scenario.quickened.get(number, []))
        scenario.quickened.setdefault(number, []).append((spans, 1 / change.factor))
        names.update(course.trace.names[one] for one in np.flatnonzero(chosen).tolist())
        rows_touched += int(hit.sum())
        device_ns += int(rows[hit].sum())
        host_ns += int(inside.sum())
        recorded_ns += int(_inside(course, spans).sum())
        scenario.lengths.row_ns[number] = np.where(hit, _shorter(rows, change.factor), rows)
        taken = np.minimum(inside, own)
        scenario.lengths.host_ns[number] = own - taken + _shorter(taken, change.factor)
    if not rows_touched and not recorded_ns:
        raise NotTold(f"nothing that could be sped up has a name with {change.name!r} in this capture")
    scenario.rests_on.append(
        f"{len(names)} name(s) with {change.name!r}: {rows_touched} rows of {_ms(device_ns)} ms on devices and "
        f"{_ms(host_ns)} ms of hosts' own time, over all ranks"
    )


def _load(graph: JobGraph, scenario: EditedJob, change: Loader) -> None:
    total = 0
    for number, course in enumerate(graph.courses):
        chosen = np.array([is_data_loading(one) for one in course.trace.names], np.bool_)
        host = _host_rows(course)
        ranges = host.select(chosen[host.name])
        spans = union(ranges.start_ns, ranges.end_ns)
        inside = _left_inside(course, spans, scenario.quickened.get(number, []))
        inside = np.minimum(inside, scenario.lengths.host_ns[number])
        scenario.quickened.setdefault(number, []).append((spans, 1 / change.factor))
        total += int(inside.sum())
        own = scenario.lengths.host_ns[number]
        scenario.lengths.host_ns[number] = own - inside + _shorter(inside, change.factor)
    if not total:
        raise NotTold("no wait for a data loader is marked in this capture")
    scenario.rests_on.append(f"{_ms(total)} ms in ranges of data loading, over all ranks")


def _graph(graph: JobGraph, scenario: EditedJob, change: Graphed) -> None:
    """The host's time from one launch to the next goes, but for data loading; waits and what is outside stay."""
    launches, total = 0, 0
    for number, course in enumerate(graph.courses):
        if course.kind != "gpu":
            raise NotTold("without a device nothing is launched that a CUDA graph could hold")
        kind, own = course.host.kind, scenario.lengths.host_ns[number]
        host, names = _host_rows(course), course.trace.names
        between = (kind == HostEvent.LAUNCH) & np.concatenate(([False], kind[:-1] == HostEvent.LAUNCH))
        loads = np.array([is_data_loading(one) for one in names], np.bool_)[host.name]
        quickened = scenario.quickened.get(number, [])
        loading = _left_inside(course, union(host.start_ns[loads], host.end_ns[loads]), quickened)
        vanishing = own - np.minimum(loading, own)
        if change.name:
            ranges = host.select(np.array([change.name in one for one in names], np.bool_)[host.name])
            inside = _left_inside(course, union(ranges.start_ns, ranges.end_ns), quickened)
            vanishing = np.minimum(vanishing, inside)
        vanishing = np.where(between, vanishing, 0)
        launches += int((vanishing > 0).sum())
        total += int(vanishing.sum())
        scenario.lengths.host_ns[number] = own - vanishing
    if not launches:
        raise NotTold(f"nothing is launched in a module or range with {change.name!r} in this capture")
    scenario.rests_on.append(
        f"{launches} launches that follow another one, with {_ms(total)} ms of hosts' own time before them, over all "
        "ranks; that work can be captured in a graph (fixed shapes, no wait inside) is not checked"
    )


def _transfer(job: CapturedJob, scenario: EditedJob, change: Network) -> None:
    if job.unmatched:
        raise NotTold(f"what of a collective is its transfer cannot be told: {job.unmatched}")
    count = len(scenario.lengths.transfer_ns)
    members = np.bincount(job.graph.meetings.collective, minlength=count)
    if not (members > 1).any():
        raise NotTold(
            "what of a collective is its transfer is told by its last member alone: "
            "two ranks or more that meet must be captured"
        )
    lengths = scenario.lengths
    latency, is_known = latencies(job.graph, lengths.transfer_ns)
    faster = [_shorter(lengths.transfer_ns - kept, change.factor) + kept for kept in (latency, 0 * latency)]
    scenario.lengths, other = (Lengths(lengths.host_ns, lengths.row_ns, one) for one in faster)
    scenario.others.append(other)
    scenario.doubt = "what of a transfer is latency, which no bandwidth shortens"
    scenario.rests_on.append(
        f"{count} transfers, each as long as its last member was in the collective; latency {say_latency(is_known)}"
    )


def _mend(job: CapturedJob, scenario: EditedJob, change: WithoutStraggler) -> None:
    if change.rank not in job.ranks:
        raise NotTold(f"rank {change.rank} is not in this capture")
    late = job.ranks.index(change.rank)
    lent = take_from_peer(job.graph, scenario.lengths, late)
    if lent is None:
        raise NotTold(f"no captured rank does the work of rank {change.rank}: nothing tells what it should take")
    peer, (of_rows, of_hosts) = lent
    scenario.mended[late] = (_DEVIATIONS * of_rows, _DEVIATIONS * of_hosts)
    scenario.rests_on.append(f"rank {job.ranks[peer]}, whose work and time stand for rank {change.rank}'s")


def _host_rows(course: RankCourse) -> Rows:
    trace = course.trace
    host = trace.rows.select(~trace.rows.on_device)
    return host.select(np.isin(host.place, _places(course, host)))


def _places(course: RankCourse, host: Rows) -> Int64s:
    """The threads whose time is the host's: those that launch, else the one with most rows."""
    calls = np.isin(host.start_ns, course.rows.called_ns) & (host.correlation >= 0)
    if calls.any():
        return np.unique(host.place[calls]).astype(np.int64)
    return np.array([int(np.bincount(host.place).argmax())] if len(host) else [], np.int64)


def _inside(course: RankCourse, spans: Union) -> Int64s:
    """The share of the host's own time before each event that lies in spans, shape (h,)."""
    return covered_length(course.host.arrived_ns, spans) - covered_length(course.host.begin_ns, spans)


def _left_inside(course: RankCourse, spans: Union, quickened: list[tuple[Union, float]]) -> Int64s:
    """The same of what edits before have left, each of its own spans."""
    if not quickened or not len(spans[0]):
        return _inside(course, spans)
    *before, (of, left) = quickened
    both = without(spans, without(spans, of))
    saved = (1 - left) * _left_inside(course, both, before)
    return np.rint(_left_inside(course, spans, before) - saved).astype(np.int64)


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:,.1f}"
