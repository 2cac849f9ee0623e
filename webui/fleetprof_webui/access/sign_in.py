"""Sign-in at an OpenID Connect provider: authorization code with PKCE, `state` and `nonce`, by Authlib.

Guarantees: a return from the provider counts only in the browser that was sent there; issuer, audience, signature,
time and nonce of the ID token are checked, with asymmetric algorithms alone; a sign-in makes a new session and ends the
one that the browser had; nobody is sent to another site afterwards; no secret of a sign-in under way lies here, it is
in the browser's cookie, encrypted. Sources: OpenID Connect Core 1.0; RFC 7636; RFC 9700; RP-Initiated Logout 1.0.
"""

import json
import logging
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx2
from authlib.integrations.starlette_client import OAuth, OAuthError
from cryptography.fernet import Fernet, InvalidToken
from fleetprof_api.plain_text import make_printable
from joserfc.errors import JoseError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fleetprof_webui.access.sessions import Sessions
from fleetprof_webui.access.subject import ClaimNames, UnusableClaims
from fleetprof_webui.problems import RequestRefused

SESSION_COOKIE: Final = "__Host-fleetprof"
SIGN_IN_COOKIE: Final = "__Host-fleetprof-sign-in"
START_PATH: Final = "/session/start"
RETURN_PATH: Final = "/session/return"
_SIGN_IN_S: Final = 600
_LEEWAY_S: Final = 10
_CALL_S: Final = 15.0
_HOME: Final = "/fleet"
_OWN_PATH: Final = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]{0,2000}")
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")

audit = logging.getLogger("fleetprof.audit")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An OpenID Connect provider, and what we are there."""

    issuer: str
    client_id: str
    client_secret: str
    scopes: tuple[str, ...]
    ca_file: Path | None


class ProviderSignIn:
    """Sends people to the provider and takes them back. `public_url`: the address by which browsers know us."""

    def __init__(self, provider: Provider, names: ClaimNames, sessions: Sessions, public_url: str) -> None:
        self._provider = provider
        self._names = names
        self._sessions = sessions
        self._home = f"{public_url}/"
        self._return_address = public_url + RETURN_PATH
        self._seal = Fernet(Fernet.generate_key())
        verify = ssl.create_default_context(cafile=str(provider.ca_file)) if provider.ca_file else True
        self._client = OAuth().register(
            "provider",
            client_id=provider.client_id,
            client_secret=provider.client_secret or None,
            server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": " ".join(provider.scopes),
                "code_challenge_method": "S256",
                "verify": verify,
                "timeout": _CALL_S,
                "trust_env": False,
            },
        )

    async def start(self, request: Request, then: str) -> Response:
        """To the provider; `then` is the page to come back to. Raises RequestRefused (503)."""
        request.scope["session"] = {}
        try:
            await self._read_metadata()
            response: Response = await self._client.authorize_redirect(request, self._return_address)
        except (httpx2.HTTPError, ValueError, KeyError, RuntimeError) as error:
            raise _unavailable(error) from None
        kept = {"session": request.scope["session"], "then": then if _OWN_PATH.fullmatch(then) else _HOME}
        sealed = self._seal.encrypt(json.dumps(kept).encode()).decode()
        _set_cookie(response, SIGN_IN_COOKIE, sealed, _SIGN_IN_S)
        response.headers["Cache-Control"] = "no-store"
        return response

    async def finish(self, request: Request) -> Response:
        """Back from the provider, into a new session. Raises RequestRefused (401, 503)."""
        kept = self._unseal(request.cookies.get(SIGN_IN_COOKIE, ""))
        request.scope["session"] = kept["session"]
        id_token, claims = await self._fetch_claims(request)
        try:
            subject = self._names.read_subject(claims)
        except UnusableClaims as error:
            raise _refuse(str(error), "ask who runs this service: the settings of claims and prefixes") from None
        session_id = self._sessions.open(subject, id_token, float(claims["exp"]))
        self._sessions.end(request.cookies.get(SESSION_COOKIE, ""))
        audit.info("%s", json.dumps({"signed_in": subject.name, "from": request.client and request.client.host}))
        response = RedirectResponse(kept["then"], status_code=HTTPStatus.SEE_OTHER)
        _set_cookie(response, SESSION_COOKIE, session_id, None)
        forget(response, SIGN_IN_COOKIE)
        response.headers["Cache-Control"] = "no-store"
        return response

    async def find_way_out(self) -> str:
        """The address where the provider ends its own session and sends people back to us; "" where it names none.

        It is not told by whose token: that stays here, so the provider asks the person.
        """
        try:
            await self._read_metadata()
        except (httpx2.HTTPError, ValueError, KeyError, RuntimeError) as error:
            log.warning("the identity provider cannot be asked: %s: %s", type(error).__name__, error)
            return ""
        place = (await self._client.load_server_metadata()).get("end_session_endpoint")
        if not isinstance(place, str) or urlsplit(place).scheme != "https":
            return ""
        words = urlencode({"client_id": self._provider.client_id, "post_logout_redirect_uri": self._home})
        return f"{place}{'&' if '?' in place else '?'}{words}"

    def _unseal(self, cookie: str) -> dict[str, Any]:
        try:
            kept: dict[str, Any] = json.loads(self._seal.decrypt(cookie.encode(), ttl=_SIGN_IN_S))
        except (InvalidToken, ValueError):
            raise _refuse("this sign-in was begun in another browser, or too long ago", "sign in again") from None
        return kept

    async def _fetch_claims(self, request: Request) -> tuple[str, Mapping[str, Any]]:
        expected = {
            "iss": {"essential": True, "value": self._provider.issuer},
            "aud": {"essential": True, "value": self._provider.client_id},
        }
        try:
            await self._read_metadata()
            token = await self._client.authorize_access_token(request, claims_options=expected, leeway=_LEEWAY_S)
        except OAuthError as error:
            message = make_printable(f"{error.error}: {error.description}")[:200]
            raise _refuse(f"the identity provider did not sign you in ({message})", "sign in again") from None
        except JoseError as error:
            log.warning("an ID token is refused: %s", error)
            raise _refuse("the identity provider's token is not good", "the service's log says why") from None
        except (httpx2.HTTPError, ValueError, KeyError, RuntimeError) as error:
            raise _unavailable(error) from None
        if "userinfo" not in token:
            raise _refuse("the identity provider sent no ID token", "its client must be allowed the scope openid")
        return token["id_token"], token["userinfo"]

    async def _read_metadata(self) -> None:
        """The provider's metadata, once: it must be the issuer that we are told, and name good algorithms."""
        metadata = await self._client.load_server_metadata()
        if metadata.get("issuer") != self._provider.issuer:
            metadata.clear()
            raise ValueError("the provider calls itself by another issuer than this service is told")
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        metadata["id_token_signing_alg_values_supported"] = [each for each in offered if each in ALGORITHMS] or [
            "RS256"
        ]


def forget(response: Response, cookie: str) -> None:
    """Takes a cookie back."""
    response.delete_cookie(cookie, path="/", secure=True, httponly=True, samesite="lax")


def _set_cookie(response: Response, name: str, value: str, most_s: int | None) -> None:
    # Lax, since Strict would not be sent on the way back from the provider.
    response.set_cookie(name, value, max_age=most_s, path="/", secure=True, httponly=True, samesite="lax")


def _refuse(detail: str, next_step: str) -> RequestRefused:
    return RequestRefused(
        HTTPStatus.UNAUTHORIZED, detail, f"{next_step}: {START_PATH}" if "again" in next_step else next_step
    )


def _unavailable(error: Exception) -> RequestRefused:
    log.warning("the identity provider cannot be asked: %s: %s", type(error).__name__, error)
    return RequestRefused(
        HTTPStatus.SERVICE_UNAVAILABLE, "the identity provider does not answer", "try again; the service's log says why"
    )
