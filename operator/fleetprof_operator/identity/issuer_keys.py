"""Tokens checked offline with the cluster's public keys: those of pods before a TokenReview, and in its place where an
installation has no cluster-wide rights; and those of one service account.

Every service account may read the keys (role system:service-account-issuer-discovery). A pod that was deleted stays
good until its token ends, at most an hour; TokenReview knows better, and needs a cluster-wide right.
Guarantees: signature, issuer, audience and time are checked, and for a pod that the token is bound to it; an unknown
key is asked for at most once per REFRESH_AFTER_S, however many tokens name one. Source: RFC 7519, OpenID Connect
Discovery.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final

from fleetprof_api.pods import AUDIENCE
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key

from fleetprof_operator.hub.access.authentication import CannotAuthenticate, Principal
from fleetprof_operator.identity.pod_tokens import MAX_TOKEN_CHARACTERS, read_claims
from fleetprof_operator.kubernetes.cluster import Cluster

REFRESH_AFTER_S: Final = 30.0
AGAIN_AFTER_S: Final = 2.0
LEEWAY_S: Final = 10
_ALGORITHMS: Final = ("RS256", "ES256", "ES384", "ES512", "RS384", "RS512")
_NEVER: Final = -1e9

log = logging.getLogger(__name__)


class IssuerKeys:
    """An Authenticator. Call it in one event loop."""

    def __init__(self, cluster: Cluster, *, audience: str = AUDIENCE, clock: Callable[[], float] = monotonic) -> None:
        self._cluster = cluster
        self._audience = audience
        self._clock = clock
        self._issuer = ""
        self._keys: dict[str, Key] = {}
        self._read_at = _NEVER
        self._failed_at = _NEVER
        self._reading = asyncio.Lock()

    async def authenticate(self, token: str) -> Principal | None:
        """The pod, None when the token is not good. Raises CannotAuthenticate when the keys cannot be read."""
        claims = await self.verify(token)
        return None if claims is None else read_claims(claims)

    async def verify(self, token: str) -> Mapping[str, Any] | None:
        """The claims of a good token, whoever's it is. Raises CannotAuthenticate when the keys cannot be read."""
        if not token or len(token) > MAX_TOKEN_CHARACTERS:
            return None
        try:
            key_id = jws.extract_compact(token.encode()).headers().get("kid")
            key = await self._find_key(key_id) if isinstance(key_id, str) else None
            if key is None:
                return None
            claims: Mapping[str, Any] = jwt.decode(token, key, algorithms=_ALGORITHMS).claims
            self._rules().validate(dict(claims))
        except JoseError as problem:
            log.debug("a token is refused: %s", problem)  # refusals are counted and logged in sum by the hub
            return None
        return claims

    def _rules(self) -> jwt.JWTClaimsRegistry:
        return jwt.JWTClaimsRegistry(
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self._issuer},
            aud={"essential": True, "value": self._audience},
            exp={"essential": True},
            iat={"essential": True},
        )

    async def _find_key(self, key_id: str) -> Key | None:
        if key_id not in self._keys:
            async with self._reading:
                if key_id not in self._keys and self._clock() - self._read_at >= REFRESH_AFTER_S:
                    await self._read_keys()
        return self._keys.get(key_id)

    async def _read_keys(self) -> None:
        if self._clock() - self._failed_at < AGAIN_AFTER_S:
            raise CannotAuthenticate("the API server did not give its issuer's keys a moment ago")
        try:
            issuer = (await self._cluster.get("/.well-known/openid-configuration"))["issuer"]
            documents = (await self._cluster.get("/openid/v1/jwks"))["keys"]
        except (ApiRefused, ApiUnreachable, KeyError) as problem:
            self._failed_at = self._clock()
            raise CannotAuthenticate(f"the API server does not give its issuer's keys: {problem}") from None
        keys = {}
        for document in documents:
            try:
                keys[str(document["kid"])] = JWKRegistry.import_key(document)
            except (JoseError, KeyError, ValueError):
                log.warning("a key of the issuer cannot be used")
        self._issuer, self._keys, self._read_at = issuer, keys, self._clock()
