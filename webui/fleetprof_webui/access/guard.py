"""The guard that every request passes first, and what every answer carries.

Guarantees: a Host header that is not ours is refused (a foreign page cannot rebind its name to us); a write needs an
Origin of ours and a header that no form can send; every answer forbids inline script, framing and guessing of types;
writes, sign-ins and refusals leave a line in the audit log, which holds no token.
Sources: OWASP cheat sheets on CSRF and on DNS rebinding; CSP level 3.
"""

import json
import logging
import re
import time
from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from fleetprof_api.plain_text import make_printable
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fleetprof_webui.metrics import Metrics
from fleetprof_webui.problems import RequestRefused, say_problem

WRITE_HEADER: Final = "x-fleetprof-request"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # Not same-origin: the page that we open in Perfetto must be able to answer.
    "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_REFUSALS: Final = frozenset({400, 401, 403})
_MOST_PATH: Final = 300
_FORWARDED: Final = re.compile(r"127\.0\.0\.1:[0-9]{1,5}")

audit = logging.getLogger("fleetprof.audit")


def is_forwarded(host: str) -> bool:
    """Tells whether this value of Host is that of a port that somebody forwards from their own machine."""
    return _FORWARDED.fullmatch(host) is not None


class Guard:
    """ASGI middleware around the whole application.

    `hosts` are the values of Host that are ours; `forwarded`: so is a port of loopback, which no page can rebind to us.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], metrics: Metrics, forwarded: bool = False) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._metrics = metrics
        self._forwarded = forwarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or hands on to the application."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                self._note(scope, message["status"], time.monotonic() - began)
            await send(message)

        refused = self._refuse(scope)
        if refused is not None:
            await say_problem(refused.problem)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _refuse(self, scope: Scope) -> RequestRefused | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self._hosts and not (self._forwarded and is_forwarded(host)):
            return RequestRefused(
                HTTPStatus.BAD_REQUEST,
                "this service is not known by that name",
                "use the address that it printed",
            )
        if scope["method"] in _SAFE:
            return None
        if headers.get("origin") != f"{scope['scheme']}://{host}" or WRITE_HEADER not in headers:
            return RequestRefused(
                HTTPStatus.FORBIDDEN,
                "a write must come from this service's own pages",
                f"send Origin: {scope['scheme']}://{host} and {WRITE_HEADER}: 1",
            )
        return None

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.answered.labels(scope["method"], route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        if scope["method"] in _SAFE and status not in _REFUSALS:
            return
        viewer = scope.get("state", {}).get("viewer")
        line = {
            "who": viewer.name if viewer is not None else None,
            "from": scope["client"][0] if scope.get("client") else None,
            "method": scope["method"],
            "path": make_printable(scope["path"][:_MOST_PATH]),
            "status": status,
        }
        audit.info("%s", json.dumps(line))
