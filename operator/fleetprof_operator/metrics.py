"""The operator's metrics for Prometheus. docs/metrics.md lists all of it; a test holds the two to each other.

Guarantees: label sets are bounded by this file and by the contract's enumerations, never by names of users' objects.
Source: prometheus-client.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import Reason
from fleetprof_api.policy import Suppression, TriggerType
from fleetprof_api.process.version import VERSION
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fleetprof_operator.hub.access.call_refusals import CallRefusals
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.telemetry.board import TelemetryBoard
from fleetprof_operator.hub.telemetry.snapshot import count_left_out
from fleetprof_operator.hub.telemetry.stored_history import StoredHistory

STATES: Final = ("New", "Suspended", "Waiting", "Capturing", "Uploading", "Analyzing", "Finishing", "Other")
"""How an unfinished request may stand; `Other`: a state that a newer version wrote."""
RESULTS: Final = ("Uploaded", *(reason.value for reason in Reason))
TRIGGERS: Final = tuple(kind.value for kind in TriggerType)
FIRED: Final = ("Captured", "DryRun", *(reason.value for reason in Suppression))
ENDS: Final = (
    "Complete", "PartiallyCaptured", "AllRanksFailed", "Cancelled", "DeadlineExceeded", "NothingMatched",
    "PodsPending", "SidecarsMissing", "NotInjected", "CannotFindPods", "Unsupported", "Invalid", "StoreUnavailable",
    "NothingSpeaksKineto", "NoOptimizerStep", "RanksMissing", "AmbiguousTarget", "ClocksDiffer", "AlreadyCapturing",
    "CanaryHarmed", "CanaryFailed", "CanaryImpossible", "NoMemory", "NoDevice", "BeyondBounds", "AnalysisFailed",
    "TooManyCaptures", "Internal",
)  # fmt: skip
"""How a request ends: the reasons of docs/reasons.md.

Every counter is there from the start: one that appears above zero is no increase to Prometheus, and the first failure
would raise no alert.
"""
_SECONDS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)


class Metrics:
    """All metrics in one registry of their own. `count_states` is asked at each scrape."""

    def __init__(self, count_states: Callable[[], Mapping[str, int]]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.registry.register(_States(count_states))
        Info("fleetprof_build", "The operator's version.", registry=self.registry).info({"version": VERSION})
        self._finished = Counter(
            "fleetprof_requests_finished", "Requests that ended.", ["reason"], registry=self.registry
        )
        self._ranks = Counter(
            "fleetprof_ranks_finished", "Ranks of requests that ended, by result.", ["result"], registry=self.registry
        )
        for counter, values in ((self._finished, ENDS), (self._ranks, RESULTS)):
            for value in values:
                counter.labels(value)
        self._waited = self._histogram("fleetprof_request_waiting_seconds", "From a request to its ranks' orders.")
        self._captured = self._histogram("fleetprof_request_capturing_seconds", "From the orders to the last upload.")
        self._whole = self._histogram("fleetprof_request_seconds", "From a request to its end.")
        self.analyses = self._histogram("fleetprof_analysis_seconds", "How long reports took to be made, or to fail.")
        self._firings = Counter(
            "fleetprof_policy_firings",
            "Triggers of policies that fired for a job, by what came of it.",
            ["trigger", "result"],
            registry=self.registry,
        )
        for trigger in TRIGGERS:
            for result in FIRED:
                self._firings.labels(trigger, result)
        self.writes = Counter(
            "fleetprof_api_writes", "Writes to the Kubernetes API.", ["object"], registry=self.registry
        )

        self.released_pods = Counter(
            "fleetprof_pods_without_sidecar", "Pods that went on without their sidecar.", registry=self.registry
        )

    def show_hub(self, hub: Hub) -> None:
        """Adds what `hub` is asked at each scrape."""
        self.registry.register(_Refusals(hub.refusals))
        sidecars = Gauge("fleetprof_sidecars_connected", "Sidecars with an open stream.", registry=self.registry)
        sidecars.set_function(hub.count_connected)
        kept = Gauge("fleetprof_hub_kept_bytes", "About what the hub keeps of sidecars.", registry=self.registry)
        kept.set_function(hub.count_kept_bytes)
        self.registry.register(_Telemetry(hub.telemetry, hub.history))

    def note_firing(self, trigger: str, result: str) -> None:
        """A policy's trigger has fired; `trigger` is its type, `result` one of FIRED."""
        assert trigger in TRIGGERS, trigger
        assert result in FIRED, result
        self._firings.labels(trigger, result).inc()

    def note_end(self, reason: str, capture: pb.CaptureStatus | None) -> None:
        """A request has ended; `capture` is the hub's last word, None when there was no capture."""
        self._finished.labels(reason).inc()
        if capture is None:
            return
        for event in capture.ranks:
            result = "Uploaded" if event.state == pb.UPLOADED else event.reason
            self._ranks.labels(result if result in RESULTS else Reason.INTERNAL.value).inc()
        uploaded = max((event.uploaded_unix_ns for event in capture.ranks), default=0)
        self._observe(self._waited, capture.submitted_unix_ns, capture.armed_unix_ns)
        self._observe(self._captured, capture.armed_unix_ns, uploaded)
        self._observe(self._whole, capture.submitted_unix_ns, capture.completed_unix_ns)

    def _histogram(self, name: str, help_text: str) -> Histogram:
        return Histogram(name, help_text, buckets=_SECONDS, registry=self.registry)

    def _observe(self, histogram: Histogram, since_unix_ns: int, until_unix_ns: int) -> None:
        if since_unix_ns and until_unix_ns:
            histogram.observe(max(0, until_unix_ns - since_unix_ns) / 1e9)


class _Refusals(Collector):
    def __init__(self, refusals: CallRefusals) -> None:
        self._refusals = refusals

    def describe(self) -> Iterable[Metric]:
        return [self._family()]

    def collect(self) -> Iterator[Metric]:
        family = self._family()
        for kind, number in self._refusals.counts.items():
            family.add_metric([kind], number)
        yield family

    def _family(self) -> CounterMetricFamily:
        return CounterMetricFamily("fleetprof_hub_refusals", "Calls and streams that were refused.", labels=["kind"])


class _Telemetry(Collector):
    def __init__(self, board: TelemetryBoard, history: StoredHistory) -> None:
        self._board = board
        self._history = history

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily("fleetprof_telemetry_reports", "Reports of sidecars.", value=self._board.reports)
        yield GaugeMetricFamily("fleetprof_telemetry_workloads", "Workloads that report.", value=len(self._board))
        left_out = GaugeMetricFamily("fleetprof_telemetry_left_out", "What /metrics leaves out.", labels=["what"])
        for what, number in count_left_out(self._board).items():
            left_out.add_metric([what], number)
        yield left_out
        kept = sum(self._history.written_bytes.values())
        yield GaugeMetricFamily("fleetprof_telemetry_history_bytes", "The last day, as it is stored.", value=kept)
        writes = CounterMetricFamily("fleetprof_telemetry_history_writes", "Writes of the last day.", labels=["result"])
        for result, number in self._history.writes.items():
            writes.add_metric([result], number)
        yield writes


class _States(Collector):
    def __init__(self, count: Callable[[], Mapping[str, int]]) -> None:
        self._count = count

    def describe(self) -> Iterable[Metric]:
        return [self._family()]

    def collect(self) -> Iterator[Metric]:
        counts = dict.fromkeys(STATES, 0)
        for state, number in self._count().items():
            counts[state if state in counts else "Other"] += number
        family = self._family()
        for state, number in counts.items():
            family.add_metric([state], number)
        yield family

    def _family(self) -> GaugeMetricFamily:
        return GaugeMetricFamily("fleetprof_requests", "Requests that have not ended, by state.", labels=["state"])
