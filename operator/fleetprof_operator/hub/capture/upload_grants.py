"""Grants one request's uploads and accepts them: the only way from a sidecar into the store.

Guarantees: a grant is for the key of a rank that the request's ledger gives to that very sidecar, never for another;
sizes and numbers of parts are bounded beforehand; what is repeated reaches no store while the first is under way, nor
after the object is whole; nothing needs to be remembered over a restart: an upload that the hub does not know is begun
again. A store that is away, or refuses us (credentials that ran out can be renewed), means "ask again"; a wish
that is wrong, or a store that is there for us but not for the sidecar, means "give up"; each with its sentence.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Final

from fleetprof_api import keys, samples
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.ledger import LedgerEntry
from fleetprof_store.base import Grant, StoreError, UploadPart
from fleetprof_store.checks import find_part_problem

from fleetprof_operator.hub.settings import SECOND_NS, HubSettings
from fleetprof_operator.hub.storage.store_calls import StoreCalls

_COMPLETE_TRIES: Final = 3
_MOST_SAID: Final = 300  # of what a sidecar says
# What is not a trace has a limit of its own: others read it whole.
_MOST_BYTES: Final = {pb.SAMPLES: samples.MOST_BYTES, pb.SUMMARY: 1 << 17}
_Upload = tuple[str, str, int]  # sidecar, process, object


@dataclass(slots=True)
class _Granted:
    key: str
    upload_id: str
    parts: list[UploadPart]
    reported: bool = False  # the sidecar said that it is done: joining it is tried once


class UploadGrants:
    """Signs the uploads of one request; an object may have `max_trace_bytes` and no more than the hub allows."""

    def __init__(
        self, calls: StoreCalls, namespace: str, uid: str, max_trace_bytes: int, settings: HubSettings
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._uid = uid
        self._max_bytes = min(max_trace_bytes or settings.max_object_bytes, settings.max_object_bytes)
        self._settings = settings
        self._granted: dict[_Upload, _Granted] = {}
        self._parts_of = Counter[str]()  # sidecar → parts that are granted to it
        self._joined: dict[_Upload, str] = {}  # the upload's id of those that are whole
        self._under_way: set[_Upload] = set()  # with a call of the store, for which one at a time is enough

    async def grant(self, upload_request: pb.UploadRequest, sidecar_id: str, entry: LedgerEntry) -> pb.UploadGrant:
        """Permission for the announced parts, or a refusal. `entry` is the line of the asking process."""
        answer = pb.UploadGrant(
            capture_id=upload_request.capture_id, process_id=upload_request.process_id, object=upload_request.object
        )
        parts = [
            UploadPart(part.size_bytes, part.sha256) for part in upload_request.parts[: self._settings.max_parts + 1]
        ]
        key = self._key(upload_request.object, entry.rank)
        if entry.rank != upload_request.rank:
            answer.refusal = (
                f"process {upload_request.process_id} is rank {entry.rank} of this request, not {upload_request.rank}"
            )
        elif not key:
            answer.refusal = f"there is no object of kind {upload_request.object}"
        else:
            answer.refusal = find_part_problem(parts)
        if not answer.refusal and len(parts) > self._settings.max_parts:
            answer.refusal = f"{len(parts)} parts are more than {self._settings.max_parts}; make each larger"
        total = sum(part.size_bytes for part in parts)
        most = min(self._max_bytes, _MOST_BYTES.get(upload_request.object, self._max_bytes))
        if not answer.refusal and total > most:
            answer.refusal = f"{total} bytes are more than the {most} that this request may store per rank"
        if answer.refusal:
            return answer
        upload = (sidecar_id, upload_request.process_id, int(upload_request.object))
        if upload in self._under_way:
            answer.refusal = "an earlier wish for this object is being answered"
        elif self._parts_of[sidecar_id] + len(parts) > 2 * self._settings.max_parts and upload not in self._granted:
            answer.refusal = "uploads of this sidecar with as many parts as there may be are under way; wait for them"
        if answer.refusal:
            answer.retry_after_ns = self._settings.store_retry_ns
            return answer
        self._under_way.add(upload)
        try:
            if upload_request.unreached_ns >= self._settings.unreached_patience_ns:
                await self._calls.get_beginning(key, 1)  # an outage is waited for
                answer.refusal = _say_unreached(upload_request)
                return answer
            await self._abort(self._take(upload))
            granted = await self._calls.run(lambda: self._grant(key, parts))
        except StoreError as error:
            answer.refusal = str(error)
            answer.retry_after_ns = self._settings.store_retry_ns
            return answer
        finally:
            self._under_way.discard(upload)
        self._granted[upload] = _Granted(key, granted.upload_id, parts)
        self._parts_of[sidecar_id] += len(parts)
        answer.upload_id = granted.upload_id
        answer.expires_unix_ns = granted.expires_unix_ns
        answer.parts.extend(pb.PartGrant(url=part.url, headers=part.headers) for part in granted.parts)
        return answer

    async def complete(self, completion: pb.UploadDone, sidecar_id: str) -> pb.UploadVerdict | None:
        """Joins the parts; `accepted` says that the store holds the object. None while an earlier word is answered."""
        answer = pb.UploadVerdict(
            capture_id=completion.capture_id, process_id=completion.process_id, object=completion.object
        )
        upload = (sidecar_id, completion.process_id, int(completion.object))
        if completion.upload_id and self._joined.get(upload) == completion.upload_id:
            answer.accepted = True
            return answer
        if upload in self._under_way:
            return None
        granted = self._granted.get(upload)
        if granted is None or granted.upload_id != completion.upload_id or granted.reported:
            answer.message = "this hub did not sign that upload (it was restarted, or signed a newer one); begin again"
            answer.retry_after_ns = self._settings.store_retry_ns // 4
            return answer
        granted.reported = True
        self._under_way.add(upload)
        try:
            await self._join(granted, list(completion.etags), answer)
        finally:
            self._under_way.discard(upload)
        if answer.accepted:
            self._take(upload)
            self._joined[upload] = granted.upload_id
        return answer

    async def _join(self, granted: _Granted, etags: list[str], answer: pb.UploadVerdict) -> None:
        for left in reversed(range(_COMPLETE_TRIES)):
            try:
                await self._calls.run(
                    lambda: self._calls.store.complete_upload(granted.key, granted.upload_id, granted.parts, etags)
                )
            except StoreError as error:
                answer.message = str(error)
                if error.retryable and left:
                    await asyncio.sleep(self._settings.store_retry_ns / 10**9)
                    continue
                answer.retry_after_ns = self._settings.store_retry_ns
                return
            answer.accepted = True
            answer.message = ""
            return

    async def holds_result(self, rank: int) -> bool:
        """Tells whether the store has a rank's trace or its summary. Raises StoreError."""
        wanted = {self._key(pb.TRACE, rank), self._key(pb.SUMMARY, rank)}
        prefix = keys.trace_key(self._namespace, self._uid, rank).removesuffix("trace.json.gz")
        return any(info.key in wanted for info in await self._calls.list(prefix))

    async def close(self) -> None:
        """Drops unfinished uploads; a store that is away keeps them until its own clean-up."""
        for granted in list(self._granted.values()):
            try:
                await self._abort(granted)
            except StoreError:
                break
        self._granted.clear()

    def _take(self, upload: _Upload) -> _Granted | None:
        """An upload's grant, which is forgotten."""
        granted = self._granted.pop(upload, None)
        if granted is not None:
            self._parts_of[upload[0]] -= len(granted.parts)
        return granted

    def _grant(self, key: str, parts: list[UploadPart]) -> Grant:
        return self._calls.store.grant_upload(key, parts, lifetime_s=self._settings.grant_lifetime_s)

    async def _abort(self, granted: _Granted | None) -> None:
        if granted is not None:
            await self._calls.run(lambda: self._calls.store.abort_upload(granted.key, granted.upload_id))

    def _key(self, kind: int, rank: int) -> str:
        match kind:
            case pb.TRACE:
                return keys.trace_key(self._namespace, self._uid, rank)
            case pb.SAMPLES:
                return keys.samples_key(self._namespace, self._uid, rank)
            case pb.SUMMARY:
                return keys.summary_key(self._namespace, self._uid, rank)
            case _:
                return ""


def _say_unreached(upload_request: pb.UploadRequest) -> str:
    seconds = upload_request.unreached_ns // SECOND_NS
    cause = upload_request.unreached[:_MOST_SAID]
    return f"the pod has not reached the store for {seconds} s, which the hub reaches: {cause}"
