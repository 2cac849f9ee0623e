"""The page's tables of ranks, stages, communication and launches, as columns and cells.

Guarantees: pure; the numbers are the report's; a table's columns are those that say something of this report.
"""

from collections.abc import Collection, Sequence
from statistics import median
from typing import Final

from fleetprof_api.quantities import duration, rate, share, size
from fleetprof_api.report.idle_causes import IDLE_CAUSES
from fleetprof_api.report.report import Rank, Report
from fleetprof_api.report.report_tables import CommunicationStatistics
from markupsafe import Markup

from fleetprof_analyzer.views.page import links
from fleetprof_analyzer.views.page.table import Heading, PageTable, make_table
from fleetprof_analyzer.views.text import plain, rank_name
from fleetprof_analyzer.views.words.causes_text import add_iterations, add_stages

_MOST_COLLECTIVES: Final = 16
_MOST_ITERATIONS: Final = 40


def tabulate_ranks(report: Report, traces: str | None, kept: Collection[str] | None) -> PageTable:
    """Every rank's numbers; with its trace linked where `traces` says where traces lie and it is among those kept."""
    columns = [
        Heading("Rank", "name"), Heading("Kind", "left"), Heading("Iterations", stays=True), Heading("Median"),
        Heading("Compute", stays=True), Heading("Exposed comm."), Heading("Overlapped"), Heading("Exposed mem."),
        Heading("Idle"), Heading("Span", stays=True), Heading("Trace", "left"),
    ]  # fmt: skip
    return make_table(columns, (_rank_cells(rank, traces, kept) for rank in report.ranks))


def _rank_cells(rank: Rank, traces: str | None, kept: Collection[str] | None) -> list[str | Markup]:
    time_ns = rank.time_ns
    parts = (
        time_ns.compute, time_ns.exposed_communication, time_ns.overlapped_communication, time_ns.exposed_memory,
        time_ns.idle,
    )  # fmt: skip
    return [
        rank_name(rank.rank),
        rank.kind.upper() + (", cut short" if rank.truncated else ""),
        str(len(rank.iterations)),
        duration(median_iteration(rank)),
        *(share(part, time_ns.span) for part in parts),
        duration(time_ns.span),
        links.trace_link(rank.source, traces, kept),
    ]


def median_iteration(rank: Rank) -> int | None:
    """Median duration of the rank's iterations."""
    durations = [iteration.duration_ns for iteration in rank.iterations]
    return int(median(durations)) if durations else None


def tabulate_stages(ranks: Sequence[Rank]) -> PageTable | None:
    """The stages over all ranks; None where none are known."""
    stages = add_stages(ranks)
    whole = sum(time_ns for _, time_ns, _ in stages)
    if not whole:
        return None
    columns = [
        Heading("Stage", "name"), Heading("Share", stays=True), Heading("Main thread", stays=True),
        Heading("Device work"),
    ]  # fmt: skip
    return make_table(
        columns,
        (
            [words, share(time_ns, whole), duration(time_ns), duration(device_ns)]
            for words, time_ns, device_ns in stages
        ),
    )


def tabulate_idle(ranks: Sequence[Rank]) -> PageTable | None:
    """Idle time of every iteration and the shares of its causes; None without a GPU."""
    by_iteration = add_iterations(ranks)[:_MOST_ITERATIONS]
    columns = [Heading("Iteration", "name"), Heading("Idle", stays=True)]
    columns += [Heading(cause.title.capitalize()) for cause in IDLE_CAUSES.values()]
    rows = (
        [str(index), duration(idle), *(share(getattr(causes, name), idle) for name in IDLE_CAUSES)]
        for index, idle, causes in by_iteration
    )
    return make_table(columns, rows) if by_iteration else None


def tabulate_communication(rows: Sequence[CommunicationStatistics]) -> PageTable:
    """Collectives by kind, group and size."""
    columns = [
        Heading("Collective", "name"), Heading("Group", "left"), Heading("Ranks in it"), Heading("Size"),
        Heading("Calls", stays=True), Heading("Time", stays=True), Heading("Overlapped"), Heading("Bus bandwidth"),
        Heading("Best"),
    ]  # fmt: skip
    return make_table(columns, (_communication_cells(row) for row in rows[:_MOST_COLLECTIVES]))


def _communication_cells(row: CommunicationStatistics) -> list[str]:
    return [
        plain(row.kind.replace("_", "-")),
        plain(row.group),
        str(row.group_size or "–"),
        "–" if row.message_bytes is None else size(row.message_bytes),
        str(row.count),
        duration(row.total_ns),
        share(row.overlapped_ns, row.total_ns),
        "–" if row.bus_bytes_per_s is None else rate(row.bus_bytes_per_s),
        "–" if row.best_bus_bytes_per_s is None else rate(row.best_bus_bytes_per_s),
    ]


def tabulate_launches(ranks: Sequence[Rank]) -> PageTable:
    """The host's launches of each of these ranks' device work."""
    columns = [
        Heading("Rank", "name"), Heading("Rows", stays=True), Heading("Without a call"), Heading("Call, median"),
        Heading("Delay, median"), Heading("Delay, 99 %"), Heading("Short"), Heading("Queue, median"),
        Heading("Queue, longest"), Heading("By graph"), Heading("Maximum shift"),
    ]  # fmt: skip
    cells = []
    for rank in ranks:
        one = rank.launches
        if one is not None:
            cells.append(
                [
                    rank_name(rank.rank), str(one.launches), str(one.unlaunched), duration(one.call_p50_ns),
                    duration(one.delay_p50_ns), duration(one.delay_p99_ns), share(one.short, one.launches),
                    str(one.queue_p50), str(one.longest_queue), share(one.graph_saving_ns, rank.time_ns.span),
                    "–" if one.maximum_shift_ns is None else share(one.maximum_shift_ns, rank.time_ns.span),
                ]
            )  # fmt: skip
    return make_table(columns, cells)
