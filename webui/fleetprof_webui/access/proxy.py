"""People whom an authenticating proxy in front of this service has recognised, by a token that it signs.

Guarantees: a header counts only as a JWT whose signature, issuer, audience and time are good by the proxy's own keys; a
header that merely names somebody is never read, and refused where no such proof stands beside it; the keys are asked
for at most once per 30 s. Sources: RFC 7519; kubeflow #6702, a header without proof.
"""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpx2
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.requests import Request

from fleetprof_webui.access.sign_in import ALGORITHMS
from fleetprof_webui.access.subject import ClaimNames, Subject, UnusableClaims
from fleetprof_webui.problems import RequestRefused

IDENTITY_HEADERS: Final = frozenset(
    {
        "impersonate-group",
        "impersonate-user",
        "kubeflow-userid",
        "remote-user",
        "x-auth-request-email",
        "x-auth-request-groups",
        "x-auth-request-user",
        "x-forwarded-email",
        "x-forwarded-groups",
        "x-forwarded-preferred-username",
        "x-forwarded-user",
        "x-goog-authenticated-user-email",
        "x-remote-group",
        "x-remote-user",
    }
)
"""Headers by which proxies name people."""

_AGAIN_AFTER_S: Final = 30.0
_LEEWAY_S: Final = 10
_CALL_S: Final = 15.0
_MOST_TOKEN: Final = 16_384

audit = logging.getLogger("fleetprof.audit")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyKeys:
    """The header that holds the proxy's token, and what proves it."""

    header: str
    keys_url: str
    issuer: str
    audience: str
    ca_file: Path | None


class Proxy:
    """Reads tokens of one proxy. Call it in one event loop."""

    def __init__(self, keys: ProxyKeys, names: ClaimNames, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = keys
        self._names = names
        self._clock = clock
        self._keys: KeySet | None = None
        self._fetched_at = -_AGAIN_AFTER_S
        self._asking = asyncio.Lock()
        self._claims = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": keys.issuer},
            aud={"essential": True, "value": keys.audience},
            exp={"essential": True},
        )

    async def recognise(self, request: Request) -> Subject | None:
        """The person whom the proxy names; None without a word of the proxy. Raises RequestRefused (400, 503)."""
        token = request.headers.get(self._settings.header, "")
        if not token:
            refuse_identity_headers(request)
            return None
        try:
            return self._names.read_subject(await self._read(token.removeprefix("Bearer ")))
        except (JoseError, ValueError, UnusableClaims) as error:
            raise _forged(request, [self._settings.header], f"{type(error).__name__}: {error}") from None

    def recall(self, request: Request) -> Subject | None:
        """The person of whom the proxy speaks, by the keys that are known; None where they do not prove it."""
        token = self.read_token(request)
        if self._keys is None or not token or len(token) > _MOST_TOKEN:
            return None
        try:
            found = self._decode(token)
            self._claims.validate(found.claims)
            return self._names.read_subject(found.claims)
        except (JoseError, ValueError, UnusableClaims):
            return None

    def read_token(self, request: Request) -> str:
        """The token of a request whose person was recognised."""
        return request.headers.get(self._settings.header, "").removeprefix("Bearer ")

    async def _read(self, token: str) -> dict[str, Any]:
        if len(token) > _MOST_TOKEN:
            raise ValueError("the token is too long")
        if self._keys is None:
            await self._fetch_keys()
        try:
            found = self._decode(token)
        except JoseError:
            # The proxy may have a new key.
            if not await self._fetch_keys():
                raise
            found = self._decode(token)
        self._claims.validate(found.claims)
        return found.claims

    def _decode(self, token: str) -> jwt.Token:
        if self._keys is None:
            raise RequestRefused(
                HTTPStatus.SERVICE_UNAVAILABLE, "the proxy's keys cannot be read", "the service's log says why"
            )
        return jwt.decode(token, self._keys, algorithms=list(ALGORITHMS))

    async def _fetch_keys(self) -> bool:
        """Tells whether they were asked for and read now."""
        async with self._asking:
            if self._clock() - self._fetched_at < _AGAIN_AFTER_S:
                return False
            self._fetched_at = self._clock()
            ca_file = self._settings.ca_file
            verify = ssl.create_default_context(cafile=str(ca_file)) if ca_file else True
            try:
                async with httpx2.AsyncClient(verify=verify, timeout=_CALL_S, trust_env=False) as client:
                    answer = await client.get(self._settings.keys_url)
                answer.raise_for_status()
                self._keys = KeySet.import_key_set(answer.json())
            except (httpx2.HTTPError, ValueError, KeyError, TypeError, JoseError) as error:
                log.warning("the proxy's keys cannot be read: %s: %s", type(error).__name__, error)
                return False
            return True


def refuse_identity_headers(request: Request) -> None:
    """Raises RequestRefused (400) where a header names a person: whoever sends that has not proved to be our proxy."""
    named = sorted(IDENTITY_HEADERS.intersection(request.headers.keys()))
    if named:
        raise _forged(request, named, "no proof of a proxy")


def _forged(request: Request, headers: list[str], why: str) -> RequestRefused:
    sender = request.client.host if request.client else None
    audit.warning("%s", json.dumps({"identity_refused": headers, "why": why[:200], "from": sender}))
    return RequestRefused(
        HTTPStatus.BAD_REQUEST,
        f"{', '.join(headers)}: this service takes nobody's word for who you are",
        "come through the proxy that signs you in, or leave the header out",
    )
