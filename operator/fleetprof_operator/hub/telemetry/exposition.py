"""The workloads' telemetry as Prometheus takes it. docs/metrics.md lists all of it; a test holds the two to each other.

Guarantees: pure; the number of series is bounded whatever the fleet's size: the largest MOST_WORKLOADS workloads are
told, with at most some hundred series each, and MOST_RANKS ranks of those that ask for it; what is left out is counted.
A figure that nobody reports has no series. Source: prometheus-client.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fleetprof_api.telemetry.figures import Aggregate, RankFigures, WorkloadFigures
from fleetprof_api.telemetry.measures import MEASURES, RANK_MEASURES
from fleetprof_api.throttling import THROTTLED_BY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

MOST_WORKLOADS: Final = 300
MOST_RANKS: Final = 1000
PREFIX: Final = "fleetprof_workload_"
RANK_PREFIX: Final = "fleetprof_rank_"
_LABELS: Final = ("namespace", "workload", "kind")


def make_workload_metrics(workloads: Sequence[WorkloadFigures]) -> Iterator[Metric]:
    """The metrics of these workloads: whoever calls it chooses MOST_WORKLOADS of them."""
    rows = [((one.namespace, one.name, one.kind), one) for one in workloads]
    for measure in MEASURES:
        gauge = _gauge(measure.name, f"{measure.help} Over its {measure.whose}s.", "aggregation")
        for labels, one in rows:
            if (figure := one.figures.get(measure.name)) is not None:
                _add_aggregate(gauge, labels, figure, adds=measure.adds)
        yield gauge
    for name, help_text, values in (
        ("ranks", "Ranks that report.", [one.ranks for _, one in rows]),
        ("world_size", "Ranks that the job says it has.", [one.world_size for _, one in rows]),
        ("gpus", "Ranks with a GPU.", [one.gpus for _, one in rows]),
        ("start_timestamp_seconds", "When its first process was seen.", [one.start_unix_ns / 1e9 for _, one in rows]),
        (
            "last_iteration_timestamp_seconds",
            "When an iteration ended last, on any rank.",
            [None if one.last_iteration_unix_ns is None else one.last_iteration_unix_ns / 1e9 for _, one in rows],
        ),
        ("gpu_sample_joules", "Energy of a training sample.", [one.sample_joules for _, one in rows]),
    ):
        gauge = _gauge(name, help_text)
        for (labels, _), value in zip(rows, values, strict=True):
            if value is not None:
                gauge.add_metric(labels, value)
        yield gauge
    yield from _make_counters(rows)
    yield from _make_judgements(rows)


def make_rank_metrics(members: Iterable[tuple[WorkloadFigures, RankFigures]]) -> Iterator[Metric]:
    """The metrics of single ranks: whoever calls it chooses MOST_RANKS of them."""
    rows = [
        ((one.namespace, one.name, one.kind, str(member.rank), member.node), member)
        for one, member in members
        if member.rank is not None
    ]
    columns = [
        (measure.name, measure.help, [member.values.get(measure.name) for _, member in rows])
        for measure in RANK_MEASURES
    ]
    columns.append(
        ("gpu_sample_joules", "Its part of a training sample's energy.", [one.sample_joules for _, one in rows])
    )
    for name, help_text, values in columns:
        gauge = GaugeMetricFamily(RANK_PREFIX + name, help_text, labels=[*_LABELS, "rank", "node"])
        for (labels, _), value in zip(rows, values, strict=True):
            if value is not None:
                gauge.add_metric(labels, value)
        yield gauge


def _gauge(name: str, help_text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, help_text, labels=[*_LABELS, *labels])


def _add_aggregate(gauge: GaugeMetricFamily, labels: tuple[str, ...], figure: Aggregate, *, adds: bool) -> None:
    for aggregation in ("mean", "min", "max", "sum") if adds else ("mean", "min", "max"):
        gauge.add_metric([*labels, aggregation], getattr(figure, aggregation))


_Rows = list[tuple[tuple[str, str, str], WorkloadFigures]]


def _make_counters(rows: _Rows) -> Iterator[Metric]:
    iterations = CounterMetricFamily(PREFIX + "iterations", "Iterations of the rank that is behind.", labels=_LABELS)
    energy = CounterMetricFamily(PREFIX + "gpu_energy_joules", "Energy of its GPUs since it was seen.", labels=_LABELS)
    errors = CounterMetricFamily(
        PREFIX + "gpu_ecc_errors", "ECC errors of its GPUs since their drivers were loaded.", labels=[*_LABELS, "error"]
    )
    for labels, one in rows:
        if one.iterations is not None:
            iterations.add_metric(labels, one.iterations)
        if one.energy_joules:
            energy.add_metric(labels, one.energy_joules)
        for kind, number in (("corrected", one.ecc_corrected), ("uncorrected", one.ecc_uncorrected)):
            if number is not None:
                errors.add_metric([*labels, kind], number)
    yield from (iterations, energy, errors)


def _make_judgements(rows: _Rows) -> Iterator[Metric]:
    throttled = _gauge("gpu_throttled_ranks", "Ranks whose GPU runs slower than it could.", "reason")
    lowest = _gauge("lowest_rank", "Which rank is lowest: the value is its number.", "measure")
    shares = _gauge("lowest_rank_share", "The lowest rank's value over the mean of its peers.", "measure")
    unreadable = _gauge("unreadable", "1: some of its pods cannot read this source.", "source")
    worst = InfoMetricFamily(PREFIX + "worst_gpu", "The GPU that is clearly worse than its peers.", labels=_LABELS)
    for labels, one in rows:
        if one.gpus and "gpu_busy_ratio" in one.figures:
            for reason in THROTTLED_BY:
                throttled.add_metric([*labels, reason], getattr(one.throttled, reason))
        for measure, share in one.lowest_shares.items():
            shares.add_metric([*labels, measure], share)
            if (rank := one.figures[measure].lowest_rank) is not None:
                lowest.add_metric([*labels, measure], rank)
        for source in one.unreadable:
            unreadable.add_metric([*labels, source.lower()], 1)
        if one.worst_gpu is not None:
            worst.add_metric(labels, {"rank": str(one.worst_gpu.rank), "node": one.worst_gpu.node})
    yield from (throttled, lowest, shares, unreadable, worst)
