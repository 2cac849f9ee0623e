"""Connections that say nothing, or never end what they say, keep nobody out, and end; what is in use goes on."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fleetprof_api.process.connection_table import ConnectionLimits
from fleetprof_webui.listener import connections
from fleetprof_webui.listener.server import Server, make_server
from starlette.types import Receive, Scope, Send

MOST = 40


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """A page; /stream goes on until it is told to end; a body is read whole."""
    if scope["type"] == "lifespan":
        for word in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{word}.complete"})
        return
    if scope["method"] == "POST":
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": b"data\n", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "BODY_S", 1.0)
    monkeypatch.setattr(connections, "_LOOK_S", 0.1)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as place:
        server = make_server(
            answer, limits=ConnectionLimits(most=MOST, most_of_one=MOST, patience_s=1.0, kept_s=1.0), ends_within_s=1
        )
        thread = threading.Thread(target=_serve, args=(server, place))
        thread.start()
        try:
            yield place.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)


def _serve(server: Server, place: socket.socket) -> None:
    server.run(sockets=[place])


def ask(port: int) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        client.request("GET", "/")
        return client.getresponse().status
    finally:
        client.close()


def begin(opened: ExitStack, port: int, text: bytes) -> socket.socket:
    connection = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
    connection.sendall(text)
    return connection


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(10)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.attack
@pytest.mark.parametrize(
    "text",
    [b"", b"GET / HTTP/1.1\r\nHost: a\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nbegun"],
    ids=["silent", "no end of the head", "no end of the body"],
)
def test_who_says_nothing_keeps_nobody_out_and_ends(port: int, text: bytes) -> None:
    with ExitStack() as opened:
        stream = begin(opened, port, b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        assert stream.recv(12) == b"HTTP/1.1 200"
        silent = [begin(opened, port, text) for _ in range(MOST - 2)]
        assert ask(port) == 200
        assert all(is_closed(connection) for connection in silent)
        stream.settimeout(0.2)
        stream.recv(4096)
        with pytest.raises(TimeoutError):  # goes on
            stream.recv(1)


@pytest.mark.attack
def test_more_than_there_is_room_for_are_heard_all_the_same(port: int) -> None:
    with ExitStack() as opened:
        for _ in range(8 * MOST):
            begin(opened, port, b"")
        assert ask(port) == 200
