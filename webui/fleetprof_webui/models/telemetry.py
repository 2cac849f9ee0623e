"""The last day of one workload, between captures."""

from typing import Annotated

from msgspec import Meta

from fleetprof_webui.models.model import Model, Ns, UnixNs
from fleetprof_webui.models.policies import PolicyAction


class DaySeries(Model):
    """One measure: means over the ranks, the last for the step that ends at `end_unix_ns`."""

    measure: Annotated[str, Meta(description="as in docs/metrics.md#the-workloads, without fleetprof_workload_")]
    help: str
    values: Annotated[list[float | None], Meta(description="null where nobody told")]


class TelemetryDay(Model):
    """A workload's last day; no series where nothing is kept of it."""

    end_unix_ns: UnixNs | None
    step_ns: Ns
    series: list[DaySeries]
    actions: Annotated[
        list[PolicyAction], Meta(description="of policies about it since the first step, at most 64, the latest first")
    ]


class JobOfDay(Model):
    """A job that told anything within the last day; its figures are of the last quarter of an hour."""

    namespace: str
    kind: str
    name: str
    captured: Annotated[
        bool, Meta(description="whether there is a capture under its name; one by selector has the selector's")
    ]
    running: Annotated[bool, Meta(description="whether it told anything in the last quarter of an hour")]
    activity: Annotated[float | None, Meta(description="of the SMs where the device tells it, else GPU busy; 0 to 1")]
    iteration_ns: Annotated[int | None, Meta(description="length of an iteration, ns")]
    iterations_per_second: float | None
    power_watts: Annotated[float | None, Meta(description="mean over the ranks, W")]
    cpu_busy: Annotated[float | None, Meta(description="of its hosts; 0 to 1")]
    rates: Annotated[list[float | None], Meta(description="iterations per second, one for each `step_ns`, to the end")]
    end_unix_ns: UnixNs | None
    step_ns: Ns
    actions: Annotated[list[PolicyAction], Meta(description="of policies about it, at most 8, the latest first")]


class JobPage(Model):
    """Jobs of the last day: running ones first, those of the lowest activity before others; at most 500."""

    items: list[JobOfDay]
    total: int
