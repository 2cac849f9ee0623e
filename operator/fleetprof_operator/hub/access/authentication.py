"""Callers that may speak to the hub: the seam behind which a token becomes a principal.

Guarantees: tokens are compared in constant time and never logged. On Kubernetes a TokenReview takes this place.
"""

import hmac
from dataclasses import dataclass, field
from typing import Protocol

from fleetprof_api.errors import FleetprofError


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller: the namespace and the pod that it may speak for; None: any. Until when; 0: for ever."""

    namespace: str | None = None
    pod_name: str | None = None
    pod_uid: str | None = None
    expires_unix_ns: int = field(default=0, compare=False)


class CannotAuthenticate(FleetprofError):
    """Nobody can tell now whether a token is good; the message says why. The caller should try again."""


class Authenticator(Protocol):
    """Turns a bearer token into a principal."""

    async def authenticate(self, token: str) -> Principal | None:
        """The principal, or None when the token is not good. Raises CannotAuthenticate."""


class SharedToken:
    """One secret for everybody: local mode."""

    def __init__(self, token: str) -> None:
        if len(token) < 16:
            raise ValueError("the hub's token must have at least 16 characters")
        self._token = token.encode()

    async def authenticate(self, token: str) -> Principal | None:
        """A principal for any namespace when the token is the one."""
        return Principal() if hmac.compare_digest(token.encode(), self._token) else None
