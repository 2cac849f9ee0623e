"""The metrics of policies: exempt jobs, the reports that policies brought about, alerts without room.

Guarantees: asked at each scrape, from memory; at most MOST_SERIES of each, the newest reports first. Their labels are
names of users' objects, as those of telemetry are (docs/metrics.md).
"""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fleetprof_operator.policies.engine import Engine
from fleetprof_operator.policies.exemption import Exemptions

MOST_SERIES: Final = 1000


class PolicyMetrics(Collector):
    """For the operator's registry."""

    def __init__(self, engine: Engine, exemptions: Exemptions) -> None:
        self._engine = engine
        self._exemptions = exemptions

    def describe(self) -> Iterable[Metric]:
        """Without a look at anything."""
        return [_exempt(), _reports(), _lost(0)]

    def collect(self) -> Iterator[Metric]:
        """The metrics of the present state, for a scrape."""
        exempt = _exempt()
        for job in self._exemptions.list_exempt()[:MOST_SERIES]:
            exempt.add_metric([job.namespace, job.name, job.kind], 1)
        reports = _reports()
        ended = [
            (capture, policy)
            for policy in self._engine.policies.values()
            for capture in policy.log.captures.values()
            if capture.completed_unix_ns
        ]
        ended.sort(key=lambda each: each[0].completed_unix_ns, reverse=True)
        for capture, policy in ended[:MOST_SERIES]:
            kind, _, name = capture.workload.partition("/")
            uid = policy.uids.get(capture.request, "")
            labels = [policy.namespace, name, kind, policy.name, capture.request, uid, capture.result or ""]
            reports.add_metric(labels, capture.completed_unix_ns / 1e9)
        yield from (exempt, reports, _lost(self._engine.alerts_lost))


def _exempt() -> GaugeMetricFamily:
    labels = ["namespace", "workload", "kind"]
    return GaugeMetricFamily("fleetprof_workload_exempt", "1 where a job wants no alerts.", labels=labels)


def _reports() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "fleetprof_policy_report_timestamp_seconds",
        "When a capture by policy ended; its labels name the request and its uid, which is the report's.",
        labels=["namespace", "workload", "kind", "policy", "request", "uid", "result"],
    )


def _lost(number: int) -> CounterMetricFamily:
    return CounterMetricFamily("fleetprof_policy_alerts_lost", "Alerts that found no room.", value=number)
