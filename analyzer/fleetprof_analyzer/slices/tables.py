"""Idle time, stages, communication, launches, memory and modules of a report. Pure."""

import msgspec
from fleetprof_api.report.module_tree import ModuleNode, ModuleTree
from fleetprof_api.report.report import KindTotal, Report
from fleetprof_api.slices.tables import (
    CommunicationSlice,
    CopyRow,
    IdleCauseRow,
    IdleIteration,
    IdleOfKind,
    IdleSlice,
    LaunchSlice,
    MemorySlice,
    ModuleSlice,
    RankLaunches,
    RankPeak,
    RecordingMemory,
    SilenceRow,
    StageRow,
    StageSlice,
    UnrecordedSum,
)

from fleetprof_analyzer.slices.chosen_ranks import choose_ranks
from fleetprof_analyzer.words.causes import add_iterations, add_stages, find_silences, list_causes
from fleetprof_analyzer.words.launches import add_copies, find_sampled
from fleetprof_analyzer.words.modules import describe_iteration, list_remarks
from fleetprof_analyzer.words.recording import describe_memory
from fleetprof_analyzer.words.tables import sort_peaks
from fleetprof_analyzer.words.window import list_unrecorded


def make_idle(report: Report, most: int) -> IdleSlice:
    """The causes of idle time, with at most so many iterations."""
    iterations = add_iterations(report.ranks)
    return IdleSlice(
        kinds=[_idle_of_kind(total) for total in report.totals if total.idle_ns is not None or total.unrecorded],
        iterations=[
            IdleIteration(iteration=index, idle_ns=idle, causes=causes) for index, idle, causes in iterations[:most]
        ],
        cut=max(0, len(iterations) - most),
    )


def _idle_of_kind(total: KindTotal) -> IdleOfKind:
    causes = [] if total.idle_ns is None else list_causes(total.idle_ns)
    return IdleOfKind(
        kind=total.kind,
        idle_ns=total.time_ns.idle,
        causes=[
            IdleCauseRow(
                name=cause.name,
                title=cause.row.title,
                time_ns=cause.time_ns,
                meaning=f"{cause.row.meaning} ({cause.parts})" if cause.parts else cause.row.meaning,
            )
            for cause in causes
        ],
        unrecorded=[
            UnrecordedSum(words=row.words, time_ns=row.time_ns, in_span=row.in_span) for row in list_unrecorded(total)
        ],
    )


def make_stages(report: Report, most: int) -> StageSlice:
    """The stages over all ranks, and where the host ran no operator."""
    silences = find_silences(report.ranks)
    return StageSlice(
        stages=[
            StageRow(stage=stage, time_ns=time_ns, device_ns=device_ns)
            for stage, time_ns, device_ns in add_stages(report.ranks)
        ],
        silences=[SilenceRow(words=one.words, time_ns=one.time_ns, place=one.place) for one in silences[:most]],
        cut=max(0, len(silences) - most),
    )


def make_communication(report: Report, most: int) -> CommunicationSlice:
    """Collectives by kind, group and size, at most so many."""
    rows = report.communication
    if len(rows) > most:
        rows = sorted(rows, key=lambda row: -row.total_ns)[:most]
    return CommunicationSlice(items=rows, cut=len(report.communication) - len(rows))


def make_launches(report: Report, most: int) -> LaunchSlice:
    """The launches of at most so many ranks, and the operators that launch most."""
    ranks = choose_ranks(report, most)
    return LaunchSlice(
        ranks=[
            RankLaunches(rank=rank.rank, source=rank.source, span_ns=rank.time_ns.span, launches=rank.launches)
            for rank in ranks
            if rank.launches is not None
        ],
        operators=report.launching_operators[:most],
        sampled=find_sampled(report.ranks)[:most],
        cut=len(report.ranks) - len(ranks),
    )


def make_memory(report: Report, most: int) -> MemorySlice:
    """Copies, peak memory of at most so many devices, and what recording took."""
    peaks = sort_peaks(report.ranks)
    recording = describe_memory(report)
    return MemorySlice(
        copies=[
            CopyRow(
                direction=one.words,
                count=one.count,
                total_ns=one.total_ns,
                size=one.size,
                bytes_per_s=one.bytes_per_s,
            )
            for one in add_copies(report.ranks)[:most]
        ],
        peaks=[RankPeak(rank=rank, peak=peak) for rank, peak in peaks[:most]],
        recording=None
        if recording is None
        else RecordingMemory(
            peak=recording.peak,
            peak_context=recording.peak_context,
            kept=recording.kept,
            kept_context=recording.kept_context,
        ),
        cut=max(0, len(peaks) - most),
    )


def make_modules(report: Report, most: int) -> ModuleSlice:
    """Time and memory by module, at most so many of them: those that lie deepest go first."""
    tree = report.module_tree
    if tree is None:
        return ModuleSlice(title="", remarks=[], tree=None)
    nodes = _cut_deepest(tree, most)
    return ModuleSlice(
        title=describe_iteration(tree),
        remarks=list_remarks(tree),
        tree=msgspec.structs.replace(tree, nodes=nodes),
        cut=len(tree.nodes) - len(nodes),
    )


def _cut_deepest(tree: ModuleTree, most: int) -> list[ModuleNode]:
    """Nodes in their order; one is there only with all around it, for those lie less deep."""
    by_depth = sorted(range(len(tree.nodes)), key=lambda place: (tree.nodes[place].depth, place))
    return [tree.nodes[place] for place in sorted(by_depth[:most])]
