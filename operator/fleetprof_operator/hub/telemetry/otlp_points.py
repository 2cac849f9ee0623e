"""Prometheus' metrics as OTLP has them: the same names and labels, so that rules and dashboards fit either way.

Guarantees: pure; a gauge stays one, a counter becomes a cumulative sum without `_total`, which Prometheus adds; units
are UCUM's. Sources: OpenTelemetry's "Prometheus and OpenMetrics Compatibility"; opentelemetry-sdk.
"""

from collections.abc import Iterable
from typing import Final

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.core import Metric as Family

_UNITS: Final = {
    "_bytes_per_second": "By/s",
    "_iterations_per_second": "{iteration}/s",
    "_bytes": "By",
    "_ratio": "1",
    "_seconds": "s",
    "_watts": "W",
    "_joules": "J",
    "_celsius": "Cel",
    "_hertz": "Hz",
}


def make_metrics_data(families: Iterable[Family], resource: Resource, scope: str, now_unix_ns: int) -> MetricsData:
    """All gauges, counters and infos of `families` as they are now."""
    metrics = [
        Metric(family.name, family.documentation, _find_unit(family.name), _make_data(family, now_unix_ns))
        for family in families
        if family.samples
    ]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(InstrumentationScope(scope), metrics, "")], "")])


def _make_data(family: Family, now_unix_ns: int) -> Gauge | Sum:
    # When a counter of a job began is not known: 0 says so.
    points = [NumberDataPoint(dict(sample.labels), 0, now_unix_ns, sample.value) for sample in family.samples]
    if family.type == "counter":
        return Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Gauge(points)


def _find_unit(name: str) -> str:
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
