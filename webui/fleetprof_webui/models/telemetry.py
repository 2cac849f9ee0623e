"""The last day of one workload, between captures."""

from typing import Annotated, Literal

from msgspec import Meta

from fleetprof_webui.models.model import Model, Ns, UnixNs


class DaySeries(Model):
    """One measure: means over the ranks, the last for the step that ends at `end_unix_ns`."""

    measure: Annotated[str, Meta(description="as in docs/metrics.md#the-workloads, without fleetprof_workload_")]
    help: str
    values: Annotated[list[float | None], Meta(description="null where nobody told")]


class TelemetryDay(Model):
    """What a workload did in the last day; no series where nothing is kept of it."""

    end_unix_ns: UnixNs | None
    step_ns: Ns
    source: Annotated[
        Literal["prometheus", "store"], Meta(description="who kept it: a Prometheus, or the hub in the store")
    ]
    series: list[DaySeries]
