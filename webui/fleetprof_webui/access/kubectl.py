"""People who come by `kubectl fleetprof ui`: through a forwarded port, with their own Kubernetes token.

Guarantees: who they are is the API server's word on that token (SelfSubjectReview), never the token's own; the browser
gets a one-time token, then an opaque session, and never the Kubernetes token; this way is open at loopback's address
alone, which browsers send for a forwarded port; a session ends with its Kubernetes token, at its time or when the
command ends.
"""

import base64
import binascii
import json
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from starlette.requests import Request
from starlette.responses import Response

from fleetprof_webui.access.sessions import Sessions
from fleetprof_webui.access.subject import Subject
from fleetprof_webui.kubernetes_api import SELF_REVIEW, SELF_REVIEW_PATH, KubernetesApi
from fleetprof_webui.problems import RequestRefused

LOOPBACK: Final = "127.0.0.1"
NEXT_STEP: Final = "run: kubectl fleetprof ui"
_ONE_TIME_S: Final = 300.0
_MOST_ONE_TIME: Final = 1000
_MOST_OF_ONE: Final = 20
_OPAQUE_S: Final = 3600.0
_MOST_S: Final = 8 * 3600.0
_MOST_TOKEN: Final = 16_384
_SCHEME: Final = "Bearer "

audit = logging.getLogger("fleetprof.audit")


@dataclass(frozen=True, slots=True)
class _Arrival:
    subject: Subject
    token: str
    until_unix_s: float


class KubectlSignIn:
    """Opens sessions for Kubernetes tokens. Call it in one event loop."""

    def __init__(self, api: KubernetesApi, clock: Callable[[], float] = time.time) -> None:
        self._api = api
        self._clock = clock
        self._sessions = Sessions(clock)
        self._arrivals: OrderedDict[str, _Arrival] = OrderedDict()

    async def begin(self, request: Request) -> str:
        """A one-time token for whoever the request's Kubernetes token belongs to. Raises RequestRefused (401, 503)."""
        token = _read_bearer(request)
        try:
            answer = await self._api.call_as_bearer(token, "POST", SELF_REVIEW_PATH, SELF_REVIEW)
            person = answer["status"]["userInfo"]
            subject = Subject(str(person["username"]), tuple(map(str, person.get("groups") or ())))
        except ApiUnreachable:
            raise RequestRefused(
                HTTPStatus.SERVICE_UNAVAILABLE, "the Kubernetes API server does not say who you are", "try again"
            ) from None
        except (ApiRefused, KeyError, TypeError):
            raise _refuse("the API server does not accept this token") from None
        self._make_room(subject)
        one_time = secrets.token_urlsafe(32)
        self._arrivals[one_time] = _Arrival(subject, token, self._clock() + _ONE_TIME_S)
        return one_time

    def open(self, one_time: str, request: Request, response: Response) -> bool:
        """Opens a session for a one-time token and puts its cookie on the answer; False where it is worth nothing."""
        arrival = self._arrivals.pop(one_time, None)
        if arrival is None or not came_by_loopback(request) or self._clock() >= arrival.until_unix_s:
            return False
        session = self._sessions.open(arrival.subject, arrival.token, self._find_end(arrival.token))
        audit.info("%s", json.dumps({"signed_in": arrival.subject.name, "by": "kubectl"}))
        response.set_cookie(_cookie(request), session, httponly=True, samesite="strict", path="/")
        return True

    def find(self, request: Request) -> Subject | None:
        """The person whose session this request has."""
        return self._sessions.find(_read_session(request))

    def read_token(self, request: Request) -> str | None:
        """The Kubernetes token of this request's session."""
        return self._sessions.read_token(_read_session(request))

    def end(self, request: Request, response: Response) -> bool:
        """Ends the session of this request; whether it had one."""
        subject = self._sessions.end(_read_session(request))
        if subject is None:
            return False
        audit.info("%s", json.dumps({"signed_out": subject.name}))
        response.delete_cookie(_cookie(request), httponly=True, samesite="strict", path="/")
        return True

    def end_all(self, request: Request) -> None:
        """Ends everything that the request's Kubernetes token has opened. Raises RequestRefused (401)."""
        token = _read_bearer(request)
        for one_time in [each for each, arrival in self._arrivals.items() if arrival.token == token]:
            del self._arrivals[one_time]
        self._sessions.end_all_of(token)

    def _find_end(self, token: str) -> float:
        """The token's own end, which the API server has checked; of one that does not say so, an hour from now."""
        now = self._clock()
        try:
            claims = token.split(".")[1]
            ends = float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
        except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError, binascii.Error):
            ends = now + _OPAQUE_S
        return min(ends, now + _MOST_S)

    def _make_room(self, subject: Subject) -> None:
        """Removes sessions that are too old, then this person's oldest, then the oldest of all."""
        now = self._clock()
        for one_time in [each for each, arrival in self._arrivals.items() if now >= arrival.until_unix_s]:
            del self._arrivals[one_time]
        own = [each for each, arrival in self._arrivals.items() if arrival.subject.name == subject.name]
        for one_time in own[: max(0, len(own) - _MOST_OF_ONE + 1)]:
            del self._arrivals[one_time]
        while len(self._arrivals) >= _MOST_ONE_TIME:
            self._arrivals.popitem(last=False)


def came_by_loopback(request: Request) -> bool:
    """Tells whether the browser, or the command, was led to a port of its own machine."""
    return request.url.hostname == LOOPBACK


def _read_bearer(request: Request) -> str:
    given = request.headers.get("authorization", "")
    token = given.removeprefix(_SCHEME)
    if not came_by_loopback(request):
        raise _refuse("a Kubernetes token is taken through a forwarded port alone")
    if token == given or not token or len(token) > _MOST_TOKEN or not (token.isascii() and token.isprintable()):
        raise _refuse("no Kubernetes token came with this request")
    return token


def _read_session(request: Request) -> str:
    return request.cookies.get(_cookie(request), "") if came_by_loopback(request) else ""


def _cookie(request: Request) -> str:
    # Cookies of one host reach all its ports.
    return f"fleetprof-kubectl-{request.url.port or 80}"


def _refuse(detail: str) -> RequestRefused:
    return RequestRefused(HTTPStatus.UNAUTHORIZED, detail, NEXT_STEP)
