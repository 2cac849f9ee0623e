"""What was given to `fleetprof ui PATH…`, and how far its analysis is."""

from fastapi import APIRouter, Response

from fleetprof_webui.access.viewer import CurrentViewer
from fleetprof_webui.answers import answer, describes
from fleetprof_webui.models.opened import OpenedPage
from fleetprof_webui.problems import not_found
from fleetprof_webui.service import CurrentService

router = APIRouter(tags=["reports"])


@router.get("/opened", **describes(OpenedPage))
def show_opened(service: CurrentService, viewer: CurrentViewer) -> Response:
    """How far the traces and reports are that this service was started with."""
    viewer.check_namespace("opened", "opened trace")
    if service.opened is None:
        raise not_found("opened trace", "open some: fleetprof ui PATH…")
    return answer(service.opened())
