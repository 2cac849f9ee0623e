"""The routes that take a Kubernetes token from `kubectl fleetprof ui`, and end its sessions; only where allowed."""

from http import HTTPStatus
from typing import Final, cast

from fastapi import APIRouter, Request, Response

from fleetprof_webui.access.kubectl import KubectlSignIn
from fleetprof_webui.answers import answer
from fleetprof_webui.models.person import SignIn

PATH: Final = "/session/kubectl"
router = APIRouter(tags=["session"], include_in_schema=False)


@router.post(PATH, response_model=None)
async def begin_session(request: Request) -> Response:
    """A one-time token for the person of the Kubernetes token."""
    response = answer(SignIn(token=await _sign_in(request).begin(request)))
    response.headers["Cache-Control"] = "no-store"
    return response


@router.delete(PATH, response_model=None)
async def end_sessions(request: Request) -> Response:
    """Ends what the Kubernetes token has opened."""
    _sign_in(request).end_all(request)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _sign_in(request: Request) -> KubectlSignIn:
    return cast(KubectlSignIn, request.app.state.kubectl)
