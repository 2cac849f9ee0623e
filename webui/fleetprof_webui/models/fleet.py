"""The fleet: workloads with the headline figures of their last report, and the captures of one workload over time."""

from typing import Annotated

from fleetprof_api.slices.head import Figures
from msgspec import Meta

from fleetprof_webui.models.model import Model, UnixNs


class Capture(Model):
    """One capture of a workload; `figures` is null while there is no report, or where it cannot be read."""

    namespace: str
    uid: str
    name: str
    state: Annotated[str, Meta(description="reason of its Succeeded condition; Running while it has none")]
    finished: bool
    submitted_unix_ns: UnixNs | None
    has_report: bool
    problem: Annotated[str, Meta(description='why its report cannot be read; ""')]
    figures: Figures | None


class Point(Model):
    """One of the last captures of a workload, for a sparkline."""

    uid: str
    submitted_unix_ns: UnixNs | None
    iteration_ns: int | None
    busy_permille: int | None


class Workload(Model):
    """A workload that was captured at least once. `last` is its last capture with a report, else its last capture."""

    namespace: str
    kind: Annotated[str, Meta(description='kind of the target: Job, PyTorchJob, …; "Selector" for labels')]
    name: str
    captures: int
    last: Capture
    history: Annotated[list[Point], Meta(description="its last reports, at most 16, the oldest first")]


class FacetValue(Model):
    """A value that rows have, and how many rows have it, of those that all other filters let through."""

    value: str
    count: int


class FleetFacets(Model):
    """Values to filter by, the most frequent first, at most 50 each; `cluster` where several share the store."""

    cluster: list[FacetValue]
    namespace: list[FacetValue]
    kind: list[FacetValue]
    gpu: list[FacetValue]
    finding: list[FacetValue]
    label: list[FacetValue]


class FleetPage(Model):
    """A page of workloads; `next` is the next page's `after`, null on the last."""

    items: list[Workload]
    facets: FleetFacets
    total: Annotated[int, Meta(description="workloads that the filters let through")]
    next: str | None


class WorkloadPage(Model):
    """One workload and its captures, the latest first."""

    namespace: str
    kind: str
    name: str
    items: list[Capture]
    next: str | None
