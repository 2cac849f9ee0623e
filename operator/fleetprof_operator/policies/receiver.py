"""Takes Alertmanager's calls: `POST /alerts` with a bearer token, the body its webhook message.

Guarantees: nothing is read of a call without the token, which is compared in constant time and read from its file anew,
so that it can be changed at any time; a body is bounded, and so is how many are held at a time; a call is answered
before anything is done about it, so that a flood costs one parse per call and nothing of the API server.
"""

import asyncio
import hmac
import logging
import os
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from aiohttp import web

from fleetprof_operator.policies.triggers.alerts import FiringAlert, InvalidMessage, read_alerts
from fleetprof_operator.web.refusals import Refusals

MOST_BYTES: Final = 16 << 20
_AT_A_TIME: Final = 2
_BODY_S: Final = 20.0
_LEAST_TOKEN: Final = 16

log = logging.getLogger(__name__)


class AlertReceiver:
    """`take` is given the alerts of each call; `token_file` holds the token, alone; `own_namespace`: `read_alerts`."""

    def __init__(
        self, token_file: Path, take: Callable[[Sequence[FiringAlert]], None], own_namespace: str = ""
    ) -> None:
        self._token_file = token_file
        self._own_namespace = own_namespace
        self._take = take
        self._room = asyncio.Semaphore(_AT_A_TIME)
        self._refusals = Refusals(log, "calls of the alert receiver")

    def make_application(self) -> web.Application:
        """The application that Alertmanager speaks to."""
        application = web.Application(client_max_size=MOST_BYTES)
        application.router.add_post("/alerts", self._answer)
        return application

    async def _answer(self, request: web.Request) -> web.Response:
        if not self._is_known(request.headers.get("Authorization", "")):
            return self._refuse(401, "no bearer token, or not the one of this receiver")
        if (request.content_length or 0) > MOST_BYTES:
            return self._refuse(413, f"a body may have {MOST_BYTES} bytes; lower `max_alerts` in Alertmanager")
        try:
            async with self._room, asyncio.timeout(_BODY_S):
                alerts = await asyncio.to_thread(read_alerts, await request.read(), self._own_namespace)
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(413, f"a body may have {MOST_BYTES} bytes; lower `max_alerts` in Alertmanager")
        except TimeoutError:
            return self._refuse(408, "the body did not come in time")
        except InvalidMessage as problem:
            self._refusals.note("no message of Alertmanager's", time.monotonic())
            return web.json_response({"error": str(problem)}, status=400)
        self._take(alerts)
        return web.json_response({"taken": len(alerts)})

    def _refuse(self, status: int, why: str) -> web.Response:
        self._refusals.note(why, time.monotonic())
        return web.json_response({"error": why}, status=status)

    def _is_known(self, header: str) -> bool:
        try:
            token = self._token_file.read_bytes().strip()
        except OSError as problem:
            log.warning("the token of the alert receiver cannot be read: %s", problem)
            return False
        scheme, _, shown = header.partition(" ")
        if len(token) < _LEAST_TOKEN:
            log.warning("the token of the alert receiver must have %d characters at least", _LEAST_TOKEN)
            return False
        return scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token)


def load_certificate(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    """Serves with this pair from now on. Raises ssl.SSLError. The files that ssl wants are in memory only."""
    files = [os.memfd_create("certificate") for _ in range(2)]
    try:
        for file, content in zip(files, (chain, key), strict=True):
            os.write(file, content)
        context.load_cert_chain(*(f"/proc/self/fd/{file}" for file in files))
    finally:
        for file in files:
            os.close(file)
