"""Has each request take its turn among those of all callers, from its head to the head of its answer.

Guarantees: who waits for their client, or sends the body of an answer, has no turn, so that neither a body that does
not come nor a stream holds up anybody; who may not wait is answered at once.
"""

from collections.abc import Callable
from http import HTTPStatus

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fleetprof_webui.listener.turns import TooManyWait, Turn, Turns
from fleetprof_webui.problems import RequestRefused, say_problem


class TurnTaking:
    """ASGI middleware. `name_caller` says whose request it is."""

    def __init__(self, app: ASGIApp, *, name_caller: Callable[[Request], str]) -> None:
        self._app = app
        self._name_caller = name_caller
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands on to the application in its turn."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        caller = self._name_caller(Request(scope))
        turn: Turn | None = None
        answered = False

        async def take() -> None:
            nonlocal turn
            try:
                turn = await self._turns.take(caller)
            except TooManyWait:
                raise RequestRefused(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    "too many requests of yours wait for their turn",
                    "wait for their answers, then ask again",
                ) from None

        def rest() -> None:
            nonlocal turn
            if turn is not None:
                self._turns.end(turn)
                turn = None

        async def receive_resting() -> Message:
            if answered:
                return await receive()
            rest()
            message = await receive()
            if not answered:
                await take()
            return message

        async def send_resting(message: Message) -> None:
            nonlocal answered
            answered = True
            rest()
            await send(message)

        try:
            await take()
        except RequestRefused as error:
            await say_problem(error.problem)(scope, receive, send)
            return
        try:
            await self._app(scope, receive_resting, send_resting)
        finally:
            rest()
