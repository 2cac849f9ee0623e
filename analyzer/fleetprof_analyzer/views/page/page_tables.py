"""The page's tables of ranks, stages, communication and launches, as columns and cells.

Guarantees: pure; the numbers are the report's; a table's columns are those that say something of this report.
"""

from collections.abc import Collection, Sequence
from statistics import median
from typing import Final

from fleetprof_api.report.report import Rank, Report
from fleetprof_api.report.report_tables import CommunicationStatistics
from markupsafe import Markup

from fleetprof_analyzer.views.page import links
from fleetprof_analyzer.views.page.table import Column, Table, make_table
from fleetprof_analyzer.views.text import duration, plain, rank_name, share, size
from fleetprof_analyzer.views.words.causes_text import CAUSES, add_iterations, add_stages

_MOST_COLLECTIVES: Final = 16
_MOST_ITERATIONS: Final = 40


def tabulate_ranks(report: Report, traces: str | None, kept: Collection[str] | None) -> Table:
    """Every rank's numbers; with its trace linked where `traces` says where traces lie and it is among those kept."""
    columns = [
        Column("Rank", "name"), Column("Kind", "left"), Column("Iterations", stays=True), Column("Median"),
        Column("Compute", stays=True), Column("Exposed comm."), Column("Overlapped"), Column("Exposed mem."),
        Column("Idle"), Column("Span", stays=True), Column("Trace", "left"),
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


def tabulate_stages(ranks: Sequence[Rank]) -> Table | None:
    """The stages over all ranks; None where none are known."""
    stages = add_stages(ranks)
    whole = sum(time_ns for _, time_ns, _ in stages)
    if not whole:
        return None
    columns = [
        Column("Stage", "name"), Column("Share", stays=True), Column("Main thread", stays=True), Column("Device work"),
    ]  # fmt: skip
    return make_table(
        columns,
        (
            [words, share(time_ns, whole), duration(time_ns), duration(device_ns)]
            for words, time_ns, device_ns in stages
        ),
    )


def tabulate_idle(ranks: Sequence[Rank]) -> Table | None:
    """Idle time of every iteration and the shares of its causes; None without a GPU."""
    by_iteration = add_iterations(ranks)[:_MOST_ITERATIONS]
    columns = [Column("Iteration", "name"), Column("Idle", stays=True)]
    columns += [Column(words.capitalize()) for _, words in CAUSES]
    rows = (
        [str(index), duration(idle), *(share(getattr(causes, name), idle) for name, _ in CAUSES)]
        for index, idle, causes in by_iteration
    )
    return make_table(columns, rows) if by_iteration else None


def tabulate_communication(rows: Sequence[CommunicationStatistics]) -> Table:
    """Collectives by kind, group and size."""
    columns = [
        Column("Collective", "name"), Column("Group", "left"), Column("Ranks in it"), Column("Size"),
        Column("Calls", stays=True), Column("Time", stays=True), Column("Overlapped"), Column("Bus bandwidth"),
        Column("Best"),
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
        "–" if row.bus_bytes_per_s is None else f"{size(row.bus_bytes_per_s)}/s",
        "–" if row.best_bus_bytes_per_s is None else f"{size(row.best_bus_bytes_per_s)}/s",
    ]


def tabulate_launches(ranks: Sequence[Rank]) -> Table:
    """How the host launched each of these ranks' device work."""
    columns = [
        Column("Rank", "name"), Column("Rows", stays=True), Column("Without a call"), Column("Call, median"),
        Column("Delay, median"), Column("Delay, 99 %"), Column("Short"), Column("Queue, median"),
        Column("Queue, longest"), Column("By graph"), Column("Maximum shift"),
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
