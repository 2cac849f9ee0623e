"""The session of a browser: the one-time token of an address becomes a session, and `whoami` says whose."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from fleetprof_api import __version__

from fleetprof_webui.access.viewer import CurrentViewer
from fleetprof_webui.answers import answer, describes, takes
from fleetprof_webui.models.person import SignedOut, SignIn, Whoami
from fleetprof_webui.problems import RequestRefused
from fleetprof_webui.routes.body import read_body
from fleetprof_webui.service import CurrentService

router = APIRouter(tags=["session"])


@router.get("/whoami", **describes(Whoami))
async def show_viewer(request: Request, service: CurrentService, viewer: CurrentViewer) -> Response:
    """The person as the API server or else this service sees them, and what they may do here."""
    subject = await service.access.see_subject(request, viewer)
    return answer(
        Whoami(
            name=subject.name,
            groups=list(subject.groups),
            source=subject.source,
            problem=subject.problem,
            mode=viewer.mode,
            namespaces=None if viewer.namespaces is None else sorted(viewer.namespaces),
            may_capture=service.find_captures(request, viewer) is not None,
            version=__version__,
        )
    )


@router.post("/session", status_code=HTTPStatus.NO_CONTENT, response_model=None, openapi_extra=takes(SignIn))
async def open_session(request: Request, service: CurrentService) -> Response:
    """Exchanges the one-time token for a cookie."""
    sign_in = await read_body(request, SignIn)
    response = Response(status_code=HTTPStatus.NO_CONTENT)
    if not service.access.exchange(sign_in.token, request, response):
        raise RequestRefused(
            HTTPStatus.UNAUTHORIZED, "this address was used before, or is of another service", service.access.next_step
        )
    return response


@router.delete("/session", **describes(SignedOut))
async def end_session(request: Request, service: CurrentService) -> Response:
    """Signs out."""
    response = answer(SignedOut(continue_at=await service.access.find_way_out()))
    service.access.end(request, response)
    return response
