"""To the identity provider and back; only where people sign in there."""

from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from fleetprof_webui.access.sign_in import RETURN_PATH, START_PATH, ProviderSignIn

router = APIRouter(tags=["session"], include_in_schema=False)


@router.get(START_PATH, response_model=None)
async def start_sign_in(request: Request, then: Annotated[str, Query(max_length=2000)] = "/fleet") -> Response:
    """Sends the person to the provider; `then` is the page of ours that they come back to."""
    return await _sign_in(request).start(request, then)


@router.get(RETURN_PATH, response_model=None)
async def finish_sign_in(request: Request) -> Response:
    """The address to which the provider sends people back."""
    return await _sign_in(request).finish(request)


def _sign_in(request: Request) -> ProviderSignIn:
    return cast(ProviderSignIn, request.app.state.sign_in)
