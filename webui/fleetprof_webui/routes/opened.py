"""The answer about what was given to `fleetprof ui PATH…`, and its progress."""

from fastapi import APIRouter, Response

from fleetprof_webui.access.viewer import CurrentViewer
from fleetprof_webui.answers import answer, describes
from fleetprof_webui.models.opened import OpenedPage
from fleetprof_webui.problems import not_found
from fleetprof_webui.service import CurrentService

router = APIRouter(tags=["reports"])


@router.get("/opened", **describes(OpenedPage))
def show_opened(service: CurrentService, viewer: CurrentViewer) -> Response:
    """The progress of the traces and reports that this service was started with."""
    viewer.check_namespace("opened", "opened trace")
    if service.opened is None:
        raise not_found("opened trace", "open some: fleetprof ui PATH…")
    return answer(service.opened())
