"""Grants one request's uploads and accepts them: the only way from a sidecar into the store.

Guarantees: a grant is for the key of a rank that the request's ledger gives to that very sidecar, never for another;
sizes are bounded beforehand; nothing needs to be remembered over a restart: an upload that the hub does not know is
begun again. A store that is away, or refuses us (credentials that ran out can be renewed), means "ask again"; a wish
that is wrong means "give up"; each with its sentence.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from fleetprof_api import hub_pb2 as pb
from fleetprof_api import keys
from fleetprof_api.ledger import Ledger, LedgerEntry
from fleetprof_api.store.base import Grant, StoreError, UploadPart
from fleetprof_api.store.checks import find_part_problem

from fleetprof_operator.hub.settings import HubSettings
from fleetprof_operator.hub.store_calls import StoreCalls

_COMPLETE_TRIES: Final = 3
_Upload = tuple[str, str, int]  # sidecar, process, object


@dataclass(frozen=True, slots=True)
class _Granted:
    key: str
    upload_id: str
    parts: list[UploadPart]


class UploadDesk:
    """The uploads of one request."""

    def __init__(self, calls: StoreCalls, ledger: Ledger, max_trace_bytes: int, settings: HubSettings) -> None:
        self._calls = calls
        self._ledger = ledger
        self._max_bytes = min(max_trace_bytes or settings.max_object_bytes, settings.max_object_bytes)
        self._settings = settings
        self._granted: dict[_Upload, _Granted] = {}

    async def grant(self, asked: pb.UploadRequest, sidecar_id: str, entry: LedgerEntry) -> pb.UploadGrant:
        """Permission for the announced parts, or a refusal. `entry` is the line of the asking process."""
        answer = pb.UploadGrant(capture_id=asked.capture_id, process_id=asked.process_id, object=asked.object)
        parts = [UploadPart(part.size_bytes, part.sha256) for part in asked.parts]
        key = self._key(asked.object, entry.rank)
        if entry.rank != asked.rank:
            answer.refusal = f"process {asked.process_id} is rank {entry.rank} of this request, not {asked.rank}"
        elif not key:
            answer.refusal = f"there is no object of kind {asked.object}"
        else:
            answer.refusal = find_part_problem(parts)
        total = sum(part.size_bytes for part in parts)
        if not answer.refusal and total > self._max_bytes:
            answer.refusal = f"{total} bytes are more than the {self._max_bytes} that this request may store per rank"
        if answer.refusal:
            return answer
        upload = (sidecar_id, asked.process_id, int(asked.object))
        try:
            await self._abort(self._granted.pop(upload, None))
            granted = await self._calls.run(lambda: self._grant(key, parts))
        except StoreError as error:
            answer.refusal = str(error)
            answer.retry_after_ns = self._settings.store_retry_ns
            return answer
        self._granted[upload] = _Granted(key, granted.upload_id, parts)
        answer.upload_id = granted.upload_id
        answer.expires_unix_ns = granted.expires_unix_ns
        answer.parts.extend(pb.PartGrant(url=part.url, headers=part.headers) for part in granted.parts)
        return answer

    async def complete(self, done: pb.UploadDone, sidecar_id: str) -> pb.UploadVerdict:
        """Joins the parts; `accepted` says that the store holds the object."""
        answer = pb.UploadVerdict(capture_id=done.capture_id, process_id=done.process_id, object=done.object)
        upload = (sidecar_id, done.process_id, int(done.object))
        granted = self._granted.get(upload)
        if granted is None or granted.upload_id != done.upload_id:
            answer.message = (
                "this hub did not grant that upload (it was restarted, or granted a newer one); begin again"
            )
            answer.retry_after_ns = self._settings.store_retry_ns // 4
            return answer
        for left in reversed(range(_COMPLETE_TRIES)):
            try:
                await self._calls.run(
                    lambda: self._calls.store.complete_upload(
                        granted.key, granted.upload_id, granted.parts, list(done.etags)
                    )
                )
            except StoreError as error:
                answer.message = str(error)
                if error.retryable and left:
                    await asyncio.sleep(self._settings.store_retry_ns / 10**9)
                    continue
                answer.retry_after_ns = self._settings.store_retry_ns
                return answer
            break
        self._granted.pop(upload, None)
        answer.accepted = True
        answer.message = ""
        return answer

    async def holds_result(self, rank: int) -> bool:
        """Tells whether the store has a rank's trace or its summary. Raises StoreError."""
        wanted = {self._key(pb.TRACE, rank), self._key(pb.SUMMARY, rank)}
        prefix = keys.trace_key(self._ledger.namespace, self._ledger.uid, rank).removesuffix("trace.json.gz")
        return any(info.key in wanted for info in await self._calls.list(prefix))

    async def close(self) -> None:
        """Drops unfinished uploads; a store that is away keeps them until its own clean-up."""
        for granted in list(self._granted.values()):
            try:
                await self._abort(granted)
            except StoreError:
                break
        self._granted.clear()

    def _grant(self, key: str, parts: list[UploadPart]) -> Grant:
        return self._calls.store.grant_upload(key, parts, lifetime_s=self._settings.grant_lifetime_s)

    async def _abort(self, granted: _Granted | None) -> None:
        if granted is not None:
            await self._calls.run(lambda: self._calls.store.abort_upload(granted.key, granted.upload_id))

    def _key(self, kind: int, rank: int) -> str:
        match kind:
            case pb.TRACE:
                return keys.trace_key(self._ledger.namespace, self._ledger.uid, rank)
            case pb.SAMPLES:
                return keys.samples_key(self._ledger.namespace, self._ledger.uid, rank)
            case pb.SUMMARY:
                return keys.summary_key(self._ledger.namespace, self._ledger.uid, rank)
            case _:
                return ""
