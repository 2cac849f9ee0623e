"""Pods' tokens checked by the API server: TokenReview, with what it said remembered for a short while.

Needs `create` on tokenreviews, which is cluster-wide. The API server is asked about tokens only that bear its signature
and are for us, so that nobody can have it asked, nor fill what is remembered, with words of their own; where its keys
cannot be read, it is asked about all of them.
Guarantees: a token counts only for our audience and only when it is bound to a pod; no token is kept, only its hash; a
verdict is remembered for MOST_REMEMBERED_S at most, and no longer than the token lives; memory is bounded. Source:
authentication.k8s.io/v1.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from fleetprof_api.pods import AUDIENCE
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from joserfc import jws
from joserfc.errors import JoseError

from fleetprof_operator.hub.access.authentication import Authenticator, CannotAuthenticate, Principal
from fleetprof_operator.identity.pod_tokens import MAX_TOKEN_CHARACTERS, read_expiry, read_review_user
from fleetprof_operator.kubernetes.cluster import Cluster

MOST_REMEMBERED_S: Final = 60.0
REFUSAL_REMEMBERED_S: Final = 5.0
MOST_TOKENS: Final = 20_000
_AT_ONCE: Final = 32
_PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"

log = logging.getLogger(__name__)


class TokenReviews:
    """An Authenticator. Call it in one event loop. `beforehand` refuses, offline, what need not be asked about."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        audience: str = AUDIENCE,
        beforehand: Authenticator | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = cluster
        self._audience = audience
        self._beforehand = beforehand
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[Principal | None, float]] = OrderedDict()
        self._keyless = False
        self._room = asyncio.Semaphore(_AT_ONCE)

    def count_kept(self) -> int:
        """The number of tokens of which the answer is kept."""
        return len(self._known)

    async def authenticate(self, token: str) -> Principal | None:
        """The pod, None when the token is not good. Raises CannotAuthenticate when nobody can tell."""
        if not token or len(token) > MAX_TOKEN_CHARACTERS:
            return None
        digest = hashlib.sha256(token.encode()).digest()
        now = self._clock()
        known = self._known.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        if not await self._may_be_good(token):
            return None
        async with self._room:
            status = await self._review(token)
        principal = _judge(status, self._audience)
        until = now + REFUSAL_REMEMBERED_S
        if principal is not None:
            principal = replace(principal, expires_unix_ns=_read_expiry(token))
            until = min(now + MOST_REMEMBERED_S, principal.expires_unix_ns / 1e9)
        self._known[digest] = principal, until
        self._known.move_to_end(digest)
        while len(self._known) > MOST_TOKENS:
            self._known.popitem(last=False)
        return principal

    async def _may_be_good(self, token: str) -> bool:
        if self._beforehand is None:
            return True
        try:
            return await self._beforehand.authenticate(token) is not None
        except CannotAuthenticate as problem:
            if not self._keyless:
                log.warning("tokens are reviewed without a check beforehand: %s", problem)
            self._keyless = True
            return True

    async def _review(self, token: str) -> dict[str, Any]:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }
        try:
            answer = await self._cluster.create(_PATH, review)
        except (ApiRefused, ApiUnreachable) as problem:
            raise CannotAuthenticate(f"the API server does not review tokens: {problem}") from None
        return answer.get("status") or {}


def _judge(status: dict[str, Any], audience: str) -> Principal | None:
    if not status.get("authenticated") or audience not in (status.get("audiences") or ()):
        log.debug("a token is refused: %s", str(status.get("error") or "not for us")[:300])
        return None
    return read_review_user(status.get("user") or {})


def _read_expiry(token: str) -> int:
    """The end of the token by its own word, which the API server has just confirmed (Unix ns); 0 when it has none."""
    try:
        claims = json.loads(jws.extract_compact(token.encode()).payload)
    except (JoseError, ValueError):
        return 0
    return read_expiry(claims) if isinstance(claims, dict) else 0
