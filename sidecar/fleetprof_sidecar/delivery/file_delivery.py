"""Brings one file of the spool into the store: asks the hub for a grant, uploads, reports, waits for the verdict.

Guarantees: it goes on through lost connections, a restarted hub, expired grants and a store that does not answer, until
the hub gives up on the file or the delivery is cancelled; the hub hears for how long no connection to the store came
about though each try was granted, and gives up where the store is there for all but this pod; every question can be
repeated without harm.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from fleetprof_api.errors import FleetprofError
from fleetprof_api.hub import hub_pb2
from fleetprof_api.process.backoff import Backoff

from fleetprof_sidecar.capture.process_capture import StoredFile, Terms
from fleetprof_sidecar.delivery.upload import FileDamaged, GrantedPart, StoreUnreached, UploadBroken
from fleetprof_sidecar.hub.outbox import HubSender

ANSWER_PATIENCE_S: Final = 30.0
_DONE_TRIES: Final = 2
_MOST_WAIT_S: Final = 30.0

_Answer = TypeVar("_Answer", hub_pb2.UploadGrant, hub_pb2.UploadVerdict)


class Uploads(Protocol):
    """The part that brings parts to the addresses that the hub granted: `UploadThreads`."""

    async def put(self, stored: StoredFile, grants: Sequence[GrantedPart], stop: threading.Event) -> list[str]:
        """Uploads every part and returns the ETags; ends soon after `stop` is set.

        Raises UploadBroken, FileDamaged, OSError.
        """


class GaveUp(FleetprofError):
    """The file cannot be stored; the message says why."""


class FileDelivery:
    """One file on its way into the store."""

    def __init__(
        self,
        terms: Terms,
        kind: hub_pb2.ObjectKind.ValueType,
        stored: StoredFile,
        hub: HubSender,
        uploads: Uploads,
    ) -> None:
        self._terms = terms
        self._kind = kind
        self._stored = stored
        self._hub = hub
        self._uploads = uploads
        self._stop = threading.Event()
        self._inbox: asyncio.Queue[hub_pb2.UploadGrant | hub_pb2.UploadVerdict | None] = asyncio.Queue(maxsize=16)
        self._unreached_since: float | None = None
        self._unreached = ""
        self.last_problem = ""

    def receive(self, message: hub_pb2.UploadGrant | hub_pb2.UploadVerdict | None) -> None:
        """Takes an answer of the hub; None: the connection is new, so ask again. Surplus answers are dropped."""
        if not self._inbox.full():
            self._inbox.put_nowait(message)

    async def run(self) -> None:
        """Returns when the store holds the file. Raises GaveUp."""
        pause = Backoff(1.0, _MOST_WAIT_S)
        try:
            while True:
                grant = await self._ask(self._request(), hub_pb2.UploadGrant)
                if grant is None or grant.refusal:
                    # The hub, or its store, was away: that time proves nothing about this pod. A grant does, as the
                    # store has begun the upload.
                    self._note_unreached("")
                if grant is None:
                    continue
                if grant.refusal:
                    self.last_problem = f"the hub signs no upload: {grant.refusal[:300]}"
                    await self._pause(grant.retry_after_ns, pause)
                    continue
                try:
                    etags = await self._uploads.put(self._stored, list(grant.parts), self._stop)
                except UploadBroken as problem:
                    self._note_unreached(str(problem) if isinstance(problem, StoreUnreached) else "")
                    self.last_problem = f"the store did not take the file: {problem}"
                    await asyncio.sleep(pause.next_s())
                    continue
                except (FileDamaged, OSError) as problem:
                    raise GaveUp(f"the spool's file cannot be read: {problem}") from None
                self._note_unreached("")
                verdict = await self._report(grant.upload_id, etags)
                if verdict is None:
                    continue
                if verdict.accepted:
                    return
                self.last_problem = f"the store refused the file: {verdict.message[:300]}"
                await self._pause(verdict.retry_after_ns, pause)
        finally:
            self._stop.set()

    def _note_unreached(self, why: str) -> None:
        """`why` no connection came about; empty when one did."""
        self._unreached = why
        self._unreached_since = (self._unreached_since or time.monotonic()) if why else None

    async def _pause(self, retry_after_ns: int, pause: Backoff) -> None:
        if retry_after_ns <= 0:
            raise GaveUp(self.last_problem)
        await asyncio.sleep(max(retry_after_ns / 1e9, pause.next_s()))

    async def _report(self, upload_id: str, etags: list[str]) -> hub_pb2.UploadVerdict | None:
        completion = hub_pb2.UploadDone(
            capture_id=self._terms.capture_id,
            process_id=self._terms.process_id,
            object=self._kind,
            upload_id=upload_id,
            etags=etags,
        )
        for _ in range(_DONE_TRIES):
            verdict = await self._ask(hub_pb2.SidecarMessage(upload_done=completion), hub_pb2.UploadVerdict)
            if verdict is not None:
                return verdict
        return None

    async def _ask(self, question: hub_pb2.SidecarMessage, kind: type[_Answer]) -> _Answer | None:
        """The answer of that kind; None when none came in time, or the connection changed meanwhile."""
        while not self._inbox.empty():
            self._inbox.get_nowait()
        self._hub.send(question)
        try:
            async with asyncio.timeout(ANSWER_PATIENCE_S):
                while True:
                    answer = await self._inbox.get()
                    if answer is None:
                        return None
                    if isinstance(answer, kind):
                        return answer
        except TimeoutError:
            self.last_problem = self.last_problem or "the hub did not answer"
            return None

    def _request(self) -> hub_pb2.SidecarMessage:
        parts = [
            hub_pb2.Part(size_bytes=size, sha256=bytes.fromhex(sha256))
            for size, sha256 in zip(self._stored.part_sizes, self._stored.part_sha256, strict=True)
        ]
        return hub_pb2.SidecarMessage(
            upload_request=hub_pb2.UploadRequest(
                capture_id=self._terms.capture_id,
                process_id=self._terms.process_id,
                rank=self._terms.rank,
                object=self._kind,
                parts=parts,
                unreached_ns=0
                if self._unreached_since is None
                else max(1, int((time.monotonic() - self._unreached_since) * 1e9)),
                unreached=self._unreached,
            )
        )
