"""Local mode: the user of this machine, who was given a one-time token in an address.

Guarantees: a token opens one session and is then worth nothing; as long as a token is unused no other is announced, so
that strangers cannot fill the terminal; a session lives as long as this process; both are compared in constant time;
the cookie is HttpOnly and SameSite=Strict, and its name holds the port, because cookies of one host reach all ports.
"""

import getpass
import hmac
import secrets
import threading
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from fleetprof_webui.access.viewer import SeenSubject, Viewer

_MOST_TOKENS: Final = 16
_MOST_SESSIONS: Final = 64


class LocalAccess:
    """Tokens and sessions of one service on loopback."""

    next_step = "open the last address that `fleetprof ui` or `fleetprof up` printed: each signs in once"

    def __init__(self, *, may_capture: bool, announce_token: Callable[[str], None]) -> None:
        """`announce_token` shows the user a further token when somebody comes without a session and none is left."""
        self._announce_token = announce_token
        self._viewer = Viewer(name=_user_name(), groups=(), mode="local", namespaces=None, may_capture=may_capture)
        self._tokens: list[str] = []
        self._sessions: list[str] = []
        self._lock = threading.Lock()

    def make_token(self) -> str:
        """A token that opens one session; of more than _MOST_TOKENS the oldest end."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._tokens = [*self._tokens[1 - _MOST_TOKENS :], token]
        return token

    def exchange(self, token: str, request: Request, response: Response) -> bool:
        """Opens a session for a token and puts its cookie on the answer; False where the token is worth nothing."""
        with self._lock:
            if found := _find(self._tokens, token):
                self._tokens.remove(found)
                session = secrets.token_urlsafe(32)
                self._sessions = [*self._sessions[1 - _MOST_SESSIONS :], session]
        if not found:
            self._offer_token()
            return False
        response.set_cookie(_cookie(request), session, httponly=True, samesite="strict", path="/")
        return True

    def end(self, request: Request, response: Response) -> None:
        """Ends the session of this request."""
        with self._lock:
            if found := _find(self._sessions, request.cookies.get(_cookie(request), "")):
                self._sessions.remove(found)
        response.delete_cookie(_cookie(request), httponly=True, samesite="strict", path="/")

    async def find_way_out(self) -> str:
        """Nobody else has a session."""
        return ""

    async def identify(self, request: Request) -> Viewer | None:
        """The user of this machine, by the cookie."""
        with self._lock:
            found = _find(self._sessions, request.cookies.get(_cookie(request), ""))
        if found:
            return self._viewer
        self._offer_token()
        return None

    def _offer_token(self) -> None:
        with self._lock:
            if self._tokens:
                return
            token = secrets.token_urlsafe(32)
            self._tokens = [token]
        self._announce_token(token)

    async def see_subject(self, _request: Request, viewer: Viewer) -> SeenSubject:
        """As this machine knows them."""
        return SeenSubject(viewer.name, viewer.groups, "this machine", "")


def _find(known: list[str], given: str) -> str | None:
    matches = [one for one in known if hmac.compare_digest(one.encode(), given.encode(errors="replace"))]
    return matches[0] if matches else None


def _cookie(request: Request) -> str:
    return f"fleetprof-{request.url.port or 80}"


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "local user"
