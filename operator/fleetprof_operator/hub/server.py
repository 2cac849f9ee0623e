"""The hub over gRPC: sidecars' streams and the command line's calls.

Guarantees: nobody is heard without a good token; plain text is served on loopback only; messages are bounded in size
and pace (a sender that is too fast is read more slowly, not dropped); a malformed message ends its stream with
INVALID_ARGUMENT and a sentence; the sidecar's first message is its hello, and it speaks for its token's
namespace and pod. Source: grpc.aio; statuses as in google.rpc.Code.
"""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio
from fleetprof_api import hub_pb2 as pb
from fleetprof_api.hub_pb2_grpc import add_CapturesServicer_to_server

from fleetprof_operator.hub.authentication import Principal, SharedToken
from fleetprof_operator.hub.captures_service import CapturesService
from fleetprof_operator.hub.gate import Context, Gate
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.messages import MAX_MESSAGE_BYTES, ProtocolError, parse_message

log = logging.getLogger(__name__)

MESSAGES_PER_S: Final = 200
BURST: Final = 2000
MAX_STREAMS: Final = 5000
_MAX_WAITING: Final = 4096  # messages down to one sidecar that does not read
_MAX_UPLOADS: Final = 64  # store calls under way for one sidecar
_HELLO_PATIENCE_S: Final = 15.0
_STOP_GRACE_S: Final = 1.0
_OPTIONS: Final[list[tuple[str, Any]]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.so_reuseport", 0),  # a second hub on the port fails, rather than share its sidecars
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
]


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The server's certificate chain and private key, PEM."""

    certificate_chain: bytes
    private_key: bytes


TlsSource = Callable[[], ServerTls]
"""Asked at each handshake, in a thread of gRPC's: a renewed certificate needs no restart."""


class RunningServer:
    """The server; `port` is where it listens."""

    def __init__(self, server: grpc.aio.Server, port: int) -> None:
        self._server = server
        self.port = port

    async def stop(self) -> None:
        """Ends all streams; sidecars dial again by themselves."""
        await self._server.stop(_STOP_GRACE_S)


async def serve(
    hub: Hub,
    address: str,
    *,
    token: str | None = None,
    tls: ServerTls | TlsSource | None = None,
    captures: bool = True,
) -> RunningServer:
    """Serves the hub at `address` (host:port, port 0: any free one).

    `token` is the one secret of everybody; without it the hub's own authenticator decides. `captures` serves people's
    calls as well: never where a sidecar's token is not a person's, for it must not submit or list. Raises
    ValueError when token and authenticator are both there or both missing, or when plain text would leave the machine;
    OSError when the address is taken.
    """
    if (token is None) == (hub.authenticate is None):
        raise ValueError("a hub is served with a token or with an authenticator of its own, one of both")
    authenticator = SharedToken(token) if token is not None else hub.authenticate
    assert authenticator is not None
    if tls is None and not _is_loopback(address):
        raise ValueError(
            f"{address} is not a loopback address: a hub there needs TLS (a certificate and its key), since tokens and "
            "orders would cross the network in plain text"
        )
    server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=MAX_STREAMS)
    gate = Gate(authenticator)
    # The stream's messages are taken as bytes, so that a malformed one is answered by us.
    connect = grpc.stream_stream_rpc_method_handler(
        _Streams(hub, gate).connect, response_serializer=pb.HubMessage.SerializeToString
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("fleetprof.v1.Hub", {"Connect": connect}),))
    if captures:
        add_CapturesServicer_to_server(CapturesService(hub, gate), server)
    try:
        if tls is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, _make_credentials(tls))
    except RuntimeError as error:
        raise OSError(f"cannot listen at {address}: {error}; is another hub there?") from None
    await server.start()
    return RunningServer(server, port)


def _make_credentials(tls: ServerTls | TlsSource) -> grpc.ServerCredentials:
    def configure(pair: ServerTls) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(pair.private_key, pair.certificate_chain)])

    if isinstance(tls, ServerTls):
        return grpc.ssl_server_credentials([(tls.private_key, tls.certificate_chain)])
    return grpc.dynamic_ssl_server_credentials(configure(tls()), lambda: configure(tls()))


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Pace:
    """A token bucket: `wait` returns when one more message may be read."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._at = asyncio.get_running_loop().time()

    async def wait(self) -> None:
        now = asyncio.get_running_loop().time()
        self._left = min(float(BURST), self._left + (now - self._at) * MESSAGES_PER_S) - 1
        self._at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / MESSAGES_PER_S)


class _Link:
    """What waits to be sent to one sidecar; None ends the stream."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[pb.HubMessage | None] = asyncio.Queue()
        self.status = grpc.StatusCode.OK
        self.why = ""

    def send(self, message: pb.HubMessage) -> None:
        if self._waiting.qsize() >= _MAX_WAITING:
            self.end(grpc.StatusCode.RESOURCE_EXHAUSTED, "the sidecar does not read what the hub sends")
            return
        self._waiting.put_nowait(message)

    def close(self, why: str) -> None:
        self.end(grpc.StatusCode.ABORTED, why)

    def end(self, status: grpc.StatusCode, why: str) -> None:
        """Ends the stream with this status; the first one counts."""
        if not self.why:
            self.status, self.why = status, why
            self._waiting.put_nowait(None)

    async def next(self) -> pb.HubMessage | None:
        return await self._waiting.get()


class _Streams:
    """The sidecars' streams."""

    def __init__(self, hub: Hub, gate: Gate) -> None:
        self._hub = hub
        self._gate = gate

    async def connect(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[pb.HubMessage]:
        """One stream from its hello to its end."""
        principal = await self._gate.admit(context)
        link = _Link()
        reader = asyncio.create_task(self._read(requests, principal, link))
        try:
            while (message := await link.next()) is not None:
                yield message
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        if link.status is not grpc.StatusCode.OK:
            await context.abort(link.status, link.why)

    async def _read(self, requests: AsyncIterator[bytes], principal: Principal, link: _Link) -> None:
        record = None
        pace, uploads = _Pace(), set[asyncio.Task[None]]()
        try:
            messages = aiter(requests)
            async with asyncio.timeout(_HELLO_PATIENCE_S):
                first = parse_message(await anext(messages))
            if first.WhichOneof("body") != "hello":
                raise ProtocolError("the first message must be hello")
            _check_identity(principal, first.hello.identity)
            record = self._hub.connect(first.hello, link)
            async for data in messages:
                await pace.wait()
                message = parse_message(data)
                if message.WhichOneof("body") == "hello":
                    raise ProtocolError("hello may come once only")
                work = self._hub.receive(record, message)
                if message.WhichOneof("body") in ("upload_request", "upload_done"):
                    while len(uploads) >= _MAX_UPLOADS:
                        await asyncio.wait(uploads, return_when=asyncio.FIRST_COMPLETED)
                    task = asyncio.create_task(work)
                    uploads.add(task)
                    task.add_done_callback(uploads.discard)
                else:
                    await work
            link.end(grpc.StatusCode.OK, "the sidecar ended the stream")
        except ProtocolError as error:
            log.warning("a sidecar's stream ends: %s", error)
            link.end(grpc.StatusCode.INVALID_ARGUMENT, str(error))
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
                self._hub.disconnect(record, link)


def _check_identity(principal: Principal, identity: pb.Identity) -> None:
    """A sidecar speaks for its token's namespace and pod. Raises ProtocolError."""
    for field in ("namespace", "pod_name", "pod_uid"):
        proved = getattr(principal, field)
        if proved is not None and proved != getattr(identity, field):
            raise ProtocolError(f"hello.identity.{field}: is not that of the token")
