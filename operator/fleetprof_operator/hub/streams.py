"""The sidecars' streams, from the hello of each to its end.

Guarantees: the sidecar's first message is its hello, and it speaks for its token's namespace and pod; a malformed
message ends its stream with INVALID_ARGUMENT and a sentence; a sender that is too fast is read more slowly (`pace`),
one that does not read, or makes the hub keep more than its share, is cut off; a stream ends with the token that opened
it, and the sidecar dials again with a fresh one.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

import grpc
import grpc.aio
from fleetprof_api.hub import hub_pb2 as pb

from fleetprof_operator.hub.access.authentication import Principal
from fleetprof_operator.hub.access.call_authentication import CallAuthentication, Context, read_peer
from fleetprof_operator.hub.access.call_refusals import CallRefusal, CallRefusals
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.sidecars.holdings import OverBudget
from fleetprof_operator.hub.sidecars.messages import ProtocolError, parse_message
from fleetprof_operator.hub.sidecars.pace import StreamPaces
from fleetprof_operator.hub.sidecars.stream_seats import NoSeat, StreamSeats

log = logging.getLogger(__name__)

MOST_WAITING_BYTES: Final = 8 << 20  # down to one sidecar
UNREAD_S: Final = 30.0
_LAST_WORDS_S: Final = 1.0  # for what waits when a stream ends
_MAX_UPLOADS: Final = 64  # store calls under way for one sidecar
_HELLO_PATIENCE_S: Final = 15.0


class _Link:
    """The messages that wait to be sent to one sidecar, and how its stream ended."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[pb.HubMessage, int, float]] = deque()
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self.status = grpc.StatusCode.OK
        self.why = ""
        self.ended = asyncio.Event()
        self.refusal: CallRefusal | None = None

    def send(self, message: pb.HubMessage) -> None:
        if self.why:
            return
        now, size_bytes = time.monotonic(), message.ByteSize()
        is_late = bool(self._waiting) and now - self._waiting[0][2] > UNREAD_S
        if is_late or (self._waiting and self._waiting_bytes + size_bytes > MOST_WAITING_BYTES):
            self.refusal = CallRefusal.NOT_READING
            self.end(grpc.StatusCode.RESOURCE_EXHAUSTED, "the sidecar does not read what the hub sends")
            return
        self._waiting.append((message, size_bytes, now))
        self._waiting_bytes += size_bytes
        self._news.set()

    def close(self, why: str) -> None:
        self.end(grpc.StatusCode.ABORTED, why)

    def end(self, status: grpc.StatusCode, why: str) -> None:
        """Ends the stream with this status; the first one counts."""
        if not self.why:
            self.status, self.why = status, why
            self.ended.set()
            self._news.set()

    async def next(self) -> pb.HubMessage | None:
        """The oldest that waits; None when the stream has ended and nothing does."""
        while not self._waiting:
            if self.why:
                return None
            self._news.clear()
            await self._news.wait()
        message, size_bytes, _ = self._waiting.popleft()
        self._waiting_bytes -= size_bytes
        return message


async def _write(context: Context, link: _Link) -> None:
    while (message := await link.next()) is not None:
        await context.write(message)


class Streams:
    """Serves the streams of sidecars: who may open one, at what pace it is read, and how many a namespace has."""

    def __init__(self, hub: Hub, authentication: CallAuthentication, refusals: CallRefusals) -> None:
        self._hub = hub
        self._authentication = authentication
        self._refusals = refusals
        self._seats = StreamSeats(hub.settings.max_streams_per_namespace)
        self._paces = StreamPaces()

    async def connect(self, requests: AsyncIterator[bytes], context: Context) -> None:
        """One stream from its hello to its end."""
        principal = await self._authentication.admit(context)
        link = _Link()
        who = f"{principal.namespace}/{principal.pod_name}" if principal.pod_name else read_peer(context)
        try:
            with self._seats.take(principal, time.monotonic()):
                await self._converse(requests, context, principal, link, who)
        except NoSeat as refused:
            self._refusals.note(refused.kind, who, str(refused))
            link.end(grpc.StatusCode.RESOURCE_EXHAUSTED, str(refused))
        if link.status is not grpc.StatusCode.OK:
            await context.abort(link.status, link.why)

    async def _converse(
        self, requests: AsyncIterator[bytes], context: Context, principal: Principal, link: _Link, who: str
    ) -> None:
        """Until the link has ended. Whoever reads nothing keeps a write waiting, but not this."""
        expiry = self._end_with_token(principal, link)
        reader = asyncio.create_task(self._read(requests, principal, link, who))
        writer = asyncio.create_task(_write(context, link))
        try:
            await link.ended.wait()
            await asyncio.wait({writer}, timeout=_LAST_WORDS_S)
        finally:
            if expiry is not None:
                expiry.cancel()
            reader.cancel()
            writer.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
        if link.refusal is not None:
            self._refusals.note(link.refusal, who, link.why)

    def _end_with_token(self, principal: Principal, link: _Link) -> asyncio.TimerHandle | None:
        if not principal.expires_unix_ns:
            return None
        left_s = max(0.0, (principal.expires_unix_ns - time.time_ns()) / 1e9)
        message = "the token that opened this stream has expired; dial again with the fresh one"
        return asyncio.get_running_loop().call_later(left_s, link.end, grpc.StatusCode.UNAUTHENTICATED, message)

    async def _read(self, requests: AsyncIterator[bytes], principal: Principal, link: _Link, who: str) -> None:
        record = None
        pace, uploads = self._paces.begin(principal.namespace or ""), set[asyncio.Task[None]]()
        try:
            messages = aiter(requests)
            async with asyncio.timeout(_HELLO_PATIENCE_S):
                data = await anext(messages)
            weight = await pace.admit(data)
            async with pace.turn(weight):
                first = parse_message(data)
                if first.WhichOneof("body") != "hello":
                    raise ProtocolError("the first message must be hello")
                _check_identity(principal, first.hello.identity)
            if principal.pod_uid:
                await self._hub.name_workload(first.hello.identity)
            async with pace.turn(weight):
                record = self._hub.sessions.connect(first.hello, link, proved_pod_uid=principal.pod_uid or "")
                del first
            async for data in messages:
                async with pace.turn(await pace.admit(data)):
                    message = parse_message(data)
                    if message.WhichOneof("body") == "hello":
                        raise ProtocolError("hello may come once only")
                    work = self._hub.sessions.receive(record, message)
                    takes_long = message.WhichOneof("body") in ("upload_request", "upload_done")
                    if not takes_long:
                        await work
                if takes_long:
                    while len(uploads) >= _MAX_UPLOADS:
                        await asyncio.wait(uploads, return_when=asyncio.FIRST_COMPLETED)
                    task = asyncio.create_task(work)
                    uploads.add(task)
                    task.add_done_callback(uploads.discard)
            link.end(grpc.StatusCode.OK, "the sidecar ended the stream")
        except ProtocolError as error:
            self._refusals.note(CallRefusal.PROTOCOL, who, str(error))
            link.end(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except OverBudget as error:
            self._refusals.note(CallRefusal.BUDGET, who, str(error))
            link.end(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        except StopAsyncIteration:
            link.end(grpc.StatusCode.OK, "the stream was empty")
        except TimeoutError:
            link.end(grpc.StatusCode.DEADLINE_EXCEEDED, f"no hello came within {_HELLO_PATIENCE_S:.0f} s")
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a sidecar's stream ends by a fault of the hub")
            link.end(grpc.StatusCode.INTERNAL, "a fault of the hub; see its log")
        finally:
            for task in uploads:
                task.cancel()
            await asyncio.gather(*uploads, return_exceptions=True)
            if record is not None:
                self._hub.sessions.disconnect(record, link)


def _check_identity(principal: Principal, identity: pb.Identity) -> None:
    """A sidecar speaks for its token's namespace and pod. Raises ProtocolError."""
    for field in ("namespace", "pod_name", "pod_uid"):
        proved = getattr(principal, field)
        if proved is not None and proved != getattr(identity, field):
            raise ProtocolError(f"hello.identity.{field}: is not that of the token")
