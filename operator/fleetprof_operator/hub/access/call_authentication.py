"""Authentication of every call to the hub: without a good token of a served namespace the call ends with the reason.

Guarantees: a token is never logged; a caller with a good token is let in whatever others do: when refusals become many,
each refused caller waits a second, and the calls of one address that are checked at a time are bounded, so that no
address takes all of them.
"""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Collection
from typing import Any, Final, NoReturn

import grpc
import grpc.aio

from fleetprof_operator.hub.access.authentication import Authenticator, CannotAuthenticate, Principal
from fleetprof_operator.hub.access.bucket import TokenBucket
from fleetprof_operator.hub.access.call_refusals import CallRefusal, CallRefusals

Context = grpc.aio.ServicerContext[Any, Any]

MOST_OF_PEER: Final = 256  # at the door at one time
MOST_AT_DOOR: Final = 1024
REFUSALS_AT_ONCE: Final = 20  # of one address, before its refusals take their time
REFUSALS_PER_S: Final = 2.0
REFUSAL_S: Final = 1.0
MOST_PEERS: Final = 10_000


class CallAuthentication:
    """Lets in who has a good token; `namespaces` empty: of any namespace."""

    def __init__(self, authenticator: Authenticator, refusals: CallRefusals, namespaces: Collection[str] = ()) -> None:
        self._authenticator = authenticator
        self._refusals = refusals
        self._namespaces = frozenset(namespaces)
        self._at_door = Counter[str]()
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    async def admit(self, context: Context) -> Principal:
        """The caller. Ends the call with UNAUTHENTICATED when there is none, UNAVAILABLE when nobody can tell,

        PERMISSION_DENIED when its namespace is not served, RESOURCE_EXHAUSTED when too many are at the door.
        """
        peer = read_peer(context)
        if self._at_door[peer] >= MOST_OF_PEER or self._at_door.total() >= MOST_AT_DOOR:
            message = "too many calls of this address wait to be let in; dial again later"
            self._refusals.note(CallRefusal.CALLS, peer, message)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
        self._at_door[peer] += 1
        try:
            return await self._check(context, peer)
        finally:
            self._at_door[peer] -= 1
            if not self._at_door[peer]:
                del self._at_door[peer]

    async def _check(self, context: Context, peer: str) -> Principal:
        given = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
        text = given[0] if len(given) == 1 and isinstance(given[0], str) else ""
        token = text.removeprefix("Bearer ") if text.startswith("Bearer ") else ""
        try:
            principal = await self._authenticator.authenticate(token) if token else None
        except CannotAuthenticate as problem:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(problem))
        if principal is None:
            message = "the token is not the hub's" if token else "no token: send `authorization: Bearer <token>`"
            await self._refuse(context, peer, CallRefusal.BAD_TOKEN, grpc.StatusCode.UNAUTHENTICATED, message)
        if self._namespaces and principal.namespace not in self._namespaces:
            message = f"namespace {principal.namespace} is not served by this hub (`namespaces` of its chart)"
            await self._refuse(context, peer, CallRefusal.NAMESPACE, grpc.StatusCode.PERMISSION_DENIED, message)
        return principal

    async def _refuse(
        self, context: Context, peer: str, kind: CallRefusal, status: grpc.StatusCode, message: str
    ) -> NoReturn:
        self._refusals.note(kind, peer, message)
        now = time.monotonic()
        bucket = self._buckets.setdefault(peer, TokenBucket(REFUSALS_AT_ONCE, REFUSALS_PER_S, now))
        self._buckets.move_to_end(peer)
        if len(self._buckets) > MOST_PEERS:
            self._buckets.popitem(last=False)
        if not bucket.take_if_there(1, now):
            await asyncio.sleep(REFUSAL_S)
        await context.abort(status, message)


def read_peer(context: Context) -> str:
    """The caller's address without its port: `ipv4:10.0.0.7`, `ipv6:[::1]`, or a Unix socket's name."""
    peer = context.peer() or ""
    return peer.rpartition(":")[0] if peer.startswith("ip") else peer
