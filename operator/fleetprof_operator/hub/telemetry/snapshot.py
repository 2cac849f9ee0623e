"""The answer to one scrape of Prometheus: figures of the moment, taken without making the hub late.

Guarantees: between two workloads the event loop gets its turn; the text itself can be made in a thread, for nothing of
the hub is read there any more.
"""

import asyncio
from itertools import islice

from fleetprof_api.telemetry.figures import RankFigures, WorkloadFigures
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.hub.telemetry.exposition import (
    MOST_RANKS,
    MOST_WORKLOADS,
    make_rank_metrics,
    make_workload_metrics,
)
from fleetprof_operator.hub.telemetry.fair_shares import share_fairly


class Snapshot(Collector):
    """Metrics that were made already."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        """The figures of all workloads at this moment."""
        return self._metrics


async def take_snapshot(board: TelemetryBoard) -> Snapshot:
    """The telemetry of now."""
    workloads: list[WorkloadFigures] = []
    ranks: list[tuple[WorkloadFigures, RankFigures]] = []
    for one in share_fairly(board.boards(), lambda one: one.namespace, MOST_WORKLOADS):
        figures = one.figures()
        workloads.append(figures)
        if one.wants_rank_metrics:
            # Of one workload no more than could ever be told.
            ranks += [(figures, member) for member in islice(one.members(), MOST_RANKS)]
            ranks = share_fairly(ranks, lambda row: row[0].namespace, MOST_RANKS)
        await asyncio.sleep(0)
    made = [*make_workload_metrics(workloads), *make_rank_metrics(ranks)]
    return Snapshot([metric for metric in made if metric.samples])


def count_left_out(board: TelemetryBoard) -> dict[str, int]:
    """The number that a scrape leaves out: workloads, and ranks of those that ask for metrics of their ranks."""
    boards = board.boards()
    ranks = sum(one.rank_count for one in boards if one.wants_rank_metrics)
    return {"workloads": max(0, len(boards) - MOST_WORKLOADS), "ranks": max(0, ranks - MOST_RANKS)}
