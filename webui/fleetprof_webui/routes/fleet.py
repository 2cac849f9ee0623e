"""The fleet, and one workload over time."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from fleetprof_webui.access.viewer import CurrentViewer
from fleetprof_webui.answers import answer, describes
from fleetprof_webui.catalog.fleet import FleetQuery
from fleetprof_webui.models.fleet import FleetPage, WorkloadPage
from fleetprof_webui.problems import not_found
from fleetprof_webui.routes.parameters import After, Filter, Limit, Namespace, Sort, Text
from fleetprof_webui.service import CurrentService

router = APIRouter(tags=["fleet"])


@router.get("/fleet", **describes(FleetPage))
def list_fleet(
    service: CurrentService,
    viewer: CurrentViewer,
    cluster: Filter = "",
    namespace: Filter = "",
    kind: Filter = "",
    gpu: Filter = "",
    finding: Filter = "",
    label: Annotated[str, Query(max_length=512, description="key=value of the workload's pods")] = "",
    text: Text = "",
    sort: Sort = "-last",
    after: After = "",
    limit: Limit = 50,
) -> Response:
    """Workloads with the headline figures of their last report; sort: last, busy, exposed, iteration, power, gain, …"""
    query = FleetQuery(cluster, namespace, kind, gpu, finding, label, text, sort, after, limit)
    return answer(service.catalog.fleet(query, viewer.namespaces))


@router.get("/fleet/{namespace}/{kind}/{name:path}", **describes(WorkloadPage))
def show_workload(
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    kind: Annotated[str, Path(max_length=128)],
    name: Annotated[str, Path(max_length=512)],
    after: After = "",
    limit: Limit = 100,
) -> Response:
    """The captures of one workload, the latest first; kind `-` where it is not known."""
    viewer.check_namespace(namespace, "workload")
    page = service.catalog.workload(namespace, "" if kind == "-" else kind, name, after=after, limit=limit)
    if page is None and service.catalog.jobs.knows(namespace, "" if kind == "-" else kind, name):
        page = WorkloadPage(namespace=namespace, kind="" if kind == "-" else kind, name=name, items=[], next=None)
    if page is None:
        raise not_found("workload", "see what there is: /fleet")
    return answer(page)
