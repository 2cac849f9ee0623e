"""The service's metrics of itself. Guarantees: no name of a person, a namespace or a capture."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """All metrics in one registry of their own, so that several applications can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.answered = Counter(
            "fleetprof_webui_requests",
            "Requests answered, by route and status",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "fleetprof_webui_request_seconds", "Time until an answer began", ["route"], registry=self.registry
        )
        self.looked = Gauge(
            "fleetprof_webui_catalog_looked_timestamp_seconds",
            "When the catalog last held what the store holds",
            registry=self.registry,
        )
