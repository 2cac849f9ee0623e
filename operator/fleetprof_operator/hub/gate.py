"""The door of every call to the hub: a good token, or UNAUTHENTICATED. Guarantees: a token is never logged."""

from typing import Any

import grpc
import grpc.aio

from fleetprof_operator.hub.authentication import Authenticator, CannotAuthenticate, Principal

Context = grpc.aio.ServicerContext[Any, Any]


class Gate:
    """Lets in who has a good token."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def admit(self, context: Context) -> Principal:
        """The caller. Ends the call with UNAUTHENTICATED when there is none, UNAVAILABLE when nobody can tell."""
        given = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
        text = given[0] if len(given) == 1 and isinstance(given[0], str) else ""
        token = text.removeprefix("Bearer ") if text.startswith("Bearer ") else ""
        try:
            principal = await self._authenticator.authenticate(token) if token else None
        except CannotAuthenticate as problem:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(problem))
        if principal is None:
            said = "the token is not the hub's" if token else "no token: send `authorization: Bearer <token>`"
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, said)
        return principal
