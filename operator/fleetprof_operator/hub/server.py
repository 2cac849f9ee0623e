"""The hub over gRPC: sidecars' streams and the command line's calls.

Guarantees: every call needs a good token (`call_authentication`); plain text is served on loopback and Unix sockets
only; messages are bounded in size, connections in number; `streams` says what a stream may do. Source: grpc.aio;
statuses as in google.rpc.Code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio
from fleetprof_api.hub import hub_pb2 as pb
from fleetprof_api.hub.hub_pb2_grpc import add_CapturesServicer_to_server
from fleetprof_api.process.address import is_loopback

from fleetprof_operator.hub.access.authentication import SharedToken
from fleetprof_operator.hub.access.call_authentication import CallAuthentication
from fleetprof_operator.hub.access.call_refusals import CallRefusals
from fleetprof_operator.hub.captures_service import CapturesService
from fleetprof_operator.hub.hub import Hub
from fleetprof_operator.hub.sidecars.messages import MAX_MESSAGE_BYTES
from fleetprof_operator.hub.streams import Streams

MAX_STREAMS: Final = 5000
MOST_CONNECTIONS: Final = 6000
"""One per sidecar, and some for those who come and go. Each takes 70 kB, and anybody can open one without a token."""
STOP_GRACE_S: Final = 1.0
_OPTIONS: Final[list[tuple[str, Any]]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.so_reuseport", 0),  # a second hub on the port fails, rather than share its sidecars
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.max_concurrent_streams", 8),  # of one connection; a sidecar has one
    ("grpc.max_connection_idle_ms", 15_000),  # without a call: whoever holds many has to come again and again
    ("grpc.server_handshake_timeout_ms", 10_000),
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

    def __init__(self, server: grpc.aio.Server, port: int, refusals: CallRefusals) -> None:
        self._server = server
        self._refusals = refusals
        self.port = port

    async def stop(self, grace_s: float | None = STOP_GRACE_S) -> None:
        """Ends all streams after `grace_s`, None: at once; sidecars dial again by themselves."""
        await self._server.stop(grace_s)
        self._refusals.close()


async def serve(
    hub: Hub,
    address: str,
    *,
    token: str | None = None,
    tls: ServerTls | TlsSource | None = None,
    captures: bool = True,
    beside: Sequence[Callable[[grpc.aio.Server], None]] = (),
) -> RunningServer:
    """Serves the hub at `address` (host:port, port 0: any free one; unix:PATH, whose folder says who may come).

    `token` is the one secret of everybody; without it the hub's own authenticator decides. `captures` serves people's
    calls as well: never where a sidecar's token is not a person's, for it must not submit or list. `beside` adds
    services of others, which admit their callers themselves. Raises
    ValueError when token and authenticator are both there or both missing, or when plain text would leave the machine;
    OSError when the address is taken.
    """
    if (token is None) == (hub.authenticate is None):
        raise ValueError("a hub is served with a token or with an authenticator of its own, one of both")
    authenticator = SharedToken(token) if token is not None else hub.authenticate
    assert authenticator is not None
    if tls is None and not is_loopback(address):
        raise ValueError(
            f"{address} is not a loopback address: a hub there needs TLS (a certificate and its key), since tokens and "
            "orders would cross the network in plain text"
        )
    options = [*_OPTIONS, ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS)]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=MAX_STREAMS)
    authentication = CallAuthentication(authenticator, hub.refusals, hub.settings.namespaces)
    # The stream's messages are taken as bytes, so that a malformed one is answered by us.
    connect = grpc.stream_stream_rpc_method_handler(
        Streams(hub, authentication, hub.refusals).connect, response_serializer=pb.HubMessage.SerializeToString
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("fleetprof.v1.Hub", {"Connect": connect}),))
    if captures:
        add_CapturesServicer_to_server(CapturesService(hub, authentication), server)
    for add in beside:
        add(server)
    try:
        if tls is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, _make_credentials(tls))
    except RuntimeError as error:
        raise OSError(f"cannot listen at {address}: {error}; is another hub there?") from None
    await server.start()
    return RunningServer(server, port, hub.refusals)


def _make_credentials(tls: ServerTls | TlsSource) -> grpc.ServerCredentials:
    def configure(pair: ServerTls) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(pair.private_key, pair.certificate_chain)])

    if isinstance(tls, ServerTls):
        return grpc.ssl_server_credentials([(tls.private_key, tls.certificate_chain)])
    return grpc.dynamic_ssl_server_credentials(configure(tls()), lambda: configure(tls()))
