"""Signs addresses for analyzer Jobs' pods: each reaches the capture of its own Job, while that is under way.

An analyzer reads what training jobs wrote, so it is given no credential of the store: a pod that a hostile trace took
over holds a token that is good for this service alone, and what this service signs.

Guarantees: the capture follows from the Job that owns the pod whose token it is, never from what the caller says; an
address is good for `LIFETIME_S` and no longer after the Job's end; a pod is answered at a bounded pace; the store is
called in threads of its own.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

import grpc
from fleetprof_api.hub import analyses_pb2 as pb
from fleetprof_api.hub.analyses_pb2_grpc import AnalysesServicer
from fleetprof_api.process.kubernetes_errors import ApiRefused, ApiUnreachable
from fleetprof_store.base import PartGrant, SigningStore, Store, StoreError, UploadPart

from fleetprof_operator.analyses.rights import AnalysedCapture, find_read_problem, find_write_problem, of_a_rank
from fleetprof_operator.hub.access.authentication import Authenticator, Principal
from fleetprof_operator.hub.access.bucket import TokenBucket
from fleetprof_operator.hub.access.call_authentication import CallAuthentication, Context
from fleetprof_operator.hub.access.call_refusals import CallRefusals
from fleetprof_operator.hub.storage.store_calls import StoreCalls
from fleetprof_operator.kubernetes.cluster import Cluster, Json

log = logging.getLogger(__name__)

LIFETIME_S: Final = 900
CALLS_PER_S: Final = 100.0
BURST: Final = 200.0
_MOST_PODS: Final = 4000
_LOOK_AGAIN_S: Final = 60.0
_PAGE: Final = 1000


@dataclass(slots=True)
class _Caller:
    """A pod that was found to be one of a Job's."""

    job: str
    seen_s: float
    pace: TokenBucket
    ranks: frozenset[int] = field(default_factory=frozenset)


class AnalysesService(AnalysesServicer):
    """`find_capture` tells what a Job of `namespace` works on; None when the operator made none, or it has ended."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        store: Store,
        authenticator: Authenticator,
        find_capture: Callable[[str], AnalysedCapture | None],
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._store = store
        self._calls = StoreCalls(store)
        self._authentication = CallAuthentication(authenticator, CallRefusals())
        self._find_capture = find_capture
        self._callers: OrderedDict[str, _Caller] = OrderedDict()

    def close(self) -> None:
        """Lets the threads end."""
        self._calls.close()

    async def ListObjects(  # noqa: N802
        self, request: pb.ListObjectsRequest, context: Context
    ) -> AsyncIterator[pb.ObjectPage]:
        """All objects of the caller's capture."""
        capture, _ = await self._admit(context)
        try:
            found = await self._calls.list(capture.prefix())
        except StoreError as error:
            await _refuse(context, error)
        for at in range(0, len(found), _PAGE):
            yield pb.ObjectPage(
                objects=[pb.ListedObject(key=o.key, size_bytes=o.size_bytes) for o in found[at : at + _PAGE]]
            )

    async def SignRead(self, request: pb.SignReadRequest, context: Context) -> pb.SignedAddress:  # noqa: N802
        """An address to read one object of the caller's capture."""
        capture, _ = await self._admit(context)
        if problem := find_read_problem(capture, request.key):
            await self._deny(context, capture, problem)
        return await self._sign(context, lambda store: store.sign_read(request.key, lifetime_s=LIFETIME_S))

    async def SignWrite(self, request: pb.SignWriteRequest, context: Context) -> pb.SignedAddress:  # noqa: N802
        """An address to write one of the things that the caller's command makes."""
        capture, caller = await self._admit(context)
        size_bytes = request.size_bytes
        if of_a_rank(request.key) and not caller.ranks:
            caller.ranks = await self._list_ranks(context, capture)
        if problem := find_write_problem(capture, request.key, size_bytes, caller.ranks):
            await self._deny(context, capture, problem)
        part = UploadPart(size_bytes, request.sha256)
        return await self._sign(context, lambda store: store.sign_write(request.key, part, lifetime_s=LIFETIME_S))

    async def _admit(self, context: Context) -> tuple[AnalysedCapture, _Caller]:
        """The caller's capture, at the caller's pace. Ends the call when there is none."""
        principal = await self._authentication.admit(context)
        caller = await self._find_caller(principal, context)
        capture = self._find_capture(caller.job)
        if capture is None:
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, f"no analysis is under way in Job {caller.job}; ask again if it should be"
            )
        wait_s = caller.pace.take_or_refuse(1, asyncio.get_running_loop().time())
        if wait_s is None:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls of one pod; ask more slowly")
        await asyncio.sleep(wait_s)
        return capture, caller

    async def _find_caller(self, principal: Principal, context: Context) -> _Caller:
        now_s = asyncio.get_running_loop().time()
        uid, name = principal.pod_uid, principal.pod_name
        if principal.namespace != self._namespace or not uid or not name:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "only analyzer Jobs' pods may ask")
        known = self._callers.get(uid)
        if known is not None and now_s - known.seen_s < _LOOK_AGAIN_S:
            return known
        try:
            pods, _ = await self._cluster.list(
                f"/api/v1/namespaces/{self._namespace}/pods", {"fieldSelector": f"metadata.name={name}"}
            )
        except (ApiRefused, ApiUnreachable) as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"the pod cannot be looked up: {error}")
        job = find_job(pods, uid)
        if not job:
            self._callers.pop(uid, None)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "only running pods of analyzer Jobs may ask")
        known = self._callers.get(uid)  # another call of the pod may have come first
        if known is None or known.job != job:
            known = self._callers[uid] = _Caller(job, now_s, TokenBucket(BURST, CALLS_PER_S, now_s))
            while len(self._callers) > _MOST_PODS:
                self._callers.popitem(last=False)
        known.seen_s = now_s
        return known

    async def _list_ranks(self, context: Context, capture: AnalysedCapture) -> frozenset[int]:
        prefix = capture.prefix() + "ranks/"
        try:
            found = await self._calls.list(prefix)
        except StoreError as error:
            await _refuse(context, error)
        names = (info.key.removeprefix(prefix).partition("/")[0] for info in found)
        return frozenset(int(name) for name in names if name.isdecimal())

    async def _sign(self, context: Context, sign: Callable[[SigningStore], PartGrant]) -> pb.SignedAddress:
        store = self._store
        if not isinstance(store, SigningStore):
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "this operator's store signs no addresses")
        try:
            granted = await self._calls.run(lambda: sign(store))
        except StoreError as error:
            await _refuse(context, error)
        return pb.SignedAddress(url=granted.url, headers=granted.headers)

    async def _deny(self, context: Context, capture: AnalysedCapture, problem: str) -> NoReturn:
        log.warning("an analysis of request %s asks for more than it may: %s", capture.uid, problem)
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, problem)
        raise AssertionError("abort raises")


def find_job(pods: Sequence[Json], uid: str) -> str:
    """The Job that owns the pod with this uid, while the pod is not at its end; empty when there is none."""
    for pod in pods:
        metadata = pod["metadata"]
        if metadata.get("uid") != uid or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        for owner in metadata.get("ownerReferences") or []:
            if owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == ("batch/v1", "Job"):
                return str(owner["name"])
    return ""


async def _refuse(context: Context, error: StoreError) -> NoReturn:
    code = grpc.StatusCode.UNAVAILABLE if error.retryable else grpc.StatusCode.FAILED_PRECONDITION
    await context.abort(code, str(error))
    raise AssertionError("abort raises")
