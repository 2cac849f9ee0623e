"""The telemetry of workloads between captures."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from fleetprof_webui.access.viewer import CurrentViewer
from fleetprof_webui.answers import answer, describes
from fleetprof_webui.models.telemetry import JobPage, TelemetryDay
from fleetprof_webui.routes.parameters import Namespace
from fleetprof_webui.service import CurrentService
from fleetprof_webui.telemetry.day import find_day

router = APIRouter(tags=["fleet"])


@router.get("/telemetry", **describes(JobPage))
def list_jobs(service: CurrentService, viewer: CurrentViewer) -> Response:
    """Jobs that told anything within the last day, captured or not, with what policies did about them."""
    stored = service.catalog.telemetry_namespaces(viewer.namespaces)
    return answer(service.catalog.jobs.find(stored))


@router.get("/telemetry/{namespace}/{kind}/{name:path}", **describes(TelemetryDay))
def show_day(
    service: CurrentService,
    viewer: CurrentViewer,
    namespace: Namespace,
    kind: Annotated[str, Path(max_length=128)],
    name: Annotated[str, Path(max_length=512)],
) -> Response:
    """The last day of one workload, in steps of five minutes; kind `-` where it is not known."""
    viewer.check_namespace(namespace, "workload")
    return answer(find_day(service.store, namespace, "" if kind == "-" else kind, name))
